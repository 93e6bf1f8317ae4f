"""The ranges of cluster IPs: which addresses of them services get, and validation of ranges and of what an
address in use belongs to.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_network
from itertools import chain
from typing import NamedTuple

from podling.apiserver.rules.addresses import cidr_faults_exact
from podling.apiserver.rules.field import IMMUTABLE, all_invalid, invalid, required
from podling.model import names
from podling.model.errors import Cause, StatusError, internal
from podling.model.types.networking import ParentReference, ServiceCIDRSpec
from podling.model.types.service import ServiceSpec

MOST_RANGES = 2
SHARE, LEAST_SHARE, MOST_SHARE = 16, 16, 256
"""A sixteenth of a range, at least 16 and at most 256 addresses, is left to people as long as it can be; of a
range that has no more than these nothing is."""
ALLOCATED = "provided IP is already allocated"
PORT_ALLOCATED = "provided port is already allocated"
ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class Range(NamedTuple):
    """The addresses of a subnet that services get: not the first, which names the subnet, and not the last of
    IPv4, which is for broadcasts. The lower ones are left to people, who choose their addresses."""

    cidr: str
    lower: range
    upper: range

    def has(self, address: IPv4Address | IPv6Address) -> bool:
        return int(address) in self.lower or int(address) in self.upper

    def some(self) -> Iterator[str]:
        """All addresses: the upper ones first, each part from a random one on."""
        make = IPv6Address if ":" in self.cidr else IPv4Address
        for part in (self.lower, self.upper)[::-1]:
            if part:
                at = random.randrange(part.stop - part.start)
                yield from (str(make(number)) for number in chain(part[at:], part[:at]))


def range_of(cidr: str) -> Range:
    network = ip_network(cidr)
    size, start = network.num_addresses, int(network.network_address)
    first, end = start + 1, start + size - (network.version == 4)
    kept = 0 if size <= LEAST_SHARE else min(max(size // SHARE, LEAST_SHARE), MOST_SHARE)
    return Range(cidr, range(first, first + kept), range(first + kept, end))


def address_fault(spec: ServiceSpec, address: str, why: str) -> Cause:
    """Why the service cannot have the address, or any if that is empty."""
    what = f"IP {address}" if address else "IP"
    return invalid("spec.clusterIPs", spec.cluster_ips, f"failed to allocate {what}: {why}")


def not_allocated(why: str) -> StatusError:
    """500: nothing that is asked for is at fault."""
    return internal(why, causes=[Cause("", why)])


def validate_ranges(spec: ServiceCIDRSpec, path: str) -> Iterator[Cause]:
    path = f"{path}.cidrs"
    if not spec.cidrs:
        yield required(path, "at least one CIDR required")
    elif len(spec.cidrs) > MOST_RANGES:
        yield invalid(path, {"CIDRs": spec.cidrs}, f"may only hold up to {MOST_RANGES} values")
    else:
        faults = [
            fault
            for i, cidr in enumerate(spec.cidrs)
            for fault in all_invalid(f"{path}[{i}]", cidr, cidr_faults_exact(cidr))
        ]
        yield from faults
        if not faults and len({":" in cidr for cidr in spec.cidrs}) < len(spec.cidrs):
            yield invalid(path, spec.cidrs, ONE_EACH)


def validate_ranges_update(new: ServiceCIDRSpec, old: ServiceCIDRSpec, path: str) -> Iterator[Cause]:
    """A range stays for life; one of the other family may be added to it."""
    becomes_dual = (len(old.cidrs), len(new.cidrs)) == (1, MOST_RANGES)
    if not becomes_dual and len(old.cidrs) != len(new.cidrs):
        yield invalid(f"{path}.cidrs", new.cidrs or None, IMMUTABLE)
        return
    for i, (cidr, was) in enumerate(zip(new.cidrs, old.cidrs, strict=False)):
        if cidr != was:
            yield invalid(f"{path}.cidrs[{i}]", cidr, IMMUTABLE)
    if becomes_dual:
        yield from validate_ranges(new, path)


def validate_parent(parent: ParentReference | None, path: str) -> Iterator[Cause]:
    if parent is None:
        yield required(path)
        return
    if parent.group:
        yield from all_invalid(f"{path}.group", parent.group, names.dns1123_subdomain(parent.group))
    for wire, value in (("resource", parent.resource), ("name", parent.name)):
        if not value:
            yield required(f"{path}.{wire}")
        else:
            yield from all_invalid(f"{path}.{wire}", value, names.path_segment(value))
    if parent.namespace:
        yield from all_invalid(f"{path}.namespace", parent.namespace, names.path_segment(parent.namespace))
