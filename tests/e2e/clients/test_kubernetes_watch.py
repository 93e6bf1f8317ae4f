"""R-SYS-1: watches of the official client: every change once and in order, from where it left off, until what
it knows is too old.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer
from kubernetes.leaderelection import electionconfig
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from e2e.clients.required import required

pytestmark = pytest.mark.containerd

PATIENCE = 30
"""Seconds that a test waits for what never fails to come."""


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def make(core: client.CoreV1Api, space: str, *names: str, **labels: str) -> None:
    for name in names:
        core.create_namespaced_secret(space, {"metadata": {"name": name, "labels": labels}})  # type: ignore[arg-type]


def seen(core: client.CoreV1Api, space: str, count: int, **options: Any) -> list[str]:
    """The first `count` events of a watch of secrets, as `TYPE name`."""
    with watching(core, space, **options) as events:
        return [describe(next(events)) for _ in range(count)]


@contextmanager
def watching(core: client.CoreV1Api, space: str, **options: Any) -> Iterator[Iterator[Any]]:
    events = watch.Watch().stream(core.list_namespaced_secret, space, timeout_seconds=PATIENCE, **options)
    yield events
    events.close()


def describe(event: Any) -> str:
    return f"{event['type']} {event['raw_object']['metadata'].get('name', '')}".strip()


def test_every_change_once_and_in_order(core: client.CoreV1Api, space: str) -> None:
    start = required(core.list_namespaced_secret(space).metadata).resource_version
    make(core, space, "a", "b")
    core.patch_namespaced_secret("a", space, {"metadata": {"labels": {"x": "1"}}})
    core.delete_namespaced_secret("b", space)
    assert seen(core, space, 4, resource_version=start) == ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"]


def test_what_is_there_comes_first_without_a_version(core: client.CoreV1Api, space: str) -> None:
    make(core, space, "a", "b")
    with watching(core, space) as events:
        assert {describe(next(events)), describe(next(events))} == {"ADDED a", "ADDED b"}
        core.delete_namespaced_secret("a", space)
        assert describe(next(events)) == "DELETED a"


def test_a_watch_resumes_where_it_broke_off(core: client.CoreV1Api, space: str) -> None:
    start = required(core.list_namespaced_secret(space).metadata).resource_version
    make(core, space, "a", "b", "c")
    with watching(core, space, resource_version=start) as events:
        version = next(events)["object"].metadata.resource_version
    assert seen(core, space, 2, resource_version=version) == ["ADDED b", "ADDED c"]


def test_a_deletion_carries_the_version_it_happened_at(core: client.CoreV1Api, space: str) -> None:
    make(core, space, "a")
    listed = core.list_namespaced_secret(space)
    core.delete_namespaced_secret("a", space)
    with watching(core, space, resource_version=required(listed.metadata).resource_version) as events:
        gone = next(events)["object"]
    assert int(gone.metadata.resource_version) > int(required(required(listed.metadata).resource_version))


def test_objects_come_and_go_from_what_is_selected(core: client.CoreV1Api, space: str) -> None:
    start = required(core.list_namespaced_secret(space).metadata).resource_version
    make(core, space, "a", tier="front")
    make(core, space, "b", tier="back")
    for tier in ("back", "front"):
        core.patch_namespaced_secret("a", space, {"metadata": {"labels": {"tier": tier}}})
    options = {"resource_version": start, "label_selector": "tier=front"}
    assert seen(core, space, 3, **options) == ["ADDED a", "DELETED a", "ADDED a"]
    options = {"resource_version": start, "field_selector": "metadata.name=b"}
    assert seen(core, space, 1, **options) == ["ADDED b"]


def test_a_stream_begins_with_the_state_and_a_bookmark(api: client.ApiClient, space: str) -> None:
    secrets = DynamicClient(api).resources.get(api_version="v1", kind="Secret")
    for name in "ab":
        secrets.create(body={"metadata": {"name": name}}, namespace=space)
    events = secrets.watch(
        namespace=space,
        allow_watch_bookmarks=True,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        timeout=PATIENCE,
    )
    first = [next(events) for _ in range(3)]
    assert sorted(describe(event) for event in first[:2]) == ["ADDED a", "ADDED b"]
    mark = first[2]["raw_object"]
    assert first[2]["type"] == "BOOKMARK" and mark["kind"] == "Secret"
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    events.close()


def test_initial_events_are_asked_for_in_full_or_refused(core: client.CoreV1Api, space: str) -> None:
    with (
        pytest.raises(ApiException) as raised,
        watching(core, space, send_initial_events=True, allow_watch_bookmarks=True) as events,
    ):
        next(events)
    assert raised.value.status == 422
    assert "resourceVersionMatch: Forbidden" in required(raised.value.body)


def test_a_watch_ends_when_it_is_told_to(core: client.CoreV1Api, space: str) -> None:
    events = watch.Watch().stream(core.list_namespaced_secret, space, timeout_seconds=1)
    assert list(events) == []


def test_what_is_too_old_is_gone(core: client.CoreV1Api, space: str, forgotten: str) -> None:
    with pytest.raises(ApiException) as raised, watching(core, space, resource_version=forgotten) as events:
        next(events)
    assert raised.value.status == 410
    assert raised.value.reason.startswith(f"Expired: too old resource version: {forgotten} (")
    with pytest.raises(ApiException) as raised:
        core.list_namespaced_secret(space, resource_version=forgotten, resource_version_match="Exact")
    assert (raised.value.status, '"reason":"Expired"' in required(raised.value.body)) == (410, True)


def test_a_version_from_the_future(core: client.CoreV1Api, space: str) -> None:
    with pytest.raises(ApiException) as raised:
        core.list_namespaced_secret(space, resource_version="999999999")
    assert raised.value.status == 504 and "Too large resource version: 999999999" in required(
        raised.value.body
    )


def test_an_informer_keeps_up(core: client.CoreV1Api, space: str) -> None:
    make(core, space, "old")
    informer, told = SharedInformer(core.list_namespaced_secret, namespace=space), threading.Semaphore(0)
    events: list[str] = []
    for type_ in (ADDED, MODIFIED, DELETED):

        def tell(obj: Any, type_: str = type_) -> None:
            events.append(f"{type_} {obj.metadata.name}")
            told.release()

        informer.add_event_handler(type_, tell)
    informer.start()
    try:
        assert told.acquire(timeout=PATIENCE)
        make(core, space, "new")
        core.patch_namespaced_secret("new", space, {"metadata": {"labels": {"x": "1"}}})
        core.delete_namespaced_secret("old", space)
        assert all(told.acquire(timeout=PATIENCE) for _ in range(3))
    finally:
        informer.stop()
    assert events == ["ADDED old", "ADDED new", "MODIFIED new", "DELETED old"]
    assert [secret.metadata.name for secret in informer.cache.list()] == ["new"]


def test_candidates_elect_one_leader_at_a_time(
    core: client.CoreV1Api, api: client.ApiClient, space: str
) -> None:
    """By a Lease, written with optimistic locking: two race for it, one leads and the other waits."""
    candidates = {name: Candidate(name, space) for name in ("ann", "bob")}
    racers = [threading.Thread(target=candidate.try_once) for candidate in candidates.values()]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    (leader,) = [name for name, candidate in candidates.items() if candidate.leads]
    leases = client.CoordinationV1Api(api)
    lease = leases.read_namespaced_lease("leader", space)
    assert (
        required(lease.spec).holder_identity == leader and required(lease.spec).lease_duration_seconds == 15
    )
    (other,) = candidates.keys() - {leader}
    assert not candidates[other].try_once()
    assert candidates[leader].try_once()
    before, after = required(lease.spec), required(leases.read_namespaced_lease("leader", space).spec)
    assert required(after.renew_time) > required(before.renew_time)
    assert after.acquire_time == before.acquire_time
    candidates[other].election.observed_time_milliseconds = 0
    candidates[other].election.observed_record = candidates[leader].election.observed_record
    assert candidates[other].try_once()
    assert required(leases.read_namespaced_lease("leader", space).spec).holder_identity == other


class Candidate:
    """One of several that would lead, stepping when it is told to and not by the clock."""

    def __init__(self, name: str, space: str) -> None:
        lock = LeaseLock("leader", space, name)
        config = electionconfig.Config(
            lock,
            lease_duration=15,
            renew_deadline=10,
            retry_period=2,
            onstarted_leading=lambda: None,
            onstopped_leading=None,
        )
        self.election = LeaderElection(config)
        self.leads = False

    def try_once(self) -> bool:
        self.leads = self.election.try_acquire_or_renew()
        return self.leads
