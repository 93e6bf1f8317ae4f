"""R-SYS-8: whatever stands, a DaemonSet's rolling update leaves no more nodes without a pod than it may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.workloads.daemon_sets import FailedDaemons
from podling.controllers.workloads.daemons import Daemon, by_node, manage, roll, tolerations
from podling.controllers.workloads.revisions import POD_HASH
from podling.model.codec.json import from_data
from podling.model.types.apps import DaemonSet
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec, Toleration

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NODES = [from_data({"metadata": {"name": f"n{number}"}}, Node) for number in range(5)]


class Standing(NamedTuple):
    node: int
    is_new: bool
    is_ready: bool
    is_going: bool


def daemon(**rolling: int) -> Daemon:
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    owner = from_data({"metadata": {"name": "each", "uid": "u"}, "spec": spec}, DaemonSet)
    return Daemon(owner, NOW, "new")


def pod(number: int, one: Standing) -> Pod:
    meta = {"name": f"each-{number}", "labels": {POD_HASH: "new" if one.is_new else "old"}}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(one.is_ready)}]}
    made = from_data({"metadata": meta, "spec": {"nodeName": f"n{one.node}"}, "status": status}, Pod)
    made.metadata.deletion_timestamp = "2026-01-02T03:04:05Z" if one.is_going else ""
    return made


STANDING = st.lists(
    st.builds(Standing, st.integers(0, 4), st.booleans(), st.booleans(), st.booleans()), max_size=9
)


def without(pods: list[Pod]) -> int:
    """How many nodes have no pod that is ready and stays."""
    found = {
        pod.spec.node_name
        for pod in pods
        if pod.status.conditions[0].status == "True" and not pod.metadata.deletion_timestamp
    }
    return len(NODES) - len(found)


@given(st.integers(1, 5), STANDING)
def test_no_more_nodes_lose_their_pod_than_may(most: int, standing: list[Standing]) -> None:
    one, pods = daemon(maxUnavailable=most, maxSurge=0), [pod(*each) for each in enumerate(standing)]
    placed = by_node(pods)
    if any(manage(one, NODES, placed).step):
        return
    going = roll(one, NODES, placed).delete
    names = {each.metadata.name for each in going}
    left = [each for each in pods if each.metadata.name not in names]
    # Old pods that are not ready are replaced, however many: as by Kubernetes they count as nothing to lose.
    assert without(left) - without(pods) <= most
    assert all(each.metadata.labels[POD_HASH] == "old" for each in going)


@given(st.integers(1, 5), STANDING)
def test_with_surge_no_node_loses_its_pod_and_no_more_have_two(surge: int, standing: list[Standing]) -> None:
    one, pods = daemon(maxUnavailable=0, maxSurge=surge), [pod(*each) for each in enumerate(standing)]
    placed = by_node(pods)
    if any(manage(one, NODES, placed).step):
        return
    step = roll(one, NODES, placed)
    names = {each.metadata.name for each in step.delete}
    left = [each for each in pods if each.metadata.name not in names]
    assert without(left) == without(pods)
    alive = [each for each in pods if not each.metadata.deletion_timestamp]
    running = {each.spec.node_name for each in alive if each.status.conditions[0].status == "True"}
    doubled = {node for node, there in placed.items() if sum(each in alive for each in there) > 1}
    # A node whose old pod is not ready gets the new one at once: it loses nothing.
    assert len((set(step.create) & running) | doubled) <= max(surge, len(doubled))


@given(STANDING)
def test_each_node_keeps_one_pod_that_stays(standing: list[Standing]) -> None:
    one, pods = daemon(maxUnavailable=1, maxSurge=0), [pod(*each) for each in enumerate(standing)]
    placed = by_node(pods)
    (create, delete), _ = manage(one, NODES, placed)
    going = {each.metadata.name for each in delete}
    for node in NODES:
        name = node.metadata.name
        there = placed.get(name, [])
        stay = [
            each for each in there if each.metadata.name not in going and not each.metadata.deletion_timestamp
        ]
        assert len(stay) <= 1
        assert (name in create) == (not there)


def test_a_toleration_of_its_own_is_not_there_twice() -> None:
    own = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute")
    limited = Toleration(
        key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute", toleration_seconds=5
    )
    found = tolerations(PodSpec(tolerations=[own, limited], host_network=True))
    assert [one.key.rpartition("/")[2] for one in found] == [
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    ]
    assert found[1].toleration_seconds is None


def test_a_pod_that_fails_again_waits_ever_longer_and_is_forgotten() -> None:
    failed, owner, now = FailedDaemons(), from_data({"metadata": {"uid": "u"}}, DaemonSet), NOW
    waits = []
    for _ in range(12):
        waits.append(failed.delay(owner, "n", now))
        now += timedelta(seconds=waits[-1])
        assert waits[-1] == 0 or failed.delay(owner, "n", now) == 0
    assert waits[:5] == [0, 1, 2, 4, 8] and waits[-1] == 900
    assert failed.delay(owner, "other", now + timedelta(hours=1)) == 0
    assert len(failed._failed) == 1
