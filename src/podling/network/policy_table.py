"""The nftables table of network policies: the script of each change. Pure.

    egress, ingress  address of a pod → jump CHAIN
    selves           the pairs of such an address with itself
    pods-…           addresses of the pods that a selector selects
    dropped-egress, dropped-ingress: counters of what is refused
    ports-…          address . protocol . port of the pods that have a port of a name

Every packet that the machine leads on is judged, not only a connection's first, and answers as what they
answer to: by the connection's own client, and by the endpoint behind a service's address. So a policy that
changes holds for connections that are there already (docs/decisions/076). What the machine itself sends to
its pods, or they to it, is not led on.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from podling.network.policy import (
    EGRESS,
    INGRESS,
    PREFIXES,
    SELVES,
    Change,
    Named,
    Numbers,
    Ranges,
    Rule,
    set_name,
)
from podling.network.table import Script, Shape, removal

DROPPED = "dropped-"
PRIORITY = -10
"""After what refuses services without endpoints, before the filters of others."""


def script(change: Change, shape: Shape) -> str:
    """Of one transaction; empty if nothing changes."""
    ip, made = shape.family.name, Script(shape)
    for name, holds in change.sets.items():
        more = " . meta l4proto . th dport" if isinstance(holds, Named) else ""
        made.own_set(name, f"{{ typeof {ip} daddr{more}; }}")
    for name, rules in change.chains.items():
        direction = EGRESS if name.startswith(PREFIXES[EGRESS]) else INGRESS
        made.chain(name, [*_rules(rules, direction, ip), f'counter name "{DROPPED}{direction}" drop'])
    for place, value in change.removed.items():
        made.remove(place, _verdict(value))
    for place, value in change.added.items():
        made.add(place, _verdict(value))
    made.drop(change.gone_chains, change.gone_sets)
    return made.text()


def replacement(shape: Shape) -> str:
    """An nft script that puts a table that lets all through in the place of whatever is there."""
    ip = shape.family.name
    icmp = "icmp" if ip == "ip" else "icmpv6"
    return f"""{removal(shape)}table {ip} {shape.table} {{
  map {EGRESS} {{ typeof {ip} saddr : verdict; }}
  map {INGRESS} {{ typeof {ip} daddr : verdict; }}
  set {SELVES} {{ typeof {ip} saddr . {ip} daddr; }}
  counter {DROPPED}{EGRESS} {{}}
  counter {DROPPED}{INGRESS} {{}}
  chain untold {{
    {ip} saddr vmap @{EGRESS}
    {ip} daddr vmap @{INGRESS}
  }}
  chain forward {{
    type filter hook forward priority {PRIORITY};
    ct state invalid,untracked goto untold
    ct state related meta l4proto {icmp} accept
    ct original {ip} saddr . ct reply {ip} saddr @{SELVES} accept
    ct original {ip} saddr vmap @{EGRESS}
    ct reply {ip} saddr vmap @{INGRESS}
  }}
}}
"""


def dropped(listing: str) -> dict[str, int]:
    """By direction, the packets that were dropped, from what `list counters` says."""
    found = re.findall(rf"counter {DROPPED}(\w+) {{\s+packets (\d+)", listing)
    return {direction: int(packets) for direction, packets in found}


def _verdict(chain: str) -> str:
    return f"jump {chain}" if chain else ""


def _rules(rules: tuple[Rule, ...], direction: str, ip: str) -> Iterator[str]:
    """Those that let something through; the chain that jumped here goes on."""
    if Rule() in rules:
        yield "return"
        return
    peer = f"ct original {ip} saddr" if direction == INGRESS else f"ct reply {ip} saddr"
    for rule in rules:
        match rule.peer:
            case None:
                which = ""
            case Ranges(ranges):
                listed = ", ".join(_addresses(first, last, ip) for first, last in ranges)
                which = f"{peer} {{ {listed} }} "
            case selecting:
                which = f"{peer} @{set_name(selecting)} "
        match rule.ports:
            case None:
                yield f"{which}return"
            case Numbers(protocol, ranges):
                yield f"{which}ct original protocol {protocol} {_numbers(ranges)}return"
            case named:
                ports = f"@{set_name(named)} return"
                yield f"{which}ct direction original {ip} daddr . meta l4proto . th dport {ports}"
                yield f"{which}ct direction reply {ip} saddr . meta l4proto . th sport {ports}"


def _addresses(first: int, last: int, ip: str) -> str:
    address = ipaddress.IPv4Address if ip == "ip" else ipaddress.IPv6Address
    return f"{address(first)}" if first == last else f"{address(first)}-{address(last)}"


def _numbers(ranges: tuple[tuple[int, int], ...]) -> str:
    if ranges == ((0, 65535),):
        return ""
    listed = ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)
    return f"ct reply proto-src {{ {listed} }} "
