"""The status of pods as tables: this pod, observed so, is shown so. The notation is in `conftest.py`.

Covers `pod_status.py` and what it is made of: `container_status.py`, `conditions.py`, `plan/ending.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from podling.kubelet.plan.containers import next_attempt
from podling.kubelet.pod.observed import ProbeResult, Termination
from podling.kubelet.status.pod_status import pod_status
from podling.model.quantity import Quantity
from podling.model.time import rfc3339
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import PodReadinessGate
from podling.model.types.pod_status import ContainerState, ContainerStatus, PodCondition, PodIP, PodStatus

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene


def say_state(state: ContainerState) -> str:
    if state.running:
        return "running"
    if state.terminated:
        return f"{state.terminated.reason}({state.terminated.exit_code})"
    return state.waiting.reason if state.waiting else "-"


def say(statuses: Sequence[ContainerStatus]) -> str:
    """`name: state [last state] restarts` of each."""
    return ", ".join(
        f"{s.name}: {say_state(s.state)}"
        + (f" [{say_state(s.last_state)}]" if s.last_state.terminated else "")
        + (f" x{s.restart_count}" if s.restart_count else "")
        for s in statuses
    )


def conditions(status: PodStatus) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in status.conditions}


PHASES = [
    # pod          policy       observed                            phase
    ("a",          "Always",    "",                                 "Pending"),
    ("a b",        "Always",    "a=run",                            "Pending"),
    ("a b",        "Always",    "a=run b=run",                      "Running"),
    ("a",          "Always",    "a=exit1",                          "Running"),
    ("a",          "Always",    "a=exit1~3@5",                      "Running"),
    ("a",          "OnFailure", "a=exit1",                          "Running"),
    ("a",          "OnFailure", "a=exit0",                          "Succeeded"),
    ("a b",        "Never",     "a=exit1 b=run",                    "Running"),
    ("a b",        "Never",     "a=exit1 b=exit0",                  "Failed"),
    ("i / a",      "Always",    "i=run",                            "Pending"),
    ("i / a",      "Always",    "i=exit1",                          "Pending"),
    ("i / a",      "Always",    "i=exit1~3@5",                      "Pending"),
    ("i / a",      "Never",     "i=exit1",                          "Failed"),
    ("i / a",      "Never",     "i=exit0 a=exit0",                  "Succeeded"),
    ("s* / a",     "Always",    "s=run",                            "Pending"),
    ("s* / a",     "Always",    "s=run a=run",                      "Running"),
    ("s* / a",     "Always",    "s=exit1~3@5 a=run",                "Running"),
    # a terminal phase waits for the last container of any kind
    ("s* / a",     "Never",     "s=run a=exit0",                    "Running"),
    ("s* / a",     "Never",     "s=exit137 a=exit0",                "Succeeded"),
    ("/ a / e",    "Never",     "a=exit0 e=run",                    "Running"),
    ("/ a / e",    "Never",     "a=exit0 e=exit1",                  "Succeeded"),
]  # fmt: skip

INIT, BACKOFF = "PodInitializing", "CrashLoopBackOff"
CONTAINERS = [
    # pod          observed                     init containers                   app containers
    ("a",          "",                          "",                               "a: ContainerCreating"),
    ("a",          "a=created",                 "",                               "a: ContainerCreating"),
    ("i1 i2 / a",  "",                          f"i1: {INIT}, i2: {INIT}",        f"a: {INIT}"),
    ("i1 i2 / a",  "i1=exit0 i2=run",           "i1: Completed(0), i2: running",  f"a: {INIT}"),
    ("i1 / a",     "i1=exit3",                  "i1: Error(3)",                   f"a: {INIT}"),
    ("i1 / a",     "i1=exit3~1@1",              "i1: Error(3)",                   f"a: {INIT}"),
    ("i1 / a",     "i1=exit3~1@3",              f"i1: {BACKOFF} [Error(3)]",      f"a: {INIT}"),
    ("i1 / a",     "i1=exit3 i1=run",           "i1: running [Error(3)] x1",      f"a: {INIT}"),
    ("i1 i2 / a",  "i2=run",                    f"i1: {INIT}, i2: running",       f"a: {INIT}"),
    ("i1 / a",     "a=run",                     "i1: Completed(0)",               "a: running"),
    ("a",          "a=exit1 a=exit2~2@3",       "",                         f"a: {BACKOFF} [Error(2)] x1"),
    ("a",          "a=exit0 a=run",             "",                         "a: running [Completed(0)] x1"),
    # in a new sandbox everything waits its turn again (R-INIT-4)
    ("i1 / a",     "i1=exit0^ a=exit1^ i1=run", "i1: running [Completed(0)] x1",  f"a: {INIT} [Error(1)]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "policy", "seen", "phase"), PHASES)
def test_phases(scene: type[Scene], text: str, policy: str, seen: str, phase: str) -> None:
    """R-INIT-3, R-EPH-3"""
    pod = scene.pod(text, policy)
    assert pod_status(pod, scene.observed(pod, seen), scene.NOW).phase == phase


@pytest.mark.parametrize(("text", "seen", "init", "apps"), CONTAINERS)
def test_container_states(scene: type[Scene], text: str, seen: str, init: str, apps: str) -> None:
    """R-INIT-3"""
    pod = scene.pod(text)
    status = pod_status(pod, scene.observed(pod, seen), scene.NOW)
    assert (say(status.init_container_statuses), say(status.container_statuses)) == (init, apps)


FAILURES = [
    # reason                         seconds ago   shown
    ("ErrImagePull",                 1, "ErrImagePull",               "no such thing"),
    ("ErrImagePull",                 3, "ImagePullBackOff",
     'Back-off pulling image "image-a": ErrImagePull: no such thing'),
    ("InvalidImageName",             3, "InvalidImageName",           "no such thing"),
    ("ErrImageNeverPull",            3, "ErrImageNeverPull",          "no such thing"),
    ("CreateContainerConfigError",   3, "CreateContainerConfigError", "no such thing"),
    ("CreateContainerError",         3, "CreateContainerError",       "no such thing"),
    ("RunContainerError",            3, "RunContainerError",          "no such thing"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "seconds", "shown", "message"), FAILURES)
def test_why_a_container_could_not_start(
    scene: type[Scene], reason: str, seconds: int, shown: str, message: str
) -> None:
    """R-EPH-5"""
    pod = scene.pod("/ a / e")
    failures = {"a": scene.failure(reason, seconds), "e": scene.failure(reason, seconds)}
    status = pod_status(pod, scene.observed(pod, failures=failures), scene.NOW)
    for container in (*status.container_statuses, *status.ephemeral_container_statuses):
        waiting = container.state.waiting
        assert waiting
        assert (waiting.reason, waiting.message) == (
            shown,
            message.replace("image-a", f"image-{container.name}"),
        )


def test_the_words_of_a_crash_loop(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    (container,) = pod_status(pod, scene.observed(pod, "a=exit1~4@3"), scene.NOW).container_statuses
    expected = "back-off 1m20s restarting failed container=a pod=p_ns(u1)"
    assert container.state.waiting and container.state.waiting.message == expected


def test_everything_known_of_a_running_container(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    observed = scene.observed(pod, "a=exit1 a=run@7")
    newest = replace(observed.containers[0], user=(1, 2, (3, 4)))
    observed = replace(observed, containers=(newest, *observed.containers[1:]))
    (container,) = pod_status(pod, observed, scene.NOW).container_statuses
    assert msgspec.to_builtins(container) == {
        "name": "a",
        "state": {"running": {"startedAt": rfc3339(scene.ago(7))}},
        "lastState": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "startedAt": rfc3339(scene.ago(2)),
                "finishedAt": rfc3339(scene.ago(1)),
                "containerID": "containerd://a-0",
            }
        },
        "ready": True,
        "restartCount": 1,
        "image": "image-a",
        "imageID": "sha256:a",
        "containerID": "containerd://a-1",
        "started": True,
        "resources": {},
        "user": {"linux": {"uid": 1, "gid": 2, "supplementalGroups": [3, 4]}},
    }


def test_everything_known_of_a_running_pod(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.metadata.generation = 3
    status = pod_status(
        pod, scene.observed(pod, "a=run", started_at=scene.ago(9)), scene.NOW, ("192.168.0.1",)
    )
    made = msgspec.to_builtins(status)
    del made["containerStatuses"]
    now = rfc3339(scene.NOW)
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert made == {
        "observedGeneration": 3,
        "phase": "Running",
        "conditions": [
            {
                "type": kind,
                "observedGeneration": 3,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": now,
            }
            for kind in kinds
        ],
        "hostIP": "192.168.0.1",
        "hostIPs": [{"ip": "192.168.0.1"}],
        "podIP": "10.0.0.7",
        "podIPs": [{"ip": "10.0.0.7"}],
        "startTime": rfc3339(scene.ago(9)),
        "qosClass": "BestEffort",
        "resources": {},
    }


def amounts(text: str) -> dict[str, Quantity]:
    return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}


HAS = [
    # observed  of itself             requests                 limits           allocated
    ("",        None,                 "cpu=3 disk=5 memory=4", "cpu=2 disk=9",  "cpu=3 disk=5 memory=4"),
    ("a=run",   None,                 "cpu=3 memory=4",        "cpu=2",         "cpu=3 disk=5 memory=4"),
    ("a=run",   ("cpu=7", "cpu=8"),   "cpu=7 memory=4",        "cpu=8",         "cpu=7 disk=5 memory=4"),
    ("a=run",   ("memory=6", ""),     "cpu=3 memory=7",        "cpu=2",         "cpu=3 disk=5 memory=7"),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "own", "requests", "limits", "allocated"), HAS)
def test_a_pod_shows_what_it_has_all_in_all(
    scene: type[Scene], seen: str, own: tuple[str, str] | None, requests: str, limits: str, allocated: str
) -> None:
    """R-SYS-5: of a pod that runs what can be resized, and what it says itself."""
    pod = scene.pod("a")
    pod.spec.overhead = amounts("memory=1")
    pod.spec.containers[0].resources = ResourceRequirements(
        requests=amounts("cpu=3 memory=3 disk=5"), limits=amounts("cpu=2 disk=9")
    )
    if own is not None:
        pod.spec.resources = ResourceRequirements(requests=amounts(own[0]), limits=amounts(own[1]))
    status = pod_status(pod, scene.observed(pod, seen), scene.NOW)
    assert status.resources == ResourceRequirements(requests=amounts(requests), limits=amounts(limits))
    assert status.allocated_resources == amounts(allocated)


YES = ("True", "")
UNINITIALIZED, UNREADY = ("False", "ContainersNotInitialized"), ("False", "ContainersNotReady")
CONDITIONS = [
    # pod        policy     observed                Initialized               Ready
    ("i s* / a", "Always",  "",                     UNINITIALIZED,            UNREADY),
    ("i s* / a", "Always",  "i=exit0",              UNINITIALIZED,            UNREADY),
    ("i s* / a", "Always",  "i=exit0 s=run",        YES,                      UNREADY),
    ("i s* / a", "Always",  "i=exit0 s=run a=run",  YES,                      YES),
    ("i s* / a", "Always",  "i=exit0 s=exit1 a=run", YES,                     UNREADY),
    ("i / a",    "Never",   "i=exit0 a=exit0",      ("True", "PodCompleted"), ("False", "PodCompleted")),
    ("i / a",    "Never",   "i=exit1",              UNINITIALIZED,            ("False", "PodFailed")),
    ("i / a",    "Always",  "i=exit0^ a=exit1^",    UNINITIALIZED,            UNREADY),
]  # fmt: skip


@pytest.mark.parametrize(("text", "policy", "seen", "initialized", "ready"), CONDITIONS)
def test_conditions(
    scene: type[Scene],
    text: str,
    policy: str,
    seen: str,
    initialized: tuple[str, str],
    ready: tuple[str, str],
) -> None:
    """R-INIT-3"""
    pod = scene.pod(text, policy)
    found = conditions(pod_status(pod, scene.observed(pod, seen), scene.NOW))
    assert (found["Initialized"], found["Ready"], found["ContainersReady"]) == (initialized, ready, ready)


def test_the_unfinished_are_named(scene: type[Scene]) -> None:
    """R-INIT-3"""
    pod = scene.pod("i1 i2 i3 / a b")
    status = pod_status(pod, scene.observed(pod, "i1=exit0 i2=run"), scene.NOW)
    messages = {c.type: c.message for c in status.conditions}
    assert messages["Initialized"] == "containers with incomplete status: [i2 i3]"
    assert messages["Ready"] == "containers with unready status: [a b]"


@pytest.mark.parametrize(("sandbox", "ready"), [("none", "False"), ("ready", "True"), ("dead", "False")])
def test_ready_to_start_containers_follows_the_sandbox(scene: type[Scene], sandbox: str, ready: str) -> None:
    pod = scene.pod("a")
    found = conditions(pod_status(pod, scene.observed(pod, "", sandbox), scene.NOW))
    assert found["PodReadyToStartContainers"] == (ready, "")


@pytest.mark.parametrize(("text", "starts"), [("", False), ("a=run", True)])
def test_a_sandbox_shows_once_the_volumes_are_set_up(scene: type[Scene], text: str, starts: bool) -> None:
    """As if it were made then; a container proves that they were."""
    pod = scene.pod("a")
    observed = replace(scene.observed(pod, text), volumes_ready=False)
    status = pod_status(pod, observed, scene.NOW)
    assert (conditions(status)["PodReadyToStartContainers"][0] == "True", bool(status.pod_ips)) == (
        starts,
        starts,
    )


def test_probes_decide_started_and_ready(scene: type[Scene]) -> None:
    pod = scene.pod("a b")
    probes = {"a-0": ProbeResult(started=False, ready=False), "b-0": ProbeResult(ready=False)}
    status = pod_status(pod, scene.observed(pod, "a=run b=run", probes=probes), scene.NOW)
    assert [(c.started, c.ready) for c in status.container_statuses] == [(False, False), (True, False)]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (None, 'corresponding condition of pod readiness gate "g" does not exist.'),
        ("False", 'the status of pod readiness gate "g" is not "True", but False'),
        ("True", ""),
    ],
)
def test_readiness_gates(scene: type[Scene], gate: str | None, message: str) -> None:
    pod = scene.pod("a", readiness_gates=[PodReadinessGate(condition_type="g")])
    if gate:
        pod.status.conditions = [PodCondition(type="g", status=gate)]
    status = pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    ready = next(c for c in status.conditions if c.type == "Ready")
    assert (ready.status, ready.message) == ("False" if message else "True", message)
    assert status.conditions[0].type == ("g" if gate else "PodReadyToStartContainers")


def test_giving_the_status_back_in_changes_nothing(scene: type[Scene]) -> None:
    pod = scene.pod("i / a / e")
    observed = scene.observed(pod, "i=exit0 a=exit1~3@4 e=run")
    pod.status = first = pod_status(pod, observed, scene.NOW, ("1.2.3.4",))
    later = pod_status(pod, observed, scene.NOW + timedelta(seconds=3), ("1.2.3.4",))
    assert msgspec.to_builtins(later) == msgspec.to_builtins(first)


def test_transition_times_move_only_with_the_status(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.status = pod_status(pod, scene.observed(pod), scene.NOW)
    later = scene.NOW + timedelta(seconds=9)
    moved = {
        c.type: c.last_transition_time
        for c in pod_status(pod, scene.observed(pod, "a=run"), later).conditions
    }
    assert moved["Ready"] == rfc3339(later)
    assert moved["Initialized"] == rfc3339(scene.NOW)


def test_ephemeral_containers_are_shown_and_never_counted(scene: type[Scene]) -> None:
    """R-EPH-3"""
    pod = scene.pod("/ a / e f")
    status = pod_status(pod, scene.observed(pod, "a=run e=exit1"), scene.NOW)
    assert say(status.ephemeral_container_statuses) == "e: Error(1), f: ContainerCreating"
    assert [(c.ready, c.started) for c in status.ephemeral_container_statuses] == [(False, None)] * 2
    assert (status.phase, conditions(status)["Ready"]) == ("Running", ("True", ""))


def test_the_first_ephemeral_container_is_remembered(scene: type[Scene]) -> None:
    """R-EPH-10"""
    pod = scene.pod("/ a / e")
    assert "EphemeralContainersStarted" not in conditions(
        pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    )
    pod.status = pod_status(pod, scene.observed(pod, "a=run e=run"), scene.NOW)
    assert conditions(pod.status)["EphemeralContainersStarted"] == ("True", "")
    pod.spec.ephemeral_containers = []
    kept = pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    assert conditions(kept)["EphemeralContainersStarted"] == ("True", "")


def test_an_ephemeral_container_without_its_target_says_so(scene: type[Scene]) -> None:
    """R-EPH-5"""
    pod = scene.pod("/ a / e>a")
    (container,) = pod_status(pod, scene.observed(pod), scene.NOW).ephemeral_container_statuses
    waiting = container.state.waiting
    assert waiting
    expected = ("CreateContainerConfigError", 'unable to find target container "a"')
    assert (waiting.reason, waiting.message) == expected


ENDINGS = [
    # pod        observed            sandbox     apps                               phase
    ("a",        "a=run",            "ready",    "a: running",                      "Running"),
    ("a",        "a=exit0~3@9",      "ready",    "a: Completed(0)",                 "Succeeded"),
    ("a b",      "a=exit0 b=exit137", "stopped", "a: Completed(0), b: Error(137)",  "Failed"),
    ("a",        "",                 "none",     "a: ContainerStatusUnknown(137)",  "Failed"),
    ("i / a",    "i=exit1~2@9",      "ready",    "a: PodInitializing",              "Failed"),
    ("i / a",    "i=exit0",          "ready",    "a: ContainerStatusUnknown(137)",  "Failed"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seen", "sandbox", "apps", "phase"), ENDINGS)
def test_a_deleted_pod_ends_as_its_containers_did(
    scene: type[Scene], text: str, seen: str, sandbox: str, apps: str, phase: str
) -> None:
    pod = scene.pod(text)
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW)
    status = pod_status(pod, scene.observed(pod, seen, sandbox), scene.NOW)
    assert (say(status.container_statuses), status.phase) == (apps, phase)


def test_past_its_deadline_a_pod_fails_once_it_has_stopped(scene: type[Scene]) -> None:
    """R-INIT-7"""
    pod = scene.pod("i / a", active_deadline_seconds=10)
    running = pod_status(pod, scene.observed(pod, "i=run", started_at=scene.ago(11)), scene.NOW)
    assert (running.phase, running.reason) == ("Pending", "")
    pod.status = stopped = pod_status(
        pod, scene.observed(pod, "i=exit0", started_at=scene.ago(11)), scene.NOW
    )
    expected = ("Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
    assert (stopped.phase, stopped.reason, stopped.message) == expected
    again = pod_status(pod, scene.observed(pod, "", "stopped"), scene.NOW)
    assert (again.phase, again.reason, again.message) == expected


def test_a_pod_that_ended_before_its_deadline_succeeded(scene: type[Scene]) -> None:
    pod = scene.pod("a", "Never", active_deadline_seconds=10)
    status = pod_status(pod, scene.observed(pod, "a=exit0@5", started_at=scene.ago(14)), scene.NOW)
    assert (status.phase, status.reason) == ("Succeeded", "")


def test_an_evicted_pod_says_why(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    evicted = Termination("Evicted", "The node was low on resource: memory.", "Failed")
    status = pod_status(pod, scene.observed(pod, "a=exit0", "stopped", termination=evicted), scene.NOW)
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", evicted.message)


def test_a_running_container_that_vanished_is_not_forgotten(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.status = pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    status = pod_status(pod, scene.observed(pod), scene.NOW)
    assert say(status.container_statuses) == "a: ContainerCreating [ContainerStatusUnknown(137)] x1"
    assert status.phase == "Running"


def test_a_vanished_container_is_counted_once(scene: type[Scene]) -> None:
    """The status counts the instance to come, and that instance is started under the same number."""
    pod = scene.pod("a")
    pod.status = pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    for _ in range(2):
        pod.status = pod_status(pod, scene.observed(pod), scene.NOW)
    assert pod.status.container_statuses[0].restart_count == 1
    assert next_attempt(pod.status, scene.observed(pod), "a") == 1


def test_the_last_state_survives_the_instance(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.status = pod_status(pod, scene.observed(pod, "a=exit3"), scene.NOW)
    observed = scene.observed(pod, "a=exit3 a=run")
    alone = replace(observed, containers=observed.containers[:1])
    assert say(pod_status(pod, alone, scene.NOW).container_statuses) == "a: running [Error(3)] x1"


def test_addresses_outlive_the_sandbox(scene: type[Scene]) -> None:
    pod = scene.pod("a", "Never")
    pod.status = pod_status(pod, scene.observed(pod, "a=run"), scene.NOW)
    status = pod_status(pod, scene.observed(pod, "a=exit0", "stopped"), scene.NOW)
    assert (status.pod_ip, status.pod_ips) == ("10.0.0.7", [PodIP(ip="10.0.0.7")])


def test_a_pod_in_the_nodes_network_has_its_addresses(scene: type[Scene]) -> None:
    pod = scene.pod("a", host_network=True)
    assert pod_status(pod, scene.observed(pod, "a=run"), scene.NOW, ("1.2.3.4", "::1")).pod_ips == [
        PodIP(ip="1.2.3.4"),
        PodIP(ip="::1"),
    ]


def test_termination_messages_share_twelve_kilobytes(scene: type[Scene]) -> None:
    pod = scene.pod("i / a b", "Never")
    observed = scene.observed(pod, "a=exit1")
    loud = replace(observed.containers[0], message="x" * 9999)
    status = pod_status(pod, replace(observed, containers=(loud,)), scene.NOW)
    ended = status.container_statuses[0].state.terminated
    assert ended and len(ended.message) == 4096


def test_a_pod_the_node_refuses_says_only_why(scene: type[Scene]) -> None:
    pod = scene.pod("i / a")
    pod.status.conditions = [PodCondition(type="PodScheduled", status="True")]
    refused = Termination("OutOfcpu", "Node didn't have enough resource: cpu", "Failed")
    status = pod_status(pod, scene.observed(pod, "", "none", termination=refused), scene.NOW)
    assert (status.phase, status.reason, status.message) == ("Failed", "OutOfcpu", refused.message)
    assert not status.container_statuses and not status.init_container_statuses
    assert conditions(status) == {"PodScheduled": ("True", "")}
