"""Lifecycle hooks, told as stories: what a container is told after its start and before its end, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.model.gates import Gates
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

SECONDS = 5


def hooks(**handlers: Any) -> dict[str, Any]:
    return {"lifecycle": handlers}


def run(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


def image(term_code: int | None = 143) -> HollowImage:
    executes: dict[tuple[str, ...], ExecOutcome] = {
        ("hook",): ExecOutcome(),
        ("slow",): ExecOutcome(seconds=SECONDS),
        ("endless",): ExecOutcome(seconds=10_000),
        ("bad",): ExecOutcome(1, stderr=b"secret"),
    }
    return HollowImage((Script(executes=executes, term_code=term_code),), present=True)


def time() -> float:
    return asyncio.get_running_loop().time()


async def delete(node: Node, grace: int | None = None) -> float:
    """How long it takes."""
    before = time()
    await node.client.delete(Pod, "web", "default", grace_seconds=grace)
    await node.until_gone("web")
    await node.until_idle("web")
    return time() - before


def ended(node: Node) -> list[str]:
    """What was asked of the runtime from the first stop or command on."""
    calls: list[str] = node.runtime.calls
    first = min(calls.index(call) for call in calls if call.startswith(("exec", "stop app")))
    return [call for call in calls[first:] if not call.startswith("remove")]


@pytest.mark.parametrize("hook", [run("slow"), {"sleep": {"seconds": SECONDS}}])
def test_a_container_is_not_started_before_its_post_start_hook_is_done(
    play: Play, hook: dict[str, Any]
) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(postStart=hook))
        await asyncio.sleep(SECONDS - 1)
        status = node.pod("web").status.container_statuses[0]
        assert (status.started, status.ready) == (False, False)
        assert node.waiting(status.state).reason == "ContainerCreating"
        pod = await node.until("web", node.is_ready)
        assert round(time()) == SECONDS
        assert pod.status.container_statuses[0].state.running is not None
        assert pod.status.container_statuses[0].restart_count == 0

    play(story, app=image())


def test_a_sidecar_is_waited_for_until_its_post_start_hook_is_done(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", **hooks(postStart=run("slow")))
        await node.create("web", initContainers=[side])
        await asyncio.sleep(SECONDS - 1)
        assert "create app#0" not in node.runtime.calls
        await node.until("web", node.is_ready)

    play(story, side=image())


def test_probes_wait_for_the_post_start_hook(play: Play) -> None:
    async def story(node: Node) -> None:
        ready = {"readinessProbe": run("hook")}
        await node.create("web", {**hooks(postStart=run("slow")), **ready})
        await node.until("web", node.is_ready)
        assert ended(node) == ["exec app#0 slow", "exec app#0 hook"]
        assert round(time()) == SECONDS

    play(story, app=image())


@pytest.mark.parametrize("hook", [run("bad"), run("absent"), {"tcpSocket": {"port": 80}}])
def test_a_failed_post_start_hook_ends_the_container(play: Play, hook: dict[str, Any]) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(postStart=hook))
        await node.until("web", node.waits_for("CrashLoopBackOff"))
        events = await node.events("web")
        assert "Warning FailedPostStartHook spec.containers{app} PostStartHook failed" in events
        assert "Normal Killing spec.containers{app} FailedPostStartHook" in events
        assert "secret" not in " ".join(events)

    play(story, app=image())


def test_a_failed_post_start_hook_fails_a_pod_that_never_restarts(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(postStart=run("bad")), restartPolicy="Never")
        pod = await node.until("web", node.has_phase("Failed"))
        assert node.terminated(pod.status.container_statuses[0].state).exit_code == 143
        assert "create app#1" not in node.runtime.calls

    play(story, app=image())


def test_a_pod_can_be_deleted_during_its_post_start_hook(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(postStart=run("endless")))
        await asyncio.sleep(3)
        assert await delete(node) < 3
        assert "FailedPostStartHook" not in " ".join(await node.events("web"))

    play(story, app=image())


@pytest.mark.parametrize(
    ("hook", "term_code", "grace", "seconds"),
    [
        (run("hook"), 143, 30, 0),
        (run("slow"), 143, 30, SECONDS),
        ({"sleep": {"seconds": 7}}, 143, 30, 7),
        # What the hook leaves of the grace is the container's ...
        ({"sleep": {"seconds": 7}}, None, 30, 30),
        # ... and two seconds always are.
        (run("endless"), None, 30, 32),
        (run("endless"), 143, 10, 10),
    ],
)
def test_a_pre_stop_hook_runs_within_the_grace(
    play: Play, hook: dict[str, Any], term_code: int | None, grace: int, seconds: int
) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=hook))
        await node.until("web", node.is_ready)
        # The node looks for idle workers once a second.
        assert seconds <= await delete(node, grace) <= seconds + 1
        events = await node.events("web")
        assert "Normal Killing spec.containers{app} Stopping container app" in events
        assert ("FailedPreStopHook" in " ".join(events)) is (hook == run("endless"))
        assert ended(node)[-2:] == ["stop app#0", "stop default/web#0"]

    play(story, app=image(term_code))


def test_a_failed_pre_stop_hook_is_told_and_stops_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=run("bad")))
        await node.until("web", node.is_ready)
        await delete(node)
        assert ended(node) == ["exec app#0 bad", "stop app#0", "stop default/web#0"]
        assert "Warning FailedPreStopHook spec.containers{app} PreStopHook failed" in await node.events("web")

    play(story, app=image())


def test_a_pre_stop_hook_has_a_second_in_a_pod_deleted_by_force(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=run("endless")))
        await node.until("web", node.is_ready)
        assert await delete(node, 0) < 3
        assert ended(node) == ["exec app#0 endless", "stop app#0", "stop default/web#0"]

    play(story, app=image())


@pytest.mark.parametrize("hook", [run("endless"), {"sleep": {"seconds": 30}}])
def test_force_cuts_a_pre_stop_hook_short(play: Play, hook: dict[str, Any]) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=hook))
        await node.until("web", node.is_ready)
        await node.client.delete(Pod, "web", "default")
        await asyncio.sleep(3)
        assert await delete(node, 0) < 4
        assert node.runtime.calls.count("exec app#0 endless") <= 1

    play(story, app=image())


def test_a_container_that_ended_by_itself_is_told_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=run("hook")), restartPolicy="Never")
        await node.until("web", node.has_phase("Succeeded"))
        assert not [call for call in node.runtime.calls if call.startswith("exec")]

    done = Script(exit_code=0, after=1, executes={("hook",): ExecOutcome()})
    play(story, app=HollowImage((done,), present=True))


def test_a_liveness_failure_runs_the_pre_stop_hook_too(play: Play) -> None:
    async def story(node: Node) -> None:
        liveness = {"livenessProbe": {**run("bad"), "failureThreshold": 1}}
        await node.create("web", {**hooks(preStop=run("hook")), **liveness})
        await node.until("web", lambda pod: any(s.restart_count for s in pod.status.container_statuses))
        assert ended(node)[:4] == ["exec app#0 bad", "exec app#0 hook", "stop app#0", "create app#1"]

    play(story, app=image())


def test_the_hook_of_a_sidecar_runs_while_the_app_still_ends(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", **hooks(preStop=run("slow")))
        await node.create("web", hooks(preStop=run("slow")), initContainers=[side])
        await node.until("web", node.is_ready)
        assert SECONDS <= await delete(node) <= SECONDS + 1
        assert set(ended(node)[:2]) == {"exec app#0 slow", "exec side#0 slow"}
        assert ended(node)[2:] == ["stop app#0", "stop side#0", "stop default/web#0"]

    play(story, app=image(), side=image())


def test_the_hook_of_a_sidecar_may_outlast_the_app(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", **hooks(preStop=run("endless")))
        await node.create("web", initContainers=[side])
        await node.until("web", node.is_ready)
        assert 12 <= await delete(node, 12) <= 13
        assert set(ended(node)[:2]) == {"exec side#0 endless", "stop app#0"}
        assert ended(node)[2:] == ["stop side#0", "stop default/web#0"]

    play(story, side=image())


def test_force_leaves_a_second_for_hooks_of_sidecars_too(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", **hooks(preStop=run("endless")))
        await node.create("web", initContainers=[side])
        await node.until("web", node.is_ready)
        await node.client.patch(Pod, "web", "default", {"metadata": {"finalizers": ["example.com/held"]}})
        await node.client.delete(Pod, "web", "default", grace_seconds=0)
        await node.until("web", lambda pod: not node.is_ready(pod))
        await asyncio.sleep(10)
        assert sorted(ended(node)[:2]) == ["exec side#0 endless", "stop app#0"]
        assert ended(node)[2:] == ["stop side#0", "stop default/web#0"]

    play(story, app=image(None), side=image())


async def orphan(node: Node, *containers: dict[str, Any], **spec: Any) -> None:
    """A pod that is deleted by force while no kubelet runs, and what is asked for when one does again."""
    await node.create("web", *containers, **spec)
    await node.until("web", node.is_ready)
    await node.crash()
    await node.client.delete(Pod, "web", "default", grace_seconds=0)
    await node.boot()
    await node.until_idle("web")


def test_the_hook_of_an_orphan_is_run(play: Play) -> None:
    """It is known by what was written on the container."""

    async def story(node: Node) -> None:
        await orphan(node, hooks(preStop=run("hook")))
        assert ended(node) == ["exec app#0 hook", "stop app#0", "stop default/web#0"]
        assert "Normal Killing spec.containers{app} Stopping container app" in await node.events("web")

    play(story, app=image())


def test_the_hook_of_an_orphan_has_a_second(play: Play) -> None:
    async def story(node: Node) -> None:
        await orphan(node, hooks(preStop=run("endless")), terminationGracePeriodSeconds=600)
        assert ended(node) == ["exec app#0 endless", "stop app#0", "stop default/web#0"]
        assert time() < SECONDS

    play(story, app=image())


def test_the_parts_of_an_orphan_end_in_their_order_and_as_they_wish(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        sides = [node.container(name, restartPolicy="Always") for name in ("one", "two")]
        await orphan(
            node, {"lifecycle": {"stopSignal": "SIGUSR1"}}, initContainers=sides, os={"name": "linux"}
        )
        stops = [call for call in ended(node) if call.startswith("stop")]
        assert stops == ["stop app#0 SIGUSR1", "stop two#0", "stop one#0", "stop default/web#0"]

    gates = Gates({"ContainerStopSignals": True})
    play(story, gates=gates, app=image(), one=image(), two=image())


def test_a_node_that_stops_ends_its_pods_in_order_with_their_hooks(play: Play) -> None:
    """R-INIT-6: as a deletion would, within ten seconds; the next kubelet runs them again."""

    async def story(node: Node) -> None:
        sidecar = {"restartPolicy": "Always"}
        inits = [
            node.container("first", **sidecar, **hooks(preStop=run("hook"))),
            node.container("second", **sidecar),
        ]
        app = node.container("app", **hooks(preStop=run("slow")))
        await node.create("web", initContainers=inits, containers=[app, node.container("other")])
        await node.until("web", node.is_ready)
        await node.crash()
        before, began = len(node.runtime.calls), time()
        await node.kubelet.stop_all()
        assert sorted(node.runtime.calls[before:][:3]) == [
            "exec app#0 slow",
            "exec first#0 hook",
            "stop other#0",
        ]
        assert node.runtime.calls[before:][3:] == [
            "stop app#0", "stop second#0", "stop first#0", "stop default/web#0",
        ]  # fmt: skip
        assert time() - began == SECONDS
        await node.boot()
        await node.until("web", lambda pod: node.is_ready(pod) and restarts(pod) == [1, 1, 1, 1])

    play(story, **dict.fromkeys(("first", "second", "app", "other"), image()))


@pytest.mark.parametrize(("asked", "seconds"), [(30, 12), (4, 6)])
def test_a_node_that_stops_waits_for_no_hook_and_no_container_for_long(
    play: Play, asked: int, seconds: int
) -> None:
    async def story(node: Node) -> None:
        await node.create("web", hooks(preStop=run("endless")), terminationGracePeriodSeconds=asked)
        await node.until("web", node.is_ready)
        await node.crash()
        began = time()
        await node.kubelet.stop_all()
        assert time() - began == seconds

    play(story, app=image(term_code=None))


def restarts(pod: Pod) -> list[int]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return [status.restart_count for status in statuses]
