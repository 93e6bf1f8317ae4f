"""Roles: what may be done in one namespace. Kept; not yet asked by an authorizer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.columns import CREATED_AT, NAME
from podling.apiserver.registry.kind import Kind
from podling.apiserver.registry.rbac_validation import validate_rules
from podling.model import names
from podling.model.errors import Cause
from podling.model.rbac import Role
from podling.model.scheme import resource_of


class Roles(Kind[Role]):
    resource = resource_of(Role)
    creates_on_update = True
    columns = (NAME, CREATED_AT)

    def validate(self, obj: Role) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.path_segment),
            *validate_rules(obj.rules, namespaced=True),
        ]

    def validate_update(self, new: Role, old: Role) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: Role, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]
