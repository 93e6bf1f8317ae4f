"""The subnets of a node's pods: of IPv4, and of IPv6 after a comma where services have addresses of it, too.

That of IPv6 follows from that of IPv4, which no other node of the cluster and no other podling of the machine
has: 10.64.3.0/24 has fd70:6f64:6c69:4003::/64 beside it (docs/decisions/141).
"""

from __future__ import annotations

import ipaddress

PREFIX = ipaddress.IPv6Network("fd70:6f64:6c69::/48")
"""Unique local addresses (RFC 4193)."""


def pod_subnets(subnet: str, services: str) -> str:
    """`subnet` is of IPv4 and at most a /8; `services` are the ranges of the cluster's services."""
    if ":" not in services:
        return subnet
    number = int(ipaddress.IPv4Network(subnet).network_address) >> 8 & 0xFFFF
    return f"{subnet},{ipaddress.IPv6Address(int(PREFIX.network_address) | number << 64)}/64"
