"""Faults of the containers of a pod, list by list: what a container may be, and what its list adds to that.

Every container name is unique over all three lists (R-INIT-8). An init container that is no sidecar has no
hooks and probes (R-INIT-6); an ephemeral one has nothing that promises resources or health (R-EPH-2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podling.apiserver.registry.env_validation import validate_env, validate_env_from
from podling.apiserver.registry.field import (
    all_invalid,
    between,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    required,
)
from podling.apiserver.registry.handler_validation import MAX_PORT, validate_lifecycle, validate_probes
from podling.apiserver.registry.mount_validation import validate_mounts
from podling.apiserver.registry.resource_validation import validate_resources
from podling.apiserver.registry.security_validation import validate_security_context
from podling.apiserver.registry.volume_validation import PULL_POLICIES
from podling.model import names
from podling.model.container import Container, ContainerPort, EphemeralContainer, EphemeralContainerCommon
from podling.model.errors import Cause
from podling.model.pod import PodSpec
from podling.model.resources import is_sidecar
from podling.model.volume import Volume

PROTOCOLS = ("SCTP", "TCP", "UDP")
MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
RESTART_POLICIES = ("Always", "Never", "OnFailure")

NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
NOT_FOR_EPHEMERAL = "cannot be set for an Ephemeral Container"

_PROBES_AND_HOOKS = (
    ("lifecycle", "lifecycle"),
    ("liveness_probe", "livenessProbe"),
    ("readiness_probe", "readinessProbe"),
    ("startup_probe", "startupProbe"),
)
_EPHEMERAL_REFUSES = (
    *_PROBES_AND_HOOKS,
    ("ports", "ports"),
    ("resize_policy", "resizePolicy"),
    ("restart_policy", "restartPolicy"),
    ("restart_policy_rules", "restartPolicyRules"),
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What of the pod a container may refer to."""

    volumes: Mapping[str, Volume]
    claims: frozenset[str]
    grace: int | None
    host_network: bool
    host_users: bool
    template: bool
    """Whether the pod is only a template, whose images may be filled in later."""


def surroundings(spec: PodSpec, *, template: bool) -> Surroundings:
    return Surroundings(
        volumes={volume.name: volume for volume in spec.volumes},
        claims=frozenset(claim.name for claim in spec.resource_claims),
        grace=spec.termination_grace_period_seconds,
        host_network=spec.host_network,
        host_users=spec.host_users is not False,
        template=template,
    )


def validate_containers(spec: PodSpec, path: str, around: Surroundings) -> Iterator[Cause]:
    """Of all three lists."""
    if not spec.containers:
        yield required(f"{path}.containers")
    seen: set[str] = set()
    for i, container in enumerate(spec.containers):
        yield from _validate_app(container, f"{path}.containers[{i}]", around)
        yield from _validate_unique(container.name, f"{path}.containers[{i}]", seen)
    yield from _validate_host_ports(spec.containers, f"{path}.containers")
    for i, container in enumerate(spec.init_containers):
        yield from _validate_init(container, f"{path}.initContainers[{i}]", around)
        yield from _validate_unique(container.name, f"{path}.initContainers[{i}]", seen)
    targets = frozenset(seen)
    for i, ephemeral in enumerate(spec.ephemeral_containers):
        yield from _validate_ephemeral(ephemeral, f"{path}.ephemeralContainers[{i}]", around, targets)
        yield from _validate_unique(ephemeral.name, f"{path}.ephemeralContainers[{i}]", seen)


def _validate_unique(name: str, path: str, seen: set[str]) -> Iterator[Cause]:
    if name and name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)


def _validate_app(container: Container, path: str, around: Surroundings) -> Iterator[Cause]:
    yield from _validate_common(container, path, around)
    yield from _validate_lifetime(container, path, around)
    yield from _validate_restarts(container, path)


def _validate_init(container: Container, path: str, around: Surroundings) -> Iterator[Cause]:
    yield from _validate_common(container, path, around)
    yield from _validate_restarts(container, path)
    yield from _validate_host_ports([container], path, index=False)
    if is_sidecar(container):
        yield from _validate_lifetime(container, path, around)
        return
    for attribute, wire in _PROBES_AND_HOOKS:
        if getattr(container, attribute) is not None:
            yield forbidden(f"{path}.{wire}", NOT_FOR_INIT)


def _validate_lifetime(container: Container, path: str, around: Surroundings) -> Iterator[Cause]:
    yield from validate_lifecycle(container.lifecycle, f"{path}.lifecycle", around.grace)
    yield from validate_probes(container, path)


def _validate_restarts(container: Container, path: str) -> Iterator[Cause]:
    if container.restart_policy is not None and container.restart_policy not in RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", container.restart_policy, RESTART_POLICIES)
    if container.restart_policy_rules and container.restart_policy is None:
        why = "must specify restartPolicy when restart rules are used"
        yield required(f"{path}.restartPolicy", why)
    for i, rule in enumerate(container.restart_policy_rules):
        where = f"{path}.restartPolicyRules[{i}]"
        yield from one_of(f"{where}.action", rule.action, ("Restart", "RestartAllContainers"))
        if rule.exit_codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
        else:
            yield from one_of(f"{where}.exitCodes.operator", rule.exit_codes.operator, ("In", "NotIn"))


def _validate_ephemeral(
    container: EphemeralContainer, path: str, around: Surroundings, targets: frozenset[str]
) -> Iterator[Cause]:
    yield from _validate_common(container, path, around)
    target = container.target_container_name
    if target and target not in targets:
        yield not_found(f"{path}.targetContainerName", target)
    for attribute, wire in _EPHEMERAL_REFUSES:
        if getattr(container, attribute):
            yield forbidden(f"{path}.{wire}", NOT_FOR_EPHEMERAL)
    if container.resources != type(container.resources)():
        yield forbidden(f"{path}.resources", NOT_FOR_EPHEMERAL)
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
    yield from _validate_image(container, path, around)
    yield from one_of(
        f"{path}.terminationMessagePolicy", container.termination_message_policy, MESSAGE_POLICIES
    )
    yield from _validate_ports(container.ports, f"{path}.ports", around)
    yield from validate_env(container.env, f"{path}.env")
    yield from validate_env_from(container.env_from, f"{path}.envFrom")
    yield from validate_mounts(container, path, around.volumes)
    yield from one_of(f"{path}.imagePullPolicy", container.image_pull_policy, PULL_POLICIES)
    yield from validate_resources(container.resources, f"{path}.resources", around.claims)
    context = container.security_context
    yield from validate_security_context(context, f"{path}.securityContext", host_users=around.host_users)


def _validate_image(container: EphemeralContainerCommon, path: str, around: Surroundings) -> Iterator[Cause]:
    if not container.image and not around.template:
        yield required(f"{path}.image")
    elif container.image != container.image.strip():
        yield invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")


def _validate_ports(ports: list[ContainerPort], path: str, around: Surroundings) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        where = f"{path}[{i}]"
        if port.name:
            faults = names.port_name(port.name)
            yield from all_invalid(f"{where}.name", port.name, faults)
            if not faults and port.name in seen:
                yield duplicate(f"{where}.name", port.name)
            seen.add(port.name)
        if not port.container_port:
            yield required(f"{where}.containerPort")
        else:
            yield from between(f"{where}.containerPort", port.container_port, 1, MAX_PORT)
        if port.host_port:
            yield from between(f"{where}.hostPort", port.host_port, 1, MAX_PORT)
            if around.host_network and port.host_port != port.container_port:
                yield invalid(
                    f"{where}.hostPort",
                    port.host_port,
                    "must match `containerPort` when `hostNetwork` is true",
                )
        yield from one_of(f"{where}.protocol", port.protocol, PROTOCOLS)


def _validate_host_ports(containers: list[Container], path: str, *, index: bool = True) -> Iterator[Cause]:
    """Containers beside each other cannot share a port of the host."""
    taken: set[tuple[str, str, int]] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if not port.host_port:
                continue
            place = (port.protocol, port.host_ip, port.host_port)
            if place in taken:
                shown = "/".join(part for part in (port.protocol, port.host_ip, str(port.host_port)) if part)
                owner = f"{path}[{i}]" if index else path
                yield duplicate(f"{owner}.ports[{j}].hostPort", shown)
            taken.add(place)
