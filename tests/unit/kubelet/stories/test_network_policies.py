"""No container starts before the network's policies hold for its pod, told as a story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

WHY = "network policies are not enforced for 10.0.0.1: nftables is away"


def test_a_container_waits_for_the_policies_and_says_so(play: Play) -> None:
    async def story(node: Node) -> None:
        asked: list[Sequence[str]] = []
        why = WHY

        async def admit(pod: Pod, addresses: Sequence[str]) -> str:
            asked.append(addresses)
            return why

        await node.crash()
        node.admit = admit
        await node.boot()
        await node.create("web")
        pod = await node.until("web", node.waits_for("NetworkPolicyNotEnforced"))
        assert node.waiting(pod.status.container_statuses[0].state).message == WHY
        assert any(f"Error: {WHY}" in said for said in await node.events("web"))
        assert not any(call.startswith("create") for call in node.runtime.calls if "app" in call)
        why = ""
        pod = await node.until("web", node.is_ready)
        assert set(asked) == {(pod.status.pod_ip,)}

    play(story)
