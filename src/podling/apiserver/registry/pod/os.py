"""Faults of a pod's operating system: that it is one, and is asked for nothing it does not have."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.registry.field import forbidden, not_supported, required
from podling.apiserver.registry.pod.containers import containers_with_paths
from podling.model.base import wire_name
from podling.model.container import SecurityContext
from podling.model.errors import Cause
from podling.model.pod import PodSecurityContext, PodSpec

SYSTEMS = ("linux", "windows")

_NOT_ON_WINDOWS = (
    "app_armor_profile",
    "se_linux_options",
    "seccomp_profile",
    "fs_group",
    "fs_group_change_policy",
    "sysctls",
    "run_as_user",
    "run_as_group",
    "supplemental_groups",
    "supplemental_groups_policy",
    "se_linux_change_policy",
)
"""Of the pod's security context."""

_POD_NOT_ON_WINDOWS = ("host_users", "host_pid", "host_ipc", "share_process_namespace")

_CONTAINER_NOT_ON_WINDOWS = (
    "app_armor_profile",
    "se_linux_options",
    "seccomp_profile",
    "capabilities",
    "read_only_root_filesystem",
    "privileged",
    "allow_privilege_escalation",
    "proc_mount",
    "run_as_user",
    "run_as_group",
)


def validate_os(spec: PodSpec, path: str) -> Iterator[Cause]:
    if spec.os is None:
        return
    if not spec.os.name:
        yield required(f"{path}.os.name", "cannot be empty")
    elif spec.os.name == "linux":
        yield from _validate_linux(spec, path)
    elif spec.os.name == "windows":
        yield from _validate_windows(spec, path)
    else:
        yield not_supported(f"{path}.os", spec.os.name, SYSTEMS)


def _validate_linux(spec: PodSpec, path: str) -> Iterator[Cause]:
    contexts: list[tuple[PodSecurityContext | SecurityContext | None, str]] = [(spec.security_context, path)]
    contexts += [(c.security_context, where) for c, where in containers_with_paths(spec, path)]
    for context, where in contexts:
        if context is not None and context.windows_options is not None:
            why = "windows options cannot be set for a linux pod"
            yield forbidden(f"{where}.securityContext.windowsOptions", why)


def _validate_windows(spec: PodSpec, path: str) -> Iterator[Cause]:
    if spec.security_context is not None:
        yield from _refuse(spec.security_context, _NOT_ON_WINDOWS, f"{path}.securityContext")
        yield from _refuse(spec, _POD_NOT_ON_WINDOWS, path)
    for container, where in containers_with_paths(spec, path):
        if container.security_context is not None:
            yield from _refuse(
                container.security_context, _CONTAINER_NOT_ON_WINDOWS, f"{where}.securityContext"
            )


def _refuse(holder: msgspec.Struct, attributes: tuple[str, ...], path: str) -> Iterator[Cause]:
    """Of a pointer, also False and 0 are set; of the rest, only what says something."""
    unset = type(holder)()
    for attribute in attributes:
        if getattr(holder, attribute) != getattr(unset, attribute):
            yield forbidden(f"{path}.{wire_name(attribute)}", "cannot be set for a windows pod")
