"""Namespaces. A deleted namespace stays, as Terminating, until the namespace controller has emptied it and
removed its finalizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Kind, Part
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import invalid
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.time import rfc3339
from podling.model.types.core import Namespace
from podling.model.types.meta import DeleteOptions

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"


class _Status(Part[Namespace]):
    name = "status"

    def prepare_update(self, new: Namespace, old: Namespace) -> None:
        new.spec = old.spec

    def validate_update(self, new: Namespace, old: Namespace) -> list[Cause]:
        return [*metadata.validate_update(new.metadata, old.metadata), *_validate_phase(new)]


class _Finalize(Part[Namespace]):
    """The subresource `finalize`, through which the namespace controller removes its finalizer."""

    name = "finalize"
    verbs = ("update",)

    def prepare_update(self, new: Namespace, old: Namespace) -> None:
        new.status = old.status

    def validate_update(self, new: Namespace, old: Namespace) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *_validate_left(new.spec.finalizers),
        ]


class Namespaces(Kind[Namespace]):
    resource = resource_of(Namespace)
    verbs = tuple(verb for verb in Kind.verbs if verb != "deletecollection")
    subresources = {part.name: part for part in (_Status(), _Finalize())}
    columns = (NAME, Column("Status", description="Whether the namespace is in use or being emptied."), AGE)
    selectable_fields = {"name": lambda ns: ns.metadata.name, "status.phase": lambda ns: ns.status.phase}

    def default(self, obj: Namespace) -> None:
        if obj.metadata.name:
            obj.metadata.labels = {**obj.metadata.labels, NAME_LABEL: obj.metadata.name}

    def prepare_create(self, obj: Namespace, now: datetime) -> None:
        obj.status = type(obj.status)(phase="Active")
        if FINALIZER not in obj.spec.finalizers:
            obj.spec.finalizers = [*obj.spec.finalizers, FINALIZER]

    def prepare_update(self, new: Namespace, old: Namespace) -> None:
        new.spec.finalizers = old.spec.finalizers
        new.status = old.status

    def validate(self, obj: Namespace) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, name_rule=names.dns1123_label),
            *_validate_finalizers(obj.spec.finalizers),
        ]

    def validate_update(self, new: Namespace, old: Namespace) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: Namespace, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.status.phase, age(obj.metadata.creation_timestamp, now)]

    def graceful_delete(self, obj: Namespace, options: DeleteOptions, now: datetime) -> bool:
        if not obj.metadata.deletion_timestamp:
            obj.metadata.deletion_timestamp = rfc3339(now)
            obj.metadata.deletion_grace_period_seconds = 0
        obj.status.phase = "Terminating"
        return bool(obj.spec.finalizers)

    def may_vanish(self, new: Namespace, old: Namespace) -> bool:
        return not new.spec.finalizers and super().may_vanish(new, old)


def _validate_finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for finalizer in finalizers:
        yield from metadata.validate_finalizer(finalizer, "spec.finalizers")


def _validate_left(finalizers: list[str]) -> Iterator[Cause]:
    for i, finalizer in enumerate(finalizers):
        yield from metadata.validate_finalizer(finalizer, f"spec.finalizers[{i}]")


def _validate_phase(namespace: Namespace) -> Iterator[Cause]:
    """The path has `Phase` with a capital, as in Kubernetes, for this fault only."""
    phase, path = namespace.status.phase, "status.Phase"
    if not namespace.metadata.deletion_timestamp:
        if phase != "Active":
            yield invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        yield invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
