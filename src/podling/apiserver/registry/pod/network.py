"""Faults of how a pod is named and how it resolves names: hostname, DNS, hosts file."""

from __future__ import annotations

from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, forbidden, invalid, required, too_long
from podling.apiserver.registry.ip_addresses import validate_ip
from podling.model import names
from podling.model.errors import Cause
from podling.model.pod import HostAlias, PodDNSConfig, PodSpec

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
