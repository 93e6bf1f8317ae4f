"""How many volumes of a CSI driver a node can have. Pure: kube-scheduler's plugin NodeVolumeLimits.

The driver says how many (CSINode, `allocatable.count`). A volume counts once, however many pods of the node
have it. What is still attached counts, and a volume that is yet to be made, for the driver that makes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.model.rules.references import volume_claims_of
from podling.model.rules.volume_binding import class_of, is_bound
from podling.model.types.persistent_volume import PersistentVolume
from podling.model.types.pod import Pod
from podling.scheduler.filter import VOLUME_LIMITS, Refusal
from podling.scheduler.info import NodeInfo, PodInfo
from podling.scheduler.volumes import Storage

TOO_MANY = Refusal(VOLUME_LIMITS, ("node(s) exceed max volume count",))
Counted = tuple[str, str]
"""Driver and volume handle, or the claim that waits for a volume."""


class VolumeLimits:
    """The volumes of one pod that is to be scheduled; a cluster filter of `decision.py`."""

    def __init__(self, storage: Storage, wanted: frozenset[Counted]) -> None:
        self._storage, self._wanted = storage, wanted

    def refuse(self, node: NodeInfo) -> Refusal | None:
        found = self._storage.csi_node_of("", node.name)
        if found is None:
            return None
        limits = {
            one.name: one.allocatable.count
            for one in found.spec.drivers
            if one.allocatable is not None and one.allocatable.count is not None
        }
        drivers = {driver for driver, _ in self._wanted} & limits.keys()
        if not drivers:
            return None
        has = self._on(node)
        new = self._wanted - has
        for driver in drivers:
            more = sum(1 for one in new if one[0] == driver)
            if more and more + sum(1 for one in has if one[0] == driver) > (limits[driver] or 0):
                return TOO_MANY
        return None

    def _on(self, node: NodeInfo) -> set[Counted]:
        has = {one for pod in node.pods.values() for one in counted(pod.pod, self._storage)}
        for attachment in self._storage.attached_to(node.name):
            volume = self._storage.volume_of("", attachment.spec.source.persistent_volume_name or "")
            has |= set(_of_volume(volume))
        return has

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """Nothing is kept: the node has its pods."""

    def clone(self) -> VolumeLimits:
        return self


def volume_limits(pod: PodInfo, storage: Storage) -> VolumeLimits | None:
    """None when the pod has no volume of a driver."""
    wanted = frozenset(counted(pod.pod, storage))
    return VolumeLimits(storage, wanted) if wanted else None


def counted(pod: Pod, storage: Storage) -> Iterator[Counted]:
    for name in volume_claims_of(pod):
        claim = storage.claim_of(pod.metadata.namespace, name)
        if claim is None:
            continue
        volume = storage.volume_of("", claim.spec.volume_name) if is_bound(claim) else None
        if volume is not None:
            yield from _of_volume(volume)
        elif (storage_class := storage.class_of("", class_of(claim))) is not None:
            yield storage_class.provisioner, f"{pod.metadata.namespace}/{name}"


def _of_volume(volume: PersistentVolume | None) -> Iterator[Counted]:
    if volume is not None and volume.spec.csi is not None:
        yield volume.spec.csi.driver, volume.spec.csi.volume_handle
