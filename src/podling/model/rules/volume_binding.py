"""Which volume serves which claim, as Kubernetes judges it. Pure.

The controller that binds and the scheduler ask the same questions: whose a volume is, whether it is what a
claim asks for, and which of several fits best.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from podling.model.quantity import Quantity
from podling.model.rules.placement import matches
from podling.model.selectors import EVERYTHING, NOTHING, Selector, from_label_selector
from podling.model.types.node import Node
from podling.model.types.persistent_volume import STORAGE_CLASS, PersistentVolume, PersistentVolumeClaim
from podling.model.types.storage import StorageClass

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""The annotation of a claim whose binding is complete."""
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Of a claim or a volume: the controller chose the other one, and may undo it."""
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""Of a volume: the provisioner that made it."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Of a claim: the node for whose pod a volume is to be made."""
PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
"""Of a claim: the provisioner that is to make its volume."""
DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""Of a class: claims without a class are of this one."""
WAITS = "WaitForFirstConsumer"
STORAGE = "storage"
FILESYSTEM, BLOCK = "Filesystem", "Block"
RETAIN, DELETE, RECYCLE = "Retain", "Delete", "Recycle"
PENDING, AVAILABLE, BOUND, RELEASED, FAILED, LOST = (
    "Pending",
    "Available",
    "Bound",
    "Released",
    "Failed",
    "Lost",
)
ZERO = Quantity()


def class_of(one: PersistentVolume | PersistentVolumeClaim) -> str:
    """The name of its class; empty for none."""
    annotated = one.metadata.annotations.get(STORAGE_CLASS)
    return annotated if annotated is not None else one.spec.storage_class_name or ""


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest of those marked as default; of those of one second the first by name."""
    marked = (
        one for one in classes if any(one.metadata.annotations.get(key) == "true" for key in DEFAULT_CLASS)
    )
    by_name = sorted(marked, key=lambda one: one.metadata.name)
    return max(by_name, key=lambda one: one.metadata.creation_timestamp or "", default=None)


def delays_binding(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> bool:
    """Whether the claim waits for a pod that uses it."""
    return bool(class_of(claim)) and storage_class is not None and storage_class.volume_binding_mode == WAITS


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names this claim; one bound beforehand may do so without a uid."""
    ref, meta = volume.spec.claim_ref, claim.metadata
    return (
        ref is not None
        and (ref.namespace, ref.name) == (meta.namespace, meta.name)
        and ref.uid in ("", meta.uid)
    )


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def modes_differ(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_mode or FILESYSTEM) != (claim.spec.volume_mode or FILESYSTEM)


def why_unfit(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why the volume that a claim names is not what it asks for; empty if it is."""
    if volume.metadata.deletion_timestamp:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if size(volume) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes(volume) != _attributes(claim):
        return "volumeAttributesClassName does not match"
    if modes_differ(volume, claim):
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    *,
    node: Node | None = None,
    delayed: bool = False,
) -> PersistentVolume | None:
    """The volume bound to the claim beforehand, else the free one that fits best: of those with the fewest
    access modes the smallest. On a `node` it must be reachable from there; `delayed` without a node means
    that only one bound beforehand will do."""
    selector = _selector(claim)
    found: list[tuple[int, int, str, PersistentVolume]] = []
    for volume in volumes:
        if cannot_serve(volume, claim):
            continue
        reached = node is None or reaches(volume, node)
        if is_bound_to(volume, claim):
            return volume if reached else None
        if volume.spec.claim_ref is not None or (delayed and node is None):
            continue
        if volume.status.phase != AVAILABLE or class_of(volume) != class_of(claim) or not reached:
            continue
        if selector.matches(volume.metadata.labels):
            modes = len(set(volume.spec.access_modes))
            found.append((modes, size(volume).nanos, volume.metadata.name, volume))
    return min(found, key=lambda one: one[:3])[3] if found else None


def cannot_serve(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether it cannot serve the claim, even when it was bound to it beforehand, of any class."""
    return (
        bool(volume.metadata.deletion_timestamp)
        or size(volume) < requested(claim)
        or modes_differ(volume, claim)
        or _attributes(volume) != _attributes(claim)
        or not set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the volume can be used on the node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(matches(term, node) for term in affinity.required.node_selector_terms)


def size(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get(STORAGE, ZERO)


def requested(claim: PersistentVolumeClaim) -> Quantity:
    return claim.spec.resources.requests.get(STORAGE, ZERO)


def _attributes(one: PersistentVolume | PersistentVolumeClaim) -> str:
    return one.spec.volume_attributes_class_name or ""


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    with suppress(ValueError):
        return from_label_selector(claim.spec.selector)
    return NOTHING
