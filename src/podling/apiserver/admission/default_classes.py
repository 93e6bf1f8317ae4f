"""Gives ingresses and claims without a class the default one."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.kinds.storage import is_default
from podling.apiserver.rules.networking import CLASS_ANNOTATION
from podling.apiserver.rules.volume.claims import class_of
from podling.model.types.meta import ObjectMeta
from podling.model.types.networking import Ingress, IngressClass
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.storage import StorageClass

IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


class DefaultIngressClass:
    handles: ClassVar[Handles] = {"ingresses.networking.k8s.io": ("CREATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Ingress, old: Any) -> None:
        if new.spec.ingress_class_name is None and CLASS_ANNOTATION not in new.metadata.annotations:
            classes = (one.metadata for one in self._objects.all(IngressClass))
            new.spec.ingress_class_name = _newest(
                one for one in classes if one.annotations.get(IS_DEFAULT) == "true"
            )


class DefaultStorageClass:
    handles: ClassVar[Handles] = {"persistentvolumeclaims": ("CREATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: PersistentVolumeClaim, old: Any) -> None:
        if class_of(new) is None:
            classes = self._objects.all(StorageClass)
            new.spec.storage_class_name = _newest(one.metadata for one in classes if is_default(one))


def _newest(defaults: Iterable[ObjectMeta]) -> str | None:
    """Its name; of those of the same second the first by name."""
    by_name = sorted(defaults, key=attrgetter("name"))
    newest = max(by_name, key=lambda one: one.creation_timestamp or "", default=None)
    return None if newest is None else newest.name
