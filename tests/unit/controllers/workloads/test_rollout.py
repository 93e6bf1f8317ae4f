"""A rolling update loses no more than maxUnavailable pods, has no more than maxSurge too many, and ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podling.controllers.workloads.rollout import (
    active,
    annotated,
    desired,
    max_surge,
    max_unavailable,
    new_size,
    part,
    remembered,
    resized,
    revision,
    rolling,
    size_of,
    template_hash,
)
from podling.model.codec.json import from_data
from podling.model.types.apps import Deployment, ReplicaSet

AMOUNTS = st.integers(0, 6) | st.integers(0, 100).map(lambda number: f"{number}%")
REVISION, HISTORY = (f"deployment.kubernetes.io/revision{end}" for end in ("", "-history"))


def deployment(replicas: int, surge: Any, lost: Any) -> Deployment:
    rolling_update = {"maxSurge": surge, "maxUnavailable": lost}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling_update}
    return from_data(
        {"metadata": {"name": "d"}, "spec": {"replicas": replicas, "strategy": strategy}}, Deployment
    )


def replica_set(name: str, size: int, available: int) -> ReplicaSet:
    status = {"replicas": size, "availableReplicas": available}
    body = {"metadata": {"name": name}, "spec": {"replicas": size}, "status": status}
    return from_data(body, ReplicaSet)


@given(AMOUNTS, AMOUNTS, st.lists(st.integers(1, 5), max_size=3), st.data())
def test_a_rolling_update_keeps_within_its_bounds_and_ends(
    surge: Any, lost: Any, parts: list[int], data: st.DataObject
) -> None:
    # It begins with the pods that the Deployment is to have, all available.
    replicas = sum(parts)
    made = deployment(replicas, surge, lost)
    most, least = desired(made) + max_surge(made), desired(made) - max_unavailable(made)
    old = [replica_set(f"old-{number}", size, size) for number, size in enumerate(parts)]
    new = replica_set("new", new_size(made, old, 0), 0)
    for _ in range(200):
        every = [*old, new]
        assert sum(map(size_of, every)) <= most
        assert sum(one.status.available_replicas for one in every) >= least
        steps = rolling(made, new, old)
        for name, size in steps:
            (one,) = (each for each in every if each.metadata.name == name)
            one.spec.replicas = size
            one.status.available_replicas = min(one.status.available_replicas, size)
        if steps:
            continue
        if size_of(new) == replicas == new.status.available_replicas and not active(old):
            return
        missing = size_of(new) - new.status.available_replicas
        assert missing > 0, "nothing is waited for"
        new.status.available_replicas += data.draw(st.integers(1, missing))
    raise AssertionError("it does not end")


@given(st.integers(1, 12), AMOUNTS, AMOUNTS, st.lists(st.integers(0, 5), min_size=1, max_size=3), st.data())
def test_a_step_takes_no_pod_that_is_needed(
    replicas: int, surge: Any, lost: Any, parts: list[int], data: st.DataObject
) -> None:
    """From any state: a step makes no more unavailable than may be, and adds none above the surge."""
    made = deployment(replicas, surge, lost)
    old = [
        replica_set(f"old-{number}", size, data.draw(st.integers(0, size)))
        for number, size in enumerate(parts)
    ]
    size = data.draw(st.integers(0, replicas))
    new = replica_set("new", size, data.draw(st.integers(0, size)))
    every = [*old, new]
    before, had = sum(one.status.available_replicas for one in every), sum(map(size_of, every))
    for name, wanted in rolling(made, new, old):
        (one,) = (each for each in every if each.metadata.name == name)
        one.spec.replicas = wanted
        one.status.available_replicas = min(one.status.available_replicas, wanted)
    after = sum(one.status.available_replicas for one in every)
    assert after >= min(before, desired(made) - max_unavailable(made))
    assert sum(map(size_of, every)) <= max(had, desired(made) + max_surge(made))


def test_percentages_round_up_for_the_surge_and_down_for_what_may_be_lost() -> None:
    assert (part("25%", 10, up=True), part("25%", 10, up=False), part(3, 10, up=True)) == (3, 2, 3)
    made = deployment(3, "0%", "10%")
    assert (max_surge(made), max_unavailable(made)) == (0, 1)


def test_a_hash_is_stable_and_another_after_a_collision() -> None:
    template = deployment(1, 1, 1).spec.template
    hashes = [template_hash(template, count) for count in (None, 1, 2)]
    assert len(set(hashes)) == 3
    assert hashes[0] == template_hash(template, None)


def test_a_revision_that_returns_remembers_those_it_had() -> None:
    made, one = deployment(1, 1, 1), replica_set("one", 1, 1)
    made.metadata.annotations = {
        "a": "b",
        REVISION: "7",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    for number in (1, 3, 2, 5):
        one = annotated(made, one, number)
    assert one.metadata.annotations == {"a": "b", REVISION: "5", HISTORY: "1,3"}
    for number in range(6, 1000):
        one = annotated(made, one, number)
    history = one.metadata.annotations[HISTORY]
    assert len(history) <= 2000 and history.endswith("997,998")


@given(st.lists(st.integers(0, 10**9), max_size=600), st.integers(0, 10**9))
def test_of_a_long_history_the_oldest_are_forgotten(before: list[int], last: int) -> None:
    had = [*map(str, before), str(last)]
    while len(",".join(had)) > 2000:
        del had[0]
    assert remembered(",".join(map(str, before)), str(last)) == ",".join(had)


def test_whatever_an_annotation_says_is_soon_read() -> None:
    """Whoever may write ReplicaSets writes them: 256 KiB of digits, or of revisions."""
    one = replica_set("one", 1, 1)
    one.metadata.annotations = {REVISION: "9" * 200_000, HISTORY: "1," * 100_000}
    assert revision(one) == 0
    history = annotated(deployment(1, 1, 1), one, 2).metadata.annotations[HISTORY]
    assert history == ""
    one.metadata.annotations[REVISION] = "1"
    history = annotated(deployment(1, 1, 1), one, 2).metadata.annotations[HISTORY]
    assert 1990 < len(history) <= 2000
    assert part("9" * 5000 + "%", 2, up=True) > 2


def test_a_set_says_what_it_was_made_for() -> None:
    one = resized(deployment(4, "50%", 0), replica_set("one", 1, 1), 2)
    assert size_of(one) == 2
    assert one.metadata.annotations == {
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "6",
    }
