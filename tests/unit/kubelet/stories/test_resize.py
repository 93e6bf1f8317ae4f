"""Resizing pods in place, as stories: from the spec to the runtime, the status and the events (R-SYS-5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.hollow.script import HollowImage, Script
from podling.cri.interface import RuntimeFault
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodCondition

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

MANY = "1000000"


def resources(requests: str, limits: str = "") -> dict[str, Any]:
    def amounts(text: str) -> dict[str, str]:
        return dict(word.split("=") for word in text.split())

    return {"resources": {"requests": amounts(requests), "limits": amounts(limits)}}


async def resize(node: Node, name: str, requests: str, limits: str = "") -> int:
    return await change(node, name, {"containers": [{"name": "app", **resources(requests, limits)}]})


async def change(node: Node, name: str, spec: dict[str, Any]) -> int:
    """The generation it made."""
    body = {"spec": spec}
    pod: Pod = await node.client.patch(
        Pod,
        name,
        "default",
        body,
        subresource="resize",
        patch_type="application/strategic-merge-patch+json",
    )
    return pod.metadata.generation


def condition(pod: Pod, kind: str) -> PodCondition | None:
    return next((c for c in pod.status.conditions if c.type == kind), None)


def has(pod: Pod, request: str) -> bool:
    """Whether the container is said to have this much CPU."""
    shown = pod.status.container_statuses[0].resources if pod.status.container_statuses else None
    return shown is not None and str(shown.requests.get("cpu")) == request


def resize_events(events: list[str]) -> list[str]:
    return [event.partition(":")[0] for event in events if "Resize" in event]


def test_a_running_container_is_given_what_its_spec_says_now(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", resources("cpu=100m memory=10Mi", "memory=20Mi"))
        await node.until("web", node.is_ready)
        generation = await resize(node, "web", "cpu=200m memory=10Mi", "memory=40Mi")
        pod = await node.until("web", lambda pod: has(pod, "200m"))

        assert node.runtime.calls[-1] == "update app#0"
        told = next(iter(node.runtime._containers.values())).resources
        assert (told.cpu_shares, told.memory_limit_in_bytes) == (204, 40 << 20)
        status = pod.status.container_statuses[0]
        assert (status.restart_count, str(status.allocated_resources["cpu"])) == (0, "200m")
        assert condition(pod, "PodResizeInProgress") is condition(pod, "PodResizePending") is None
        assert pod.status.observed_generation == generation
        events = await node.events("web")
        assert resize_events(events) == [
            "Normal ResizeStarted Pod resize started",
            "Normal ResizeCompleted Pod resize completed",
        ]
        summary = json.loads(events[-1].partition(": ")[2])
        assert summary["generation"] == generation
        assert summary["containers"][0]["resources"]["requests"]["cpu"] == "200m"

    play(story)


def test_what_the_node_can_never_give_is_infeasible(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", resources("cpu=100m"))
        await node.until("web", node.is_ready)
        generation = await resize(node, "web", f"cpu={MANY}")
        pod = await node.until("web", lambda pod: condition(pod, "PodResizePending") is not None)
        pending = condition(pod, "PodResizePending")
        assert pending is not None
        assert (pending.status, pending.reason) == ("True", "Infeasible")
        assert pending.message.startswith(
            f"Node didn't have enough capacity: cpu, requested: {MANY}000, capacity: "
        )
        assert pending.observed_generation == generation
        assert has(pod, "100m")
        assert "update app#0" not in node.runtime.calls
        assert resize_events(await node.events("web")) == ["Warning ResizeInfeasible Pod resize Infeasible"]
        await resize(node, "web", "cpu=100m")
        await node.until("web", lambda pod: condition(pod, "PodResizePending") is None)

    play(story)


def test_what_others_have_is_deferred_until_they_give_it_back(play: Play) -> None:
    async def story(node: Node) -> None:
        whole = node.allocatable("cpu")
        await node.create("other", resources(f"cpu={whole - 200}m"))
        await node.until("other", node.is_ready)
        await node.create("web", resources("cpu=100m"))
        await node.until("web", node.is_ready)
        await resize(node, "web", "cpu=300m")
        pod = await node.until("web", lambda pod: condition(pod, "PodResizePending") is not None)
        pending = condition(pod, "PodResizePending")
        assert pending is not None
        assert (pending.reason, pending.message) == (
            "Deferred",
            f"Node didn't have enough resource: cpu, requested: 300, used: {whole - 200}, capacity: {whole}",
        )
        await node.client.delete(Pod, "other", "default")
        pod = await node.until("web", lambda pod: has(pod, "300m"))
        assert condition(pod, "PodResizePending") is None
        assert resize_events(await node.events("web"))[0] == "Warning ResizeDeferred Pod resize Deferred"

    play(story)


def test_another_pods_resize_makes_room_too(play: Play) -> None:
    async def story(node: Node) -> None:
        whole = node.allocatable("cpu")
        for name, cpu in (("other", whole - 200), ("web", 100)):
            await node.create(name, resources(f"cpu={cpu}m"))
            await node.until(name, node.is_ready)
        await resize(node, "web", "cpu=300m")
        await node.until("web", lambda pod: condition(pod, "PodResizePending") is not None)
        await resize(node, "other", "cpu=100m")
        await node.until("web", lambda pod: has(pod, "300m"))

    play(story)


def test_a_container_restarts_where_its_resize_policy_says_so(play: Play) -> None:
    async def story(node: Node) -> None:
        policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        await node.create("web", {**resources("cpu=100m memory=10Mi"), "resizePolicy": policy})
        await node.until("web", node.is_ready)
        await resize(node, "web", "cpu=200m memory=10Mi")
        await node.until("web", lambda pod: has(pod, "200m"))
        assert node.runtime.calls[-1] == "update app#0"

        await resize(node, "web", "cpu=200m memory=20Mi")
        pod = await node.until("web", lambda pod: pod.status.container_statuses[0].restart_count == 1)
        pod = await node.until("web", node.is_ready)
        assert node.runtime.calls[-3:] == ["stop app#0", "create app#1", "start app#1"]
        given = pod.status.container_statuses[0].resources
        assert given and str(given.requests["memory"]) == "20Mi"
        assert [event for event in await node.events("web") if "Killing" in event] == [
            "Normal Killing spec.containers{app} Container app resize requires restart"
        ]

    play(story)


def test_a_runtime_that_refuses_is_asked_again_and_the_condition_says_why(play: Play) -> None:
    fault = RuntimeFault("UNKNOWN", "device or resource busy")

    async def story(node: Node) -> None:
        await node.create("web", resources("cpu=100m"))
        await node.until("web", node.is_ready)
        await resize(node, "web", "cpu=200m")
        pod = await node.until("web", lambda pod: _in_progress(pod) == "Error")
        shown = condition(pod, "PodResizeInProgress")
        assert shown is not None
        assert shown.message == "rpc error: code = Unknown desc = device or resource busy"
        assert has(pod, "100m")
        assert str(pod.status.container_statuses[0].allocated_resources["cpu"]) == "200m"
        image.runs = (Script(),)
        next(iter(node.runtime._containers.values())).script = Script()
        await node.until("web", lambda pod: has(pod, "200m"))
        assert resize_events(await node.events("web")) == [
            "Normal ResizeStarted Pod resize started",
            "Warning ResizeError Pod resize error",
            "Normal ResizeCompleted Pod resize completed",
        ]

    image = HollowImage(runs=(Script(update_fault=fault),))
    play(story, app=image)


def _in_progress(pod: Pod) -> str | None:
    found = condition(pod, "PodResizeInProgress")
    return found.reason if found else None


def test_a_kubelet_that_starts_again_knows_what_it_gave(play: Play) -> None:
    """R-INIT-11: nothing is actuated twice, and a spec changed meanwhile is a resize."""

    async def story(node: Node) -> None:
        await node.create("web", resources("cpu=100m"))
        await node.until("web", node.is_ready)
        await resize(node, "web", "cpu=200m")
        await node.until("web", lambda pod: has(pod, "200m"))
        await node.crash()
        await node.boot()
        assert node.runtime.calls.count("update app#0") == 1

        await node.crash()
        await resize(node, "web", f"cpu={MANY}")
        await node.boot()
        pod = await node.until("web", lambda pod: condition(pod, "PodResizePending") is not None)
        assert has(pod, "200m")
        assert node.runtime.calls.count("update app#0") == 1

    play(story)


def test_a_pod_resized_only_as_a_whole_shows_it_and_is_told_when_it_is_done(play: Play) -> None:
    """Its container has limits of its own, so that only the pod's cgroup changes."""

    async def story(node: Node) -> None:
        await node.create("web", resources("cpu=100m", "cpu=200m"), **resources("cpu=200m", "cpu=300m"))
        await node.until("web", node.is_ready)
        generation = await change(node, "web", resources("cpu=250m", "cpu=300m"))
        pod = await node.until("web", lambda pod: _whole(pod) == "250m")
        assert condition(pod, "PodResizeInProgress") is None
        assert str(pod.status.allocated_resources["cpu"]) == "250m"
        assert "update app#0" not in node.runtime.calls
        events = await node.events("web")
        assert resize_events(events) == [
            "Normal ResizeStarted Pod resize started",
            "Normal ResizeCompleted Pod resize completed",
        ]
        assert json.loads(events[-1].partition(": ")[2])["generation"] == generation

    play(story)


def test_a_pod_that_cannot_be_given_less_as_a_whole_says_why_and_what_it_still_has(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        await node.create(
            "web", resources("memory=1Mi", "memory=8Mi"), **resources("memory=9Mi", "memory=9Mi")
        )
        await node.until("web", node.is_ready)
        cgroups = node.kubelet._cgroups
        monkeypatch.setattr(cgroups, "memory_usage", lambda pod, container_id="": 9 << 20)
        await change(node, "web", resources("memory=8Mi", "memory=8Mi"))
        pod = await node.until("web", lambda pod: _in_progress(pod) == "Error")
        shown = condition(pod, "PodResizeInProgress")
        assert shown is not None
        assert shown.message.startswith("attempting to set pod memory limit (8388608) below current usage")
        assert pod.status.resources
        assert str(pod.status.resources.limits["memory"]) == "9Mi"
        assert str(pod.status.allocated_resources["memory"]) == "8Mi"
        monkeypatch.setattr(cgroups, "memory_usage", lambda pod, container_id="": 0)
        pod = await node.until("web", lambda pod: condition(pod, "PodResizeInProgress") is None)
        assert pod.status.resources
        assert str(pod.status.resources.limits["memory"]) == "8Mi"

    play(story)


def _whole(pod: Pod) -> str:
    shown = pod.status.resources
    return str(shown.requests["cpu"]) if shown is not None else ""


def test_an_init_container_that_runs_is_resized_and_one_that_waits_starts_with_it(play: Play) -> None:
    async def story(node: Node) -> None:
        first = node.container("first", **resources("cpu=100m"))
        second = node.container("second", **resources("cpu=100m"))
        await node.create("web", initContainers=[first, second])
        await node.until("web", lambda pod: _runs(pod, 0))
        names = ("first", "second")
        wanted = [{"name": name, **resources("cpu=200m")} for name in names]
        await change(node, "web", {"initContainers": wanted})
        pod = await node.until("web", lambda pod: _cpu(pod, 0) == "200m")
        assert node.runtime.calls[-1] == "update first#0"
        await node.until("web", lambda pod: _runs(pod, 1) and _cpu(pod, 1) == "200m")
        assert "update second#0" not in node.runtime.calls
        pod = await node.until("web", node.is_ready)
        assert condition(pod, "PodResizeInProgress") is None

    ends = HollowImage((Script(exit_code=0, after=60),), present=True)
    play(story, first=ends, second=ends)


def _runs(pod: Pod, index: int) -> bool:
    statuses = pod.status.init_container_statuses
    return bool(statuses) and statuses[index].state.running is not None


def _cpu(pod: Pod, index: int) -> str:
    shown = pod.status.init_container_statuses[index].resources
    return str(shown.requests.get("cpu")) if shown is not None else ""
