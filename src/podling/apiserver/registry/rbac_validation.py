"""What roles and bindings have in common: faults of rules and subjects, and how subjects are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podling.apiserver.registry.field import all_invalid, invalid, not_supported, required
from podling.apiserver.registry.kind import Column
from podling.model import names
from podling.model.errors import Cause
from podling.model.rbac import GROUP, PolicyRule, RoleRef, Subject

SERVICE_ACCOUNT, USER, GROUP_OF_USERS = "ServiceAccount", "User", "Group"


def validate_rules(rules: list[PolicyRule], *, namespaced: bool) -> Iterator[Cause]:
    for i, rule in enumerate(rules):
        yield from _validate_rule(rule, f"rules[{i}]", namespaced=namespaced)


def _validate_rule(rule: PolicyRule, path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.verbs:
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if rule.non_resource_urls:
        where, urls = f"{path}.nonResourceURLs", rule.non_resource_urls
        if namespaced:
            yield invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.api_groups or rule.resources or rule.resource_names:
            yield invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.api_groups:
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


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
        yield from _validate_subject(subject, f"subjects[{i}]", namespaced=namespaced)


def _validate_subject(subject: Subject, path: str, *, namespaced: bool) -> Iterator[Cause]:
    """An account of a binding in a namespace may be one of that namespace without saying so."""
    if not subject.name:
        yield required(f"{path}.name")
    match subject.kind:
        case "ServiceAccount":
            if subject.name:
                yield from all_invalid(f"{path}.name", subject.name, names.dns1123_subdomain(subject.name))
            if subject.api_group:
                yield not_supported(f"{path}.apiGroup", subject.api_group, ("",))
            if not subject.namespace and not namespaced:
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if not subject.name:
                yield invalid(f"{path}.name", "", f"{subject.kind.lower()} name cannot be empty")
            if subject.api_group != GROUP:
                yield not_supported(f"{path}.apiGroup", subject.api_group, (GROUP,))
        case _:
            yield not_supported(f"{path}.kind", subject.kind, (SERVICE_ACCOUNT, USER, GROUP_OF_USERS))


def default_binding(ref: RoleRef, subjects: list[Subject]) -> None:
    """Groups that can only be one are filled in."""
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
