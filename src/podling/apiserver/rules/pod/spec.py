"""Validation of a pod's spec: all faults at once, in Kubernetes' order.

Paths and messages are Kubernetes', mistakes included, since clients and people search for them. Containers,
volumes and scheduling have files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import validate_ip
from podling.apiserver.rules.container.container import surroundings, validate_containers
from podling.apiserver.rules.container.env import validate_env_files
from podling.apiserver.rules.container.mounts import validate_ports_on_host
from podling.apiserver.rules.container.resources import (
    validate_pod_claims,
    validate_pod_level,
    validate_resources,
)
from podling.apiserver.rules.container.security import validate_host_process, validate_pod_security
from podling.apiserver.rules.field import (
    all_invalid,
    between,
    containers_with_paths,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
)
from podling.apiserver.rules.pod.annotations import validate_agreement, validate_pod_annotations
from podling.apiserver.rules.scheduling import (
    validate_affinity,
    validate_gates,
    validate_spread,
    validate_tolerations,
)
from podling.apiserver.rules.volume.volumes import validate_volumes
from podling.model import names
from podling.model.codec.fields import told_empty, wire_name
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.resources import HUGE_PAGES, container_limits, container_requests
from podling.model.rules.status import is_mirror
from podling.model.types.container import ResourceRequirements, SecurityContext
from podling.model.types.pod import HostAlias, Pod, PodDNSConfig, PodSecurityContext, PodSpec, PodTemplateSpec

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
GATED_SOURCES = {"container": "ContainerVolumes", "image": "ImageVolume"}
MAX_SECONDS = (1 << 31) - 1

MAX_NAMESERVERS, MAX_SEARCHES, MAX_SEARCH_LENGTH = 3, 32, 2048
MAX_HOSTNAME = 64

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


def validate_pod(pod: Pod, gates: Gates = DEFAULT_GATES) -> list[Cause]:
    """All faults of a pod by itself; those of create and update only are not among them."""
    spec = pod.spec
    causes = validate_around_spec(pod)
    causes += validate_pod_spec(spec, "spec", pod=pod.metadata.name, mirror=is_mirror(pod), gates=gates)
    if spec.service_account_name:
        return causes
    for i, volume in enumerate(spec.volumes):
        for j, source in enumerate(volume.projected.sources if volume.projected is not None else ()):
            if source.service_account_token is not None:
                where = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                causes.append(forbidden(where, "must not be specified when serviceAccountName is not set"))
    return causes


def validate_around_spec(pod: Pod) -> list[Cause]:
    meta = pod.metadata
    return [
        *metadata.validate(meta),
        *validate_pod_annotations(meta.annotations, pod.spec, "metadata.annotations"),
    ]


def validate_new_pod(pod: Pod, gates: Gates = DEFAULT_GATES) -> list[Cause]:
    """Faults that apply only on create (e.g. ephemeralContainers, nodeName with scheduling gates)."""
    causes = []
    if pod.spec.ephemeral_containers:
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        why = "cannot be set until all schedulingGates have been cleared"
        causes.append(forbidden("spec.nodeName", why))
    # Volume sources behind a disabled gate; a pod that has one already keeps it.
    for i, volume in enumerate(pod.spec.volumes):
        for source, gate in GATED_SOURCES.items():
            if getattr(volume, source) is not None and not gates.enabled(gate):
                why = f"may not be set when the feature gate {gate} is disabled"
                causes.append(forbidden(f"spec.volumes[{i}].{source}", why))
    return [*causes, *validate_agreement(pod.metadata.annotations, pod.spec, "spec")]


def validate_pod_template(template: PodTemplateSpec, path: str, gates: Gates = DEFAULT_GATES) -> list[Cause]:
    """Faults of a pod template, which has no name, and not the fields that only a pod has."""
    meta, spec = template.metadata, template.spec
    causes = [
        *metadata.validate_labels(meta.labels, f"{path}.labels"),
        *metadata.validate_annotations(meta.annotations, f"{path}.annotations"),
        *validate_pod_annotations(meta.annotations, spec, f"{path}.annotations"),
        *validate_pod_spec(spec, f"{path}.spec", template=True, gates=gates),
        *validate_agreement(meta.annotations, spec, f"{path}.spec"),
    ]
    if spec.ephemeral_containers:
        why = "ephemeral containers not allowed in pod template"
        causes.append(forbidden(f"{path}.spec.ephemeralContainers", why))
    return causes


def validate_pod_spec(
    spec: PodSpec,
    path: str,
    *,
    pod: str = "",
    mirror: bool = False,
    template: bool = False,
    gates: Gates = DEFAULT_GATES,
) -> list[Cause]:
    """`pod`: the name of the pod; empty for a template. `mirror`: whether its node runs it already."""
    volumes, causes = validate_volumes(spec.volumes, f"{path}.volumes", pod)
    around = surroundings(spec, volumes, template=template, gates=gates)
    if spec.resource_claims and mirror:
        causes.append(forbidden("[]", "static pods do not support resource claims"))
    elif spec.resource_claims:
        causes += validate_pod_claims(spec.resource_claims, f"{path}.resourceClaims")
    causes += validate_containers(spec, path, around)
    causes += validate_pod_resources(spec, f"{path}.resources", around.claims)
    if spec.host_network:
        causes += validate_ports_on_host(spec.containers, f"{path}.containers", template=template)
    causes += one_of(f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    causes += one_of(f"{path}.dnsPolicy", spec.dns_policy, DNS_POLICIES)
    if spec.node_selector:
        causes += metadata.validate_labels(spec.node_selector, f"{path}.nodeSelector")
    causes += validate_pod_security(spec, f"{path}.securityContext")
    if spec.affinity is not None:
        causes += validate_affinity(spec.affinity, f"{path}.affinity")
    causes += validate_dns(spec.dns_config, spec.dns_policy, f"{path}.dnsConfig")
    causes += _validate_placement(spec, path)
    causes += _validate_names(spec, path)
    if spec.preemption_policy is not None:
        causes += one_of(f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.overhead:
        causes += validate_resources(ResourceRequirements(limits=spec.overhead), f"{path}.overhead")
    causes += validate_os(spec, path)
    all_volumes = {volume.name: volume for volume in spec.volumes}
    for container, where in containers_with_paths(spec, path):
        if container.env:
            causes += validate_env_files(container.env, f"{where}.env", all_volumes)
    return causes


def _validate_placement(spec: PodSpec, path: str) -> Iterator[Cause]:
    """Faults of readiness gates, scheduling, and namespaces shared with the host."""
    for i, readiness in enumerate(spec.readiness_gates):
        where = f"{path}.readinessGates[{i}].conditionType"
        yield from metadata.validate_label_key(readiness.condition_type, where)
    if spec.scheduling_gates:
        yield from validate_gates(spec.scheduling_gates, f"{path}.schedulingGates")
    if spec.topology_spread_constraints:
        yield from validate_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    yield from validate_host_process(spec, path)
    if spec.host_users is False:
        why = "when `hostUsers` is false"
        for wire, shared in (
            ("hostNetwork", spec.host_network),
            ("HostPID", spec.host_pid),
            ("HostIPC", spec.host_ipc),
        ):
            if shared:
                yield forbidden(f"{path}.{wire}", why)
        for container, where in containers_with_paths(spec, path):
            if container.volume_devices:
                yield forbidden(f"{where}.volumeDevices", why)
    yield from validate_hostname_override(spec, f"{path}.hostnameOverride")


def _validate_names(spec: PodSpec, path: str) -> Iterator[Cause]:
    """Faults of names: of what the pod refers to, and of the pod itself. An empty name is unset, except for
    the runtime class."""
    if spec.service_account_name:
        yield from _validate_subdomain(spec.service_account_name, f"{path}.serviceAccountName")
    if spec.node_name:
        yield from _validate_subdomain(spec.node_name, f"{path}.nodeName")
    if spec.active_deadline_seconds is not None:
        yield from between(f"{path}.activeDeadlineSeconds", spec.active_deadline_seconds, 1, MAX_SECONDS)
    if spec.hostname:
        yield from all_invalid(f"{path}.hostname", spec.hostname, names.dns1123_label(spec.hostname))
    if spec.subdomain:
        yield from all_invalid(f"{path}.subdomain", spec.subdomain, names.dns1123_label(spec.subdomain))
    if spec.tolerations:
        yield from validate_tolerations(spec.tolerations, f"{path}.tolerations")
    if spec.host_aliases:
        yield from validate_host_aliases(spec.host_aliases, f"{path}.hostAliases")
    if spec.priority_class_name:
        yield from _validate_subdomain(spec.priority_class_name, f"{path}.priorityClassName")
    if spec.runtime_class_name is not None:
        yield from _validate_subdomain(spec.runtime_class_name, f"{path}.runtimeClassName")


def _validate_subdomain(name: str, path: str) -> list[Cause]:
    return all_invalid(path, name, names.dns1123_subdomain(name))


def validate_pod_resources(spec: PodSpec, path: str, claims: frozenset[str]) -> Iterator[Cause]:
    if spec.resources is None:
        return
    if spec.os is not None and spec.os.name == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if spec.resources.claims or "resources.claims" in told_empty(spec):
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from validate_pod_level(spec.resources, path, claims)
    # What the containers request together must fit; of huge pages also what they are limited to.
    for name, together in container_requests(spec).items():
        amount = spec.resources.requests.get(name)
        if amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container requests of {together}"
            yield invalid(f"{path}.requests[{name}]", amount, why)
    for name, together in container_limits(spec).items():
        amount = spec.resources.limits.get(name)
        if name.startswith(HUGE_PAGES) and amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container limits of {together}"
            yield invalid(f"{path}.limits[{name}]", amount, why)
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            most = spec.resources.limits.get(name)
            if most is not None and limit > most:
                why = f"must be less than or equal to pod limits of {most}"
                yield invalid(f"{path}.containers[{i}][{name}].limits", limit, why)


def validate_hostname_override(spec: PodSpec, path: str) -> Iterator[Cause]:
    name = spec.hostname_override
    if name is None:
        return
    if spec.set_hostname_as_fqdn:
        yield forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.host_network:
        yield forbidden(path, "may not be specified when hostNetwork is true")
    if len(name) > MAX_HOSTNAME:
        yield too_long(path, MAX_HOSTNAME)
    yield from all_invalid(path, name, names.dns1123_subdomain(name))


def validate_host_aliases(aliases: list[HostAlias], path: str) -> Iterator[Cause]:
    for i, alias in enumerate(aliases):
        yield from validate_ip(alias.ip, f"{path}[{i}].ip")
        for j, hostname in enumerate(alias.hostnames):
            yield from all_invalid(f"{path}[{i}].hostnames[{j}]", hostname, names.dns1123_subdomain(hostname))


def validate_dns(config: PodDNSConfig | None, policy: str, path: str) -> Iterator[Cause]:
    if policy == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.nameservers:
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", why)
            return
    if config is None:
        return
    nameservers = config.nameservers
    if len(nameservers) > MAX_NAMESERVERS:
        yield invalid(
            f"{path}.nameservers", nameservers, f"must not have more than {MAX_NAMESERVERS} nameservers"
        )
    for i, nameserver in enumerate(nameservers):
        yield from validate_ip(nameserver, f"{path}.nameservers[{i}]")
    searches = config.searches
    where = f"{path}.searches"
    if len(searches) > MAX_SEARCHES:
        yield invalid(where, searches, f"must not have more than {MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > MAX_SEARCH_LENGTH:
        why = f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield invalid(where, searches, why)
    for i, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            yield from all_invalid(f"{where}[{i}]", domain, names.dns1123_subdomain_with_underscore(domain))
    for i, option in enumerate(config.options):
        if not option.name:
            yield required(f"{path}.options[{i}]", "must not be empty")


def validate_os(spec: PodSpec, path: str) -> Iterator[Cause]:
    if spec.os is None:
        return
    if not spec.os.name:
        yield required(f"{path}.os.name")
    elif spec.os.name == "linux":
        contexts: list[tuple[PodSecurityContext | SecurityContext | None, str]] = [
            (spec.security_context, path)
        ]
        contexts += [(c.security_context, where) for c, where in containers_with_paths(spec, path)]
        for context, where in contexts:
            if context is not None and context.windows_options is not None:
                why = "windows options cannot be set for a linux pod"
                yield forbidden(f"{where}.securityContext.windowsOptions", why)
    elif spec.os.name == "windows":
        if spec.security_context is not None:
            yield from _refuse(spec.security_context, _NOT_ON_WINDOWS, f"{path}.securityContext")
            yield from _refuse(spec, _POD_NOT_ON_WINDOWS, path)
        for container, where in containers_with_paths(spec, path):
            if container.security_context is not None:
                yield from _refuse(
                    container.security_context, _CONTAINER_NOT_ON_WINDOWS, f"{where}.securityContext"
                )
    else:
        yield not_supported(f"{path}.os", spec.os.name, SYSTEMS)


def _refuse(holder: msgspec.Struct, attributes: tuple[str, ...], path: str) -> Iterator[Cause]:
    """Of a pointer, also False and 0 are set; of the rest, only what says something."""
    unset = type(holder)()
    for attribute in attributes:
        if getattr(holder, attribute) != getattr(unset, attribute):
            yield forbidden(f"{path}.{wire_name(attribute)}", "cannot be set for a windows pod")
