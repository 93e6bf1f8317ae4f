"""A server that plays a script: each request or watch is answered with the next line of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from podling.client.transport import JSON, Answer
from podling.model.errors import StatusError

Step = Answer | list[bytes] | StatusError


@dataclass
class ScriptedServer:
    """Keeps the promise of a transport. What was asked stands in `asked`; an empty script hangs in
    `exhausted`.
    """

    script: list[Step]
    exhausted: Callable[[], None]
    asked: list[tuple[str, str, dict[str, str], object]] = field(default_factory=list)

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        self.asked.append((method, path, dict(query), msgspec.json.decode(body) if body else None))
        step = self.script.pop(0)
        assert isinstance(step, tuple), f"{method} {path} came where a watch was expected"
        if not self.script:
            self.exhausted()
        return step

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        self.asked.append(("WATCH", path, dict(query), None))
        if not self.script:
            self.exhausted()
            await asyncio.Event().wait()
        step = self.script.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, list), f"a watch of {path} came where a request was expected"
        for piece in step:
            yield piece

    async def close(self) -> None: ...


class HandClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def scripted() -> type[ScriptedServer]:
    return ScriptedServer
