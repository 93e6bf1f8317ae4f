"""Validation of a pod's spec: all faults at once, in Kubernetes' order.

Paths and messages are Kubernetes', mistakes included, since clients and people search for them.
"""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.rules import metadata
from podling.apiserver.rules.container.container import surroundings, validate_containers
from podling.apiserver.rules.container.env import validate_env_files
from podling.apiserver.rules.container.mounts import validate_ports_on_host
from podling.apiserver.rules.container.resources import validate_pod_claims, validate_resources
from podling.apiserver.rules.container.security import validate_host_process, validate_pod_security
from podling.apiserver.rules.containers import containers_with_paths
from podling.apiserver.rules.field import all_invalid, between, forbidden, one_of
from podling.apiserver.rules.pod.annotations import validate_agreement, validate_pod_annotations
from podling.apiserver.rules.pod.parts import (
    validate_dns,
    validate_host_aliases,
    validate_hostname_override,
    validate_os,
    validate_pod_resources,
)
from podling.apiserver.rules.scheduling import (
    validate_affinity,
    validate_gates,
    validate_spread,
    validate_tolerations,
)
from podling.apiserver.rules.volume.volumes import validate_volumes
from podling.model import names
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.types.container import ResourceRequirements
from podling.model.types.pod import Pod, PodSpec, PodTemplateSpec

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
GATED_SOURCES = {"container": "ContainerVolumes", "image": "ImageVolume"}
MAX_SECONDS = (1 << 31) - 1


def validate_pod(pod: Pod, gates: Gates = DEFAULT_GATES) -> list[Cause]:
    """All faults of a pod by itself; those of create and update only are not among them."""
    return [
        *validate_around_spec(pod),
        *validate_pod_spec(pod.spec, "spec", pod=pod.metadata.name, gates=gates),
        *_validate_tokens(pod.spec),
    ]


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
    causes += _validate_gated_sources(pod.spec, gates)
    return [*causes, *validate_agreement(pod.metadata.annotations, pod.spec, "spec")]


def _validate_gated_sources(spec: PodSpec, gates: Gates) -> Iterator[Cause]:
    """Volume sources behind a disabled gate; a pod that has one already keeps it."""
    for i, volume in enumerate(spec.volumes):
        for source, gate in GATED_SOURCES.items():
            if getattr(volume, source) is not None and not gates.enabled(gate):
                why = f"may not be set when the feature gate {gate} is disabled"
                yield forbidden(f"spec.volumes[{i}].{source}", why)


def _validate_tokens(spec: PodSpec) -> Iterator[Cause]:
    if spec.service_account_name:
        return
    for i, volume in enumerate(spec.volumes):
        for j, source in enumerate(volume.projected.sources if volume.projected is not None else ()):
            if source.service_account_token is not None:
                where = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                yield forbidden(where, "must not be specified when serviceAccountName is not set")


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
    spec: PodSpec, path: str, *, pod: str = "", template: bool = False, gates: Gates = DEFAULT_GATES
) -> list[Cause]:
    """`pod`: the name of the pod; empty for a template."""
    volumes, causes = validate_volumes(spec.volumes, f"{path}.volumes", pod)
    around = surroundings(spec, volumes, template=template, gates=gates)
    if spec.resource_claims:
        causes += validate_pod_claims(spec.resource_claims, f"{path}.resourceClaims")
    causes += validate_containers(spec, path, around)
    causes += validate_pod_resources(spec, f"{path}.resources", around.claims)
    if spec.host_network:
        causes += validate_ports_on_host(spec.containers, f"{path}.containers", template=template)
    causes += _validate_policies(spec, path)
    causes += _validate_placement(spec, path)
    causes += _validate_names(spec, path)
    causes += _validate_means(spec, path)
    return causes


def _validate_policies(spec: PodSpec, path: str) -> Iterator[Cause]:
    yield from one_of(f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    yield from one_of(f"{path}.dnsPolicy", spec.dns_policy, DNS_POLICIES)
    if spec.node_selector:
        yield from metadata.validate_labels(spec.node_selector, f"{path}.nodeSelector")
    yield from validate_pod_security(spec, f"{path}.securityContext")
    if spec.affinity is not None:
        yield from validate_affinity(spec.affinity, f"{path}.affinity")
    yield from validate_dns(spec.dns_config, spec.dns_policy, f"{path}.dnsConfig")


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
        yield from _validate_user_namespace(spec, path)
    yield from validate_hostname_override(spec, f"{path}.hostnameOverride")


def _validate_user_namespace(spec: PodSpec, path: str) -> Iterator[Cause]:
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


def _validate_means(spec: PodSpec, path: str) -> Iterator[Cause]:
    """Faults of the pod's resources, security and volumes, beside those of its containers."""
    if spec.preemption_policy is not None:
        yield from one_of(f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.overhead:
        yield from validate_resources(ResourceRequirements(limits=spec.overhead), f"{path}.overhead")
    yield from validate_os(spec, path)
    volumes = {volume.name: volume for volume in spec.volumes}
    for container, where in containers_with_paths(spec, path):
        if container.env:
            yield from validate_env_files(container.env, f"{where}.env", volumes)
