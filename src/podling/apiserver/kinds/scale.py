"""The subresource `scale`, which kinds with a number of replicas have alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from podling.apiserver.apply.managed_fields import Fields
from podling.apiserver.kinds.columns import AGE, NAME, NONE, age, labels_text, selector_text
from podling.apiserver.kinds.kind import Column, Projection
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import at_least
from podling.model.errors import Cause
from podling.model.types.autoscaling import Scale, ScaleSpec, ScaleStatus
from podling.model.types.meta import LabelSelector, ObjectMeta


class Scaling(Projection[Any]):
    """How many pods of an object are wanted, and how many there are, for what knows no more of it."""

    name = "scale"
    body = Scale
    columns = (
        NAME._replace(format=""),
        Column("Desired", "integer", description="How many pods are wanted."),
        Column("Available", "integer", description="How many pods there are."),
        AGE,
    )
    fields: ClassVar[Fields] = {"f:spec": {"f:replicas": {}}}

    def row(self, body: Scale, now: datetime) -> list[Any]:
        meta = body.metadata
        return [meta.name, body.spec.replicas, body.status.replicas, age(meta.creation_timestamp, now)]

    def read(self, obj: Any) -> Scale:
        meta, selector = obj.metadata, obj.spec.selector
        shown = ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
        )
        text = selector_text(selector) if isinstance(selector, LabelSelector) else labels_text(selector)
        status = ScaleStatus(replicas=obj.status.replicas, selector="" if text == NONE else text)
        return Scale(metadata=shown, spec=ScaleSpec(replicas=obj.spec.replicas or 0), status=status)

    def write(self, obj: Any, body: Scale) -> None:
        obj.spec.replicas = body.spec.replicas

    def validate(self, body: Scale) -> list[Cause]:
        return [*metadata.validate(body.metadata), *at_least("spec.replicas", body.spec.replicas, 0)]


SCALING = Scaling()
