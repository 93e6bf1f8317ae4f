"""Probed pods, told as stories: what the containers answer, what the API shows, what is started again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

GOOD, BAD = ExecOutcome(), ExecOutcome(1, stdout=b"not well")
CHECK = ("check",)


class Health(dict[tuple[str, ...], ExecOutcome]):
    """What the command `check` says in a container, for now."""

    def __init__(self, outcome: ExecOutcome) -> None:
        super().__init__({CHECK: outcome})

    def now(self, outcome: ExecOutcome) -> None:
        self[CHECK] = outcome


def probe(**more: Any) -> dict[str, Any]:
    return {"exec": {"command": list(CHECK)}, **more}


def image(*healths: Health) -> HollowImage:
    """A run for each of these; the last is that of all that follow."""
    return HollowImage(tuple(Script(executes=health) for health in healths), present=True)


def time() -> float:
    return asyncio.get_running_loop().time()


def app(pod: Pod) -> ContainerStatus:
    return pod.status.container_statuses[0]


def restarted(times: int) -> Callable[[Pod], bool]:
    def holds(pod: Pod) -> bool:
        statuses = pod.status.container_statuses
        return bool(statuses) and statuses[0].restart_count == times and statuses[0].state.running is not None

    return holds


def condition(pod: Pod, kind: str) -> tuple[str, str]:
    found = next(c for c in pod.status.conditions if c.type == kind)
    return found.status, found.reason


def running(pod: Pod) -> bool:
    return bool(pod.status.container_statuses) and app(pod).state.running is not None


def unready(pod: Pod) -> bool:
    return running(pod) and not app(pod).ready


def test_readiness_comes_and_goes(play: Play) -> None:
    health = Health(BAD)

    async def story(node: Node) -> None:
        await node.create("web", {"readinessProbe": probe(periodSeconds=5, failureThreshold=2)})
        pod = await node.until("web", running)
        assert (app(pod).started, app(pod).ready) == (True, False)
        assert condition(pod, "Ready") == ("False", "ContainersNotReady")
        await asyncio.sleep(7)
        health.now(GOOD)
        await node.until("web", node.is_ready)
        assert round(time()) == 10
        health.now(BAD)
        pod = await node.until("web", unready)
        assert round(time()) == 20
        assert app(pod).restart_count == 0
        assert any(
            event.endswith("Unhealthy spec.containers{app} Readiness probe failed: not well")
            for event in await node.events("web")
        )

    play(story, app=image(health))


def test_the_initial_delay_counts_from_the_start_of_the_container(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"readinessProbe": probe(initialDelaySeconds=33)})
        await node.until("web", node.is_ready)
        assert round(time()) == 33
        assert [call for call in node.runtime.calls if call.startswith("exec")] == ["exec app#0 check"]

    play(story, app=image(Health(GOOD)))


def test_a_failed_liveness_probe_starts_the_container_again(play: Play) -> None:
    async def story(node: Node) -> None:
        liveness = probe(periodSeconds=10, failureThreshold=3, initialDelaySeconds=10)
        await node.create("web", {"livenessProbe": liveness})
        pod = await node.until("web", restarted(1))
        assert round(time()) == 30
        assert node.terminated(app(pod).last_state).exit_code == 143
        events = await node.events("web")
        assert "Warning Unhealthy spec.containers{app} Liveness probe failed: not well" in events
        assert (
            "Normal Killing spec.containers{app} Container app failed liveness probe, will be restarted"
            in events
        )
        await asyncio.sleep(600)
        assert app(node.pod("web")).restart_count == 1

    play(story, app=image(Health(BAD), Health(GOOD)))


def test_a_pod_that_never_restarts_ends_with_its_liveness(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"livenessProbe": probe(failureThreshold=1)}, restartPolicy="Never")
        await node.until("web", node.has_phase("Failed"))
        assert "Normal Killing spec.containers{app} Container app failed liveness probe" in await node.events(
            "web"
        )

    play(story, app=image(Health(BAD)))


@pytest.mark.parametrize(("own", "killed_after"), [(None, 30), (4, 4)])
def test_a_probe_may_have_a_grace_of_its_own(play: Play, own: int | None, killed_after: int) -> None:
    async def story(node: Node) -> None:
        liveness = probe(failureThreshold=1)
        if own is not None:
            liveness["terminationGracePeriodSeconds"] = own
        await node.create("web", {"livenessProbe": liveness})
        await node.until("web", restarted(1))
        assert round(time()) == killed_after

    stubborn = Script(executes=Health(BAD), term_code=None)
    good = Script(executes=Health(GOOD))
    play(story, app=HollowImage((stubborn, good), present=True))


def test_nothing_else_is_asked_before_the_startup_probe_has_passed(play: Play) -> None:
    health = Health(BAD)

    async def story(node: Node) -> None:
        startup = probe(periodSeconds=2, failureThreshold=30)
        liveness = probe(periodSeconds=1, failureThreshold=1)
        await node.create("web", {"startupProbe": startup, "livenessProbe": liveness})
        pod = await node.until("web", running)
        assert (app(pod).started, app(pod).ready) == (False, False)
        await asyncio.sleep(11)
        health.now(GOOD)
        pod = await node.until("web", node.is_ready)
        assert (round(time()), app(pod).started, app(pod).restart_count) == (12, True, 0)

    play(story, app=image(health))


def test_a_container_that_never_comes_up_is_started_again(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"startupProbe": probe(periodSeconds=5, failureThreshold=2)})
        await node.until("web", restarted(1))
        assert round(time()) == 5
        events = await node.events("web")
        assert "Warning Unhealthy spec.containers{app} Startup probe failed: not well" in events
        assert (
            "Normal Killing spec.containers{app} Container app failed startup probe, will be restarted"
            in events
        )
        await node.until("web", node.is_ready)

    play(story, app=image(Health(BAD), Health(GOOD)))


def test_a_sidecar_holds_back_what_follows_until_it_has_started(play: Play) -> None:
    """R-INIT-6"""
    health = Health(BAD)

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", startupProbe=probe(periodSeconds=3))
        await node.create("web", initContainers=[side, node.container("next")])
        await asyncio.sleep(5)
        assert "create next#0" not in node.runtime.calls
        health.now(GOOD)
        await node.until("web", node.is_ready)
        assert round(time()) == 7

    next_ = HollowImage((Script(exit_code=0, after=1),), present=True)
    play(story, side=image(health), next=next_)


def test_a_sidecar_that_is_not_ready_makes_the_pod_unready(play: Play) -> None:
    """R-INIT-6"""

    async def story(node: Node) -> None:
        side = node.container("side", restartPolicy="Always", readinessProbe=probe())
        await node.create("web", initContainers=[side])
        pod = await node.until("web", running)
        assert condition(pod, "Ready") == ("False", "ContainersNotReady")
        assert condition(pod, "Initialized") == ("True", "")

    play(story, side=image(Health(BAD)))


def test_a_question_that_cannot_be_asked_is_no_answer(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"livenessProbe": {"exec": {"command": ["absent"]}, "failureThreshold": 1}})
        await asyncio.sleep(100)
        assert app(node.pod("web")).restart_count == 0
        said = [event for event in await node.events("web") if "Unhealthy" in event]
        assert "Liveness probe errored and resulted in unknown state: rpc error: code = Unknown" in said[0]

    play(story)


def test_a_pod_that_is_being_deleted_is_not_found_dead(play: Play) -> None:
    health = Health(GOOD)

    async def story(node: Node) -> None:
        liveness = probe(periodSeconds=1, failureThreshold=1)
        await node.create("web", {"livenessProbe": liveness, "readinessProbe": probe(periodSeconds=1)})
        await node.until("web", node.is_ready)
        await node.client.delete(Pod, "web", "default", grace_seconds=20)
        await asyncio.sleep(2)
        health.now(BAD)
        await node.until("web", unready)
        await node.until_gone("web")
        said = " ".join(await node.events("web"))
        assert "Readiness probe failed" in said
        assert "Liveness probe failed" not in said

    play(story, app=HollowImage((Script(executes=health, term_code=None),), present=True))


def test_a_new_kubelet_keeps_what_the_old_one_found(play: Play) -> None:
    """R-INIT-11"""

    async def story(node: Node) -> None:
        await node.create(
            "web", {"startupProbe": probe(initialDelaySeconds=9), "readinessProbe": probe(periodSeconds=50)}
        )
        await node.until("web", node.is_ready)
        await node.crash()
        before = len(node.history)
        await node.boot()
        await asyncio.sleep(60)
        later = [pod for _, pod in node.history[before:] if pod is not None]
        assert all(node.is_ready(pod) for pod in later)
        assert node.is_ready(node.pod("web"))
        asked = node.runtime.calls.count("exec app#0 check")
        # By the first its startup and its readiness, by the second its readiness, twice.
        assert asked == 4

    play(story, app=image(Health(GOOD)))


def test_probes_end_with_their_container(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"readinessProbe": probe(periodSeconds=1)})
        await node.until("web", node.is_ready)
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")
        await node.until_idle("web")
        asked = node.runtime.calls.count("exec app#0 check")
        await asyncio.sleep(30)
        assert node.runtime.calls.count("exec app#0 check") == asked

    play(story, app=image(Health(GOOD)))


def ready_is(status: str) -> Callable[[Pod], bool]:
    return lambda pod: condition(pod, "Ready")[0] == status


def test_a_readiness_gate_is_opened_by_someone_else(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", readinessGates=[{"conditionType": "example.com/routed"}])
        pod = await node.until("web", lambda pod: running(pod) and app(pod).ready)
        assert condition(pod, "ContainersReady") == ("True", "")
        assert condition(pod, "Ready") == ("False", "ReadinessGatesNotReady")
        for status in ("True", "False"):
            gate = {"type": "example.com/routed", "status": status}
            await node.client.patch(
                Pod,
                "web",
                "default",
                {"status": {"conditions": [gate]}},
                subresource="status",
                patch_type="application/strategic-merge-patch+json",
            )
            await node.until("web", ready_is(status))

    play(story)
