"""Who shows logs and cannot any more ends, and does not ask for them again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from podling.debug.log_lines import Part
from podling.model.codec import json
from podling.model.types.pod import Pod
from podling.remote.logs import Asked, Follower, Source, Watched, read_all

STATE = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
STATUS = {
    "name": "app",
    "state": STATE,
    "containerID": "x://1",
    "restartCount": 0,
    "image": "i",
    "imageID": "",
}
POD = json.from_data(
    {
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {"containers": [{"name": "app", "image": "i"}]},
        "status": {"phase": "Running", "containerStatuses": [STATUS]},
    },
    Pod,
)


class Talking:
    """A cluster whose one container never stops talking."""

    def __init__(self) -> None:
        self.asked = 0

    async def log_stream(self, *_: str, **options: str) -> AsyncGenerator[bytes, None]:
        self.asked += 1
        for second in range(60):
            yield f"2026-01-01T00:00:{second:02}Z line\n".encode()
            await asyncio.sleep(0)

    async def changes(self, *_: Any, **options: str) -> AsyncGenerator[Any, None]:
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize(
    "error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")]
)
async def test_what_cannot_be_shown_ends_it(error: OSError) -> None:
    shown: list[bytes] = []

    def show(source: Source, parts: Sequence[Part]) -> None:
        if len(shown) == 3:
            raise error
        shown.extend(part.text for part in parts)

    told: list[str] = []
    cluster: Any = Talking()
    async with asyncio.timeout(10):
        with pytest.raises(OSError, match=error.strerror or ""):
            await Follower(cluster, Asked(), show, told.append, 5).follow([POD], [Watched("default", "web")])
        assert (cluster.asked, told, shown) == (1, [], [b"line\n"] * 3)
        shown.clear()
        with pytest.raises(OSError, match=error.strerror or ""):
            await read_all(cluster, [POD], Asked(), show, told.append)
