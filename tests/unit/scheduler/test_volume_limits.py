"""A node takes no more volumes of a CSI driver than the driver says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.storage import CSINode, StorageClass, VolumeAttachment
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.volume_limits import TOO_MANY, volume_limits
from podling.scheduler.volumes import Assumed, Storage
from unit.scheduler.conftest import make_node, make_pod

DRIVER = "d.test"


def claim(name: str, volume: str = "") -> PersistentVolumeClaim:
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    meta = {"name": name, "namespace": "ns", "annotations": done}
    spec = {"storageClassName": "csi", "volumeName": volume}
    return from_data({"metadata": meta, "spec": spec}, PersistentVolumeClaim)


CLAIMS = {
    "ns/a": claim("a", "v1"),
    "ns/b": claim("b", "v2"),
    "ns/c": claim("c", "v3"),
    "ns/new": claim("new"),
    "ns/local": claim("local", "l"),
}


def volume(name: str, driver: str = DRIVER) -> PersistentVolume:
    source: dict[str, Any] = {"csi": {"driver": driver, "volumeHandle": name}} if name != "l" else {}
    return from_data({"metadata": {"name": name}, "spec": source}, PersistentVolume)


def storage(most: int | None, attached: Iterable[str] = ()) -> Storage:
    count = {} if most is None else {"allocatable": {"count": most}}
    csi_node = from_data({"spec": {"drivers": [{"name": DRIVER, "nodeID": "n", **count}]}}, CSINode)
    of_class = from_data({"provisioner": DRIVER}, StorageClass)
    attachments = [
        from_data({"spec": {"source": {"persistentVolumeName": name}}}, VolumeAttachment) for name in attached
    ]
    return Storage(
        lambda namespace, name: CLAIMS.get(f"{namespace}/{name}"),
        lambda _, name: volume(name),
        lambda _, name: of_class,
        lambda _: (),
        Assumed(),
        lambda _, name: csi_node,
        lambda node: attachments,
    )


def pod(*claims: str) -> PodInfo:
    named = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return make_pod("-".join(claims), volumes=named)


@pytest.mark.parametrize(
    ("most", "there", "wanted", "attached", "fits"),
    [
        (2, ["a"], ["b"], [], True),
        (2, ["a", "b"], ["c"], [], False),
        (2, ["a", "b"], ["b"], [], True),
        (2, ["a", "b"], ["local"], [], True),
        (2, ["a", "b"], ["new"], [], False),
        (2, ["a"], ["b"], ["v3"], False),
        (2, ["a"], ["b"], ["v1"], True),
        (2, [], ["a", "b", "c"], [], False),
        (0, [], ["a"], [], False),
        (None, ["a", "b"], ["c"], [], True),
    ],
)
def test_what_fits(
    most: int | None, there: list[str], wanted: list[str], attached: list[str], fits: bool
) -> None:
    node = NodeInfo(make_node("n1"))
    for name in there:
        node.add(pod(name))
    state = volume_limits(pod(*wanted), storage(most, attached))
    refusal = state.refuse(node) if state is not None else None
    assert refusal == (None if fits else TOO_MANY)
