"""RuntimeClasses: names for handlers of the container runtime, and what their pods cost beyond containers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.container.resource_validation import validate_resources
from podling.apiserver.registry.field import IMMUTABLE, all_invalid, invalid, required
from podling.apiserver.registry.kind import Column, Kind
from podling.apiserver.registry.pod.scheduling_warnings import DEPRECATED_LABELS
from podling.apiserver.registry.scheduling.validation import validate_tolerations
from podling.model import names
from podling.model.container import ResourceRequirements
from podling.model.errors import Cause
from podling.model.runtime_class import RuntimeClass
from podling.model.scheme import resource_of


class RuntimeClasses(Kind[RuntimeClass]):
    resource = resource_of(RuntimeClass)
    creates_on_update = True
    updates_unconditionally = False
    columns = (NAME, Column("Handler", description="What the container runtime calls it."), AGE)

    def validate(self, obj: RuntimeClass) -> list[Cause]:
        return [*metadata.validate(obj.metadata, namespaced=False), *_validate(obj)]

    def validate_update(self, new: RuntimeClass, old: RuntimeClass) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.handler != old.handler:
            causes.append(invalid("handler", new.handler, IMMUTABLE))
        return causes

    def warnings(self, obj: RuntimeClass) -> list[str]:
        selected = obj.scheduling.node_selector if obj.scheduling is not None else {}
        return [
            f"scheduling.nodeSelector: {DEPRECATED_LABELS[key]}"
            for key in selected
            if key in DEPRECATED_LABELS
        ]

    def row(self, obj: RuntimeClass, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.handler, age(obj.metadata.creation_timestamp, now)]


def _validate(obj: RuntimeClass) -> Iterator[Cause]:
    if not obj.handler:
        yield required("handler")
    else:
        yield from all_invalid("handler", obj.handler, names.dns1123_label(obj.handler))
    if obj.overhead is not None:
        yield from validate_resources(ResourceRequirements(limits=obj.overhead.pod_fixed), "overhead")
    if obj.scheduling is not None:
        yield from metadata.validate_labels(obj.scheduling.node_selector, "scheduling.nodeSelector")
        yield from validate_tolerations(obj.scheduling.tolerations, "scheduling.tolerations")
