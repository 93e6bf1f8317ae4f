"""Whatever pods come and go: no node takes a pod it refuses, none is over-committed, and what the scheduler
remembers is what a fresh look finds (R-SYS-3, R-INIT-9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podling.model.types.node import Node
from podling.scheduler.cluster import Cluster
from podling.scheduler.decision import Evaluations, cycle_of, decide
from podling.scheduler.filter import refuse
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.preemption import candidates

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APPS = ("web", "db")

apps = st.sampled_from(APPS)
keys = st.sampled_from(("zone", "host"))


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    term = {"topologyKey": draw(keys), "labelSelector": {"matchLabels": {"app": draw(apps)}}}
    return {draw(st.sampled_from(("podAffinity", "podAntiAffinity"))): {REQUIRED: [term]}}


@st.composite
def spreads(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": draw(st.integers(1, 2)),
            "topologyKey": draw(keys),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": draw(apps)}},
        }
    ]


@st.composite
def asked(draw: st.DrawFn) -> dict[str, Any]:
    """What a pod asks for, in the words of `make_pod`."""
    asks: dict[str, Any] = {
        "cpu": draw(st.sampled_from(("", "500m", "1", "2"))),
        "memory": draw(st.sampled_from(("", "1Gi", "3Gi"))),
        "labels": {"app": draw(apps)},
        "priority": draw(st.integers(0, 2)),
    }
    if draw(st.booleans()):
        asks["affinity"] = draw(terms())
    if draw(st.booleans()):
        asks["topologySpreadConstraints"] = draw(spreads())
    if draw(st.booleans()):
        asks["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "1500m"}}}]
    return asks


events = st.lists(st.tuples(asked(), st.booleans(), st.booleans()), max_size=12)
"""(a pod comes, the oldest goes before, the first node is cordoned or not)"""


def nodes() -> list[tuple[str, dict[str, str]]]:
    return [("a1", {"zone": "a"}), ("a2", {"zone": "a"}), ("b1", {"zone": "b"})]


@given(history=events)
def test_decisions(
    history: list[tuple[dict[str, Any], bool, bool]],
    node_maker: Callable[..., Node],
    pod_maker: Callable[..., PodInfo],
) -> None:
    cluster, evaluations = Cluster(), Evaluations()
    for name, labels in nodes():
        cluster.put_node(node_maker(name, host=name, **labels))
    placed: list[PodInfo] = []
    for number, (asks, one_goes, cordoned) in enumerate(history):
        if one_goes and placed:
            cluster.drop_pod(placed.pop(0).uid)
        cluster.put_node(node_maker("a1", {"unschedulable": cordoned}, host="a1", zone="a"))
        pod = pod_maker(f"p{number}", **asks)
        decision = decide(pod, cluster, evaluations)
        fresh = _copy(cluster, placed)
        assert decision.refusals == decide(pod, fresh, Evaluations()).refusals
        if decision.node is not None:
            assert refuse(pod, decision.node) is None
            assert cycle_of(pod, fresh).refuse(fresh.nodes[decision.node.name]) is None
            cluster.put_pod(pod, decision.node.name)
            placed.append(pod)
        else:
            _check_preemption(pod, cluster, decision.refusals, placed)
        _check_room(cluster)


def _check_preemption(pod: PodInfo, cluster: Cluster, refusals: Any, placed: list[PodInfo]) -> None:
    """With its victims gone the pod fits, and none of them is as important as it is."""
    for candidate in candidates(pod, cluster, refusals, [])[0]:
        assert all(victim.priority < pod.priority for victim in candidate.victims)
        gone = {victim.uid for victim in candidate.victims}
        for victim in candidate.victims:
            cluster.drop_pod(victim.uid)
        node = cluster.nodes[candidate.node]
        assert refuse(pod, node) is None
        assert cycle_of(pod, cluster).refuse(node) is None
        for other in placed:
            if other.uid in gone:
                cluster.put_pod(other, candidate.node)


def _check_room(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        for resource in ("cpu", "memory"):
            total = sum(pod.requests.get(resource, 0) for pod in node.pods.values())
            assert total == node.requested.get(resource, 0) <= node.allocatable[resource]
        assert len(node.pods) <= 3


def _copy(cluster: Cluster, placed: list[PodInfo]) -> Cluster:
    """The same cluster as somebody sees it who has just begun to look."""
    fresh = Cluster()
    for pod in placed:
        fresh.put_pod(pod, cluster.node_of(pod.uid))
    for node in cluster.nodes.values():
        fresh.put_node(node.node)
    return fresh


def test_a_promised_node_is_taken_before_a_better_one(
    node: Callable[..., Node], cluster: Callable[..., Cluster], pod: Callable[..., PodInfo]
) -> None:
    built = cluster(node("fuller"), node("empty"), fuller=[pod("there", cpu="1")])
    new = pod("new", cpu="1")
    built.nominate(new, "fuller")
    assert _chosen(new, built) == "fuller"


def test_what_is_promised_is_gone_for_those_who_matter_less(
    node: Callable[..., Node], cluster: Callable[..., Cluster], pod: Callable[..., PodInfo]
) -> None:
    built = cluster(node("one"))
    built.nominate(pod("important", cpu="2", priority=5), "one")
    assert _chosen(pod("lesser", cpu="1", priority=4), built) is None
    assert _chosen(pod("greater", cpu="1", priority=6), built) == "one"


def test_a_node_that_has_changed_is_asked_again(
    node: Callable[..., Node], cluster: Callable[..., Cluster], pod: Callable[..., PodInfo]
) -> None:
    built, evaluations = cluster(node("one")), Evaluations()
    first, second = pod("first", cpu="2"), pod("second", cpu="2")
    assert decide(first, built, evaluations).node is built.nodes["one"]
    built.put_pod(first, "one")
    assert decide(second, built, evaluations).node is None
    built.drop_pod("first")
    assert decide(second, built, evaluations).node is built.nodes["one"]
    built.drop_node("one")
    assert decide(second, built, evaluations).node is None


def _chosen(pod: PodInfo, cluster: Cluster) -> str | None:
    found: NodeInfo | None = decide(pod, cluster, Evaluations()).node
    return found.name if found else None
