"""Faults of the security contexts of a pod and of its containers."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import (
    between,
    duplicate,
    invalid,
    not_supported,
    one_of,
    required,
)
from podling.model.container import AppArmorProfile, SeccompProfile, SecurityContext
from podling.model.errors import Cause
from podling.model.pod import PodSecurityContext, PodSpec, Sysctl

MAX_ID = (1 << 31) - 1
PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS = ("Default", "Unmasked")
GROUP_POLICIES = ("Merge", "Strict")
FS_GROUP_POLICIES = ("Always", "OnRootMismatch")


def validate_pod_security(spec: PodSpec, path: str) -> Iterator[Cause]:
    context = spec.security_context
    if spec.host_pid and spec.share_process_namespace:
        where = f"{path}.securityContext.shareProcessNamespace"
        yield invalid(where, True, "ShareProcessNamespace and HostPID cannot both be enabled")
    if context is not None:
        yield from _validate_pod_context(context, f"{path}.securityContext")


def _validate_pod_context(context: PodSecurityContext, path: str) -> Iterator[Cause]:
    for wire, value in (
        ("fsGroup", context.fs_group),
        ("runAsUser", context.run_as_user),
        ("runAsGroup", context.run_as_group),
    ):
        yield from _validate_id(value, f"{path}.{wire}")
    for i, group in enumerate(context.supplemental_groups):
        yield from _validate_id(group, f"{path}.supplementalGroups[{i}]")
    for policy, policy_wire, supported in (
        (context.supplemental_groups_policy, "supplementalGroupsPolicy", GROUP_POLICIES),
        (context.fs_group_change_policy, "fsGroupChangePolicy", FS_GROUP_POLICIES),
    ):
        if policy is not None and policy not in supported:
            yield not_supported(f"{path}.{policy_wire}", policy, supported)
    yield from _validate_sysctls(context.sysctls, f"{path}.sysctls")
    yield from _validate_profile(context.seccomp_profile, f"{path}.seccompProfile")
    yield from _validate_profile(context.app_armor_profile, f"{path}.appArmorProfile")


def _validate_sysctls(sysctls: list[Sysctl], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, sysctl in enumerate(sysctls):
        if not sysctl.name:
            yield required(f"{path}[{i}].name")
        elif sysctl.name in seen:
            yield duplicate(f"{path}[{i}].name", sysctl.name)
        seen.add(sysctl.name)


def validate_security_context(
    context: SecurityContext | None, path: str, *, host_users: bool
) -> Iterator[Cause]:
    """`host_users`: the pod has no user namespace of its own."""
    if context is None:
        return
    yield from _validate_id(context.run_as_user, f"{path}.runAsUser")
    yield from _validate_id(context.run_as_group, f"{path}.runAsGroup")
    if context.proc_mount is not None:
        yield from one_of(f"{path}.procMount", context.proc_mount, PROC_MOUNTS)
        if context.proc_mount == "Unmasked" and host_users:
            yield invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    yield from _validate_profile(context.seccomp_profile, f"{path}.seccompProfile")
    yield from _validate_profile(context.app_armor_profile, f"{path}.appArmorProfile")
    if context.allow_privilege_escalation is False:
        if context.privileged:
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, context, why)
        if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, context, why)


def _validate_id(value: int | None, path: str) -> list[Cause]:
    return between(path, value, 0, MAX_ID) if value is not None else []


def _validate_profile(profile: SeccompProfile | AppArmorProfile | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    yield from one_of(f"{path}.type", profile.type, PROFILE_TYPES)
    if profile.type == "Localhost":
        if not profile.localhost_profile:
            yield required(f"{path}.localhostProfile", "must be set when profile type is Localhost ")
    elif profile.localhost_profile is not None:
        yield invalid(
            f"{path}.localhostProfile",
            profile.localhost_profile,
            "can only be set when profile type is Localhost",
        )
