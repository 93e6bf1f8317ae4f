"""What is said of IP addresses that are accepted for what they mean, and not written as they should be."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

from podling.model.pod import PodSpec


def warn_of_ip(address: str, path: str) -> Iterator[str]:
    """Nothing of what is no address: that is refused elsewhere."""
    try:
        meant = ip_address(address)
    except ValueError:
        return
    if not isinstance(meant, IPv6Address):
        return
    if meant.ipv4_mapped is not None:
        why = f'will be considered invalid in a future Kubernetes release: use "{meant.ipv4_mapped}"'
        yield f'{path}: non-standard IP address "{address}" {why}'
    elif str(meant) != address:
        yield f'{path}: IPv6 address "{address}" should be in RFC 5952 canonical format ("{meant}")'


def warn_of_ips(spec: PodSpec, path: str) -> Iterator[str]:
    """Of those a pod resolves names by."""
    if spec.dns_config is not None:
        for i, nameserver in enumerate(spec.dns_config.nameservers):
            yield from warn_of_ip(nameserver, f"{path}.dnsConfig.nameservers[{i}]")
    for i, alias in enumerate(spec.host_aliases):
        yield from warn_of_ip(alias.ip, f"{path}.hostAliases[{i}].ip")
