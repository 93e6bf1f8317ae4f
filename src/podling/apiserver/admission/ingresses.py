"""Gives ingresses without a class the default one."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.rules.networking import CLASS_ANNOTATION
from podling.model.types.networking import IngressClass

IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


class DefaultIngressClass:
    handles: ClassVar[Handles] = {"ingresses.networking.k8s.io": ("CREATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if new.spec.ingress_class_name is not None or CLASS_ANNOTATION in new.metadata.annotations:
            return
        classes = [one.metadata for one in self._objects.all(IngressClass)]
        defaults = [one for one in classes if one.annotations.get(IS_DEFAULT) == "true"]
        if defaults:
            # The newest; of those of the same second the first by name.
            defaults.sort(key=attrgetter("name"))
            new.spec.ingress_class_name = max(defaults, key=lambda one: one.creation_timestamp or "").name
