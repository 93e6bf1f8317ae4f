"""Roles, ClusterRoles and their bindings. They are stored and validated, but no authorizer reads them yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, UNPRINTED, age
from podling.apiserver.kinds.kind import Column, Kind
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import all_invalid, internal, invalid, not_supported, required
from podling.apiserver.rules.metadata import validate_label_selector
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.rbac import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)

SERVICE_ACCOUNT, USER, GROUP_OF_USERS = "ServiceAccount", "User", "Group"


def validate_rules(rules: list[PolicyRule], *, namespaced: bool) -> Iterator[Cause]:
    for i, rule in enumerate(rules):
        if not rule.verbs:
            yield required(f"rules[{i}].verbs", "verbs must contain at least one value")
        if urls := rule.non_resource_urls:
            where = f"rules[{i}].nonResourceURLs"
            if namespaced:
                yield invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
            if rule.api_groups or rule.resources or rule.resource_names:
                why = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(where, urls, why)
            continue
        if not rule.api_groups:
            yield required(f"rules[{i}].apiGroups", "resource rules must supply at least one api group")
        if not rule.resources:
            yield required(f"rules[{i}].resources", "resource rules must supply at least one resource")


def validate_role_ref(ref: RoleRef, kinds: Iterable[str]) -> Iterator[Cause]:
    if ref.api_group != GROUP:
        yield not_supported("roleRef.apiGroup", ref.api_group, (GROUP,))
    if ref.kind not in kinds:
        yield not_supported("roleRef.kind", ref.kind, kinds)
    if not ref.name:
        yield required("roleRef.name")
    else:
        yield from all_invalid("roleRef.name", ref.name, names.path_segment(ref.name))


def validate_subjects(subjects: list[Subject], *, namespaced: bool) -> Iterator[Cause]:
    for i, subject in enumerate(subjects):
        where = f"subjects[{i}]"
        if not subject.name:
            yield required(f"{where}.name")
        match subject.kind:
            case "ServiceAccount":
                if subject.name:
                    yield from all_invalid(
                        f"{where}.name", subject.name, names.dns1123_subdomain(subject.name)
                    )
                if subject.api_group:
                    yield not_supported(f"{where}.apiGroup", subject.api_group, ("",))
                # In a RoleBinding it may leave out its namespace.
                if not subject.namespace and not namespaced:
                    yield required(f"{where}.namespace")
            case "User" | "Group":
                if subject.api_group != GROUP:
                    yield not_supported(f"{where}.apiGroup", subject.api_group, (GROUP,))
            case _:
                yield not_supported(f"{where}.kind", subject.kind, (SERVICE_ACCOUNT, USER, GROUP_OF_USERS))


def default_binding(ref: RoleRef, subjects: list[Subject]) -> None:
    """Fill in the API groups of subjects and role, which follow from their kinds."""
    ref.api_group = ref.api_group or GROUP
    for subject in subjects:
        if subject.kind in (USER, GROUP_OF_USERS):
            subject.api_group = subject.api_group or GROUP


def subject_columns() -> tuple[Column, ...]:
    return tuple(
        Column(name, description=f"{name} in the binding.", priority=1)
        for name in ("Users", "Groups", "ServiceAccounts")
    )


def subject_cells(subjects: list[Subject]) -> list[str]:
    """Users, groups and service accounts, each as a list."""

    def named(kind: str) -> str:
        return ", ".join(subject.name for subject in subjects if subject.kind == kind)

    accounts = [f"{one.namespace}/{one.name}" for one in subjects if one.kind == SERVICE_ACCOUNT]
    return [named(USER), named(GROUP_OF_USERS), ", ".join(accounts)]


class RoleBindings(Kind[RoleBinding]):
    resource = resource_of(RoleBinding)
    creates_on_update = True
    columns = (NAME, Column("Role", description="The role that is given."), AGE, *subject_columns())

    def default(self, obj: RoleBinding) -> None:
        default_binding(obj.role_ref, obj.subjects)

    def validate(self, obj: RoleBinding) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.path_segment, prefix="whole"),
            *validate_role_ref(obj.role_ref, ("Role", "ClusterRole")),
            *validate_subjects(obj.subjects, namespaced=True),
        ]

    def validate_update(self, new: RoleBinding, old: RoleBinding) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.role_ref != old.role_ref:
            causes.append(invalid("roleRef", internal(new.role_ref), "cannot change roleRef"))
        return causes

    def row(self, obj: RoleBinding, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            f"{obj.role_ref.kind}/{obj.role_ref.name}",
            age(obj.metadata.creation_timestamp, now),
            *subject_cells(obj.subjects),
        ]


class ClusterRoles(Kind[ClusterRole]):
    resource = resource_of(ClusterRole)
    creates_on_update = True
    columns = UNPRINTED

    def validate(self, obj: ClusterRole) -> list[Cause]:
        causes = metadata.validate(
            obj.metadata, namespaced=False, name_rule=names.path_segment, prefix="whole"
        )
        causes += validate_rules(obj.rules, namespaced=False)
        if obj.aggregation_rule is None:
            return causes
        path, selectors = "aggregationRule.clusterRoleSelectors", obj.aggregation_rule.cluster_role_selectors
        if not selectors:
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            causes.append(required(path, why))
        for i, selector in enumerate(selectors):
            if faults := list(validate_label_selector(selector, f"{path}[{i}]")):
                causes += [*faults, invalid(f"{path}[{i}]", None, "invalid label selector.")]
        return causes

    def row(self, obj: ClusterRole, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]


class ClusterRoleBindings(Kind[ClusterRoleBinding]):
    resource = resource_of(ClusterRoleBinding)
    creates_on_update = True
    columns = (NAME, Column("Role", description="The role that is given."), AGE, *subject_columns())

    def default(self, obj: ClusterRoleBinding) -> None:
        default_binding(obj.role_ref, obj.subjects)

    def validate(self, obj: ClusterRoleBinding) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, namespaced=False, name_rule=names.path_segment, prefix="whole"),
            *validate_role_ref(obj.role_ref, ("ClusterRole",)),
            *validate_subjects(obj.subjects, namespaced=False),
        ]

    def validate_update(self, new: ClusterRoleBinding, old: ClusterRoleBinding) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.role_ref != old.role_ref:
            causes.append(invalid("roleRef", internal(new.role_ref), "cannot change roleRef"))
        return causes

    def row(self, obj: ClusterRoleBinding, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            f"{obj.role_ref.kind}/{obj.role_ref.name}",
            age(obj.metadata.creation_timestamp, now),
            *subject_cells(obj.subjects),
        ]


class Roles(Kind[Role]):
    resource = resource_of(Role)
    creates_on_update = True
    columns = UNPRINTED

    def validate(self, obj: Role) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.path_segment, prefix="whole"),
            *validate_rules(obj.rules, namespaced=True),
        ]

    def row(self, obj: Role, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.metadata.creation_timestamp]
