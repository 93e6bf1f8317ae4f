"""The Pod Security Standards: what a pod may ask for at each level, as of each minor version of Kubernetes.

The rules are tables: each has the versions in which it changed, and a pure function from a pod to what is
wrong with it. `restricted` has the rules of `baseline` but for those that a stricter one replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from podling.apiserver.rules.field import containers_with_paths
from podling.apiserver.rules.pod.annotations import APP_ARMOR, POD_SECCOMP, SECCOMP
from podling.model.codec.fields import wire_name
from podling.model.types.container import EphemeralContainerCommon, Lifecycle, SecurityContext, SELinuxOptions
from podling.model.types.pod import PodSecurityContext, PodSpec

PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
NEWEST = 36
"""The minor version of Kubernetes whose rules are the newest known."""
LATEST = 10**9
"""The version `latest`, as a number."""

DEFAULT_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
SE_LINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
SE_LINUX_TYPES_31 = SE_LINUX_TYPES | {"container_engine_t"}
SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    }
)
SYSCTLS_27 = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
TCP_29 = ("fin_timeout", "keepalive_intvl", "keepalive_probes", "keepalive_time")
SYSCTLS_29 = SYSCTLS_27 | {f"net.ipv4.tcp_{name}" for name in TCP_29}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
ALLOWED_VOLUMES = frozenset(
    {
        "config_map",
        "container",
        "csi",
        "downward_api",
        "empty_dir",
        "ephemeral",
        "image",
        "persistent_volume_claim",
        "projected",
        "secret",
    }
)
UNSET, UNSET_POD = SecurityContext(), PodSecurityContext()
CONFINED = frozenset({"RuntimeDefault", "Localhost"})


class SecurityPolicy(NamedTuple):
    """A level, and the minor version whose rules it has."""

    level: str = PRIVILEGED
    minor: int = LATEST

    @property
    def version(self) -> str:
        return "latest" if self.minor == LATEST else f"v1.{self.minor}"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


class Violation(NamedTuple):
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


class JudgedPod:
    """A pod as the rules look at it."""

    def __init__(self, annotations: Mapping[str, str], spec: PodSpec) -> None:
        self.annotations = annotations
        self.spec = spec
        self.context = spec.security_context or UNSET_POD
        # In Kubernetes' order: init containers come first.
        self.containers = [one for one, _ in containers_with_paths(spec, "")]
        self.is_windows = spec.os is not None and spec.os.name == "windows"
        self.has_own_users = spec.host_users is False

    def those(self, is_one: Callable[[SecurityContext], object]) -> list[str]:
        """The names of the containers whose security context is of that kind."""
        return [one.name for one in self.containers if is_one(one.security_context or UNSET)]


Judge = Callable[[JudgedPod], Violation | None]


def _quoted(values: Iterable[str]) -> str:
    return '"' + '", "'.join(values) + '"'


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _named(what: str, values: Sequence[str]) -> str:
    return f"{_plural(what, len(values))} {_quoted(values)}"


def _both(of_pod: object, containers: Sequence[str]) -> str:
    """Who says it: the pod, containers, or both."""
    return " and ".join([*["pod"][: bool(of_pod)], *[_named("container", containers)][: bool(containers)]])


def app_armor(pod: JudgedPod) -> Violation | None:
    own = pod.context.app_armor_profile
    types = [own.type] if own is not None and own.type not in CONFINED else []
    containers = []
    for one in pod.containers:
        profile = (one.security_context or UNSET).app_armor_profile
        if profile is not None and profile.type not in CONFINED:
            containers.append(one.name)
            types.append(profile.type)
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in pod.annotations.items()
        if key.startswith(APP_ARMOR)
        if value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    by = _both(own is not None and own.type not in CONFINED, containers)
    if annotations:
        by = f"{by} and " if by else ""
        by += _plural("annotation", len(annotations))
    if not by:
        return None
    values = [*sorted(set(types)), *annotations]
    reason = _plural("forbidden AppArmor profile", len(values))
    return Violation(reason, f"{by} must not set AppArmor profile type to {_quoted(values)}")


def added_capabilities(pod: JudgedPod) -> Violation | None:
    added = _added(pod, DEFAULT_CAPABILITIES)
    return Violation("non-default capabilities", added) if added else None


def _added(pod: JudgedPod, allowed: frozenset[str]) -> str:
    containers, names = [], set[str]()
    for one in pod.containers:
        capabilities = (one.security_context or UNSET).capabilities
        if capabilities is not None and not allowed.issuperset(capabilities.add):
            containers.append(one.name)
            names.update(capabilities.add)
    if not containers:
        return ""
    listed = _quoted(sorted(names - allowed))
    return f"{_named('container', containers)} must not include {listed} in securityContext.capabilities.add"


def host_namespaces(pod: JudgedPod) -> Violation | None:
    spec = pod.spec
    sides = (("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc))
    used = [f"{name}=true" for name, is_used in sides if is_used]
    return Violation("host namespaces", ", ".join(used)) if used else None


def host_paths(pod: JudgedPod) -> Violation | None:
    volumes = [one.name for one in pod.spec.volumes if one.host_path is not None]
    return Violation("hostPath volumes", _named("volume", volumes)) if volumes else None


def host_ports(pod: JudgedPod) -> Violation | None:
    used = {
        one.name: ports
        for one in pod.containers
        if (ports := [str(port.host_port) for port in one.ports if port.host_port])
    }
    if not used:
        return None
    ports = sorted({port for ports in used.values() for port in ports})
    uses = "uses" if len(used) == 1 else "use"
    listed = f"{_plural('hostPort', len(ports))} {', '.join(ports)}"
    return Violation("hostPort", f"{_named('container', list(used))} {uses} {listed}")


def host_probes(pod: JudgedPod) -> Violation | None:
    used = {one.name: hosts for one in pod.containers if (hosts := list(_hosts(one)))}
    if not used:
        return None
    hosts = sorted({host for hosts in used.values() for host in hosts})
    uses = "uses" if len(used) == 1 else "use"
    return Violation(
        "probe or lifecycle host",
        f"{_named('container', sorted(used))} {uses} {_named('probe or lifecycle host', hosts)}",
    )


def _hosts(container: EphemeralContainerCommon) -> Iterator[str]:
    hooks = container.lifecycle or Lifecycle()
    for one in (
        container.liveness_probe,
        container.readiness_probe,
        container.startup_probe,
        hooks.post_start,
        hooks.pre_stop,
    ):
        if one is not None:
            for action in (one.http_get, one.tcp_socket):
                if action is not None and action.host:
                    yield action.host


def privileged_containers(pod: JudgedPod) -> Violation | None:
    containers = pod.those(lambda context: context.privileged)
    said = f"{_named('container', containers)} must not set securityContext.privileged=true"
    return Violation("privileged", said) if containers else None


def proc_mount(pod: JudgedPod) -> Violation | None:
    containers = pod.those(lambda context: context.proc_mount not in (None, "Default"))
    said = f'{_named("container", containers)} must not set securityContext.procMount to "Unmasked"'
    return Violation("procMount", said) if containers else None


def se_linux(types: frozenset[str]) -> Judge:
    def judge(pod: JudgedPod) -> Violation | None:
        def is_bad(options: SELinuxOptions | None) -> bool:
            return options is not None and bool(options.type not in types or options.user or options.role)

        own = pod.context.se_linux_options
        each = [(one.security_context or UNSET).se_linux_options for one in pod.containers]
        bad = [options for options in (own, *each) if options is not None and is_bad(options)]
        if not bad:
            return None
        said = []
        if odd := sorted({options.type for options in bad} - types):
            said.append(_named("type", odd))
        if any(options.user for options in bad):
            said.append("user may not be set")
        if any(options.role for options in bad):
            said.append("role may not be set")
        by = _both(is_bad(own), pod.those(lambda context: is_bad(context.se_linux_options)))
        detail = f"{by} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}"
        return Violation("seLinuxOptions", detail)

    return judge


def seccomp_annotations(pod: JudgedPod) -> Violation | None:
    """Of the time before there was a field."""
    forbidden = [
        f'{key}="{value}"'
        for key in (POD_SECCOMP, *(SECCOMP + one.name for one in pod.containers))
        if (value := pod.annotations.get(key, "")) not in ("", "runtime/default", "docker/default")
        if not value.startswith("localhost/")
    ]
    if not forbidden:
        return None
    listed = f"{_plural('forbidden annotation', len(forbidden))} {', '.join(forbidden)}"
    return Violation("seccompProfile", listed)


def seccomp(pod: JudgedPod) -> Violation | None:
    each = [(one.security_context or UNSET).seccomp_profile for one in pod.containers]
    profiles = [profile for profile in (pod.context.seccomp_profile, *each) if profile is not None]
    types = {profile.type for profile in profiles} - CONFINED
    if not types:
        return None
    own = pod.context.seccomp_profile
    containers = pod.those(
        lambda context: context.seccomp_profile and context.seccomp_profile.type not in CONFINED
    )
    by = _both(own is not None and own.type not in CONFINED, containers)
    said = f"{by} must not set securityContext.seccompProfile.type to {_quoted(sorted(types))}"
    return Violation("seccompProfile", said)


def unsafe_sysctls(allowed: frozenset[str]) -> Judge:
    def judge(pod: JudgedPod) -> Violation | None:
        names = [one.name for one in pod.context.sysctls if one.name not in allowed]
        return Violation("forbidden sysctls", ", ".join(names)) if names else None

    return judge


def host_process(pod: JudgedPod) -> Violation | None:
    own = pod.context.windows_options
    of_pod = own is not None and own.host_process
    containers = pod.those(lambda context: context.windows_options and context.windows_options.host_process)
    if not of_pod and not containers:
        return None
    by = _both(of_pod, containers)
    return Violation("hostProcess", f"{by} must not set securityContext.windowsOptions.hostProcess=true")


def escalation(pod: JudgedPod) -> Violation | None:
    containers = pod.those(lambda context: context.allow_privilege_escalation is not False)
    said = f"{_named('container', containers)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", said) if containers else None


def all_capabilities(pod: JudgedPod) -> Violation | None:
    keeping = pod.those(
        lambda context: "ALL" not in (context.capabilities.drop if context.capabilities else ())
    )
    said = []
    if keeping:
        said.append(f'{_named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if added := _added(pod, frozenset({"NET_BIND_SERVICE"})):
        said.append(added)
    return Violation("unrestricted capabilities", "; ".join(said)) if said else None


def restricted_volumes(pod: JudgedPod) -> Violation | None:
    bad = {
        volume.name: source
        for volume in pod.spec.volumes
        for source in volume.__struct_fields__
        if source != "name" and source not in ALLOWED_VOLUMES
        if getattr(volume, source) is not None
    }
    if not bad:
        return None
    uses = "uses" if len(bad) == 1 else "use"
    types = sorted({wire_name(source) for source in bad.values()})
    listed = _named("restricted volume type", types)
    return Violation("restricted volume types", f"{_named('volume', list(bad))} {uses} {listed}")


def runs_as_root(pod: JudgedPod) -> Violation | None:
    own = pod.context.run_as_non_root
    as_root = pod.those(lambda context: context.run_as_non_root is False)
    unsaid = [] if own else pod.those(lambda context: context.run_as_non_root is None)
    if own is False or as_root:
        said = f"{_both(own is False, as_root)} must not set securityContext.runAsNonRoot=false"
    elif unsaid:
        said = f"pod or {_named('container', unsaid)} must set securityContext.runAsNonRoot=true"
    else:
        return None
    return Violation("runAsNonRoot != true", said)


def root_user(pod: JudgedPod) -> Violation | None:
    containers = pod.those(lambda context: context.run_as_user == 0)
    by = _both(pod.context.run_as_user == 0, containers)
    return Violation("runAsUser=0", f"{by} must not set runAsUser=0") if by else None


def seccomp_set(pod: JudgedPod) -> Violation | None:
    if fault := seccomp(pod):
        return fault
    unsaid = [] if pod.context.seccomp_profile else pod.those(lambda context: context.seccomp_profile is None)
    if not unsaid:
        return None
    listed = f"pod or {_named('container', unsaid)} must set securityContext.seccompProfile.type to "
    return Violation("seccompProfile", f'{listed}"RuntimeDefault" or "Localhost"')


def but_windows(judge: Judge) -> Judge:
    """What there is only on Linux."""
    return lambda pod: None if pod.is_windows else judge(pod)


def but_own_users(judge: Judge) -> Judge:
    """What does not matter to a pod whose users are not those of the node."""
    return lambda pod: None if pod.has_own_users else judge(pod)


class StandardRule(NamedTuple):
    """From each of the minor versions on it is judged so. `replaces`: the rule of baseline that is then not
    asked."""

    name: str
    since: Mapping[int, Judge]
    replaces: str = ""


BASELINE_RULES = (
    StandardRule("appArmorProfile", {0: app_armor}),
    StandardRule("capabilities", {0: added_capabilities}),
    StandardRule("hostNamespaces", {0: host_namespaces}),
    StandardRule("hostPathVolumes", {0: host_paths}),
    StandardRule("hostPorts", {0: host_ports}),
    StandardRule("hostProbesAndHostLifecycle", {34: host_probes}),
    StandardRule("privileged", {0: privileged_containers}),
    StandardRule("procMount", {0: proc_mount, 35: but_own_users(proc_mount)}),
    StandardRule(
        "seLinuxOptions",
        {0: se_linux(SE_LINUX_TYPES), 31: se_linux(SE_LINUX_TYPES_31)},
    ),
    StandardRule("seccompProfile", {0: seccomp_annotations, 19: seccomp}),
    StandardRule(
        "sysctls",
        {
            0: unsafe_sysctls(SYSCTLS),
            27: unsafe_sysctls(SYSCTLS_27),
            29: unsafe_sysctls(SYSCTLS_29),
            32: unsafe_sysctls(SYSCTLS_32),
        },
    ),
    StandardRule("windowsHostProcess", {0: host_process}),
)
RESTRICTED_RULES = (
    StandardRule("allowPrivilegeEscalation", {8: escalation, 25: but_windows(escalation)}),
    StandardRule("capabilities", {22: all_capabilities, 25: but_windows(all_capabilities)}, "capabilities"),
    StandardRule("procMount", {35: proc_mount}, "procMount"),
    StandardRule("restrictedVolumes", {0: restricted_volumes}, "hostPathVolumes"),
    StandardRule("runAsNonRoot", {0: runs_as_root, 35: but_own_users(runs_as_root)}),
    StandardRule("runAsUser", {23: root_user, 35: but_own_users(root_user)}),
    StandardRule("seccompProfile", {19: seccomp_set, 25: but_windows(seccomp_set)}, "seccompProfile"),
)


@cache
def _judges(level: str, minor: int) -> tuple[Judge, ...]:
    """`minor` is at most NEWEST, so there are few."""
    added = RESTRICTED_RULES if level == RESTRICTED else ()
    asked = [rule for rule in added if min(rule.since) <= minor]
    replaced = {rule.replaces for rule in asked}
    rules = [*(rule for rule in BASELINE_RULES if rule.name not in replaced), *asked]
    return tuple(_as_of(rule, minor) for rule in rules if min(rule.since) <= minor)


def _as_of(rule: StandardRule, minor: int) -> Judge:
    return rule.since[max(since for since in rule.since if since <= minor)]


def faults(policy: SecurityPolicy, subject: JudgedPod) -> list[Violation]:
    """What of a pod the policy forbids, in Kubernetes' order."""
    if policy.level == PRIVILEGED:
        return []
    judges = _judges(policy.level, min(policy.minor, NEWEST))
    return [fault for judge in judges if (fault := judge(subject)) is not None]
