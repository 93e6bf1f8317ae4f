"""PodTemplates: a pod to be, without a controller of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, joined, labels_text
from podling.apiserver.registry.kind import Column, Kind
from podling.apiserver.registry.pod.alpha_fields import drop_alpha_fields
from podling.apiserver.registry.pod.validation import validate_pod_template
from podling.apiserver.registry.pod.warnings import template_warnings
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.pod import PodTemplate
from podling.model.pod_defaults import default_pod_spec
from podling.model.scheme import resource_of


class PodTemplates(Kind[PodTemplate]):
    resource = resource_of(PodTemplate)
    returns_deleted = True
    has_generation = True
    columns = (
        NAME,
        Column("Containers", description="Names of its containers."),
        Column("Images", description="Images of its containers."),
        Column("Pod Labels", description="Labels of the pods made from it."),
        AGE,
    )

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def default(self, obj: PodTemplate) -> None:
        default_pod_spec(obj.template.spec)

    def prepare_create(self, obj: PodTemplate, now: datetime) -> None:
        drop_alpha_fields(obj.template.spec, None, self._gates)

    def prepare_update(self, new: PodTemplate, old: PodTemplate) -> None:
        drop_alpha_fields(new.template.spec, old.template.spec, self._gates)

    def validate(self, obj: PodTemplate) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata),
            *validate_pod_template(obj.template, "template", self._gates),
        ]

    def warnings(self, obj: PodTemplate) -> list[str]:
        return template_warnings(obj.template, "template")

    def validate_update(self, new: PodTemplate, old: PodTemplate) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: PodTemplate, now: datetime) -> list[Any]:
        containers = obj.template.spec.containers
        return [
            obj.metadata.name,
            joined(container.name for container in containers),
            joined(container.image for container in containers),
            labels_text(obj.template.metadata.labels),
            age(obj.metadata.creation_timestamp, now),
        ]
