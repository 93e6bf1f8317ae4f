"""Who has what of the node, who gets it when it is given back (R-SYS-5), and whom it takes under pressure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.node.shared import MEMORY_TAINT, Allocations, NodePressure
from podling.kubelet.plan.admission import Refusal
from podling.kubelet.plan.resize import ResizeAnswer
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec, Toleration

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def pod_of(uid: str, cpu: int, priority: int = 0) -> Pod:
    """cpu in thousandths."""
    asked = ResourceRequirements(requests={"cpu": Quantity(f"{cpu}m")})
    spec = PodSpec(containers=[Container(name="c", resources=asked)], priority=priority)
    return Pod(metadata=ObjectMeta(uid=uid), spec=spec)


class Clients:
    """Pods that ask, and what each was answered, in order."""

    def __init__(self, cpu: str = "1", pods: str = "10") -> None:
        self.allocations = Allocations({"cpu": Quantity(cpu), "pods": Quantity(pods)})
        self.heard: list[tuple[str, str]] = []
        self._moment = 0

    def give(self, *pods: Pod) -> None:
        for pod in pods:
            self.allocations.give(pod)

    def ask(self, pod: Pod) -> None:
        def answer(answer: ResizeAnswer) -> None:
            self.heard.append((answer.pod.metadata.uid, answer.reason))

        self._moment += 1
        self.allocations.resize(pod, NOW + timedelta(seconds=self._moment), answer)


def test_what_is_given_is_missing_to_others_and_comes_back() -> None:
    clients = Clients()
    clients.give(pod_of("a", 700))
    assert [s.resource for s in clients.allocations.shortages(pod_of("b", 400))] == ["cpu"]
    assert not clients.allocations.shortages(pod_of("b", 300))
    assert not clients.allocations.shortages(pod_of("a", 1000)), "its own is not in its way"
    clients.allocations.release("a")
    assert not clients.allocations.has(pod_of("a", 0))
    assert not clients.allocations.shortages(pod_of("b", 1000))


def test_only_so_many_pods_have_a_place() -> None:
    clients = Clients(pods="1")
    clients.give(pod_of("a", 0))
    assert [s.resource for s in clients.allocations.shortages(pod_of("b", 0))] == ["pods"]


def test_a_resize_that_fits_is_granted_at_once() -> None:
    clients = Clients()
    clients.give(pod_of("a", 100))
    clients.ask(pod_of("a", 900))
    assert clients.heard == [("a", "")]
    assert clients.allocations.shortages(pod_of("b", 200))


def test_the_important_are_first_when_something_is_given_back() -> None:
    clients = Clients()
    clients.give(pod_of("a", 800), pod_of("b", 100), pod_of("c", 100, priority=9))
    clients.ask(pod_of("b", 600))
    clients.ask(pod_of("c", 600, priority=9))
    clients.heard.clear()
    clients.allocations.release("a")
    assert clients.heard == [("c", ""), ("b", "Deferred")]


def test_of_equals_who_has_waited_longest_is_first() -> None:
    clients = Clients()
    clients.give(pod_of("a", 800), pod_of("b", 100), pod_of("c", 100))
    for uid in ("c", "b", "c"):
        clients.ask(pod_of(uid, 600))
    clients.heard.clear()
    clients.allocations.release("a")
    assert clients.heard == [("c", ""), ("b", "Deferred")]


def test_what_one_gives_back_in_a_resize_another_may_have() -> None:
    clients = Clients()
    clients.give(pod_of("a", 800), pod_of("b", 100))
    clients.ask(pod_of("b", 600))
    clients.ask(pod_of("a", 100))
    assert clients.heard == [("b", "Deferred"), ("a", ""), ("b", "")]


def test_who_wants_nothing_more_or_is_gone_is_not_asked_again() -> None:
    clients = Clients()
    clients.give(pod_of("a", 800), pod_of("b", 100), pod_of("c", 100))
    clients.ask(pod_of("b", 600))
    clients.ask(pod_of("c", 600))
    clients.heard.clear()
    clients.allocations.forget_resize("b")
    clients.allocations.release("c")
    clients.allocations.release("a")
    assert clients.heard == []


def test_the_impossible_is_answered_once() -> None:
    clients = Clients()
    clients.give(pod_of("a", 100), pod_of("b", 100))
    clients.ask(pod_of("a", 2000))
    clients.allocations.release("b")
    assert clients.heard == [("a", "Infeasible")]


STEPS = st.tuples(st.sampled_from(["give", "ask", "release"]), st.integers(0, 4), st.integers(0, 12))


@given(st.lists(STEPS, max_size=30))
def test_no_more_is_given_than_there_is(steps: list[tuple[str, int, int]]) -> None:
    clients = Clients()
    has: dict[str, int] = {}

    def answered(answer: ResizeAnswer) -> None:
        if answer.accepted:
            asked = answer.pod.spec.containers[0].resources.requests["cpu"]
            has[answer.pod.metadata.uid] = asked.milli_value()

    for step, number, hundreds in steps:
        pod = pod_of(str(number), 100 * hundreds)
        uid, known = pod.metadata.uid, clients.allocations.has(pod)
        if step == "release":
            has.pop(uid, None)
            clients.allocations.release(uid)
        elif step == "ask" and known:
            clients.allocations.resize(pod, NOW, answered)
        elif step == "give" and not known and not clients.allocations.shortages(pod):
            has[uid] = 100 * hundreds
            clients.allocations.give(pod)
        assert sum(has.values()) <= 1000


ASKS = ResourceRequirements(requests={"memory": Quantity("1Mi")})
MODEST = Pod(spec=PodSpec(containers=[Container(name="c")]))
BURSTABLE = Pod(spec=PodSpec(containers=[Container(name="c", resources=ASKS)]))
TOLERANT = Pod(
    spec=PodSpec(
        containers=[Container(name="c")],
        tolerations=[Toleration(key=MEMORY_TAINT.key, operator="Exists", effect=MEMORY_TAINT.effect)],
    )
)
CRITICAL = Pod(spec=PodSpec(containers=[Container(name="c")], priority=2_000_000_000))


@pytest.mark.parametrize(
    ("conditions", "pod", "taken"),
    [
        ((), MODEST, True),
        (("MemoryPressure",), MODEST, False),
        (("MemoryPressure",), BURSTABLE, True),
        (("MemoryPressure",), TOLERANT, True),
        (("DiskPressure",), BURSTABLE, False),
        (("DiskPressure", "MemoryPressure"), TOLERANT, False),
        (("PIDPressure", "DiskPressure"), CRITICAL, True),
    ],
)
def test_whom_a_node_under_pressure_takes(conditions: tuple[str, ...], pod: Pod, taken: bool) -> None:
    pressure = NodePressure()
    pressure.conditions = frozenset(conditions)
    told = f"The node had condition: [{' '.join(sorted(conditions))}]. "
    assert pressure.refusal(pod) == (None if taken else Refusal("Evicted", told))
