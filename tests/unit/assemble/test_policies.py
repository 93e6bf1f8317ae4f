"""A kubelet asks the process that enforces network policies, and starts nothing when that is away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podling.assemble.policies import answering, asking, listener
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod

POD = Pod(metadata=ObjectMeta(name="web", namespace="default", labels={"app": "web"}))


async def test_the_answer_is_that_of_the_other_process(tmp_path: Path) -> None:
    path, asked = tmp_path / "policies", list[tuple[str, Sequence[str]]]()
    admit = asking(path)
    # Nobody has ever enforced them here.
    assert await admit(POD, ("10.0.0.1",)) == ""

    async def decide(pod: Pod, addresses: Sequence[str]) -> str:
        asked.append((pod.metadata.labels["app"], addresses))
        return "" if len(asked) == 1 else "no room"

    async with await answering(decide, listener(path)):
        assert path.stat().st_mode & 0o777 == 0o600
        assert await admit(POD, ("10.0.0.1", "fd00::1")) == ""
        assert await admit(POD, ("10.0.0.2",)) == "no room"
    assert asked == [("web", ("10.0.0.1", "fd00::1")), ("web", ("10.0.0.2",))]
    assert "does not answer" in await admit(POD, ("10.0.0.1",))
    async with await answering(decide, listener(path)):
        assert await admit(POD, ("10.0.0.1",)) == "no room"
