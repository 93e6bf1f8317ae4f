"""What the informers tell, and what the scheduler then knows and tries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from podling.model.types.core import Namespace
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import PodInfo
from podling.scheduler.queue import SchedulingQueue
from podling.scheduler.tracker import Tracker

FIT = frozenset(("NodeResourcesFit",))
OURS = {"schedulerName": "ours"}


class World:
    """Pods are told of as the informer does: with what was known before."""

    def __init__(self, pod: Callable[..., PodInfo]) -> None:
        self.cluster, self.queue = Cluster(), SchedulingQueue()
        self.tracker = Tracker(self.cluster, self.queue, "ours", lambda: 1000.0, lambda: None)
        self._known: dict[str, Pod] = {}
        self._pod = pod

    def pod(self, name: str, **like: Any) -> Pod:
        old = self._known.get(name)
        new = self._known[name] = self._pod(name, **{**OURS, **like}).pod
        self.tracker.pod_changed(old, new)
        return new

    def deleted(self, name: str) -> None:
        self.tracker.pod_changed(self._known.pop(name), None)

    def tried(self) -> list[str]:
        """The pods it is time to try; each is found to fit nowhere."""
        found = []
        while (waiting := self.queue.pop(1000.0)) is not None:
            found.append(waiting.pod.uid)
            self.queue.park(waiting, FIT, 900.0)
        return found


@pytest.fixture
def world(pod: Callable[..., PodInfo]) -> World:
    return World(pod)


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ({}, ["p"]),
        ({"schedulerName": "theirs"}, []),
        ({"schedulingGates": [{"name": "g"}]}, []),
        ({"nodeName": "n"}, []),
        ({"deleted": True}, []),
        ({"status": {"phase": "Failed"}}, []),
    ],
)
def test_which_pods_are_tried(like: dict[str, Any], expected: list[str], world: World) -> None:
    world.pod("p", **like)
    assert world.tried() == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}, []),
        ({"tolerations": [{"operator": "Exists"}]}, ["p"]),
        ({"labels": {"app": "web"}}, ["p"]),
    ],
)
def test_a_waiting_pod_is_tried_again_when_it_asks_for_something_else(
    change: dict[str, Any], expected: list[str], world: World
) -> None:
    world.pod("p")
    world.tried()
    world.pod("p", **change)
    assert world.tried() == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [({"status": {"phase": "Succeeded"}}, True), ({"status": {"phase": "Running"}}, False)],
)
def test_a_finished_pod_gives_its_room_back(last: dict[str, Any], expected: bool, world: World) -> None:
    world.pod("there", nodeName="n")
    world.pod("waiting")
    world.tried()
    world.pod("there", nodeName="n", **last)
    assert (world.cluster.pod("there") is None) is expected
    assert world.tried() == (["waiting"] if expected else [])


def test_a_deleted_pod_gives_its_room_back(world: World) -> None:
    world.pod("there", nodeName="n")
    world.pod("waiting")
    world.tried()
    world.deleted("there")
    assert world.tried() == ["waiting"]


def test_a_pod_of_the_same_name_is_another_pod(world: World, pod: Callable[..., PodInfo]) -> None:
    old = pod("p", nodeName="n", **OURS).pod
    new = pod("p", **OURS).pod
    new.metadata.uid = "another"
    world.tracker.pod_changed(None, old)
    world.tracker.pod_changed(old, new)
    assert world.cluster.pod("p") is None
    assert world.tried() == ["another"]


def test_what_a_status_promises_is_kept_over_a_restart(world: World, node: Callable[..., Node]) -> None:
    world.tracker.node_changed(None, node("n"))
    world.pod("p", status={"nominatedNodeName": "n"})
    assert world.cluster.nomination_of("p") == "n"
    world.pod("p", status={})
    assert world.cluster.nomination_of("p") == ""


def test_a_promise_just_made_outlives_older_news(world: World) -> None:
    world.pod("p")
    waiting = world.queue.get("p")
    assert waiting is not None
    world.cluster.nominate(waiting.pod, "n")
    world.pod("p", status={"message": "older"})
    assert world.cluster.nomination_of("p") == "n"


def test_who_was_promised_room_frees_it_by_going(world: World) -> None:
    world.pod("promised", status={"nominatedNodeName": "n"})
    world.pod("waiting")
    world.tried()
    world.deleted("promised")
    assert world.cluster.nominated == {}
    assert world.tried() == ["waiting"]


def test_pods_bound_to_a_node_before_it_is_heard_of_are_on_it(
    world: World, node: Callable[..., Node]
) -> None:
    world.pod("early", cpu="1", nodeName="n")
    world.tracker.node_changed(None, node("n"))
    assert list(world.cluster.nodes["n"].pods) == ["early"]
    world.tracker.node_changed(node("n"), None)
    assert world.cluster.nodes == {}


def test_a_heartbeat_of_a_node_wakes_nobody(world: World, node: Callable[..., Node]) -> None:
    before, after = node("n"), node("n")
    world.tracker.node_changed(None, before)
    world.pod("p", cpu="8")
    world.tried()
    after.status.conditions = []
    world.tracker.node_changed(before, after)
    assert world.tried() == []
    room = {"cpu": "16", "memory": "1Gi", "pods": "10"}
    world.tracker.node_changed(after, node("n", allocatable=room))
    assert world.tried() == ["p"]


def test_labels_of_namespaces_are_known(world: World) -> None:
    old = Namespace()
    old.metadata.name, old.metadata.labels = "ns", {"team": "a"}
    world.tracker.namespace_changed(None, old)
    assert world.cluster.namespaces == {"ns": {"team": "a"}}
    new = replace(old, metadata=replace(old.metadata, labels={"team": "b"}))
    world.tracker.namespace_changed(old, new)
    assert world.cluster.namespaces == {"ns": {"team": "b"}}
    world.tracker.namespace_changed(new, None)
    assert world.cluster.namespaces == {}


def holding(cpu: str) -> dict[str, Any]:
    status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    return {"containerStatuses": [{**status, "allocatedResources": {"cpu": cpu}}]}


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [("1", "2", 2), ("2", "1", 2), ("1", "1", 1)],
)
def test_a_pod_to_be_resized_holds_the_larger(asked: str, held: str, expected: int, world: World) -> None:
    world.pod("p", cpu=asked, nodeName="n")
    world.pod("p", cpu=asked, nodeName="n", status=holding(held))
    info = world.cluster.pod("p")
    assert info is not None
    assert info.requests["cpu"] == expected * 10**9


@pytest.mark.parametrize(("reason", "expected"), [("Deferred", 8), ("Infeasible", 2)])
def test_what_a_node_can_never_give_is_not_held(reason: str, expected: int, world: World) -> None:
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    world.pod("p", cpu="8", nodeName="n", status={**holding("2"), "conditions": [pending]})
    info = world.cluster.pod("p")
    assert info is not None
    assert info.requests["cpu"] == expected * 10**9


def test_a_resize_that_is_refused_makes_room(world: World) -> None:
    world.pod("p", cpu="8", nodeName="n", status=holding("1"))
    world.pod("waiting")
    world.tried()
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    world.pod("p", cpu="8", nodeName="n", status={**holding("1"), "conditions": [pending]})
    assert world.tried() == ["waiting"]


def test_a_pod_that_has_shrunk_makes_room(world: World) -> None:
    world.pod("p", cpu="1", nodeName="n", status=holding("2"))
    world.pod("waiting")
    world.tried()
    world.pod("p", cpu="1", nodeName="n", status=holding("1"))
    assert world.tried() == ["waiting"]
