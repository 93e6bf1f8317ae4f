"""Validation of the security contexts of pods and containers, with seccomp and AppArmor profiles and the
options of Windows containers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.rules.field import (
    all_invalid,
    between,
    choice,
    containers_with_paths,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_supported,
    required,
    too_long,
    validate_descending,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.container import (
    AppArmorProfile,
    SeccompProfile,
    SecurityContext,
    WindowsSecurityContextOptions,
)
from podling.model.types.pod import PodSecurityContext, PodSpec

MAX_SPEC_KIB = 64
MAX_DOMAIN, MAX_USER = 256, 104

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NO_USER = re.compile(r"[. ]+")
_NOT_IN_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')

PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
LOCAL = "localhost/"
ANNOTATED = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
MAX_PROFILE = 4095
"""The longest path there is."""

MAX_ID = (1 << 31) - 1
PROC_MOUNTS = ("Default", "Unmasked")
GROUP_POLICIES = frozenset(("Merge", "Strict"))
FS_GROUP_POLICIES = frozenset(("Always", "OnRootMismatch"))
SE_LINUX_POLICIES = frozenset(("Recursive",))
"""`MountOption` is behind the gate `SELinuxMount`, which is off."""

MAX_SYSCTL = 253
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_PART}[\./])*{_SYSCTL_PART}"
_SYSCTL_RULE = re.compile(_SYSCTL)
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")

_NO_CONTEXT = PodSecurityContext()


def validate_windows_options(options: WindowsSecurityContextOptions | None, path: str) -> Iterator[Cause]:
    if options is None:
        return
    name, spec = options.gmsa_credential_spec_name, options.gmsa_credential_spec
    if name is not None:
        yield from all_invalid(f"{path}.gmsaCredentialSpecName", name, names.dns1123_subdomain(name))
    if spec == "":
        yield invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and len(spec.encode()) > MAX_SPEC_KIB * 1024:
        why = f"gmsaCredentialSpec size must be under {MAX_SPEC_KIB} KiB"
        yield invalid(f"{path}.gmsaCredentialSpec", spec, why)
    user = options.run_as_user_name
    if user is not None:
        yield from all_invalid(f"{path}.runAsUserName", user, _user_faults(user))


def _user_faults(name: str) -> Iterator[str]:
    """Of `user` or `domain\\user`."""
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
    elif name.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        domain, backslash, user = name.rpartition("\\")
        if len(domain) >= MAX_DOMAIN:
            yield f"runAsUserName's Domain length must be under {MAX_DOMAIN} characters"
        if backslash and not (_NETBIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
            yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "runAsUserName's User cannot be empty"
        elif len(user) > MAX_USER:
            yield f"runAsUserName's User length must not be longer than {MAX_USER} characters"
        if _NO_USER.fullmatch(user):
            yield "runAsUserName's User cannot contain only periods or spaces"
        if _NOT_IN_USER.search(user):
            yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def validate_host_process(spec: PodSpec, path: str) -> Iterator[Cause]:
    """All containers of a pod are host processes, or none, and then the pod is in the host's network."""
    context = spec.security_context
    of_pod = context.windows_options.host_process if context and context.windows_options else None
    kinds = set()
    for container, where in containers_with_paths(spec, path):
        inner = container.security_context
        own = inner.windows_options.host_process if inner and inner.windows_options else None
        if own is not None and of_pod is not None and own != of_pod:
            value = str(of_pod).lower()
            why = f"pod hostProcess value must be identical if both are specified, was {value}"
            yield invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, why)
        kinds.add(bool(of_pod if own is None else own))
    if True not in kinds:
        return
    if False in kinds:
        why = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", why)
    if not spec.host_network:
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", False, why)


def validate_seccomp(profile: SeccompProfile | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    yield from _validate_type(profile.type, f"{path}.type", "seccompProfile")
    where = f"{path}.localhostProfile"
    if profile.type != "Localhost":
        if profile.localhost_profile is not None:
            yield invalid(where, profile, "can only be set when seccomp type is Localhost")
    elif profile.localhost_profile is None:
        yield required(where, "must be set when seccomp type is Localhost")
    else:
        yield from validate_descending(profile.localhost_profile, where)


def validate_app_armor(profile: AppArmorProfile | None, path: str) -> Iterator[Cause]:
    if profile is None:
        return
    yield from _validate_type(profile.type, f"{path}.type", "appArmorProfile")
    where, named = f"{path}.localhostProfile", profile.localhost_profile
    if profile.type == "Localhost":
        if not named:
            yield required(where, "must be set when AppArmor type is Localhost")
        else:
            if named != named.strip():
                yield invalid(where, named, "must not be padded with whitespace")
            if len(named.encode()) > MAX_PROFILE:
                yield too_long(where, MAX_PROFILE)
    elif named is not None and profile.type in PROFILE_TYPES:
        yield invalid(where, named, "can only be set when AppArmor type is Localhost")


def _validate_type(given: str, path: str, field: str) -> Iterator[Cause]:
    if not given:
        yield required(path, f"type is required when {field} is set")
    elif given not in PROFILE_TYPES:
        yield not_supported(path, given, PROFILE_TYPES)


def validate_match(
    profile: SeccompProfile | AppArmorProfile, annotation: str, path: str, what: str
) -> Iterator[Cause]:
    """A new pod that says it in both ways must say the same."""
    if profile.type != "Localhost":
        matches = annotation in ANNOTATED.get(profile.type, (annotation,))
    else:
        matches = annotation.startswith(LOCAL)
        if matches and annotation.removeprefix(LOCAL) != profile.localhost_profile:
            why = f"{what} profile in annotation and field must match"
            yield forbidden(f"{path}.localhostProfile", why)
    if not matches:
        yield forbidden(f"{path}.type", f"{what} type in annotation and field must match")


def validate_pod_security(spec: PodSpec, path: str) -> Iterator[Cause]:
    context = spec.security_context
    if spec.host_pid and spec.share_process_namespace:
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", True, why)
    if context is None or context == _NO_CONTEXT:
        return
    yield from validate_id(context.fs_group, f"{path}.fsGroup")
    yield from validate_id(context.run_as_user, f"{path}.runAsUser")
    yield from validate_id(context.run_as_group, f"{path}.runAsGroup")
    for i, group in enumerate(context.supplemental_groups):
        yield from validate_id(group, f"{path}.supplementalGroups[{i}]")
    if context.sysctls:
        yield from _validate_sysctls(spec, context, f"{path}.sysctls")
    yield from choice(f"{path}.fsGroupChangePolicy", context.fs_group_change_policy, FS_GROUP_POLICIES)
    yield from validate_seccomp(context.seccomp_profile, f"{path}.seccompProfile")
    yield from validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    yield from validate_app_armor(context.app_armor_profile, f"{path}.appArmorProfile")
    yield from choice(f"{path}.supplementalGroupsPolicy", context.supplemental_groups_policy, GROUP_POLICIES)
    yield from choice(f"{path}.seLinuxChangePolicy", context.se_linux_change_policy, SE_LINUX_POLICIES)


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
        # A sysctl of a namespace that is the host's is not the pod's to set.
        first = next((letter for letter in sysctl.name if letter in "./"), ".")
        dotted = sysctl.name if first == "." else sysctl.name.translate(str.maketrans("./", "/."))
        shared = ""
        if spec.host_network and dotted.startswith("net."):
            shared = "hostNetwork"
        elif spec.host_ipc and (dotted == "kernel.sem" or dotted.startswith(_IPC_SYSCTLS)):
            shared = "hostIPC"
        if shared:
            yield invalid(where, sysctl.name, f"may not be specified when '{shared}' is true")


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
        if context.privileged:
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield invalid(path, internal(context), why)
        if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(path, internal(context), why)
    yield from validate_windows_options(context.windows_options, f"{path}.windowsOptions")
    yield from validate_app_armor(context.app_armor_profile, f"{path}.appArmorProfile")


def validate_id(value: int | None, path: str) -> list[Cause]:
    """Of a user or a group."""
    return between(path, value, 0, MAX_ID) if value is not None else []
