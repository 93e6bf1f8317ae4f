"""Which nodes a pod's claims allow, and what they get there.

The words, and what becomes of the objects, are compared with kube-scheduler's by
tests/peer/test_volume_scheduling.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.storage import CSIDriver, CSIStorageCapacity, StorageClass
from podling.scheduler.info import NodeInfo
from podling.scheduler.volumes import (
    ELSEWHERE,
    IN_USE,
    NO_SPACE,
    NONE_FOUND,
    UNREACHED,
    Assumed,
    Bindings,
    Storage,
    VolumeState,
    volume_state,
)
from unit.scheduler.conftest import make_node, make_pod

MODES = {"accessModes": ["ReadWriteOnce"]}
ZONE = "topology.kubernetes.io/zone"


def node(zone: str) -> NodeInfo:
    labels: dict[str, Any] = {ZONE: zone, "kubernetes.io/hostname": zone}
    return NodeInfo(make_node(zone, **labels))


EAST, WEST = node("east"), node("west")
CLASSES: dict[str, dict[str, Any]] = {
    "static": {"provisioner": "kubernetes.io/no-provisioner"},
    "made": {"provisioner": "a.test/b"},
    "in-the-east": {
        "provisioner": "a.test/b",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}],
    },
}


def claim(name: str = "c", size: str = "1Gi", *, node: str = "", **spec: Any) -> PersistentVolumeClaim:
    marks = {"pv.kubernetes.io/bind-completed": "yes"} if "volumeName" in spec else {}
    if node:
        marks["volume.kubernetes.io/selected-node"] = node
    meta = {"name": name, "namespace": "ns", "uid": name, "annotations": marks}
    wants = {**MODES, "resources": {"requests": {"storage": size}}, **spec}
    return from_data({"metadata": meta, "spec": wants}, PersistentVolumeClaim)


def volume(name: str, only: str = "", size: str = "1Gi", **labels: str) -> PersistentVolume:
    spec: dict[str, Any] = {**MODES, "capacity": {"storage": size}, "storageClassName": "static"}
    if only:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [only]}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"phase": "Available"},
    }
    return from_data(body, PersistentVolume)


def state_of(
    claims: list[PersistentVolumeClaim],
    volumes: list[PersistentVolume] = [],  # noqa: B006
    assumed: Assumed | None = None,
    **users: int,
) -> VolumeState:
    named = {one.metadata.name: one for one in claims}
    storage = Storage(
        lambda _, name: named.get(name),
        lambda _, name: next((one for one in volumes if one.metadata.name == name), None),
        lambda _, name: from_data(CLASSES[name], StorageClass) if name in CLASSES else None,
        lambda _: volumes,
        assumed or Assumed(),
    )
    sources = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in named]
    counted = {("ns", name): count for name, count in users.items()}
    state = volume_state(make_pod(volumes=sources), storage, counted)
    assert state is not None
    return state


ROOM: dict[str, Any] = {"storageClassName": "made", "nodeTopology": {"matchLabels": {ZONE: "east"}}}


@pytest.mark.parametrize(
    ("tells", "capacities", "east"),
    [
        (False, [], None),
        (True, [], NO_SPACE),
        (True, [{**ROOM, "capacity": "1Gi"}], None),
        (True, [{**ROOM, "capacity": "1Mi"}], NO_SPACE),
        (True, [{**ROOM, "capacity": "1Mi"}, {**ROOM, "capacity": "2Gi"}], None),
        (True, [{**ROOM, "capacity": "9Gi", "maximumVolumeSize": "1Mi"}], NO_SPACE),
        (True, [{**ROOM, "nodeTopology": {"matchLabels": {ZONE: "west"}}, "capacity": "1Gi"}], NO_SPACE),
        (True, [{"storageClassName": "made", "capacity": "1Gi"}], NO_SPACE),
        (True, [{**ROOM}], NO_SPACE),
    ],
)
def test_a_driver_that_tells_of_its_room(
    tells: bool, capacities: list[dict[str, Any]], east: str | None
) -> None:
    driver = from_data({"spec": {"storageCapacity": tells}}, CSIDriver)
    state = state_of([claim(storageClassName="made")])
    found = [from_data(one, CSIStorageCapacity) for one in capacities]
    state._storage = state._storage._replace(
        driver_of=lambda _, name: driver, capacities=lambda name: found if name == "made" else ()
    )
    refusal = state.refuse(EAST)
    assert (refusal and refusal.reasons) == (east and (east,))


def names(bindings: Bindings | None) -> Any:
    if bindings is None:
        return None
    found = [(one.metadata.name, other.metadata.name) for one, other in bindings.found]
    return [*found, *(one.metadata.name for one in bindings.made)]


@pytest.mark.parametrize(
    ("wants", "there", "east", "west"),
    [
        ([claim(storageClassName="static")], [volume("v", "west")], None, [("c", "v")]),
        ([claim(storageClassName="static", node="east")], [volume("v", "east")], None, None),
        ([claim(storageClassName="made")], [], ["c"], ["c"]),
        ([claim(storageClassName="made", node="west")], [], None, ["c"]),
        ([claim(storageClassName="in-the-east")], [], ["c"], None),
        ([claim(storageClassName="none-such")], [], None, None),
        (
            [claim("big", "2Gi", storageClassName="static"), claim("small", storageClassName="static")],
            [volume("v", "east", "3Gi"), volume("w", "east")],
            [("small", "w"), ("big", "v")],
            None,
        ),
    ],
)
def test_what_claims_get_on_a_node(
    wants: list[PersistentVolumeClaim], there: list[PersistentVolume], east: Any, west: Any
) -> None:
    state = state_of(wants, there)
    assert (names(state.bindings(EAST.node)), names(state.bindings(WEST.node))) == (east, west)


def test_what_is_assumed_is_nobody_elses() -> None:
    """Two pods are decided before the first binding is written."""
    assumed, there = Assumed(), [volume("v")]
    first = Bindings(((claim("first"), there[0]),), (claim("made", storageClassName="made"),))
    assumed.add(first, "west")
    later = state_of([claim(storageClassName="static")], there, assumed)
    shared = state_of([claim("made", storageClassName="made")], [], assumed)
    assert later.bindings(WEST.node) is None and shared.bindings(EAST.node) is None
    assert names(shared.bindings(WEST.node)) == ["made"]
    assumed.drop(first)
    assert names(later.bindings(WEST.node)) == [("c", "v")] and names(shared.bindings(EAST.node)) == ["made"]


def test_bound_volumes_say_where_they_are() -> None:
    here = state_of([claim(volumeName="v")], [volume("v", "west")])
    refused = here.refuse(EAST)
    assert refused is not None and refused.reasons == (UNREACHED,) and here.refuse(WEST) is None
    labelled = state_of([claim(volumeName="v")], [volume("v", **{ZONE: "north__west"})])
    assert labelled.refuse(EAST) == ELSEWHERE and labelled.refuse(WEST) is None
    both = state_of([claim(volumeName="v"), claim("d", storageClassName="static")], [volume("v", "west")])
    refused = both.refuse(EAST)
    assert refused is not None and refused.reasons == (UNREACHED, NONE_FOUND)


def test_a_claim_for_one_pod_is_free_once_that_is_gone() -> None:
    alone = claim(volumeName="v", accessModes=["ReadWriteOncePod"])
    state = state_of([alone], [volume("v")], c=1)
    user = make_pod("user", volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}])
    assert state.refuse(EAST) == IN_USE
    tried = state.clone()
    tried.moved(user, EAST, -1)
    assert tried.refuse(EAST) is None and state.refuse(EAST) == IN_USE
