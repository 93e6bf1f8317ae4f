"""A pod's life, told as stories: what the user asked, what the kubelet asked of the runtime, what the API
shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.script import HollowImage, Script
from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.lifecycle import MOVES, PodLife, PodState
from podling.kubelet.status.writer import STRATEGIC_MERGE
from podling.model.gates import Gates
from podling.model.types.core import ConfigMap
from podling.model.types.meta import ObjectMeta
from podling.model.types.node_k8s_io import RuntimeClass
from podling.model.types.pod import Pod
from podling.model.types.pod_status import ContainerStatus, PodStatus

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play

Exits = Callable[..., HollowImage]


def test_init_containers_run_in_order_then_all_app_containers(play: Play, exits: Exits) -> None:
    """R-INIT-1, R-INIT-3"""

    async def story(node: Node) -> None:
        inits = [node.container("one"), node.container("two")]
        await node.create("web", {}, {"name": "side"}, initContainers=inits)
        pod = await node.until("web", node.is_ready)
        assert node.runtime.calls == [
            "run default/web#0",
            "create one#0",
            "start one#0",
            "create two#0",
            "start two#0",
            "create app#0",
            "start app#0",
            "create side#0",
            "start side#0",
        ]
        assert [node.terminated(s.state).reason for s in pod.status.init_container_statuses] == [
            "Completed"
        ] * 2
        seen = [_conditions(p) for name, p in node.history if p is not None and p.status.phase == "Pending"]
        assert ("Initialized", "False", "containers with incomplete status: [one two]") in seen[1]
        assert [event for event in await node.events("web") if "{two}" in event] == [
            "Normal Pulled spec.initContainers{two} "
            'Container image "two:1" already present on machine and can be accessed by the pod',
            "Normal Created spec.initContainers{two} Container created",
            "Normal Started spec.initContainers{two} Container started",
        ]

    play(story, one=exits(0), two=exits(0), side=HollowImage(present=True))


def test_pods_make_each_move_of_the_table_and_no_other(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is deleted while it runs, and one that the node refused, so that nothing of it ever ran."""
    made: list[tuple[PodState, PodState]] = []
    move = PodLife.move

    def noted(life: PodLife, to: PodState) -> bool:
        before = life.state
        moved = move(life, to)
        if moved:
            made.append((before, to))
        return moved

    monkeypatch.setattr(PodLife, "move", noted)

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await node.create("lost", nodeSelector={"disk": "ssd"})
        await node.until("lost", node.has_phase("Failed"))
        for name in ("web", "lost"):
            await node.client.delete(Pod, name, "default")
            await node.until_idle(name)
        assert set(made) == {(start, to) for start, moves in MOVES.items() for to in moves}

    play(story)


def test_a_pod_that_comes_up_is_told_of_once_for_each_container(play: Play, exits: Exits) -> None:
    """What changes between two calls to the runtime is told with what they came to (decision 028)."""

    async def story(node: Node) -> None:
        inits = [node.container("one"), node.container("two")]
        await node.create("web", initContainers=inits)
        await node.until("web", node.is_ready)
        told = [pod.status for _, pod in node.history if pod is not None and pod.status.start_time]
        assert [(len(_ended(s)), s.phase, bool(s.pod_ip)) for s in told] == [
            (0, "Pending", False),
            (0, "Pending", True),
            (1, "Pending", True),
            (2, "Running", True),
        ]

    play(story, one=exits(0), two=exits(0))


def test_a_pull_does_not_keep_back_for_long_where_the_pod_is(play: Play) -> None:
    async def story(node: Node) -> None:
        begun = node.time.now()
        await node.create("web", node.container("slow"))
        pod = await node.until("web", lambda pod: bool(pod.status.pod_ip))
        assert node.time.now() - begun < timedelta(seconds=2)
        assert node.waiting(pod.status.container_statuses[0].state).reason == "ContainerCreating"

    play(story, slow=HollowImage(pull_seconds=300))


def _ended(status: PodStatus) -> list[ContainerStatus]:
    return [each for each in status.init_container_statuses if each.state.terminated]


def _conditions(pod: Pod) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.message) for c in pod.status.conditions]


def test_a_failing_init_container_is_retried_with_growing_delays(play: Play, exits: Exits) -> None:
    """R-INIT-2"""

    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        starts = []
        for attempt in range(5):
            await node.until("web", _runs_after(attempt))
            starts.append(asyncio.get_running_loop().time())
        gaps = [round(later - earlier - 1) for earlier, later in pairwise(starts)]
        assert gaps == [0, 10, 20, 40]
        await node.until("web", node.is_ready)

    play(story, one=exits(1, 1, 1, 1, 0))


def _runs_after(restarts: int) -> Callable[[Pod], bool]:
    return lambda pod: _restarts(pod, "one") == restarts and _running(pod, "one")


def _status(pod: Pod, name: str) -> ContainerStatus | None:
    status = pod.status
    every = (
        *status.init_container_statuses,
        *status.container_statuses,
        *status.ephemeral_container_statuses,
    )
    return next((s for s in every if s.name == name), None)


def _restarts(pod: Pod, name: str) -> int:
    found = _status(pod, name)
    return found.restart_count if found else -1


def _running(pod: Pod, name: str) -> bool:
    found = _status(pod, name)
    return found is not None and found.state.running is not None


def test_a_failing_init_container_fails_a_pod_that_never_restarts(play: Play, exits: Exits) -> None:
    """R-INIT-2"""

    async def story(node: Node) -> None:
        await node.create("web", restartPolicy="Never", initContainers=[node.container("one")])
        pod = await node.until("web", node.has_phase("Failed"))
        assert "create app#0" not in node.runtime.calls
        assert node.waiting(pod.status.container_statuses[0].state).reason == "PodInitializing"

    play(story, one=exits(1))


def test_a_container_that_is_killed_for_memory_says_so(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", restartPolicy="Never")
        pod = await node.until("web", node.has_phase("Failed"))
        ended = node.terminated(pod.status.container_statuses[0].state)
        assert (ended.reason, ended.exit_code) == ("OOMKilled", 137)

    play(story, app=HollowImage((Script(exit_code=137, after=1, out_of_memory=True),), present=True))


def test_a_missing_image_backs_off_and_a_better_one_is_tried_at_once(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web", {"image": "nope"})
        pod = await node.until("web", node.waits_for("ErrImagePull"))
        await node.until("web", node.waits_for("ImagePullBackOff"))
        said = await node.events("web")
        assert [event.split()[1] for event in said] == ["Pulling", "Failed", "Failed", "BackOff", "Failed"]
        before = asyncio.get_running_loop().time()
        await node.client.patch(
            Pod,
            "web",
            "default",
            {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
            patch_type="application/strategic-merge-patch+json",
        )
        pod = await node.until("web", node.is_ready)
        assert asyncio.get_running_loop().time() - before < 1
        assert pod.status.container_statuses[0].restart_count == 0

    play(story)


@pytest.mark.parametrize("whose", ["initContainers", "containers"])
def test_a_container_that_can_never_be_started_backs_off(play: Play, whose: str) -> None:
    """As one that ends each time it runs: tried again at once, then after 10 s, 20 s, …"""
    fault = RuntimeFault("UNKNOWN", "no such program")

    async def story(node: Node) -> None:
        spec = {whose: [node.container("bad", "bad:1")]}
        await node.create("web", *spec.get("containers", ()), initContainers=spec.get("initContainers", []))
        began = asyncio.get_running_loop().time()
        pod = await node.until("web", node.waits_for("CrashLoopBackOff"))
        (status,) = pod.status.init_container_statuses or pod.status.container_statuses
        assert status.restart_count == 1
        assert node.waiting(status.state).message.startswith(
            "back-off 10s restarting failed container=bad pod=web_"
        )
        assert node.terminated(status.last_state).reason == "StartError"
        assert asyncio.get_running_loop().time() - began < 5
        whom = f"spec.{whose}{{bad}} Back-off restarting failed container bad in pod web_default("
        assert any(f"Warning BackOff {whom}" in event for event in await node.events("web"))
        await node.until("web", node.waits_for("RunContainerError"))
        assert 9 < asyncio.get_running_loop().time() - began < 15

    play(story, bad=HollowImage((Script(start_fault=fault),), present=True))


def test_a_back_off_names_the_image_that_is_wanted_now(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        changed = {"spec": {"containers": [{"name": "app", "image": "nope:2"}]}}
        await node.client.patch(Pod, "web", "default", changed, patch_type=STRATEGIC_MERGE)
        await node.until("web", node.waits_for("ImagePullBackOff"))
        said = [event for event in await node.events("web") if " BackOff " in event]
        assert said == ['Normal BackOff spec.containers{app} Back-off pulling image "nope:2"']

    play(story)


def test_a_container_that_cannot_start_shows_why(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        pod = await node.until("web", node.waits_for("RunContainerError"))
        status = pod.status.container_statuses[0]
        assert node.waiting(status.state).message == "no such program"
        assert node.terminated(status.last_state).reason == "StartError"
        assert "Warning Failed spec.containers{app} Error: no such program" in await node.events("web")

    fault = RuntimeFault("UNKNOWN", "no such program")
    play(story, app=HollowImage((Script(start_fault=fault),), present=True))


def test_a_pod_waits_for_its_config_map_and_starts_when_it_appears(play: Play) -> None:
    async def story(node: Node) -> None:
        volumes = [{"name": "settings", "configMap": {"name": "cm"}}]
        mounts = [{"name": "settings", "mountPath": "/etc/x"}]
        await node.create("web", {"volumeMounts": mounts}, volumes=volumes)
        await node.until("web", node.waits_for("ContainerCreating"))
        await asyncio.sleep(60)
        assert node.runtime.calls == ["run default/web#0"]
        said = await node.events("web")
        text = 'MountVolume.SetUp failed for volume "settings" : configmap "cm" not found'
        assert said == [f"Warning FailedMount {text}"]
        await node.client.create(
            ConfigMap(metadata=ObjectMeta(name="cm", namespace="default"), data={"a": "b"})
        )
        pod = await node.until("web", node.is_ready)
        files = node.config.pods_dir / pod.metadata.uid / "volumes/kubernetes.io~configmap/settings"
        assert (files / "a").read_text() == "b"
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")
        assert not files.exists()

    play(story)


def test_a_missing_reference_in_the_environment_is_a_configuration_error(play: Play) -> None:
    async def story(node: Node) -> None:
        source = {"configMapKeyRef": {"name": "cm", "key": "k"}}
        await node.create("web", {"env": [{"name": "A", "valueFrom": source}]})
        pod = await node.until("web", node.waits_for("CreateContainerConfigError"))
        assert node.waiting(pod.status.container_statuses[0].state).message == 'configmap "cm" not found'
        assert 'Warning Failed spec.containers{app} Error: configmap "cm" not found' in await node.events(
            "web"
        )
        await node.client.create(
            ConfigMap(metadata=ObjectMeta(name="cm", namespace="default"), data={"k": "v"})
        )
        await node.until("web", node.is_ready)

    play(story)


def test_deletion_stops_within_the_grace_and_leaves_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        pod = await node.create("web", terminationGracePeriodSeconds=20)
        await node.until("web", node.is_ready)
        began = asyncio.get_running_loop().time()
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")
        assert 20 <= asyncio.get_running_loop().time() - began < 21
        last = [p for name, p in node.history if p is not None][-1]
        assert node.terminated(last.status.container_statuses[0].state).exit_code == 137
        assert not node.is_ready(last)
        await node.until_idle("web")
        assert node.runtime.calls[3:] == ["stop app#0", "stop default/web#0", "remove default/web#0"]
        assert "Normal Killing spec.containers{app} Stopping container app" in await node.events("web")
        assert not (node.config.pods_dir / pod.metadata.uid).exists()
        assert list(node.config.log_dir.iterdir()) == []

    play(story, app=HollowImage((Script(term_code=None),), present=True))


def test_a_pod_deleted_during_a_pull_does_not_wait_for_it(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(node: Node) -> None:
        pulling = asyncio.Event()

        async def slow_pull(*args: object) -> str:
            pulling.set()
            await asyncio.sleep(600)
            raise AssertionError

        monkeypatch.setattr(node.runtime, "pull_image", slow_pull)
        await node.create("web", {"image": "large"}, {"name": "other", "image": "app:1"})
        await pulling.wait()
        # A slow pull holds up its own container only.
        await node.until("web", lambda pod: _running(pod, "other"))
        await node.client.delete(Pod, "web", "default", grace_seconds=1)
        await node.until_gone("web")
        assert asyncio.get_running_loop().time() < 60

    play(story)


def test_a_pod_removed_by_force_is_ended_all_the_same(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        await node.client.delete(Pod, "web", "default", grace_seconds=0)
        await node.until_idle("web")
        assert node.runtime.calls[3:] == ["stop app#0", "stop default/web#0", "remove default/web#0"]

    play(story)


def test_an_ephemeral_container_starts_beside_the_others_and_never_again(play: Play, exits: Exits) -> None:
    """R-EPH-3, R-EPH-10"""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "debug:1"}]}}
        await node.client.patch(
            Pod,
            "web",
            "default",
            debug,
            subresource="ephemeralcontainers",
            patch_type="application/strategic-merge-patch+json",
        )
        pod = await node.until("web", lambda pod: _running(pod, "debug"))
        assert ("EphemeralContainersStarted", "True", "") in _conditions(pod)
        await node.until("web", lambda pod: not _running(pod, "debug"))
        await asyncio.sleep(600)
        await node.crash()
        await node.boot()
        await asyncio.sleep(600)
        assert node.runtime.calls.count("start debug#0") == 1
        assert "start debug#1" not in node.runtime.calls
        assert node.is_ready(node.pod("web"))

    play(story, debug=exits(1))


def test_a_lost_sandbox_is_replaced_and_initialized_again(play: Play, exits: Exits) -> None:
    """R-INIT-4"""

    async def story(node: Node) -> None:
        await node.create("web", initContainers=[node.container("one")])
        await node.until("web", node.is_ready)
        [sandbox] = await node.runtime.list_pod_sandbox()
        node.runtime.lose_sandbox(sandbox.id)
        await node.until("web", lambda pod: not node.is_ready(pod))
        await node.until("web", node.is_ready)
        assert [call for call in node.runtime.calls if call.startswith(("run", "start"))] == [
            "run default/web#0",
            "start one#0",
            "start app#0",
            "run default/web#1",
            "start one#1",
            "start app#1",
        ]
        events = await node.events("web")
        assert any(
            "SandboxChanged Pod sandbox changed, it will be killed and re-created." in e for e in events
        )

    play(story, one=exits(0))


def test_the_termination_message_is_read_when_the_container_has_ended(play: Play) -> None:
    async def story(node: Node) -> None:
        pod = await node.create(
            "web", {"terminationMessagePolicy": "FallbackToLogsOnError"}, restartPolicy="Never"
        )
        pod = await node.until("web", node.has_phase("Failed"))
        assert node.terminated(pod.status.container_statuses[0].state).message == "it went wrong\n"

    run = Script(exit_code=1, after=1, stdout=("it went wrong",))
    play(story, app=HollowImage((run,), present=True))


def test_a_runtime_class_names_the_handler(play: Play) -> None:
    async def story(node: Node) -> None:
        strong = RuntimeClass(metadata=ObjectMeta(name="strong"), handler="kata")
        await node.client.create(strong)
        await node.create("p", runtimeClassName="strong")
        await node.client.delete(RuntimeClass, "strong")
        await node.boot()
        await asyncio.sleep(1)
        assert (
            "Warning FailedCreatePodSandBox Failed to create pod sandbox: failed to get sandbox runtime: "
            'RuntimeClass.node.k8s.io "strong" not found'
        ) in await node.events("p")
        await node.client.create(strong)
        await node.until("p", node.is_ready)
        (sandbox,) = await node.runtime.list_pod_sandbox()
        assert sandbox.runtime_handler == "kata"

    play(story, boot=False)


def test_a_pod_with_users_of_its_own_is_not_run_as_users_of_the_node(play: Play) -> None:
    """As on a runtime that says nothing of its handlers (containerd before 2.0)."""

    async def story(node: Node) -> None:
        node.runtime.handlers = []
        await node.boot()
        await node.create("p", hostUsers=False)
        event = (
            "Warning FailedCreatePodSandBox Failed to create pod sandbox: can't set `spec.hostUsers: false`, "
            "runtime does not support user namespaces"
        )
        await asyncio.sleep(1)
        assert event in await node.events("p")
        assert node.runtime.calls == []

    play(story, boot=False)


async def users(node: Node, uid: str) -> pb.UserNamespace:
    """Of the pod's sandbox, and with it of all its containers and their mounts."""
    (sandbox,) = await node.runtime.list_pod_sandbox({"io.kubernetes.pod.uid": uid})
    status = await node.runtime.pod_sandbox_status(sandbox.id)
    found = status.linux.namespaces.options.userns_options
    for container in await node.runtime.list_containers({"io.kubernetes.pod.uid": uid}):
        for mount in (await node.runtime.container_status(container.id)).mounts:
            assert (mount.uidMappings, mount.gidMappings) == (found.uids, found.gids), mount
    return found


def test_pods_with_users_of_their_own_share_no_ids_and_keep_them(play: Play) -> None:
    async def story(node: Node) -> None:
        mounted = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        volumes = [{"name": "v", "emptyDir": {}}]
        pods = [await node.create(name, mounted, hostUsers=False, volumes=volumes) for name in ("p", "q")]
        for name in ("p", "q"):
            await node.until(name, node.is_ready)
        p, q = [await users(node, pod.metadata.uid) for pod in pods]
        for told in (p, q):
            ((host, inside, length),) = [(m.host_id, m.container_id, m.length) for m in told.uids]
            assert (told.mode, told.uids, inside, length) == (pb.POD, told.gids, 0, 65536)
            assert host % 65536 == 0 < host
        assert p.uids != q.uids

        await node.crash()
        (sandbox,) = await node.runtime.list_pod_sandbox({"io.kubernetes.pod.uid": pods[0].metadata.uid})
        await node.runtime.remove_pod_sandbox(sandbox.id)
        await node.boot()
        await node.until("p", lambda pod: pod.status.container_statuses[0].restart_count == 1)
        await node.until("p", node.is_ready)
        assert await users(node, pods[0].metadata.uid) == p

    play(story)


def test_a_pod_that_does_not_ask_has_the_nodes_users(play: Play) -> None:
    async def story(node: Node) -> None:
        pod = await node.create("p")
        await node.until("p", node.is_ready)
        assert await users(node, pod.metadata.uid) == pb.UserNamespace(mode=pb.NODE)

    play(story)


def test_names_that_are_left_out_are_told(play: Play) -> None:
    async def story(node: Node) -> None:
        resolv_conf = node.config.root_dir.parent / "resolv.conf"
        resolv_conf.write_text("".join(f"nameserver 10.0.0.{i}\n" for i in range(3)))
        node.config = replace(node.config, resolv_conf=resolv_conf)
        await node.boot()
        await node.create("p", dnsPolicy="Default", dnsConfig={"nameservers": ["10.0.0.9"]})
        await node.until("p", node.is_ready)
        assert (
            "Warning DNSConfigForming Nameserver limits were exceeded, some nameservers have been omitted, "
            "the applied nameserver line is: 10.0.0.0 10.0.0.1 10.0.0.2"
        ) in await node.events("p")

    play(story, boot=False)


def test_all_containers_begin_anew_in_the_same_sandbox(play: Play) -> None:
    """RestartAllContainers: init containers too, whatever the policy."""

    async def story(node: Node) -> None:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
        first = node.container("first")
        fickle = {"name": "fickle", "restartPolicy": "Never", "restartPolicyRules": [rule]}
        await node.create("p", fickle, {}, initContainers=[first], restartPolicy="Never")
        pod = await node.until(
            "p", lambda pod: node.is_ready(pod) and pod.status.container_statuses[1].restart_count == 1
        )
        assert [call for call in node.runtime.calls if call.split()[0] in ("run", "start", "stop")] == [
            "run default/p#0",
            "start first#0",
            "start fickle#0",
            "start app#0",
            "stop app#0",
            "start first#1",
            "start fickle#1",
            "start app#1",
        ]
        (told,) = [c.status for c in pod.status.conditions if c.type == "AllContainersRestarting"]
        assert told == "False"
        assert pod.status.init_container_statuses[0].restart_count == 1

    scripts = (Script(exit_code=42, after=5), Script())
    play(
        story,
        first=HollowImage((Script(exit_code=0),), present=True),
        fickle=HollowImage(scripts, present=True),
    )


def test_a_container_is_stopped_with_the_signal_it_asks_for(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create(
            "p", {"lifecycle": {"stopSignal": "SIGUSR1"}}, {"name": "other"}, os={"name": "linux"}
        )
        pod = await node.until("p", node.is_ready)
        shown = {status.name: status.stop_signal for status in pod.status.container_statuses}
        assert shown == {"app": "SIGUSR1", "other": None}
        await node.client.delete(Pod, "p", "default")
        await node.until_gone("p")
        stops = {call for call in node.runtime.calls if call.startswith("stop ")}
        assert {"stop app#0 SIGUSR1", "stop other#0"} <= stops

    play(story, gates=Gates({"ContainerStopSignals": True}), other=HollowImage(present=True))


def test_a_worker_that_wakes_itself_each_time_gives_way(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is everybody's: API, scheduler and all other pods."""
    syncs, others = 0, asyncio.Event()

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        (worker,) = node.workers()
        sync = worker._sync

        def restless(tasks: asyncio.TaskGroup) -> Any:
            nonlocal syncs
            syncs += 1
            if syncs < 1000 and not others.is_set():
                worker._wake_up()
            return sync(tasks)

        monkeypatch.setattr(worker, "_sync", restless)
        worker._wake_up()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others.set()

    play(story)
    assert 0 < syncs < 10
