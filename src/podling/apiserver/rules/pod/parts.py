"""Validation of three parts of a pod's spec: the resources of the pod as a whole, its hostname, DNS and hosts
file, and its operating system, with the fields that Linux or Windows do not have.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podling.apiserver.rules.addresses import validate_ip
from podling.apiserver.rules.container.resources import HUGE_PAGES, validate_pod_level
from podling.apiserver.rules.containers import containers_with_paths
from podling.apiserver.rules.field import all_invalid, forbidden, invalid, not_supported, required, too_long
from podling.model import names
from podling.model.codec.fields import wire_name
from podling.model.errors import Cause
from podling.model.rules.resources import container_limits, container_requests
from podling.model.types.container import ResourceRequirements, SecurityContext
from podling.model.types.pod import HostAlias, PodDNSConfig, PodSecurityContext, PodSpec


def validate_pod_resources(spec: PodSpec, path: str, claims: frozenset[str]) -> Iterator[Cause]:
    if spec.resources is None:
        return
    if spec.os is not None and spec.os.name == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if spec.resources.claims:
        yield forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from validate_pod_level(spec.resources, path, claims)
    yield from _validate_aggregates(spec, spec.resources, path)
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            most = spec.resources.limits.get(name)
            if most is not None and limit > most:
                why = f"must be less than or equal to pod limits of {most}"
                yield invalid(f"{path}.containers[{i}][{name}].limits", limit, why)


def _validate_aggregates(spec: PodSpec, whole: ResourceRequirements, path: str) -> Iterator[Cause]:
    """What the containers request together must fit; of huge pages also what they are limited to."""
    for name, together in container_requests(spec).items():
        amount = whole.requests.get(name)
        if amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container requests of {together}"
            yield invalid(f"{path}.requests[{name}]", amount, why)
    for name, together in container_limits(spec).items():
        amount = whole.limits.get(name)
        if name.startswith(HUGE_PAGES) and amount is not None and together > amount:
            why = f"must be greater than or equal to aggregate container limits of {together}"
            yield invalid(f"{path}.limits[{name}]", amount, why)


MAX_NAMESERVERS, MAX_SEARCHES, MAX_SEARCH_LENGTH = 3, 32, 2048
MAX_HOSTNAME = 64


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
    yield from _validate_nameservers(config.nameservers, f"{path}.nameservers")
    yield from _validate_searches(config.searches, f"{path}.searches")
    for i, option in enumerate(config.options):
        if not option.name:
            yield required(f"{path}.options[{i}]", "must not be empty")


def _validate_nameservers(nameservers: list[str], path: str) -> Iterator[Cause]:
    if len(nameservers) > MAX_NAMESERVERS:
        yield invalid(path, nameservers, f"must not have more than {MAX_NAMESERVERS} nameservers")
    for i, nameserver in enumerate(nameservers):
        yield from validate_ip(nameserver, f"{path}[{i}]")


def _validate_searches(searches: list[str], path: str) -> Iterator[Cause]:
    if len(searches) > MAX_SEARCHES:
        yield invalid(path, searches, f"must not have more than {MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > MAX_SEARCH_LENGTH:
        why = f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        yield invalid(path, searches, why)
    for i, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            yield from all_invalid(f"{path}[{i}]", domain, names.dns1123_subdomain_with_underscore(domain))


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
