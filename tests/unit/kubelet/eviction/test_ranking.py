"""Whom to evict first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.eviction.ranking import Candidate, ranked
from podling.kubelet.stats.summary import FsStats, MemoryStats, PodReference, PodStats, ProcessStats
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec

NOW = "2026-01-02T03:04:05Z"


def candidate(text: str) -> Candidate:
    """`name used/requested *priority`, in MiB."""
    name, amounts, *priority = text.split()
    used, requested = (int(amount) << 20 for amount in amounts.split("/"))
    requests = {resource: Quantity.of_bytes(requested) for resource in ("memory", "ephemeral-storage")}
    container = Container(name="c", resources=ResourceRequirements(requests=requests))
    spec = PodSpec(containers=[container], priority=int(priority[0].strip("*")) if priority else 0)
    stats = PodStats(
        PodReference(name=name),
        memory=MemoryStats(time=NOW, working_set_bytes=used),
        ephemeral_storage=FsStats(time=NOW, used_bytes=used, inodes_used=used),
        process_stats=ProcessStats(process_count=used),
    )
    return Candidate(Pod(metadata=ObjectMeta(name=name), spec=spec), stats)


@pytest.mark.parametrize("resource", ["memory", "ephemeral-storage"])
@pytest.mark.parametrize(
    ("pods", "order"),
    [
        (["a 10/20", "b 30/20"], "b a"),
        (["a 30/20 *5", "b 25/20 *1"], "b a"),
        (["a 30/20 *9", "b 10/20 *1"], "a b"),
        (["a 25/20", "b 40/20", "c 21/0"], "c b a"),
        (["a 10/20", "b 5/20"], "a b"),
        (["a 20/20", "b 21/20"], "b a"),
    ],
    ids=[
        "above its request first",
        "then the lesser priority",
        "priority does not save who is above",
        "then furthest above",
        "within: least below first",
        "just what it asked for is within",
    ],
)
def test_the_order(resource: str, pods: list[str], order: str) -> None:
    found = ranked(resource, [candidate(text) for text in pods])
    assert " ".join(each.pod.metadata.name for each in found) == order


@pytest.mark.parametrize(("resource", "order"), [("pids", "c b a"), ("inodes", "c b a"), ("memory", "c a b")])
def test_what_nobody_asks_for_goes_by_priority_and_number(resource: str, order: str) -> None:
    pods = [candidate(text) for text in ("a 30/10 *5", "b 40/100", "c 50/10")]
    assert " ".join(each.pod.metadata.name for each in ranked(resource, pods)) == order


def test_critical_pods_stay() -> None:
    assert ranked("memory", [candidate("a 30/0 *2000000000")]) == []


def _memory(each: Candidate) -> int:
    assert each.stats.memory
    return each.stats.memory.working_set_bytes or 0


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(-3, 3)), min_size=2, max_size=6)
)
def test_nobody_within_his_request_goes_before_one_above_it(pods: list[tuple[int, int, int]]) -> None:
    found = ranked("memory", [candidate(f"p {used}/{asked} *{priority}") for used, asked, priority in pods])
    above = [
        _memory(each) > each.pod.spec.containers[0].resources.requests["memory"].value() for each in found
    ]
    assert above == sorted(above, reverse=True)
