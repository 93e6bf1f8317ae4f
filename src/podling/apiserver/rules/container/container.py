"""Validation of the containers of a pod: what any container may have, and what its list adds to that.

Names are unique over all three lists (R-INIT-8). An init container that is not a sidecar has no hooks and
probes (R-INIT-6); an ephemeral container has nothing that guarantees resources or health (R-EPH-2). Restart
policies, restart rules, resize policies, probes, lifecycle hooks and stop signals are here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from podling.apiserver.rules.container.env import validate_env, validate_env_from
from podling.apiserver.rules.container.mounts import (
    validate_devices,
    validate_host_ports,
    validate_mounts,
    validate_port,
    validate_ports,
)
from podling.apiserver.rules.container.resources import validate_resources
from podling.apiserver.rules.container.security import validate_security_context
from podling.apiserver.rules.field import (
    all_invalid,
    at_least,
    choice,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    required,
    too_long,
)
from podling.apiserver.rules.volume.drivers import PULL_POLICIES
from podling.model import names
from podling.model.codec.fields import told_empty
from podling.model.errors import Cause
from podling.model.gates import Gates
from podling.model.rules.resources import is_sidecar
from podling.model.types.container import (
    Container,
    ContainerResizePolicy,
    EphemeralContainer,
    EphemeralContainerCommon,
    Lifecycle,
    LifecycleHandler,
    Probe,
)
from podling.model.types.pod import PodSpec
from podling.model.types.volume import Volume

RESTART_POLICIES = frozenset(("Always", "Never", "OnFailure"))
ACTIONS = frozenset(("Restart", "RestartAllContainers"))
OPERATORS = frozenset(("In", "NotIn"))
MAX_RULES, MAX_EXIT_CODES = 20, 255

RESOURCES = frozenset(("cpu", "memory"))
RESIZE_POLICIES = frozenset(("NotRequired", "RestartContainer"))

MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")

NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
NOT_FOR_EPHEMERAL = "cannot be set for an Ephemeral Container"

_PROBES_AND_HOOKS = (
    ("lifecycle", "lifecycle"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
)
_EPHEMERAL_REFUSES = (
    ("ports", "ports"),
    ("resources", "resources"),
    ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"),
    ("restart_policy_rules", "restartPolicyRules"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
    ("lifecycle", "lifecycle"),
)
_UNSET = EphemeralContainerCommon()

# fmt: off
_NAMED = (
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE",
    "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU",
    "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
)
# fmt: on
_REAL_TIME = [f"RTMIN+{i}" for i in range(1, 16)] + [f"RTMAX-{i}" for i in range(1, 15)]

STOP_SIGNALS: Mapping[str, frozenset[str]] = {
    "linux": frozenset(f"SIG{name}" for name in (*_NAMED, *_REAL_TIME)),
    "windows": frozenset(("SIGKILL", "SIGTERM")),
}

SCHEMES = frozenset(("HTTP", "HTTPS"))

_HANDLERS = (
    ("exec", "exec"),
    ("http_get", "httpGet"),
    ("tcp_socket", "tcpSocket"),
    ("grpc", "grpc"),
    ("sleep", "sleep"),
)


class Surroundings(msgspec.Struct, frozen=True):
    """What of the pod a container may refer to or depends on."""

    volumes: Mapping[str, Volume]
    claims: frozenset[str]
    grace: int | None
    restart_policy: str
    os: str
    host_users: bool
    template: bool
    """Whether the pod is only a template, whose images may be placeholders."""
    gates: Gates


def surroundings(
    spec: PodSpec, volumes: Mapping[str, Volume], *, template: bool, gates: Gates
) -> Surroundings:
    return Surroundings(
        volumes=volumes,
        claims=frozenset(claim.name for claim in spec.resource_claims if claim.name),
        grace=spec.termination_grace_period_seconds,
        restart_policy=spec.restart_policy,
        os=spec.os.name if spec.os is not None else "",
        host_users=spec.host_users is not False,
        template=template,
        gates=gates,
    )


def validate_containers(spec: PodSpec, path: str, around: Surroundings) -> Iterator[Cause]:
    """Of all three lists."""
    if not spec.containers:
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for i, container in enumerate(spec.containers):
        where = f"{path}.containers[{i}]"
        yield from _validate_common(container, where, around)
        yield from _validate_unique(container.name, where, seen)
        yield from _validate_lifetime(container, where, around)
        yield from validate_restarts(container, where)
    yield from validate_host_ports(spec.containers, f"{path}.containers")
    for i, container in enumerate(spec.init_containers):
        where = f"{path}.initContainers[{i}]"
        yield from _validate_common(container, where, around)
        # Without a policy Kubernetes says that much of an init container and no more.
        yield from islice(validate_restarts(container, where), None if container.restart_policy else 1)
        yield from _validate_unique(container.name, where, seen)
        # They run one at a time: only its own ports collide. Kubernetes calls any of them the first.
        yield from validate_host_ports([container], f"{path}.initContainers")
        yield from _validate_init(container, where, around)
    for i, volume in enumerate(spec.volumes):
        if volume.container is not None:
            where = f"{path}.volumes[{i}].container"
            yield from _validate_unique(volume.container.name, where, seen)
            yield from _validate_volume_container(volume.container, volume.name, where, around)
    targets = frozenset(seen)
    for i, ephemeral in enumerate(spec.ephemeral_containers):
        where = f"{path}.ephemeralContainers[{i}]"
        yield from _validate_common(ephemeral, where, around)
        yield from _validate_unique(ephemeral.name, where, seen)
        yield from _validate_ephemeral(ephemeral, where, targets)


def _validate_unique(name: str, path: str, seen: set[str]) -> Iterator[Cause]:
    if name and name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)


def _validate_lifetime(container: Container, path: str, around: Surroundings) -> Iterator[Cause]:
    yield from validate_lifecycle(container.lifecycle, f"{path}.lifecycle", grace=around.grace, os=around.os)
    yield from validate_liveness(container.liveness_probe, f"{path}.livenessProbe")
    yield from validate_readiness(container.readiness_probe, f"{path}.readinessProbe")
    yield from validate_liveness(container.startup_probe, f"{path}.startupProbe")


def _validate_init(container: Container, path: str, around: Surroundings) -> Iterator[Cause]:
    if is_sidecar(container):
        yield from _validate_lifetime(container, path, around)
        return
    probed = around.gates.enabled("InitContainerLivenessProbe")
    for attribute, wire in _PROBES_AND_HOOKS:
        if attribute == "liveness_probe" and probed:
            yield from validate_liveness(container.liveness_probe, f"{path}.livenessProbe")
        elif getattr(container, attribute) is not None:
            yield forbidden(f"{path}.{wire}", NOT_FOR_INIT)
    for i, policy in enumerate(container.resize_policy):
        if policy.restart_policy == "RestartContainer":
            why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid(f"{path}.resizePolicy[{i}].restartPolicy", policy.restart_policy, why)


def _validate_volume_container(
    container: Container, volume: str, path: str, around: Surroundings
) -> Iterator[Cause]:
    """R-VOL-1: an init container that has to do with one volume alone."""
    yield from _validate_common(container, path, around)
    if container.restart_policy is not None:
        yield forbidden(f"{path}.restartPolicy", "may not be set for volume containers")
    else:
        yield from _validate_init(container, path, around)
    if not container.volume_mounts:
        yield required(f"{path}.volumeMounts", "must mount the volume it initializes")
    for i, mount in enumerate(container.volume_mounts):
        if mount.name != volume:
            why = "must be the volume that the container initializes"
            yield invalid(f"{path}.volumeMounts[{i}].name", mount.name, why)


def _validate_ephemeral(container: EphemeralContainer, path: str, targets: frozenset[str]) -> Iterator[Cause]:
    target = container.target_container_name
    if target and target not in targets:
        yield not_found(f"{path}.targetContainerName", target)
    told = {name.partition(".")[0] for name in told_empty(container)}
    for attribute, wire in _EPHEMERAL_REFUSES:
        if getattr(container, attribute) != getattr(_UNSET, attribute) or wire in told:
            yield forbidden(f"{path}.{wire}", NOT_FOR_EPHEMERAL)
    for i, mount in enumerate(container.volume_mounts):
        if mount.sub_path:
            yield forbidden(f"{path}.volumeMounts[{i}].subPath", NOT_FOR_EPHEMERAL)
        if mount.sub_path_expr:
            yield forbidden(f"{path}.volumeMounts[{i}].subPathExpr", NOT_FOR_EPHEMERAL)


def _validate_common(container: EphemeralContainerCommon, path: str, around: Surroundings) -> Iterator[Cause]:
    """What holds for a container in any of the lists."""
    if not container.name:
        yield required(f"{path}.name")
    else:
        yield from all_invalid(f"{path}.name", container.name, names.dns1123_label(container.name))
    if not container.image:
        yield required(f"{path}.image")
    elif container.image != container.image.strip() and not around.template:
        yield invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")
    if container.termination_message_policy not in MESSAGE_POLICIES:
        yield from one_of(
            f"{path}.terminationMessagePolicy", container.termination_message_policy, MESSAGE_POLICIES
        )
    if container.ports:
        yield from validate_ports(container.ports, f"{path}.ports")
    if container.env:
        yield from validate_env(container.env, f"{path}.env")
    if container.env_from:
        yield from validate_env_from(container.env_from, f"{path}.envFrom")
    if container.volume_mounts:
        yield from validate_mounts(container, f"{path}.volumeMounts", around.volumes)
    if container.volume_devices:
        yield from validate_devices(container, f"{path}.volumeDevices", around.volumes)
    if container.image_pull_policy not in PULL_POLICIES:
        yield from one_of(f"{path}.imagePullPolicy", container.image_pull_policy, PULL_POLICIES)
    yield from validate_resources(container.resources, f"{path}.resources", around.claims)
    if container.resize_policy:
        yield from validate_resize_policies(
            container.resize_policy, f"{path}.resizePolicy", around.restart_policy
        )
    context = container.security_context
    yield from validate_security_context(context, f"{path}.securityContext", host_users=around.host_users)


def validate_restarts(container: Container, path: str) -> Iterator[Cause]:
    if container.restart_policy is None and not container.restart_policy_rules:
        return
    if container.restart_policy is None:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    yield from choice(f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES)
    if len(container.restart_policy_rules) > MAX_RULES:
        yield too_long(f"{path}.restartPolicyRules", MAX_RULES)
    for i, rule in enumerate(container.restart_policy_rules):
        where = f"{path}.restartPolicyRules[{i}]"
        yield from choice(f"{where}.action", rule.action, ACTIONS)
        if rule.exit_codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
        else:
            if rule.exit_codes.operator not in OPERATORS:
                yield not_supported(f"{where}.exitCodes.operator", rule.exit_codes.operator, OPERATORS)
            if len(rule.exit_codes.values) > MAX_EXIT_CODES:
                yield too_long(f"{where}.exitCodes.values", MAX_EXIT_CODES)


def validate_resize_policies(
    policies: list[ContainerResizePolicy], path: str, restart_policy: str
) -> Iterator[Cause]:
    """`restart_policy`: the pod's. But for repetition Kubernetes names the list, not the item."""
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        if policy.resource_name in seen:
            yield duplicate(f"{path}[{i}]", policy.resource_name)
        seen.add(policy.resource_name)
        yield from one_of(path, policy.resource_name, RESOURCES)
        yield from one_of(path, policy.restart_policy, RESIZE_POLICIES)
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(path, policy.restart_policy, why)


def validate_liveness(probe: Probe | None, path: str) -> Iterator[Cause]:
    """Of a liveness or startup probe: success after a success means nothing, so the threshold must be 1."""
    if probe is not None:
        yield from _validate_probe(probe, path)
        if probe.success_threshold != 1:
            yield invalid(f"{path}.successThreshold", probe.success_threshold, "must be 1")


def validate_readiness(probe: Probe | None, path: str) -> Iterator[Cause]:
    if probe is not None:
        yield from _validate_probe(probe, path)
        grace = probe.termination_grace_period_seconds
        if grace is not None:
            why = "must not be set for readinessProbes"
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, why)


def _validate_probe(probe: Probe, path: str) -> Iterator[Cause]:
    yield from _validate_handler(probe, path, None)
    yield from at_least(f"{path}.initialDelaySeconds", probe.initial_delay_seconds, 0)
    yield from at_least(f"{path}.timeoutSeconds", probe.timeout_seconds, 0)
    yield from at_least(f"{path}.periodSeconds", probe.period_seconds, 0)
    yield from at_least(f"{path}.successThreshold", probe.success_threshold, 0)
    yield from at_least(f"{path}.failureThreshold", probe.failure_threshold, 0)
    if probe.termination_grace_period_seconds is not None:
        yield from at_least(
            f"{path}.terminationGracePeriodSeconds", probe.termination_grace_period_seconds, 1
        )


def validate_lifecycle(
    lifecycle: Lifecycle | None, path: str, *, grace: int | None, os: str
) -> Iterator[Cause]:
    """`os`: what the pod names as its operating system, empty when it names none."""
    if lifecycle is None:
        return
    if lifecycle.post_start is not None:
        yield from _validate_handler(lifecycle.post_start, f"{path}.postStart", grace)
    if lifecycle.pre_stop is not None:
        yield from _validate_handler(lifecycle.pre_stop, f"{path}.preStop", grace)
    if lifecycle.stop_signal is None:
        return
    if not os:
        yield forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
    elif os in STOP_SIGNALS:
        yield from choice(f"{path}.stopSignal", lifecycle.stop_signal, STOP_SIGNALS[os])


def _validate_handler(handler: Probe | LifecycleHandler, path: str, grace: int | None) -> Iterator[Cause]:
    given = [
        (wire, action) for name, wire in _HANDLERS if (action := getattr(handler, name, None)) is not None
    ]
    if not given:
        yield required(path, "must specify a handler type")
        return
    wire, action = given[0]
    where = f"{path}.{wire}"
    match wire:
        case "exec":
            if not action.command:
                yield required(f"{where}.command")
        case "httpGet":
            if not action.path:
                yield required(f"{where}.path")
            yield from validate_port(action.port, f"{where}.port")
            yield from choice(f"{where}.scheme", action.scheme, SCHEMES)
            for header in action.http_headers:
                yield from all_invalid(f"{where}.httpHeaders", header.name, names.http_header(header.name))
        case "sleep":
            # Without a grace period the pod is refused for that.
            if grace is not None and not 0 <= action.seconds <= grace:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid(where, action.seconds, why)
        case _:
            yield from validate_port(action.port, f"{where}.port")
    for wire, _ in given[1:]:
        yield forbidden(f"{path}.{wire}", "may not specify more than 1 handler type")
