"""Faults of the security contexts of a pod and of its containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.registry.container.security_profiles import validate_app_armor, validate_seccomp
from podling.apiserver.registry.container.security_windows import validate_windows_options
from podling.apiserver.registry.field import between, choice, duplicate, invalid, required
from podling.model.container import SecurityContext
from podling.model.errors import Cause
from podling.model.pod import PodSecurityContext, PodSpec

MAX_ID = (1 << 31) - 1
PROC_MOUNTS = ("Default", "Unmasked")
GROUP_POLICIES = frozenset(("Merge", "Strict"))
FS_GROUP_POLICIES = frozenset(("Always", "OnRootMismatch"))
SE_LINUX_POLICIES = frozenset(("MountOption", "Recursive"))

MAX_SYSCTL = 253
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"
_SYSCTL_RULE = re.compile(_SYSCTL)
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")

_NO_CONTEXT = PodSecurityContext()


def validate_pod_security(spec: PodSpec, path: str) -> Iterator[Cause]:
    context = spec.security_context
    if spec.host_pid and spec.share_process_namespace:
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, why)
    if context is None or context == _NO_CONTEXT:
        return
    yield from _validate_ids(context, path)
    if context.sysctls:
        yield from _validate_sysctls(spec, context, f"{path}.sysctls")
    yield from choice(f"{path}.fsGroupChangePolicy", context.fs_group_change_policy, FS_GROUP_POLICIES)
    yield from validate_seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    yield from validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    yield from validate_app_armor(context.app_armor_profile, f"{path}.appArmorProfile")
    yield from choice(f"{path}.supplementalGroupsPolicy", context.supplemental_groups_policy, GROUP_POLICIES)
    yield from choice(f"{path}.seLinuxChangePolicy", context.se_linux_change_policy, SE_LINUX_POLICIES)


def _validate_ids(context: PodSecurityContext, path: str) -> Iterator[Cause]:
    yield from validate_id(context.fs_group, f"{path}.fsGroup")
    yield from validate_id(context.run_as_user, f"{path}.runAsUser")
    yield from validate_id(context.run_as_group, f"{path}.runAsGroup")
    for i, group in enumerate(context.supplemental_groups):
        yield from validate_id(group, f"{path}.supplementalGroups[{i}]")


def _validate_sysctls(spec: PodSpec, context: PodSecurityContext, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, sysctl in enumerate(context.sysctls):
        where = f"{path}[{i}].name"
        if not sysctl.name:
            yield required(where)
        elif len(sysctl.name) > MAX_SYSCTL or not _SYSCTL_RULE.fullmatch(sysctl.name):
            why = f"must have at most {MAX_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield invalid(where, sysctl.name, why)
        elif sysctl.name in seen:
            yield duplicate(where, sysctl.name)
        seen.add(sysctl.name)
        if shared := _shared_with_host(sysctl.name, spec):
            yield invalid(where, sysctl.name, f"may not be specified when '{shared}' is true")


def _shared_with_host(sysctl: str, spec: PodSpec) -> str:
    """The field by which the namespace of a sysctl is the host's, so that it is not the pod's to set."""
    first = next((letter for letter in sysctl if letter in "./"), ".")
    dotted = sysctl if first == "." else sysctl.translate(str.maketrans("./", "/."))
    if spec.host_network and dotted.startswith("net."):
        return "hostNetwork"
    if spec.host_ipc and (dotted == "kernel.sem" or dotted.startswith(_IPC_SYSCTLS)):
        return "hostIPC"
    return ""


def validate_security_context(
    context: SecurityContext | None, path: str, *, host_users: bool
) -> Iterator[Cause]:
    """`host_users`: the pod has no user namespace of its own."""
    if context is None:
        return
    yield from validate_id(context.run_as_user, f"{path}.runAsUser")
    yield from validate_id(context.run_as_group, f"{path}.runAsGroup")
    yield from choice(f"{path}.procMount", context.proc_mount, PROC_MOUNTS)
    if context.proc_mount == "Unmasked" and host_users:
        yield invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    yield from validate_seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    if context.allow_privilege_escalation is False:
        yield from _validate_unprivileged(context, path)
    yield from validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    yield from validate_app_armor(context.app_armor_profile, f"{path}.appArmorProfile")


def _validate_unprivileged(context: SecurityContext, path: str) -> Iterator[Cause]:
    if context.privileged:
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(path, context, why)
    if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
        why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid(path, context, why)


def validate_id(value: int | None, path: str) -> list[Cause]:
    """Of a user or a group."""
    return between(path, value, 0, MAX_ID) if value is not None else []
