"""The kubelet as a whole: its node, its heartbeats, its crashes and what it finds when it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.cri.interface import RuntimeFault
from podling.model.time import parse_time
from podling.model.types.coordination import Lease
from podling.model.types.node import Node as ApiNode
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

Exits = Callable[..., HollowImage]


def test_the_node_registers_with_all_that_clients_look_at(play: Play) -> None:
    async def story(node: Node) -> None:
        made = await node.client.get(ApiNode, "n1")
        assert made.metadata.labels["kubernetes.io/hostname"] == "n1"
        assert made.metadata.labels["kubernetes.io/os"] == "linux"
        assert [(c.type, c.status, c.reason, c.message) for c in made.status.conditions] == [
            (
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ]
        address = made.status.addresses[0]
        assert (address.type, address.address) == ("InternalIP", "192.0.2.1")
        assert made.status.capacity["memory"] > made.status.allocatable["memory"]
        assert made.status.daemon_endpoints.kubelet_endpoint.port == 10250
        assert made.status.node_info.container_runtime_version.startswith("hollow://")

    play(story)


def test_the_lease_is_renewed_every_ten_seconds_and_the_status_only_when_there_is_news(play: Play) -> None:
    async def story(node: Node) -> None:
        await asyncio.sleep(1)
        first = await node.client.get(Lease, "n1", "kube-node-lease")
        status = (await node.client.get(ApiNode, "n1")).metadata.resource_version
        await asyncio.sleep(200)
        later = await node.client.get(Lease, "n1", "kube-node-lease")
        renewed = parse_time(later.spec.renew_time) - parse_time(first.spec.renew_time)
        assert 195 < renewed.total_seconds() < 205
        assert later.spec.lease_duration_seconds == 40
        assert (await node.client.get(ApiNode, "n1")).metadata.resource_version == status
        await asyncio.sleep(110)
        assert (await node.client.get(ApiNode, "n1")).metadata.resource_version != status

    play(story)


def test_a_node_that_was_given_up_takes_its_word_back(play: Play) -> None:
    async def story(node: Node) -> None:
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await node.client.patch(
            ApiNode, "n1", "", {"status": {"conditions": [unknown]}}, subresource="status"
        )
        await asyncio.sleep(15)
        conditions = (await node.client.get(ApiNode, "n1")).status.conditions
        assert {c.type: c.status for c in conditions}["Ready"] == "True"
        assert len(conditions) == 4

    play(story)


def test_a_runtime_that_does_not_answer_makes_the_node_not_ready_until_it_does(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        answers = node.runtime.status

        async def nothing() -> Any:
            raise RuntimeFault("UNAVAILABLE", "connection refused")

        monkeypatch.setattr(node.runtime, "status", nothing)
        await asyncio.sleep(11)
        [ready] = [c for c in (await node.client.get(ApiNode, "n1")).status.conditions if c.type == "Ready"]
        assert (ready.status, ready.reason) == ("False", "KubeletNotReady")
        assert ready.message == "container runtime is down"
        monkeypatch.setattr(node.runtime, "status", answers)
        await asyncio.sleep(11)
        [again] = [c for c in (await node.client.get(ApiNode, "n1")).status.conditions if c.type == "Ready"]
        assert again.status == "True"
        assert again.last_transition_time and ready.last_transition_time
        assert again.last_transition_time > ready.last_transition_time

    play(story)


def test_a_kubelet_that_comes_back_takes_over_what_runs(play: Play, exits: Exits) -> None:
    """R-INIT-11"""

    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        before = await node.until("web", node.is_ready)
        await node.crash()
        await asyncio.sleep(100)
        await node.boot()
        await asyncio.sleep(100)
        assert [call for call in node.runtime.calls if call.startswith("start")] == [
            "start one#0",
            "start app#0",
        ]
        after = node.pod("web")
        assert after.status.container_statuses == before.status.container_statuses
        assert after.status.conditions == before.status.conditions

    play(story, one=exits(0))


def test_what_happened_while_the_kubelet_was_away_is_found_out(play: Play, exits: Exits) -> None:
    """An exit nobody told of, and a pod deleted by force: an orphan."""

    async def story(node: Node) -> None:
        await node.create("job", {"image": "job:1"}, restartPolicy="Never")
        orphan = await node.create("orphan")
        await node.until("job", node.is_ready)
        await node.until("orphan", node.is_ready)
        await node.crash()
        await node.client.delete(Pod, "orphan", "default", grace_seconds=0)
        await asyncio.sleep(100)
        await node.boot()
        done = await node.until("job", node.has_phase("Succeeded"))
        assert node.terminated(done.status.container_statuses[0].state).reason == "Completed"
        await node.until_idle("orphan")
        assert "remove default/orphan#0" in node.runtime.calls
        assert not (node.config.pods_dir / orphan.metadata.uid).exists()
        assert not any("orphan" in path.name for path in node.config.log_dir.iterdir())

    play(story, job=exits(0, after=50))


def test_files_of_pods_nobody_knows_are_removed_at_the_start_and_others_files_are_not(play: Play) -> None:
    async def story(node: Node) -> None:
        (node.config.pods_dir / "gone").mkdir(parents=True)
        (node.config.log_dir / "default_web_gone").mkdir(parents=True)
        (node.config.log_dir / "someone-elses").mkdir()
        await node.boot()
        assert not (node.config.pods_dir / "gone").exists()
        assert [path.name for path in node.config.log_dir.iterdir()] == ["someone-elses"]

    play(story, boot=False)


def test_a_pod_of_the_same_name_starts_while_the_old_one_still_ends(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", terminationGracePeriodSeconds=60)
        await node.until("web", node.is_ready)
        await node.client.delete(Pod, "web", "default", grace_seconds=0)
        fresh = await node.create("web")
        pod = await node.until("web", lambda p: p.metadata.uid == fresh.metadata.uid and node.is_ready(p))
        assert pod.status.container_statuses[0].restart_count == 0
        await asyncio.sleep(200)
        assert node.is_ready(node.pod("web"))
        assert len(node.workers()) == 1

    play(story, app=HollowImage((Script(term_code=None),), present=True))


def test_a_pod_held_by_a_finalizer_is_not_run_again(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await node.client.patch(Pod, "web", "default", {"metadata": {"finalizers": ["example.com/wait"]}})
        await node.client.delete(Pod, "web", "default")
        await node.until_idle("web")
        await asyncio.sleep(600)
        assert node.pod("web")
        assert node.runtime.calls.count("start app#0") == 1
        await node.client.patch(Pod, "web", "default", {"metadata": {"finalizers": None}})
        await node.until_gone("web")

    play(story)


def test_stopping_all_leaves_objects_and_the_next_kubelet_runs_them_again(play: Play, exits: Exits) -> None:
    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", node.is_ready)
        await node.crash()
        await node.kubelet.stop_all()
        assert node.runtime.calls[-2:] == ["stop app#0", "stop default/web#0"]
        await node.boot()
        await node.until(
            "web", lambda p: p.status.container_statuses[0].restart_count == 1 and node.is_ready(p)
        )
        starts = [call for call in node.runtime.calls if call.startswith("start")]
        assert starts == ["start one#0", "start app#0", "start one#1", "start app#1"]

    play(story, one=exits(0))


def test_a_failure_of_the_program_itself_costs_one_pod_a_moment_and_others_nothing(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        await node.create("other")
        await node.until("other", node.is_ready)
        whole = node.runtime.create_container

        async def broken(*args: object) -> str:
            monkeypatch.setattr(node.runtime, "create_container", whole)
            raise ZeroDivisionError

        monkeypatch.setattr(node.runtime, "create_container", broken)
        await node.create("web")
        await node.until("web", node.is_ready)
        assert node.is_ready(node.pod("other"))
        assert node.pod("other").status.container_statuses[0].restart_count == 0

    play(story)


@pytest.mark.parametrize("calls", range(1, 19))
def test_a_kubelet_killed_at_any_call_never_skips_an_init_container(
    play: Play, exits: Exits, calls: int
) -> None:
    """R-INIT-11, R-INIT-1"""

    async def story(node: Node) -> None:
        node.start(_DiesAfter(node, calls))
        await node.create("web", initContainers=[node.container("one"), node.container("two")])
        await asyncio.sleep(30)
        await node.boot()
        await node.until("web", node.is_ready)
        starts = [call.split()[1] for call in node.runtime.calls if call.startswith("start")]
        names = [start.partition("#")[0] for start in starts]
        assert names == ["one", "two", "app"], starts

    play(story, boot=False, one=exits(0), two=exits(0))


class _DiesAfter:
    """The runtime as a kubelet knows it that is killed in its nth call, half of the time before it is
    made."""

    def __init__(self, node: Node, calls: int) -> None:
        self._node = node
        self._left = calls
        self._made_first = calls % 2 == 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._node.runtime, name)
        if name in ("events", "version", "status", "list_images", "close"):
            return call

        async def counted(*args: Any, **more: Any) -> Any:
            self._left -= 1
            left = self._left
            await asyncio.sleep(0)
            if left > 0:
                return await call(*args, **more)
            if left == 0 and self._made_first:
                await call(*args, **more)
            if left == 0:
                await self._die()
            raise asyncio.CancelledError

        return counted

    async def _die(self) -> None:
        self._node.kill()
        await asyncio.Event().wait()


def test_the_server_finds_containers_of_every_kind_and_learns_of_their_end(play: Play, exits: Exits) -> None:
    """R-INIT-8"""

    async def story(node: Node) -> None:
        kubelet = node.kubelet
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", lambda p: any(s.state.running for s in p.status.init_container_statuses))
        pod = kubelet.pod("default", "web")
        assert pod is not None
        one = kubelet.running_container(pod, "one")
        assert one is not None
        assert kubelet.running_container(pod, "app") is None
        assert kubelet.ready_sandbox(pod) is not None
        assert kubelet.exit_code(one) is None
        await kubelet.container_ended(one)
        assert (kubelet.exit_code(one), kubelet.newest_container(pod, "one")) == (0, one)
        assert kubelet.running_container(pod, "one") is None
        await kubelet.container_ended("nobody's")
        await node.until("web", node.is_ready)
        assert [node.is_ready(p) for p in kubelet.pods()] == [True]
        assert kubelet.pod("default", "other") is None

    play(story, one=exits(0, after=5))


LONG = HollowImage((Script(executes={("hook",): ExecOutcome(seconds=5)}, term_code=None),), present=True)
"""Its preStop hook takes 5 seconds, and then it ignores the TERM."""


def test_the_server_learns_that_a_stop_begins_before_the_container_ends(play: Play) -> None:
    async def story(node: Node) -> None:
        loop, kubelet = asyncio.get_running_loop(), node.kubelet
        hook = {"preStop": {"exec": {"command": ["hook"]}}}
        await node.create("web", {"lifecycle": hook}, terminationGracePeriodSeconds=20)
        pod = await node.until("web", node.is_ready)
        app, sandbox = kubelet.running_container(pod, "app"), kubelet.ready_sandbox(pod)
        assert app is not None and sandbox is not None
        async with asyncio.TaskGroup() as tasks:
            moments = (kubelet.container_stopping(app), kubelet.container_ended(app))
            stopping, ended = [tasks.create_task(moment) for moment in moments]
            gone = tasks.create_task(kubelet.sandbox_ended(sandbox))
            await asyncio.sleep(5)
            assert not stopping.done()
            began = loop.time()
            await node.client.delete(Pod, "web", "default")
            await stopping
            assert loop.time() - began == 0
            await ended
            assert loop.time() - began == 20
            assert not gone.done()
            await gone
        await kubelet.sandbox_ended("nobody's")
        await kubelet.container_stopping("nobody's")

    play(story, app=LONG)


def test_the_server_learns_that_a_container_is_stopped_for_its_failed_hook(play: Play) -> None:
    async def story(node: Node) -> None:
        loop, kubelet = asyncio.get_running_loop(), node.kubelet
        hook = {"postStart": {"exec": {"command": ["bad"]}}}
        await node.create("web", {"lifecycle": hook}, terminationGracePeriodSeconds=20)
        await asyncio.sleep(1)
        began = loop.time()
        app = kubelet.running_container(node.pod("web"), "app")
        assert app is not None
        await kubelet.container_stopping(app)
        stopped = loop.time()
        await kubelet.container_ended(app)
        assert (stopped - began, loop.time() - began) == (4, 24)

    bad: dict[tuple[str, ...], ExecOutcome] = {("bad",): ExecOutcome(1, seconds=5)}
    play(story, app=HollowImage((Script(executes=bad, term_code=None),), present=True))


def test_the_server_learns_that_a_sandbox_was_lost(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        pod = await node.until("web", node.is_ready)
        sandbox = node.kubelet.ready_sandbox(pod)
        assert sandbox is not None
        async with asyncio.TaskGroup() as tasks:
            gone = tasks.create_task(node.kubelet.sandbox_ended(sandbox))
            await asyncio.sleep(5)
            assert not gone.done()
            node.runtime.lose_sandbox(sandbox)
            await gone

    play(story)
