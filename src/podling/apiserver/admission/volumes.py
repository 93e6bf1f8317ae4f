"""What the API server itself decides of volumes and claims: finalizers that keep what is in use, whether a
claim may grow, and when a volume came into its phase.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.rules.volume.claims import BOUND, STORAGE, class_of, settle_sources
from podling.model.quantity import Quantity
from podling.model.time import Clock, rfc3339
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.storage import StorageClass

PROTECTED_BY = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}
"""The finalizer that its protection controller takes away once nobody uses the object."""
ZERO = Quantity()


class StorageObjectInUseProtection:
    """Gives each new object its finalizer."""

    handles: ClassVar[Handles] = dict.fromkeys(PROTECTED_BY, ("CREATE",))

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        finalizer = PROTECTED_BY[attributes.target]
        if finalizer not in new.metadata.finalizers:
            new.metadata.finalizers = [*new.metadata.finalizers, finalizer]


class DataSources:
    """Names the source of a claim's data in both fields that there are for it, once it is settled who manages
    which."""

    handles: ClassVar[Handles] = {"persistentvolumeclaims": ("CREATE", "UPDATE")}

    async def admit(
        self, attributes: Attributes, new: PersistentVolumeClaim, old: PersistentVolumeClaim | None
    ) -> None:
        settle_sources(new.spec, None if old is None else old.spec)


class PersistentVolumeClaimResize:
    """Refuses that a claim grows whose class does not say that it can."""

    handles: ClassVar[Handles] = {"persistentvolumeclaims": ("UPDATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(
        self, attributes: Attributes, new: PersistentVolumeClaim, old: PersistentVolumeClaim
    ) -> None:
        """Raises StatusError 403."""
        size, before = (one.spec.resources.requests.get(STORAGE, ZERO) for one in (new, old))
        if size <= before:
            return
        if old.status.phase != BOUND:
            raise attributes.forbidden("Only bound persistent volume claims can be expanded")
        name = class_of(new)
        found = self._objects.find(StorageClass, "", name) if name and name == class_of(old) else None
        if found is None or not found.allow_volume_expansion:
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
                "pvc must support resize"
            )
            raise attributes.forbidden(why)


class PhaseTransitions:
    """Writes when a volume came into its phase, unless the writer said it."""

    handles: ClassVar[Handles] = {"persistentvolumes/status": ("UPDATE",)}

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def admit(self, attributes: Attributes, new: PersistentVolume, old: PersistentVolume) -> None:
        since = old.status.last_phase_transition_time
        if new.status.phase == old.status.phase:
            new.status.last_phase_transition_time = new.status.last_phase_transition_time or since
        elif new.status.last_phase_transition_time in ("", since):
            new.status.last_phase_transition_time = rfc3339(self._clock.now())
