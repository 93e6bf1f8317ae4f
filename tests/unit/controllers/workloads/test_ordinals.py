"""R-SYS-8: whatever stands, a StatefulSet's next steps keep its order, and no ordinal is there twice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.workloads.ordinals import (
    Revised,
    Template,
    Verb,
    ordinal,
    ordinals,
    plan,
    pod_of,
    status_of,
)
from podling.model.codec.json import from_data
from podling.model.types.apps import StatefulSet
from podling.model.types.pod import Pod, PodTemplateSpec

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LABELS = {"app": "web"}


class Standing(NamedTuple):
    """A pod, by what of it decides."""

    number: int
    revision: str
    phase: str
    is_ready: bool
    is_going: bool


def sets(policy: str) -> st.SearchStrategy[StatefulSet]:
    def made(replicas: int, start: int, partition: int) -> StatefulSet:
        spec = {
            "replicas": replicas,
            "ordinals": {"start": start},
            "podManagementPolicy": policy,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        }
        return from_data(
            {"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": spec}, StatefulSet
        )

    return st.builds(made, st.integers(0, 5), st.integers(0, 2), st.integers(0, 6))


STANDING = st.lists(
    st.builds(
        Standing,
        st.integers(0, 8),
        st.sampled_from(("web-a", "web-b", "web-old")),
        st.sampled_from(("Pending", "Running", "Failed", "Succeeded")),
        st.booleans(),
        st.booleans(),
    ),
    unique_by=lambda one: one.number,
)
REVISED = Revised(Template("web-a", PodTemplateSpec()), Template("web-b", PodTemplateSpec()))


def pods_of(owner: StatefulSet, standing: list[Standing]) -> list[Pod]:
    made = []
    for one in standing:
        pod = pod_of(owner, Template(one.revision, owner.spec.template), one.number)
        status = {"phase": one.phase, "conditions": [{"type": "Ready", "status": str(one.is_ready)}]}
        pod.status = from_data({"status": status}, Pod).status
        pod.metadata.deletion_timestamp = "2026-01-02T03:04:05Z" if one.is_going else ""
        made.append(pod)
    return made


def is_good(one: Standing) -> bool:
    return one.phase == "Running" and one.is_ready and not one.is_going


@given(sets("OrderedReady"), STANDING)
def test_in_order_one_pod_comes_or_goes_at_a_time(owner: StatefulSet, standing: list[Standing]) -> None:
    planned = plan(owner, REVISED, pods_of(owner, standing), {}, NOW)
    steps = [step for stage in planned.stages for step in stage]
    going = [step.pod for step in steps if step.verb is Verb.DELETE]
    going += [planned.updating] if planned.updating else []
    coming = [step.pod for step in steps if step.verb is Verb.CREATE]
    assert len(going) + len(coming) <= 1
    by_number = {one.number: one for one in standing}
    for pod in coming:
        number = ordinal(owner, pod.metadata.name)
        assert number is not None and number not in by_number and number in ordinals(owner)
        below = range(ordinals(owner).start, number)
        assert all(other in by_number and is_good(by_number[other]) for other in below)
    for pod in going:
        number = ordinal(owner, pod.metadata.name)
        assert number is not None
        if by_number[number].phase in ("Running", "Pending"):
            # All that it is to have are good, and none above is there that it is not to have.
            wanted = [other for other in ordinals(owner) if other != number]
            assert all(other in by_number and is_good(by_number[other]) for other in wanted)
            assert number in ordinals(owner) or number == max(by_number.keys() - set(ordinals(owner)))


@given(sets("Parallel"), STANDING)
def test_in_parallel_no_ordinal_is_made_that_stands(owner: StatefulSet, standing: list[Standing]) -> None:
    planned = plan(owner, REVISED, pods_of(owner, standing), {}, NOW)
    made = [step.pod.metadata.name for stage in planned.stages for step in stage if step.verb is Verb.CREATE]
    there = {one.number for one in standing}
    assert made == [f"web-{number}" for number in ordinals(owner) if number not in there]


@given(st.sampled_from(("OrderedReady", "Parallel")).flatmap(sets), STANDING)
def test_a_rolling_update_takes_one_pod_above_the_partition(
    owner: StatefulSet, standing: list[Standing]
) -> None:
    planned = plan(owner, REVISED, pods_of(owner, standing), {}, NOW)
    if planned.updating is None:
        return
    number, numbers = ordinal(owner, planned.updating.metadata.name), ordinals(owner)
    rolling = owner.spec.update_strategy.rolling_update
    assert number is not None and rolling is not None
    assert number >= numbers.start + (rolling.partition or 0)
    by_number = {one.number: one for one in standing}
    assert by_number[number].revision != "web-b"
    for above in range(number + 1, numbers.stop):
        assert is_good(by_number[above]) and by_number[above].revision == "web-b"


@given(st.sampled_from(("OrderedReady", "Parallel")).flatmap(sets), STANDING)
def test_the_counts_of_a_status_are_within_each_other(owner: StatefulSet, standing: list[Standing]) -> None:
    status = status_of(owner, REVISED, pods_of(owner, standing), 0, NOW, updating=True)
    assert 0 <= status.available_replicas <= status.ready_replicas <= status.replicas == len(standing)
    assert 0 <= status.current_replicas <= status.replicas
    assert 0 <= status.updated_replicas <= status.replicas


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("web", None),
        ("web-", None),
        ("web-x", None),
        ("web-01", None),
        ("web-+1", None),
        ("web-٣", None),
        ("other-1", None),
        ("web-" + "9" * 400, None),
    ],
)
def test_an_ordinal_is_read_as_it_is_written(name: str, number: int | None) -> None:
    owner = from_data({"metadata": {"name": "web"}}, StatefulSet)
    assert ordinal(owner, name) == number
