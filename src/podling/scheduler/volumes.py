"""Where a pod's claims let it run, and what is to be bound there. Pure.

These are kube-scheduler's plugins VolumeRestrictions, VolumeBinding and VolumeZone.

A claim that waits for its first consumer gets the node's volume when the pod gets the node: one that is there
(`Bindings.found`), or one that is to be made for this node (`made`). Between the decision and the write both
are assumed: the volume is nobody else's, and other pods of the claim go to the same node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from podling.model.rules.references import volume_claims_of
from podling.model.rules.volume_binding import (
    SELECTED_NODE,
    best_match,
    class_of,
    is_bound,
    reaches,
    requested,
)
from podling.model.selectors import from_label_selector
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from podling.scheduler.filter import VOLUME_BINDING, VOLUME_RESTRICTIONS, VOLUME_ZONE, Refusal
from podling.scheduler.info import Key, NodeInfo, PodInfo

Decided = TypeVar("Decided", PersistentVolume, PersistentVolumeClaim)

ALONE = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONES = tuple(
    f"{prefix}/{what}"
    for prefix, what in (
        ("topology.kubernetes.io", "zone"),
        ("topology.kubernetes.io", "region"),
        ("failure-domain.beta.kubernetes.io", "zone"),
        ("failure-domain.beta.kubernetes.io", "region"),
    )
)
"""Labels of a volume that say where it is, and of a node; several zones are joined by `__`."""
UNREACHED = "node(s) didn't match PersistentVolume's node affinity"
NONE_FOUND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
IN_USE = Refusal(
    VOLUME_RESTRICTIONS,
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use "
        "by another pod",
    ),
)
ELSEWHERE = Refusal(VOLUME_ZONE, ("node(s) had no available volume zone",), final=True)


class Bindings(NamedTuple):
    """What a pod's claims get on a node."""

    found: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    made: tuple[PersistentVolumeClaim, ...] = ()


class Assumed:
    """What was decided of claims and is not written yet."""

    def __init__(self) -> None:
        self._claim_of: dict[str, Key] = {}
        self._node_of: dict[Key, str] = {}

    def add(self, bindings: Bindings, node: str) -> None:
        for claim, volume in bindings.found:
            self._claim_of[volume.metadata.name] = key_of(claim)
        for claim in bindings.made:
            self._node_of[key_of(claim)] = node

    def drop(self, bindings: Bindings) -> None:
        for _, volume in bindings.found:
            self._claim_of.pop(volume.metadata.name, None)
        for claim in bindings.made:
            self._node_of.pop(key_of(claim), None)

    def is_free(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        return self._claim_of.get(volume.metadata.name, key_of(claim)) == key_of(claim)

    def node_of(self, claim: PersistentVolumeClaim) -> str:
        """The node for which the claim's volume is to be made; empty for none yet."""
        return self._node_of.get(key_of(claim)) or claim.metadata.annotations.get(SELECTED_NODE, "")


class Storage(NamedTuple):
    """Claims, volumes and classes. The functions find one by namespace and name; `volumes` gives those that
    a claim may be bound to."""

    claim_of: Callable[[str, str], PersistentVolumeClaim | None]
    volume_of: Callable[[str, str], PersistentVolume | None]
    class_of: Callable[[str, str], StorageClass | None]
    volumes: Callable[[PersistentVolumeClaim], Iterable[PersistentVolume]]
    assumed: Assumed
    csi_node_of: Callable[[str, str], CSINode | None] = lambda namespace, name: None
    attached_to: Callable[[str], Iterable[VolumeAttachment]] = lambda node: ()
    driver_of: Callable[[str, str], CSIDriver | None] = lambda namespace, name: None
    capacities: Callable[[str], Iterable[CSIStorageCapacity]] = lambda storage_class: ()
    """Of a class of storage."""


class VolumeState:
    """The claims of one pod that is to be scheduled; a cluster filter of `decision.py`."""

    def __init__(self, storage: Storage, claims: Iterable[PersistentVolumeClaim], conflicts: dict[Key, int]):
        self._storage = storage
        self._unbound: list[PersistentVolumeClaim] = []
        self._bound: list[PersistentVolume] = []
        self._conflicts = conflicts
        for claim in claims:
            volume = storage.volume_of("", claim.spec.volume_name) if is_bound(claim) else None
            if volume is None:
                self._unbound.append(claim)
            else:
                self._bound.append(volume)

    def refuse(self, node: NodeInfo) -> Refusal | None:
        if any(self._conflicts.values()):
            return IN_USE
        reasons = []
        if not all(reaches(volume, node.node) for volume in self._bound):
            reasons.append(UNREACHED)
        bindings = self.bindings(node.node)
        if bindings is None:
            reasons.append(NONE_FOUND)
        elif not all(self._has_space(claim, node.node) for claim in bindings.made):
            reasons.append(NO_SPACE)
        if reasons:
            return Refusal(VOLUME_BINDING, tuple(reasons), final=True)
        return None if all(in_zone(volume, node.labels) for volume in self._bound) else ELSEWHERE

    def moved(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        for key in claims_of(other.pod):
            if key in self._conflicts:
                self._conflicts[key] += sign

    def clone(self) -> VolumeState:
        twin = VolumeState(self._storage, (), dict(self._conflicts))
        twin._unbound, twin._bound = self._unbound, self._bound
        return twin

    def bindings(self, node: Node) -> Bindings | None:
        """None if a claim cannot have a volume on this node."""
        assumed = self._storage.assumed
        found: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        made = []
        for claim in sorted(self._unbound, key=lambda one: requested(one).nanos):
            chosen = assumed.node_of(claim)
            if chosen not in ("", node.metadata.name):
                return None
            taken = {volume.metadata.name for _, volume in found}
            volume = None
            if not chosen:
                free = (
                    one
                    for one in self._storage.volumes(claim)
                    if one.metadata.name not in taken and assumed.is_free(one, claim)
                )
                volume = best_match(claim, free, node=node)
            if volume is not None:
                found.append((claim, volume))
            elif self._is_made_on(claim, node):
                made.append(claim)
            else:
                return None
        return Bindings(tuple(found), tuple(made))

    def _has_space(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        """Whether the driver that makes the claim's volume has room for it where the node is
        (CSIStorageCapacity). One that does not tell of its capacity is believed to have."""
        chosen = class_of(claim)
        storage_class = self._storage.class_of("", chosen)
        driver = self._storage.driver_of("", storage_class.provisioner) if storage_class else None
        if driver is None or not driver.spec.storage_capacity:
            return True
        return any(
            (most := one.maximum_volume_size or one.capacity) is not None
            and most >= requested(claim)
            and one.node_topology is not None
            and from_label_selector(one.node_topology).matches(node.metadata.labels)
            for one in self._storage.capacities(chosen)
        )

    def _is_made_on(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        storage_class = self._storage.class_of("", class_of(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return False
        terms, labels = storage_class.allowed_topologies, node.metadata.labels
        return not terms or any(
            all(labels.get(one.key) in one.values for one in term.match_label_expressions) for term in terms
        )


def volume_state(pod: PodInfo, storage: Storage, users: Mapping[Key, int]) -> VolumeState | None:
    """None when the pod has no claim. `users` counts the pods on nodes that have a claim."""
    found = [claim for key in claims_of(pod.pod) if (claim := storage.claim_of(*key)) is not None]
    if not found:
        return None
    alone = (key_of(claim) for claim in found if ALONE in claim.spec.access_modes)
    return VolumeState(storage, found, {key: users.get(key, 0) for key in alone})


def in_zone(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether the labels of a node say that it is where those of the volume say that this is."""
    if not any(key in labels for key in ZONES):
        return True
    placed = {key: volume.metadata.labels[key] for key in ZONES if key in volume.metadata.labels}
    return all(labels.get(key) in where.split("__") for key, where in placed.items())


def is_as_decided(decided: Decided, newest: Decided) -> bool:
    """Whether all that was looked at of a claim or volume is as it was."""
    old, new = decided.metadata, newest.metadata
    return (
        (new.uid, new.labels, newest.spec) == (old.uid, old.labels, decided.spec)
        and new.deletion_timestamp == old.deletion_timestamp
        and new.annotations.get(SELECTED_NODE) == old.annotations.get(SELECTED_NODE)
    )


def claims_of(pod: Pod) -> Iterator[Key]:
    return ((pod.metadata.namespace, name) for name in volume_claims_of(pod))


def key_of(claim: PersistentVolumeClaim) -> Key:
    return claim.metadata.namespace, claim.metadata.name
