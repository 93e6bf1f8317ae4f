"""Resizes, as tables: what is answered, what differs, what the cgroup allows on the way (R-SYS-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from podling.kubelet.host.cgroups import CgroupLimits, limits_of_pod
from podling.kubelet.plan.admission import Shortage
from podling.kubelet.plan.plan import plan
from podling.kubelet.plan.resize import (
    actuated,
    allocation_of,
    first_to_be_resized,
    highest,
    is_in_progress,
    judge,
    limits_meanwhile,
    resources_to_actuate,
    restart_required,
    shown_resources,
    unactuated,
    with_allocation,
)
from podling.kubelet.pod.observed import ObservedPod
from podling.model.quantity import Quantity
from podling.model.types.container import ContainerResizePolicy, ResourceRequirements
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

ALL = {"cpu": Quantity("2"), "memory": Quantity("1000"), "pods": Quantity("10")}
SHORT = Shortage("cpu", 1500, 1000, 2000)


def amounts(text: str) -> dict[str, Quantity]:
    return {name: Quantity(value) for name, value in (word.split("=") for word in text.split())}


def resources(text: str) -> ResourceRequirements:
    """`requests | limits`."""
    requests, _, limits = text.partition("|")
    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


def pod_of(scene: type[Scene], shape: str, **by_name: str) -> Pod:
    pod = scene.pod(shape)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        container.resources = resources(by_name.get(container.name, ""))
    return pod


def observed_with(scene: type[Scene], pod: Pod, seen: str, **by_name: str) -> ObservedPod:
    observed = scene.observed(pod, seen)
    has = [replace(c, resources=resources(by_name.get(c.name, ""))) for c in observed.containers]
    return replace(observed, containers=tuple(has))


TOO_MUCH = "Node didn't have enough capacity: {}, requested: {}, capacity: {}"
ANSWERS = [
    # asks for                short of   reason         message
    ("cpu=2 memory=1000",     [],        "",            ""),
    ("cpu=1",                 [SHORT],   "Deferred",    SHORT.refusal.message),
    ("cpu=3",                 [SHORT],   "Infeasible",  TOO_MUCH.format("cpu", 3000, 2000)),
    ("cpu=3 memory=2000",     [],        "Infeasible",  TOO_MUCH.format("memory", 2000, 1000)),
]  # fmt: skip


@pytest.mark.parametrize(("asks", "short", "reason", "message"), ANSWERS)
def test_what_a_resize_is_answered(
    scene: type[Scene], asks: str, short: list[Shortage], reason: str, message: str
) -> None:
    answer = judge(pod_of(scene, "a", a=asks), ALL, short)
    assert (answer.reason, answer.message) == (reason, message)
    assert (answer.accepted, answer.may_change) == (not reason, reason == "Deferred")


def test_static_pods_stay_as_they_are(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a")
    pod.metadata.annotations = {"kubernetes.io/config.source": "file"}
    assert judge(pod, ALL, []).message == "In-place resize of static-pods is not supported"


def test_those_who_give_back_come_first_then_the_important_then_the_guaranteed(scene: type[Scene]) -> None:
    def key(cpu: int, has: int, priority: int = 0, limits: str = "") -> tuple[bool, int, bool]:
        pod = pod_of(scene, "a", a=f"cpu={cpu}m memory=1|{limits}")
        pod.spec.priority = priority
        return first_to_be_resized(pod, {"cpu": cpu}, {"cpu": has})

    giving, important = key(100, 200), key(200, 100, priority=9)
    guaranteed, other = key(200, 100, limits="cpu=200m memory=1"), key(200, 100)
    assert sorted([other, guaranteed, important, giving]) == [giving, important, guaranteed, other]


def test_all_but_ephemeral_containers_can_be_resized(scene: type[Scene]) -> None:
    pod = pod_of(scene, "i s* / a / e")
    assert list(allocation_of(pod).containers) == ["i", "s", "a"]


def test_a_pod_is_seen_with_what_it_was_given(scene: type[Scene]) -> None:
    given = allocation_of(pod_of(scene, "i s* / a b", a="cpu=1", s="cpu=2"))
    asks = pod_of(scene, "i s* / a b", i="cpu=9", a="cpu=5", s="cpu=2", b="cpu=7")
    seen = with_allocation(asks, given)
    assert allocation_of(seen) == given
    assert seen.spec.init_containers[0].resources == resources("")
    assert with_allocation(seen, given) is seen
    assert asks.spec.containers[0].resources == resources("cpu=5")


def test_only_running_containers_of_this_sandbox_have_anything_to_be_told(scene: type[Scene]) -> None:
    pod = pod_of(scene, "i s* / a b c d", **dict.fromkeys("isabcd", "cpu=1"))
    observed = observed_with(scene, pod, "i=run s=run a=run b=exit0 c=run^ d=run", d="cpu=1")
    assert [container.name for container, _ in unactuated(pod, observed)] == ["i", "s", "a"]


IN_PROGRESS = [
    # given     has        accepted  settled   in progress
    ("cpu=1",   "cpu=1",   True,     True,     False),
    ("cpu=1",   "cpu=1",   True,     False,    True),
    ("cpu=1",   "cpu=1",   False,    False,    False),
    ("cpu=2",   "cpu=1",   False,    True,     True),
    ("cpu=2",   "cpu=1",   True,     False,    True),
]  # fmt: skip


@pytest.mark.parametrize(("given", "has", "accepted", "settled", "expected"), IN_PROGRESS)
def test_a_resize_is_in_progress_until_cgroup_and_containers_have_it(
    scene: type[Scene], given: str, has: str, accepted: bool, settled: bool, expected: bool
) -> None:
    observed = observed_with(scene, pod_of(scene, "a"), "a=run", a=has)
    observed = replace(observed, resized_generation=2 * accepted, limits_settled=settled)
    assert is_in_progress(pod_of(scene, "a", a=given), observed) is expected


def test_a_pod_has_what_it_had_until_its_cgroup_was_told(scene: type[Scene]) -> None:
    asked, before = resources("cpu=2"), resources("cpu=1")
    pod = pod_of(scene, "a", a="cpu=2")
    observed = replace(scene.observed(pod, "a=run"), resized_generation=2, actuated=before)
    for running in (False, True):
        assert shown_resources(pod, replace(observed, limits_settled=False), asked, running=running) == before
        assert shown_resources(pod, observed, asked, running=running) == asked


DIFFERENCES = [
    # given                 has                    policies             restart
    ("cpu=1 memory=2|",     "cpu=1 memory=1|",     set(),               False),
    ("cpu=1 memory=2|",     "cpu=1 memory=1|",     {"memory"},          True),
    ("cpu=1 memory=2|",     "cpu=1 memory=1|",     {"cpu"},             False),
    ("cpu=1|cpu=2",         "cpu=1|cpu=1",         {"cpu", "memory"},   True),
    ("cpu=1000m|",          "cpu=1|",              {"cpu"},             False),
]  # fmt: skip


@pytest.mark.parametrize(("given", "has", "policies", "restart"), DIFFERENCES)
def test_a_container_restarts_for_what_its_policy_names(
    scene: type[Scene], given: str, has: str, policies: set[str], restart: bool
) -> None:
    pod = pod_of(scene, "a", a=given)
    container = pod.spec.containers[0]
    container.resize_policy = [
        ContainerResizePolicy(resource_name=name, restart_policy="RestartContainer") for name in policies
    ]
    running = observed_with(scene, pod, "a=run", a=has).containers[0]
    assert restart_required(pod, container, running) is restart


def test_what_a_container_has_is_what_the_runtime_was_told(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a", a="cpu=2 hugepages-2Mi=4Mi|cpu=2")
    running = observed_with(scene, pod, "a=run", a="cpu=1|cpu=1 memory=5").containers[0]
    assert actuated(pod.spec.containers[0], running) == resources("cpu=1 hugepages-2Mi=4Mi|cpu=1")


def test_a_container_without_a_limit_has_its_pods(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a b", b="|memory=5")
    pod.spec.resources = resources("|memory=9 cpu=2")
    assert [resources_to_actuate(pod, c).limits for c in pod.spec.containers] == [
        amounts("memory=9 cpu=2"),
        amounts("memory=5 cpu=2"),
    ]
    observed = observed_with(scene, pod, "a=run b=run", a="|memory=8 cpu=2", b="|memory=5 cpu=2")
    found = list(unactuated(pod, observed))
    assert [container.name for container, _ in found] == ["a"]
    assert actuated(*found[0]) == ResourceRequirements()


def test_on_the_way_a_cgroup_allows_the_higher_of_both() -> None:
    low, high = CgroupLimits(10, 1000, 50), CgroupLimits(20, 500, None)
    assert highest(low, high) == highest(high, low) == CgroupLimits(20, 1000, None)


PLANS = [
    # given       has          settled, written       what is asked for
    ("cpu=1",     "cpu=1",     True,    None,         ""),
    ("cpu=2",     "cpu=1",     True,    None,         "resize"),
    ("cpu=1",     "cpu=1",     False,   None,         "resize"),
    ("cpu=1",     "cpu=1",     False,   "cpu=2",      "resize"),
    ("cpu=1",     "cpu=1",     False,   "cpu=1",      "resize"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "has", "settled", "written", "planned"), PLANS)
def test_when_the_pod_is_resized(
    scene: type[Scene], given: str, has: str, settled: bool, written: str | None, planned: str
) -> None:
    pod = pod_of(scene, "a", a=given)
    limits = limits_of_pod(pod_of(scene, "a", a=written)) if written else None
    observed = observed_with(scene, pod, "a=run", a=has)
    observed = replace(observed, limits_settled=settled, pod_limits=limits)
    assert scene.say(plan(pod, observed, scene.NOW)) == planned


def test_the_cgroup_rises_before_a_restart_and_falls_after_it(scene: type[Scene]) -> None:
    policy = [ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer")]
    for given, has in (("cpu=2", "cpu=1"), ("cpu=1", "cpu=2")):
        pod = pod_of(scene, "a", a=given)
        pod.spec.containers[0].resize_policy = policy
        observed = observed_with(scene, pod, "a=run", a=has)
        assert limits_meanwhile(pod, observed).cpu_shares == 2048
        waiting = replace(observed, limits_settled=False, pod_limits=limits_meanwhile(pod, observed))
        assert scene.say(plan(pod, waiting, scene.NOW)) == "stop a-0(30)"
        done = observed_with(scene, pod, "a=exit0^ a=run", a=given)
        assert limits_meanwhile(pod, done) == limits_of_pod(pod)


def test_a_resize_that_failed_is_tried_again_later(scene: type[Scene]) -> None:
    pod = pod_of(scene, "a", a="cpu=2")
    observed = observed_with(scene, pod, "a=run", a="cpu=1")
    failed = replace(observed, resize_failure=scene.failure("Error", seconds=4))
    decided = plan(pod, failed, scene.NOW)
    assert not decided.actions
    assert decided.wake_at == scene.ago(-6)
    again = replace(observed, resize_failure=scene.failure("Error", seconds=10))
    assert scene.say(plan(pod, again, scene.NOW)) == "resize"
