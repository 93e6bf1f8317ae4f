"""ClusterRoleBindings: who may do what a cluster role allows, everywhere."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import invalid
from podling.apiserver.registry.kind import Column, Kind
from podling.apiserver.registry.rbac_validation import (
    default_binding,
    subject_cells,
    subject_columns,
    validate_role_ref,
    validate_subjects,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.rbac import ClusterRoleBinding
from podling.model.scheme import resource_of


class ClusterRoleBindings(Kind[ClusterRoleBinding]):
    resource = resource_of(ClusterRoleBinding)
    creates_on_update = True
    columns = (NAME, Column("Role", description="The role that is given."), AGE, *subject_columns())

    def default(self, obj: ClusterRoleBinding) -> None:
        default_binding(obj.role_ref, obj.subjects)

    def validate(self, obj: ClusterRoleBinding) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, name_rule=names.path_segment),
            *validate_role_ref(obj.role_ref, ("ClusterRole",)),
            *validate_subjects(obj.subjects, namespaced=False),
        ]

    def validate_update(self, new: ClusterRoleBinding, old: ClusterRoleBinding) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.role_ref != old.role_ref:
            causes.append(invalid("roleRef", new.role_ref, "cannot change roleRef"))
        return causes

    def row(self, obj: ClusterRoleBinding, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            f"{obj.role_ref.kind}/{obj.role_ref.name}",
            age(obj.metadata.creation_timestamp, now),
            *subject_cells(obj.subjects),
        ]
