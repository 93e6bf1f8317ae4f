"""Whom the node takes and whom it refuses, as stories (R-INIT-9, R-SYS-5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from podling.model.types.node import Node as ApiNode
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

NO_EXECUTE = {"key": "gone", "effect": "NoExecute"}


def asks(**requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def ended(pod: Pod) -> bool:
    return pod.status.phase == "Failed"


class SlowToStop:
    """A runtime that stops a sandbox only when it is let."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self.may_stop = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def stop_pod_sandbox(self, sandbox_id: str) -> None:
        await self.may_stop.wait()
        await self._runtime.stop_pod_sandbox(sandbox_id)


async def refused(node: Node, name: str) -> tuple[str, str]:
    pod = await node.until(name, ended)
    assert not pod.status.container_statuses
    assert not any(call.startswith(f"run default/{name}#") for call in node.runtime.calls)
    return pod.status.reason, pod.status.message


def test_a_pod_that_asks_for_more_than_is_left_fails_with_the_resource(play: Play) -> None:
    async def story(node: Node) -> None:
        whole = node.allocatable("cpu")
        await node.create("one", asks(cpu=f"{whole - 100}m"))
        await node.until("one", node.is_ready)
        await node.create("two", asks(cpu="200m"))
        assert await refused(node, "two") == (
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 200, "
            f"used: {whole - 100}, capacity: {whole}",
        )
        events = await node.events("two")
        assert [event.split(",")[0] for event in events] == [
            "Warning OutOfcpu Node didn't have enough resource: cpu"
        ]
        await node.client.delete(Pod, "one", "default")
        await node.until_gone("one")
        await node.create("three", asks(cpu="200m"))
        await node.until("three", node.is_ready)

    play(story)


def test_a_pod_that_says_it_is_over_has_given_its_share_back(play: Play) -> None:
    """Whoever hears of it may send the next pod at once, as a scheduler does."""

    async def story(node: Node) -> None:
        runtime = SlowToStop(node.runtime)
        await node.boot(runtime)
        all_of_it = asks(cpu=f"{node.allocatable('cpu')}m")
        await node.create("victim", all_of_it, restartPolicy="Never")
        await node.until("victim", node.is_ready)
        await node.client.delete(Pod, "victim", "default")
        await node.until("victim", lambda pod: pod.status.phase in ("Succeeded", "Failed"))
        await node.create("next", all_of_it)
        await node.until("next", lambda pod: pod.status.phase != "Pending")
        assert node.pod("next").status.phase == "Running"
        runtime.may_stop.set()

    play(story, boot=False)


def test_the_most_demanding_init_container_counts(play: Play) -> None:
    """R-INIT-9"""

    async def story(node: Node) -> None:
        init = {**node.container("one"), **asks(memory="1Pi")}
        await node.create("web", asks(memory="1Mi"), initContainers=[init])
        assert (await refused(node, "web"))[0] == "OutOfmemory"

    play(story)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"nodeSelector": {"disk": "fast"}},
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            {"os": {"name": "windows"}},
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
        (
            {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
        ),
    ],
)
def test_a_pod_this_node_is_not_for(
    play: Play,
    spec: dict[str, dict[str, str]] | dict[str, dict[str, list[dict[str, str]]]],
    reason: str,
    message: str,
) -> None:
    async def story(node: Node) -> None:
        await node.create("web", **spec)
        assert await refused(node, "web") == (reason, f"Pod was rejected: {message}")

    play(story)


def test_a_host_port_is_given_once(play: Play) -> None:
    async def story(node: Node) -> None:
        port = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
        await node.create("one", port)
        await node.until("one", node.is_ready)
        await node.create("two", port)
        assert (await refused(node, "two"))[0] == "NodePorts"

    play(story)


def test_labels_given_to_the_node_a_moment_ago_count(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.client.patch(ApiNode, "n1", "", {"metadata": {"labels": {"disk": "fast"}}})
        await node.create("web", nodeSelector={"disk": "fast"})
        await node.until("web", node.is_ready)

    play(story)


def test_a_taint_that_executes_refuses_who_does_not_tolerate_it(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.client.patch(ApiNode, "n1", "", {"spec": {"taints": [NO_EXECUTE]}})
        await node.kubelet._reporter.look()
        await node.create("web")
        assert (await refused(node, "web"))[0] == "TaintToleration"
        await node.create("tolerant", tolerations=[{"operator": "Exists"}])
        await node.until("tolerant", node.is_ready)

    play(story)


def test_a_pod_that_runs_keeps_its_place_when_the_kubelet_starts_again(play: Play) -> None:
    """Whatever the node's labels have become, and whoever has come meanwhile (R-INIT-11)."""

    async def story(node: Node) -> None:
        whole = node.allocatable("cpu")
        await node.client.patch(ApiNode, "n1", "", {"metadata": {"labels": {"disk": "fast"}}})
        await node.create("web", asks(cpu=f"{whole}m"), nodeSelector={"disk": "fast"})
        await node.until("web", node.is_ready)
        await node.crash()
        await node.client.patch(ApiNode, "n1", "", {"metadata": {"labels": {"disk": None}}})
        await node.create("a", asks(cpu="1m"))
        await node.boot()
        assert (await refused(node, "a"))[0] == "OutOfcpu"
        assert node.is_ready(node.pod("web"))

    play(story)


def test_others_make_room_for_a_critical_pod_and_it_waits_until_they_have(play: Play) -> None:
    async def story(node: Node) -> None:
        whole = node.allocatable("cpu")
        await node.create("small", asks(cpu="100m"))
        await node.create("large", asks(cpu=f"{whole - 100}m"))
        for name in ("small", "large"):
            await node.until(name, node.is_ready)
        await node.create("critical", asks(cpu="200m"), priorityClassName="system-node-critical")
        await node.until("critical", node.is_ready)
        victim = await node.until("large", ended)
        assert (victim.status.reason, victim.status.message) == (
            "Preempting",
            "Preempted in order to admit critical pod",
        )
        calls = node.runtime.calls
        assert calls.index("stop default/large#0") < calls.index("run default/critical#0")
        assert node.is_ready(node.pod("small"))

    play(story)
