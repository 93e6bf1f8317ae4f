"""The planner as tables: this pod, observed so, is planned that. The notation is in `conftest.py`.

Covers `plan.py` and what it is made of: `containers.py`, `ending.py`, `restart.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from podling.kubelet.plan.plan import plan
from podling.kubelet.pod.actions import StopContainer
from podling.kubelet.pod.lifecycle import PodState
from podling.kubelet.pod.observed import ProbeResult, Termination
from podling.kubelet.status.container_status import status_changes_at
from podling.model.gates import Gates
from podling.model.time import rfc3339
from podling.model.types.container import ExecAction, Lifecycle, LifecycleHandler
from podling.model.types.pod_status import ContainerState, ContainerStateRunning, ContainerStatus

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

INITIALIZATION = [
    # pod                observed                             sandbox   planned
    ("a",                "",                                  "none",   "sandbox#0"),
    ("a b",              "",                                  "ready",  "start a#0, start b#0"),
    ("i1 i2 / a",        "",                                  "ready",  "start i1#0"),
    ("i1 i2 / a",        "i1=run",                            "ready",  ""),
    ("i1 i2 / a",        "i1=exit0",                          "ready",  "start i2#0"),
    ("i1 i2 / a",        "i1=exit0 i2=run",                   "ready",  ""),
    ("i1 i2 / a b",      "i1=exit0 i2=exit0",                 "ready",  "initialized, start a#0, start b#0"),
    ("i1 i2 / a",        "i1=exit1",                          "ready",  "start i1#1~1"),
    ("i1 i2 / a",        "i1=exit1~1@9",                      "ready",  ""),
    ("i1 i2 / a",        "i1=exit1~1@10",                     "ready",  "start i1#1~2"),
    ("i1 i2 / a",        "i1=created",                        "ready",  "remove i1-0"),
    ("i1 i2 / a",        "i1=unknown",                        "ready",  "stop i1-0(30)"),
    # garbage-collected init containers alone never cause a rerun (R-INIT-4)
    ("i1 i2 / a",        "i2=exit0",                          "ready",  "initialized, start a#0"),
    ("i1 i2 / a",        "i2=run",                            "ready",  ""),
    ("i1 i2 / a b",      "a=run",                             "ready",  "initialized, start b#0"),
    # all terminated and no record of initialization is left: once more from the start
    ("i1 i2 / a",        "a=exit1",                           "ready",  "start i1#0"),
    # volume containers start together, each is tried again for itself, and all come before the rest (R-VOL-1)
    ("v+ w+ i / a",      "",                                  "ready",  "start v#0, start w#0"),
    ("v+ w+ i / a",      "w=exit0",                           "ready",  "start v#0"),
    ("v+ w+ i / a",      "v=run w=exit0",                     "ready",  ""),
    ("v+ w+ i / a",      "v=run w=exit1",                     "ready",  "start w#1~1"),
    ("v+ w+ i / a",      "v=exit0 w=exit0",                   "ready",  "start i#0"),
    ("v+ w+ i / a",      "v=exit0 w=exit0 i=exit0",           "ready",  "initialized, start a#0"),
    ("v+ w+ i / a",      "i=exit0",                           "ready",  "initialized, start a#0"),
    ("v+ w+ / a",        "v=exit0 w=exit0",                   "ready",  "initialized, start a#0"),
    ("v+ w+ i / a",      "v=exit0^ w=exit0^ i=exit0^",        "ready",  "start v#1, start w#1"),
    # a new sandbox begins at the first init container, whatever the old one had reached
    ("i1 i2 / a",        "i1=exit0^ i2=exit0^ a=exit1^",      "ready",  "start i1#1"),
    ("i1 i2 / a",        "i1=exit0^ i2=exit0^ i1=exit0",      "ready",  "start i2#1, remove i1-0"),
]  # fmt: skip

SIDECARS = [
    ("s* / a",           "",                                  "start s#0"),
    ("s* / a",           "s=run",                             "initialized, start a#0"),
    ("s* i / a",         "s=run",                             "start i#0"),
    ("s* i / a",         "s=exit1 i=run",                     "start s#1~1"),
    ("s* i / a",         "s=exit1~2@5",                       ""),
    ("i1 s* i2 / a",     "i1=exit0 s=exit1~3@5 i2=exit0",     "initialized, start a#0"),
    ("s1* s2* / a",      "s1=run s2=run a=run s2=exit0~0",    "start s2#2~1, initialized"),
]  # fmt: skip

RESTARTS = [
    # pod            policy       observed                  planned                  ends as
    ("a",            "Always",    "a=exit0",                "start a#1~1",           PodState.SYNCING),
    ("a",            "Always",    "a=exit1~1@9",            "",                      PodState.SYNCING),
    ("a",            "Always",    "a=exit1~1@10",           "start a#1~2",           PodState.SYNCING),
    ("a",            "Always",    "a=exit1~9@299",          "",                      PodState.SYNCING),
    ("a",            "Always",    "a=exit1~9@300",          "start a#1~10",          PodState.SYNCING),
    ("a b",          "OnFailure", "a=exit0 b=exit1",        "start b#1~1",           PodState.SYNCING),
    ("a",            "OnFailure", "a=exit0",                "stop-sandbox new",      PodState.TERMINATING),
    ("a",            "Never",     "a=exit1",                "stop-sandbox new",      PodState.TERMINATING),
    ("a b",          "Never",     "a=exit1 b=run",          "",                      PodState.SYNCING),
    ("i / a",        "Never",     "i=exit1",                "stop-sandbox new",      PodState.TERMINATING),
    ("i / a",        "OnFailure", "i=exit1",                "start i#1~1",           PodState.SYNCING),
    # a sidecar does not keep a finished pod from completing, nor does an ephemeral container
    ("s* / a",       "Never",     "s=run a=exit0",          "stop s-0(30)",          PodState.TERMINATING),
    ("/ a / e",      "Never",     "a=exit0 e=run",          "stop e-0(30)",          PodState.TERMINATING),
]  # fmt: skip

SANDBOXES = [
    # pod          policy       observed                        sandbox    planned
    ("a",          "Always",    "a=run",                        "dead",    "stop a-0(30)"),
    ("a",          "Always",    "a=exit137",                    "dead",    "stop-sandbox new"),
    ("a",          "Always",    "a=exit137",                    "stopped", "sandbox#1"),
    ("i / a",      "Always",    "i=exit0 a=exit137",            "stopped", "sandbox#1"),
    ("a b",        "OnFailure", "a=exit0^ b=exit137^",          "ready",   "start b#1~1"),
    # a pod that never restarts gets a new sandbox only if none of its app containers was begun
    ("i / a",      "Never",     "i=exit0",                      "stopped", "sandbox#1"),
    ("i / a b",    "Never",     "i=exit0 a=exit137",            "stopped", ""),
    # a changed init image runs everything again, a changed app image only that container
    ("i / a",      "Always",    "i=exit0! a=run",               "ready",   "stop a-0(30)"),
    ("i / a",      "Always",    "i=exit0! a=exit137",           "ready",   "stop-sandbox new"),
    ("i / a",      "Never",     "i=exit0! a=run",               "ready",   "initialized"),
    ("a b",        "Always",    "a=run! b=run",                 "ready",   "stop a-0(30)"),
    ("a b",        "Always",    "a=exit0~5! b=run",             "ready",   "start a#1"),
]  # fmt: skip

EPHEMERAL = [
    # each is started once, before initialization is done too, and never again (R-EPH-3)
    ("i / a / e",    "",                        "start e#0, start i#0"),
    ("/ a / e",      "a=run",                   "start e#0"),
    ("/ a / e",      "a=run e=run",             ""),
    ("/ a / e",      "a=run e=exit1",           ""),
    ("/ a / e",      "a=run e=exit1^",          ""),
    ("/ a / e",      "a=run e=created",         "remove e-0"),
    ("/ a / e f",    "a=run e=run",             "start f#0"),
    ("/ a / e>a",    "a=run",                   "start e#0>a-0"),
    ("/ a / e>a",    "a=exit1~3",               ""),
]  # fmt: skip

DELETION = [
    # observed                         sandbox    planned
    ("s1=run s2=run a=run e=run",      "ready",   "stop e-0(8), stop a-0(8)"),
    ("s1=run s2=run a=exit0 e=exit0",  "ready",   "stop s2-0(5)"),
    ("s1=run s2=exit0 a=exit0",        "ready",   "stop s1-0(5)"),
    ("s1=exit0 s2=exit0 a=exit0",      "ready",   "stop-sandbox new"),
    ("s1=exit0 s2=exit0 a=exit0",      "stopped", "remove-sandbox new"),
    ("",                               "none",    "finish"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seen", "sandbox", "planned"), INITIALIZATION)
def test_initialization_in_order(
    scene: type[Scene], text: str, seen: str, sandbox: str, planned: str
) -> None:
    """R-INIT-1, R-INIT-2, R-INIT-4, R-INIT-11"""
    pod = scene.pod(text)
    assert scene.say(plan(pod, scene.observed(pod, seen, sandbox), scene.NOW)) == planned


@pytest.mark.parametrize(("text", "seen", "planned"), SIDECARS)
def test_sidecars_start_in_order_and_are_kept_running(
    scene: type[Scene], text: str, seen: str, planned: str
) -> None:
    """R-INIT-6"""
    pod = scene.pod(text)
    assert scene.say(plan(pod, scene.observed(pod, seen), scene.NOW)) == planned


@pytest.mark.parametrize(("text", "policy", "seen", "planned", "state"), RESTARTS)
def test_restart_policies_and_backoff(
    scene: type[Scene], text: str, policy: str, seen: str, planned: str, state: PodState
) -> None:
    """R-INIT-2"""
    pod = scene.pod(text, policy)
    recorded = frozenset({"new"} if "a=" in seen else ())
    made = plan(pod, scene.observed(pod, seen, initialized_sandboxes=recorded), scene.NOW)
    assert (scene.say(made), made.state) == (planned, state)


@pytest.mark.parametrize(("text", "policy", "seen", "sandbox", "planned"), SANDBOXES)
def test_lost_and_changed_sandboxes(
    scene: type[Scene], text: str, policy: str, seen: str, sandbox: str, planned: str
) -> None:
    """R-INIT-4"""
    pod = scene.pod(text, policy)
    assert scene.say(plan(pod, scene.observed(pod, seen, sandbox), scene.NOW)) == planned


@pytest.mark.parametrize(("text", "seen", "planned"), EPHEMERAL)
def test_ephemeral_containers_start_once(scene: type[Scene], text: str, seen: str, planned: str) -> None:
    """R-EPH-3, R-EPH-4"""
    pod = scene.pod(text)
    assert scene.say(plan(pod, scene.observed(pod, seen), scene.NOW)) == planned


@pytest.mark.parametrize(("seen", "sandbox", "planned"), DELETION)
def test_deletion_stops_apps_then_sidecars_from_last_to_first(
    scene: type[Scene], seen: str, sandbox: str, planned: str
) -> None:
    """R-INIT-6: sidecars get what the app containers left of the grace period"""
    pod = scene.pod("s1* s2* / a / e")
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW + timedelta(seconds=5))
    pod.metadata.deletion_grace_period_seconds = 8
    assert scene.say(plan(pod, scene.observed(pod, seen, sandbox), scene.NOW)) == planned


# fmt: off
PRE_STOPS = [
    # observed                  hooks begun  plan
    ("s1=run s2=run a=run",     (),          "pre-stop s1-0(8), stop a-0(8)"),
    ("s1=run s2=run a=run",     ("s1-0",),   "stop a-0(8)"),
    ("s1=run s2=run a=exit0",   (),          "pre-stop s1-0(8), stop s2-0(5)"),
    ("s1=run s2=exit0 a=exit0", ("s1-0",),   "stop s1-0(5)"),
    ("s1=exit0 s2=run a=run",   (),          "stop a-0(8)"),
]
# fmt: on


@pytest.mark.parametrize(("seen", "begun", "planned"), PRE_STOPS)
def test_hooks_of_sidecars_do_not_wait_for_their_turn(
    scene: type[Scene], seen: str, begun: tuple[str, ...], planned: str
) -> None:
    """R-INIT-6"""
    pod = scene.pod("s1* s2* / a")
    hook = LifecycleHandler(exec=ExecAction(["hook"]))
    pod.spec.init_containers[0].lifecycle = Lifecycle(pre_stop=hook)
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW + timedelta(seconds=5))
    pod.metadata.deletion_grace_period_seconds = 8
    observed = scene.observed(pod, seen, pre_stopped=frozenset(begun))
    assert ", ".join(sorted(scene.say(plan(pod, observed, scene.NOW)).split(", "))) == planned


def test_the_end_of_a_deleted_pod_is_stated(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW)
    steps = [("a=run", "ready"), ("a=exit0", "ready"), ("a=exit0", "stopped"), ("", "none")]
    states = [plan(pod, scene.observed(pod, seen, sandbox), scene.NOW).state for seen, sandbox in steps]
    assert states == [PodState.TERMINATING] * 2 + [PodState.TERMINATED] * 2


def test_a_pod_removed_from_the_api_ends_as_a_deleted_one(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    observed = scene.observed(pod, "a=run", termination=Termination(grace_seconds=0))
    assert scene.say(plan(pod, observed, scene.NOW)) == "stop a-0(2)"
    assert scene.say(plan(pod, replace(observed, containers=(), sandboxes=()), scene.NOW)) == "finish"


def test_an_evicted_pod_keeps_its_containers_for_their_logs(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    evicted = Termination("Evicted", "The node was low on resource: memory.", "Failed")
    made = plan(pod, scene.observed(pod, "a=exit137", "stopped", termination=evicted), scene.NOW)
    assert (made.actions, made.state) == ((), PodState.TERMINATED)


@pytest.mark.parametrize(("grace", "planned"), [(30, ""), (5, "stop a-0(5)")])
def test_a_second_deletion_with_less_grace_stops_again(scene: type[Scene], grace: int, planned: str) -> None:
    pod = scene.pod("a")
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW)
    pod.metadata.deletion_grace_period_seconds = grace
    observed = scene.observed(pod, "a=run", in_flight="stop:a-0(30)")
    assert scene.say(plan(pod, observed, scene.NOW)) == planned


@pytest.mark.parametrize(
    ("in_flight", "planned"),
    [
        ("start:i", ""),
        ("start:i start:e", ""),
        ("create-sandbox", ""),
        ("start:e", "start i#0"),
    ],
)  # fmt: skip
def test_what_is_in_flight_is_never_planned_twice(scene: type[Scene], in_flight: str, planned: str) -> None:
    pod = scene.pod("i / a / e")
    in_flight += " start:e" if planned else ""
    observed = scene.observed(pod, "e=run" if in_flight == "start:i" else "", in_flight=in_flight)
    assert scene.say(plan(pod, observed, scene.NOW)) == planned


def test_a_sandbox_is_not_stopped_under_a_start_in_flight(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    pod.metadata.deletion_timestamp = rfc3339(scene.NOW)
    made = plan(pod, scene.observed(pod, in_flight="start:a"), scene.NOW)
    assert (made.actions, made.state) == ((), PodState.TERMINATING)


@pytest.mark.parametrize(
    ("seconds", "seen", "planned", "wakes_in"),
    [
        (99, "i=run", "", 1),
        (100, "i=run", "stop i-0(30)", None),
        (500, "i=exit0 a=run", "stop a-0(30)", None),
    ],
)
def test_the_deadline_counts_initialization(
    scene: type[Scene], seconds: int, seen: str, planned: str, wakes_in: int | None
) -> None:
    """R-INIT-7"""
    pod = scene.pod("i / a", active_deadline_seconds=100)
    made = plan(pod, scene.observed(pod, seen, started_at=scene.ago(seconds)), scene.NOW)
    wakes = (made.wake_at - scene.NOW).total_seconds() if made.wake_at else None
    assert (scene.say(made), wakes) == (planned, wakes_in)


def test_pull_failures_back_off_and_wake_the_worker(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    held = scene.observed(pod, failures={"a": scene.failure("ErrImagePull", seconds=15, count=2)})
    made = plan(pod, held, scene.NOW)
    assert made.actions == ()
    assert made.wake_at == scene.NOW + timedelta(seconds=5)
    over = scene.observed(pod, failures={"a": scene.failure("ErrImagePull", seconds=20, count=2)})
    assert scene.say(plan(pod, over, scene.NOW)) == "start a#0"


def test_a_failed_sandbox_is_tried_again_later(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    observed = scene.observed(pod, "", "none", sandbox_failure=scene.failure("FailedCreatePodSandBox", 4))
    made = plan(pod, observed, scene.NOW)
    assert (made.actions, made.wake_at) == ((), scene.NOW + timedelta(seconds=6))


def test_nothing_starts_before_the_volumes_are_there(scene: type[Scene]) -> None:
    """R-INIT-1"""
    pod = scene.pod("i / a / e")
    assert plan(pod, scene.observed(pod, volumes_ready=False), scene.NOW).actions == ()


def test_the_worker_wakes_to_show_a_crash_loop_then_to_end_it(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    wakes = []
    for age in (1, 2):
        observed = scene.observed(pod, f"a=exit1~2@{age}")
        times = plan(pod, observed, scene.NOW).wake_at, status_changes_at(pod, observed, scene.NOW)
        wakes.append(min(time for time in times if time))
    assert wakes == [scene.NOW + timedelta(seconds=1), scene.NOW + timedelta(seconds=18)]


@pytest.mark.parametrize(("policy", "restart"), [("Always", True), ("Never", False)])
def test_a_failed_liveness_probe_stops_and_the_policy_decides(
    scene: type[Scene], policy: str, restart: bool
) -> None:
    pod = scene.pod("a", policy)
    probe = ProbeResult(alive=False, message="failed liveness probe", grace_seconds=3)
    (stop,) = plan(pod, scene.observed(pod, "a=run", probes={"a-0": probe}), scene.NOW).actions
    assert isinstance(stop, StopContainer)
    assert (stop.grace_seconds, stop.restart) == (3, restart)
    assert stop.message.endswith(", will be restarted") == restart


def test_a_container_stopped_to_be_replaced_is_started_whatever_its_policy(scene: type[Scene]) -> None:
    pod = scene.pod("a b", "Never")
    observed = scene.observed(pod, "b=run a=exit0!", restarting=frozenset({"a-0"}))
    assert scene.say(plan(pod, observed, scene.NOW)) == "start a#1"


def test_the_next_init_container_waits_until_the_sidecar_has_started(scene: type[Scene]) -> None:
    """R-INIT-6: started means its startup probe has passed and postStart is done"""
    pod = scene.pod("s* i / a")
    waiting = scene.observed(pod, "s=run", probes={"s-0": ProbeResult(started=False)})
    assert plan(pod, waiting, scene.NOW).actions == ()


def test_restart_counts_survive_containers_that_are_gone(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    running = ContainerState(running=ContainerStateRunning())
    pod.status.container_statuses = [ContainerStatus(name="a", restart_count=4, state=running)]
    assert scene.say(plan(pod, scene.observed(pod), scene.NOW)) == "start a#5"


def test_an_ephemeral_container_known_only_from_the_status_is_not_started_again(scene: type[Scene]) -> None:
    """R-EPH-3"""
    pod = scene.pod("/ a / e")
    running = ContainerState(running=ContainerStateRunning())
    pod.status.ephemeral_container_statuses = [ContainerStatus(name="e", state=running)]
    assert scene.say(plan(pod, scene.observed(pod, "a=run"), scene.NOW)) == ""


def test_old_instances_are_pruned_init_containers_first(scene: type[Scene]) -> None:
    """R-INIT-10"""
    pod = scene.pod("i / a")
    seen = "i=exit1 i=exit1 i=exit0 a=exit1 a=exit1 a=run"
    assert (
        scene.say(plan(pod, scene.observed(pod, seen), scene.NOW))
        == "initialized, remove i-1, remove i-0, remove a-0"
    )


@pytest.mark.parametrize(
    ("seen", "removed"),
    [
        ("a=exit1 a=run", ""),
        ("a=exit1 a=exit1 a=run", "remove a-0"),
        ("a=exit1 a=exit1~1", "remove a-0"),
        ("a=exit1~1", ""),
    ],
)
def test_one_dead_instance_of_a_container_is_kept(scene: type[Scene], seen: str, removed: str) -> None:
    """R-INIT-10: the one `logs --previous` shows, whether or not another runs."""
    pod = scene.pod("a")
    assert scene.say(plan(pod, scene.observed(pod, seen), scene.NOW)) == removed


def test_of_a_pod_that_is_over_nothing_is_kept_when_the_node_is_short_of_disk(scene: type[Scene]) -> None:
    pod = scene.pod("i / a", restart="Never")
    pod.status.phase = "Succeeded"
    seen = "i=exit0 a=exit0"
    over = {"state": PodState.TERMINATED, "sandbox": "stopped"}
    assert scene.say(plan(pod, scene.observed(pod, seen, **over), scene.NOW)) == ""
    cleared = scene.observed(pod, seen, **over, cleared=True)
    assert scene.say(plan(pod, cleared, scene.NOW)) == "remove a-0, remove i-0"
    empty = scene.observed(pod, "", **over, cleared=True)
    assert scene.say(plan(pod, empty, scene.NOW)) == "remove-sandbox new"


def test_an_old_sandbox_is_removed_with_its_last_container(scene: type[Scene]) -> None:
    pod = scene.pod("a")
    kept = scene.observed(pod, "a=exit1^ a=run")
    assert plan(pod, kept, scene.NOW).actions == ()
    emptied = replace(kept, containers=kept.containers[:1])
    assert scene.say(plan(pod, emptied, scene.NOW)) == "remove-sandbox old"


GATES = [
    (Gates({"EphemeralContainers": False}),       "/ a / e", "a=run",          ""),
    (Gates({"EphemeralContainerRemoval": True}),  "/ a /",   "a=run e=run",    "stop e-0(30)"),
    (Gates({"EphemeralContainerRemoval": False}), "/ a /",   "a=run e=run",    ""),
    (Gates({"InitContainerImageRestart": False}), "i / a",  "i=exit0! a=run", "initialized"),
    (Gates({"InitContainerImageRestart": False}), "i / a",  "i=run!",         ""),
    (Gates({"InitContainerImageRestart": False}), "i / a",  "i=exit1~5!",     "start i#1"),
]  # fmt: skip


@pytest.mark.parametrize(("gates", "text", "seen", "planned"), GATES)
def test_feature_gates(scene: type[Scene], gates: Gates, text: str, seen: str, planned: str) -> None:
    """R-EPH-8, R-EPH-11, R-INIT-4"""
    pod = scene.pod(text)
    assert scene.say(plan(pod, scene.observed(pod, seen), scene.NOW, gates)) == planned


@pytest.mark.parametrize("reached", [PodState.TERMINATING, PodState.TERMINATED])
def test_a_pod_that_has_begun_to_end_never_runs_again(scene: type[Scene], reached: PodState) -> None:
    """Even if whatever ended it is no longer to be seen."""
    pod = scene.pod("a", "Never")
    made = plan(pod, scene.observed(pod, "", "ready", state=reached), scene.NOW)
    assert (scene.say(made), made.state) == ("stop-sandbox new", reached)
