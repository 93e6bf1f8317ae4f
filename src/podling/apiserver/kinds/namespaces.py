"""Namespaces. A deleted namespace stays, as Terminating, until the namespace controller has emptied it and
removed its finalizer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Kind, Part, Status
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


class _Status(Status):
    def validate_update(self, new: Namespace, old: Namespace) -> list[Cause]:
        causes = super().validate_update(new, old)
        # The path has `Phase` with a capital, as in Kubernetes, for this fault only.
        phase, path = new.status.phase, "status.Phase"
        if not new.metadata.deletion_timestamp and phase != "Active":
            causes.append(invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty"))
        if new.metadata.deletion_timestamp and phase != "Terminating":
            why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            causes.append(invalid(path, phase, why))
        return causes


class _Finalize(Part[Namespace]):
    """The subresource `finalize`, through which the namespace controller removes its finalizer."""

    name = "finalize"
    has_tables = False
    verbs = ("update",)
    unwritten = {"f:status": {}}

    def prepare_update(self, new: Namespace, old: Namespace) -> None:
        new.status = old.status

    def validate_update(self, new: Namespace, old: Namespace) -> list[Cause]:
        causes = super().validate_update(new, old)
        for i, finalizer in enumerate(new.spec.finalizers):
            causes += metadata.validate_finalizer(finalizer, f"spec.finalizers[{i}]")
        return causes


class Namespaces(Kind[Namespace]):
    resource = resource_of(Namespace)
    verbs = tuple(verb for verb in Kind.verbs if verb != "deletecollection")
    own_deletion = True
    has_dependents = False
    subresources = {part.name: part for part in (_Status(), _Finalize())}
    columns = (NAME, Column("Status", description="Whether the namespace is in use or being emptied."), AGE)
    selectable_fields = {"name": lambda ns: ns.metadata.name, "status.phase": lambda ns: ns.status.phase}

    def default(self, obj: Namespace) -> None:
        if obj.metadata.name:
            obj.metadata.labels = {**obj.metadata.labels, NAME_LABEL: obj.metadata.name}
        obj.status.phase = obj.status.phase or "Active"

    def prepare_create(self, obj: Namespace, now: datetime) -> None:
        self.default(obj)
        obj.status = type(obj.status)(phase="Active")
        if FINALIZER not in obj.spec.finalizers:
            obj.spec.finalizers = [*obj.spec.finalizers, FINALIZER]

    def prepare_update(self, new: Namespace, old: Namespace) -> None:
        new.spec.finalizers = old.spec.finalizers
        new.status = old.status

    def validate(self, obj: Namespace) -> list[Cause]:
        meta = obj.metadata
        if meta.generate_name:
            # Kubernetes adds the label of a name that it made when all is judged.
            labels = {key: value for key, value in meta.labels.items() if key != NAME_LABEL}
            meta = msgspec.structs.replace(meta, labels=labels)
        causes = metadata.validate(meta, namespaced=False, name_rule=names.dns1123_label)
        for finalizer in obj.spec.finalizers:
            causes += metadata.validate_finalizer(finalizer, "spec.finalizers")
        return causes

    def row(self, obj: Namespace, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.status.phase, age(obj.metadata.creation_timestamp, now)]

    def graceful_delete(self, obj: Namespace, options: DeleteOptions, now: datetime) -> bool:
        """A deletion marks what is not marked, whether or not something holds it. The first one may say what
        is to become of dependents."""
        if obj.metadata.deletion_timestamp:
            return bool(obj.spec.finalizers)
        obj.metadata.finalizers = _with_dependents(obj.metadata.finalizers, options)
        obj.metadata.deletion_timestamp = rfc3339(now)
        obj.status.phase = "Terminating"
        return True

    def may_vanish(self, new: Namespace, old: Namespace) -> bool:
        return not new.spec.finalizers and not new.metadata.finalizers


def _with_dependents(finalizers: list[str], options: DeleteOptions) -> list[str]:
    wanted = options.propagation_policy
    if options.orphan_dependents is not None:
        wanted = "Orphan" if options.orphan_dependents else "Foreground"
    if wanted is None:
        return finalizers
    kept = [name for name in finalizers if name not in (metadata.ORPHAN, metadata.FOREGROUND)]
    return kept + {"Orphan": [metadata.ORPHAN], "Foreground": [metadata.FOREGROUND]}.get(wanted, [])
