"""Faults of a pod's spec, all of them at once, in the order in which Kubernetes reports them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from podling.apiserver.registry import metadata
from podling.apiserver.registry.container_validation import surroundings, validate_containers
from podling.apiserver.registry.field import (
    all_invalid,
    between,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    too_many,
)
from podling.apiserver.registry.resource_validation import validate_quantities, validate_resources
from podling.apiserver.registry.scheduling_validation import validate_scheduling
from podling.apiserver.registry.security_validation import validate_pod_security
from podling.apiserver.registry.volume_validation import validate_volumes
from podling.model import names
from podling.model.errors import Cause
from podling.model.pod import HostAlias, Pod, PodDNSConfig, PodSpec
from podling.model.resources import is_supported_at_pod_level

RESTART_POLICIES = ("Always", "Never", "OnFailure")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
MAX_SECONDS = (1 << 31) - 1
MAX_NAMESERVERS, MAX_SEARCHES, MAX_SEARCH_LENGTH = 3, 32, 2048


def validate_pod(pod: Pod) -> list[Cause]:
    """Everything but what only creation or only an update forbids."""
    return [*metadata.validate(pod.metadata), *validate_pod_spec(pod.spec, "spec")]


def validate_new_pod(pod: Pod) -> list[Cause]:
    """What may come later but not with the creation."""
    causes = []
    if pod.spec.ephemeral_containers:
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod.spec.node_name and pod.spec.scheduling_gates:
        why = "cannot be set until all schedulingGates have been cleared"
        causes.append(forbidden("spec.nodeName", why))
    return causes


def validate_pod_spec(spec: PodSpec, path: str, *, template: bool = False) -> list[Cause]:
    return [
        *validate_volumes(spec.volumes, f"{path}.volumes"),
        *validate_containers(spec, path, surroundings(spec, template=template)),
        *_validate_policies(spec, path),
        *validate_scheduling(spec, path),
        *validate_pod_security(spec, path),
        *_validate_references(spec, path),
        *_validate_network(spec, path),
        *_validate_amounts(spec, path),
    ]


def _validate_policies(spec: PodSpec, path: str) -> Iterator[Cause]:
    yield from one_of(f"{path}.restartPolicy", spec.restart_policy, RESTART_POLICIES)
    yield from one_of(f"{path}.dnsPolicy", spec.dns_policy, DNS_POLICIES)
    if not spec.scheduler_name:
        yield required(f"{path}.schedulerName")
    if spec.preemption_policy is not None and spec.preemption_policy not in PREEMPTION_POLICIES:
        yield not_supported(f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)
    if spec.active_deadline_seconds is not None:
        yield from between(f"{path}.activeDeadlineSeconds", spec.active_deadline_seconds, 1, MAX_SECONDS)
    if spec.termination_grace_period_seconds is None:
        yield required(f"{path}.terminationGracePeriodSeconds")
    if spec.os is not None:
        yield from one_of(f"{path}.os.name", spec.os.name, ("linux", "windows"))


def _validate_references(spec: PodSpec, path: str) -> Iterator[Cause]:
    for wire, name in (
        ("serviceAccountName", spec.service_account_name),
        ("nodeName", spec.node_name),
        ("priorityClassName", spec.priority_class_name),
        ("runtimeClassName", spec.runtime_class_name),
    ):
        if name:
            yield from all_invalid(f"{path}.{wire}", name, names.dns1123_subdomain(name))
    for i, secret in enumerate(spec.image_pull_secrets):
        if not secret.name:
            yield required(f"{path}.imagePullSecrets[{i}].name")
    for i, gate in enumerate(spec.readiness_gates):
        where = f"{path}.readinessGates[{i}].conditionType"
        yield from metadata.validate_label_key(gate.condition_type, where)


def _validate_network(spec: PodSpec, path: str) -> Iterator[Cause]:
    for wire, name in (("hostname", spec.hostname), ("subdomain", spec.subdomain)):
        if name:
            yield from all_invalid(f"{path}.{wire}", name, names.dns1123_label(name))
    for i, alias in enumerate(spec.host_aliases):
        yield from _validate_alias(alias, f"{path}.hostAliases[{i}]")
    yield from _validate_dns(spec.dns_config or PodDNSConfig(), spec, f"{path}.dnsConfig")
    if spec.host_users is False:
        for wire, shared in (
            ("hostNetwork", spec.host_network),
            ("hostPID", spec.host_pid),
            ("hostIPC", spec.host_ipc),
        ):
            if shared:
                yield forbidden(f"{path}.{wire}", "when `hostUsers` is false")


def _validate_alias(alias: HostAlias, path: str) -> Iterator[Cause]:
    yield from _validate_ip(alias.ip, f"{path}.ip")
    for j, hostname in enumerate(alias.hostnames):
        yield from all_invalid(f"{path}.hostnames[{j}]", hostname, names.dns1123_subdomain(hostname))


def _validate_ip(address: str, path: str) -> Iterator[Cause]:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        yield invalid(path, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _validate_dns(config: PodDNSConfig, spec: PodSpec, path: str) -> Iterator[Cause]:
    if spec.dns_policy == "None":
        if spec.dns_config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.nameservers:
            yield required(
                f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"
            )
    if len(config.nameservers) > MAX_NAMESERVERS:
        why = f"must not have more than {MAX_NAMESERVERS} nameservers"
        yield invalid(f"{path}.nameservers", config.nameservers, why)
    for i, nameserver in enumerate(config.nameservers):
        yield from _validate_ip(nameserver, f"{path}.nameservers[{i}]")
    if len(config.searches) > MAX_SEARCHES:
        yield invalid(
            f"{path}.searches", config.searches, f"must not have more than {MAX_SEARCHES} search paths"
        )
    if len(" ".join(config.searches)) > MAX_SEARCH_LENGTH:
        why = f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", config.searches, why)
    for i, search in enumerate(config.searches):
        if search != ".":
            yield from all_invalid(
                f"{path}.searches[{i}]", search, names.dns1123_subdomain(search.removesuffix("."))
            )
    for i, option in enumerate(config.options):
        if not option.name:
            yield required(f"{path}.options[{i}]", "must not be empty")


def _validate_amounts(spec: PodSpec, path: str) -> Iterator[Cause]:
    yield from validate_quantities(spec.overhead, f"{path}.overhead")
    if spec.resources is None:
        return
    yield from validate_resources(spec.resources, f"{path}.resources", frozenset())
    for kind, amounts in (("limits", spec.resources.limits), ("requests", spec.resources.requests)):
        for name in amounts:
            if not is_supported_at_pod_level(name):
                yield not_supported(f"{path}.resources.{kind}[{name}]", name, ("cpu", "hugepages-", "memory"))


def validate_pod_ips(pod: Pod) -> Iterator[Cause]:
    """Of a status: at most one address of each family."""
    addresses = [entry.ip for entry in pod.status.pod_ips]
    for i, address in enumerate(addresses):
        yield from _validate_ip(address, f"status.podIPs[{i}]")
    if len(addresses) > 2:
        yield too_many("status.podIPs", len(addresses), 2)
