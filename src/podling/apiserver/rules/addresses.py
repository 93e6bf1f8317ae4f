"""Validation of IP addresses and subnets, and warnings about valid ones with an unusual spelling.

Programs disagree on `010.0.0.1` (octal or not) and `::ffff:10.0.0.1` (which family), so both are refused;
that is Kubernetes' StrictIPCIDRValidation. An object that has such an address already keeps it, with a
warning at each update.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)

from podling.apiserver.rules.field import invalid
from podling.model.errors import Cause
from podling.model.types.pod import PodSpec

LINK_LOCAL_MULTICAST = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))
_NUMBER = re.compile("0{0,9}[0-9]{1,3}")
_NUMBERS = re.compile(r"(?<![0-9a-fA-F.])\d++(?=\.)|(?<=\.)\d++")


def validate_ip(address: str, path: str, standing: AbstractSet[str] = frozenset()) -> Iterator[Cause]:
    """`standing`: what the object had in this field, anywhere in a list; none of it is validated again."""
    if address in standing:
        return
    for why in ip_faults(address):
        yield invalid(path, address, why)


def ip_faults(address: str) -> list[str]:
    meant = parsed(address)
    if meant is None:
        if parsed_loosely(address) is not None:
            return ["must not have leading 0s"]
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if isinstance(meant, IPv6Address) and meant.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def ip_faults_exact(address: str) -> list[str]:
    """As `ip_faults`, where one address has one spelling: that of names."""
    return ip_faults(address) or _spelling_faults(address, parsed(address))


def validate_cidr(cidr: str, path: str, standing: AbstractSet[str] = frozenset()) -> Iterator[Cause]:
    """As `validate_ip`, for a subnet."""
    if cidr not in standing:
        for why in _cidr_faults(cidr):
            yield invalid(path, cidr, why)


def cidr_faults_exact(cidr: str) -> list[str]:
    """As `ip_faults_exact`, for a subnet."""
    return _cidr_faults(cidr) or _spelling_faults(cidr, ip_network(cidr))


def _spelling_faults(text: str, meant: object) -> list[str]:
    return [] if text == str(meant) else [f'must be in canonical form ("{meant}")']


def _cidr_faults(cidr: str) -> list[str]:
    address, _, length = cidr.partition("/")
    bits = 128 if ":" in address else 32
    if parsed_cidr_loosely(cidr) is None:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    exact = parsed(address)
    if exact is None or length != str(int(length)):
        return ["must not have leading 0s in IP or prefix length"]
    if isinstance(exact, IPv6Address) and exact.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    if int(exact) & ((1 << (bits - int(length))) - 1):
        return ["must not have bits set beyond the prefix length"]
    return []


def validate_interface_address(address: str, path: str) -> Iterator[Cause]:
    """An address with the length of its subnet, spelled in the one way that Kubernetes writes it."""
    subnet = parsed_cidr_loosely(address)
    if subnet is None:
        yield invalid(
            path, address, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        )
        return
    canonical = f"{parsed_loosely(address.partition('/')[0])}/{subnet.prefixlen}"
    if address != canonical:
        yield invalid(path, address, f'must be in canonical form ("{canonical}")')


def parsed(address: str) -> IPv4Address | IPv6Address | None:
    """The address; None for a text that is ambiguous or none, such as `fe80::1%eth0`."""
    try:
        return None if "%" in address else ip_address(address)
    except ValueError:
        return None


def parsed_loosely(address: str) -> IPv4Address | IPv6Address | None:
    """As Kubernetes read addresses before it was strict: leading zeros are ignored, and an IPv4-mapped IPv6
    address is IPv4."""
    meant = parsed(_NUMBERS.sub(lambda number: number[0].lstrip("0") or "0", address))
    return meant.ipv4_mapped or meant if isinstance(meant, IPv6Address) else meant


def parsed_cidr_loosely(cidr: str) -> IPv4Network | IPv6Network | None:
    """The subnet, read as by `parsed_loosely`; bits of the address beyond the prefix are ignored."""
    address, _, length = cidr.partition("/")
    meant = parsed_loosely(address)
    bits = 128 if ":" in address else 32
    if meant is None or not _NUMBER.fullmatch(length) or int(length) > bits:
        return None
    # Of an IPv4-mapped address the prefix counts from its IPv6 beginning.
    prefix = max(int(length) - (bits - meant.max_prefixlen), 0)
    return ip_network((meant.packed, prefix), strict=False)


def unsuitable(address: str) -> list[str]:
    """Why an address, which is read loosely, cannot be that of an endpoint."""
    meant = parsed_loosely(address)
    if meant is None:
        return ["must be a valid IP address"]
    found = []
    if meant.is_unspecified:
        found.append(f"may not be unspecified ({address})")
    if meant.is_loopback:
        found.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if meant.is_link_local:
        found.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if any(meant in network for network in LINK_LOCAL_MULTICAST if network.version == meant.version):
        found.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return found


def warn_of_ip(address: str, path: str) -> Iterator[str]:
    """Warnings; none for a malformed address, which validation refuses."""
    meant = parsed_loosely(address)
    if meant is None:
        return
    if ip_faults(address):
        yield f'{path}: non-standard IP address "{address}" is invalid: use "{meant}"'
    elif isinstance(meant, IPv6Address) and str(meant) != address:
        yield f'{path}: IPv6 address "{address}" should be in RFC 5952 canonical format ("{meant}")'


def warn_of_cidr(cidr: str, path: str) -> Iterator[str]:
    try:
        meant = ip_interface(cidr)
    except ValueError:
        return
    if meant.ip != meant.network.network_address:
        alone = f"{meant.ip}/{meant.max_prefixlen}"
        why = f'is ambiguous in this context (should be "{meant.network}" or "{alone}"?)'
        yield f'{path}: CIDR value "{cidr}" {why}'
    elif isinstance(meant, IPv6Interface) and str(meant) != cidr:
        yield f'{path}: IPv6 CIDR value "{cidr}" should be in RFC 5952 canonical format ("{meant}")'


def warn_of_ips(addresses: Iterable[str], path: str) -> Iterator[str]:
    for i, address in enumerate(addresses):
        yield from warn_of_ip(address, f"{path}[{i}]")


def warn_of_pod_ips(spec: PodSpec, path: str) -> Iterator[str]:
    """Warnings for the addresses in a pod's DNS configuration and host aliases."""
    if spec.dns_config is not None:
        yield from warn_of_ips(spec.dns_config.nameservers, f"{path}.dnsConfig.nameservers")
    for i, alias in enumerate(spec.host_aliases):
        yield from warn_of_ip(alias.ip, f"{path}.hostAliases[{i}].ip")
