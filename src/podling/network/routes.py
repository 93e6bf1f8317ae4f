"""Which ways lead from this node to the pods of the others. Pure.

A node on the same link is the next hop to its pods' subnet, as kindnet and flannel's host-gw have it. Any
other is reached through VXLAN, with flannel's annotations, so that nodes of flannel are understood and
understand:

    flannel.alpha.coreos.com/backend-type   vxlan
    flannel.alpha.coreos.com/backend-data   {"VNI":1,"VtepMAC":"…"}
    flannel.alpha.coreos.com/public-ip      where the node takes packets of VXLAN

The first address of a subnet (10.64.3.0) is that of the node's end of the tunnel.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from podling.model.types.node import Node

PREFIX = "flannel.alpha.coreos.com/"
TYPE, DATA, PUBLIC_IP, MANAGED = (
    f"{PREFIX}{name}" for name in ("backend-type", "backend-data", "public-ip", "kube-subnet-manager")
)
VNI, PORT = 1, 8472
"""Flannel's."""


class _Backend(msgspec.Struct):
    vni: int = msgspec.field(name="VNI", default=0)
    mac: str = msgspec.field(name="VtepMAC", default="")


class Link(NamedTuple):
    """How packets to an address leave: by an `interface`, to the address itself if it is `on_link`."""

    interface: str
    on_link: bool


class Way(NamedTuple):
    """To the pods of a node: `address` is its own. `mac` is of its end of the tunnel, empty if it is the next
    hop itself."""

    subnet: str
    address: str
    mac: str = ""

    @property
    def tunnel_end(self) -> str:
        return str(ipaddress.ip_network(self.subnet)[0])


class Ways(NamedTuple):
    ways: Sequence[Way]
    tunnel_by: str
    """The interface that packets of VXLAN leave by; empty if no node needs any."""


def link_to(address: str, route_table: str) -> Link | None:
    """By the text of /proc/net/route; None if nothing leads there."""
    wanted, best, found = int(ipaddress.IPv4Address(address)), -1, None
    for line in route_table.splitlines()[1:]:
        interface, *fields = line.split()
        destination, gateway, mask = (int.from_bytes(bytes.fromhex(fields[at]), "little") for at in (0, 1, 6))
        if wanted & mask == destination and mask > best:
            best, found = mask, Link(interface, on_link=not gateway)
    return found


def is_next_hop(address: str, route_table: str) -> bool:
    """Whether an address of IPv6 is on a link of this machine, by the text of /proc/net/ipv6_route."""
    wanted, best, found = int(ipaddress.IPv6Address(address)), -1, False
    for line in route_table.splitlines():
        destination, length, _, _, gateway, *_, interface = line.split()
        bits = int(length, 16)
        rest = 128 - bits
        if wanted >> rest == int(destination, 16) >> rest and bits > best:
            best, found = bits, not int(gateway, 16) and interface != "lo"
    return found


def mac_of(node: str) -> str:
    """Of a node's end of the tunnel: always the same, so that a restart changes nothing elsewhere. It is
    locally administered."""
    return ":".join(f"{byte:02x}" for byte in (2, *hashlib.sha256(node.encode()).digest()[:5]))


def backend_annotations(node: str, address: str) -> dict[str, str]:
    """By which others reach this node through VXLAN."""
    data = msgspec.json.encode(_Backend(VNI, mac_of(node))).decode()
    return {TYPE: "vxlan", DATA: data, PUBLIC_IP: address, MANAGED: "true"}


def address_of(node: Node, version: int = 4) -> str:
    """Empty if it has none of that version."""
    found = (one.address for one in node.status.addresses if one.type == "InternalIP")
    return next((one for one in found if (":" in one) == (version == 6)), "")


def subnets_of(node: Node) -> list[str]:
    """Of its pods: the first of IPv4 and, after it, the first of IPv6; none while it has none of IPv4."""
    given = node.spec.pod_cidrs or [node.spec.pod_cidr]
    found = [next((one for one in given if one and (":" in one) == is_6), "") for is_6 in (False, True)]
    return [one for one in found if one] if found[0] else []


def ways(nodes: Iterable[Node], own: str, route_table: str, route_table6: str = "") -> Ways:
    """To the pods of all nodes but the node `own`. One that is not on the link and has not said how it takes
    packets of VXLAN cannot be reached yet. Its pods' addresses of IPv6 are reached through the same tunnel,
    unless its own is on the link. The tables are those of `link_to` and `is_next_hop`."""
    found, tunnel_by = [], ""
    for node in sorted(nodes, key=lambda one: one.metadata.name):
        (subnet, *of_6), address = subnets_of(node) or [""], address_of(node)
        if node.metadata.name == own or not subnet:
            continue
        if of_6 and (hop := address_of(node, 6)) and is_next_hop(hop, route_table6):
            found.append(Way(of_6.pop(), hop))
        if not address:
            continue
        said = node.metadata.annotations
        through = said.get(PUBLIC_IP, address)
        link = link_to(through, route_table)
        if link is None:
            continue
        if link.on_link:
            found.append(Way(subnet, address))
            continue
        tunnel_by = tunnel_by or link.interface
        if mac := _mac_said(said.get(DATA, "")):
            found += [Way(one, through, mac) for one in (subnet, *(of_6 if route_table6 else ()))]
    return Ways(found, tunnel_by)


def _mac_said(data: str) -> str:
    try:
        said = msgspec.json.decode(data, type=_Backend)
        # It becomes part of a command.
        return said.mac if len(bytes.fromhex(said.mac.replace(":", ""))) == 6 and said.vni == VNI else ""
    except ValueError:
        return ""


def tunnel(device: str, node: str, address: str, subnet: str, interface: str) -> list[str]:
    """Lines for `ip -batch` that make this node's end of the tunnel, for packets that leave by `interface`: a
    link with its MTU less the 50 bytes of VXLAN. `subnet` is of its pods, of IPv4."""
    end = ipaddress.ip_network(subnet)[0]
    kind = f"type vxlan id {VNI} local {address} dev {interface} dstport {PORT} nolearning"
    return [
        f"link add {device} address {mac_of(node)} {kind}",
        f"address replace {end}/32 dev {device}",
        f"link set {device} up",
    ]


def scripts(
    before: Sequence[Way], after: Sequence[Way], device: str, protocol: str
) -> tuple[list[str], list[str]]:
    """Lines for `ip -batch` and for `bridge -batch` that lead from one to the other."""
    gone, new = [one for one in before if one not in after], [one for one in after if one not in before]
    standing = {one.subnet for one in after}
    routes, entries = [], []
    for way in gone:
        if way.subnet not in standing:
            routes.append(f"route delete {way.subnet} proto {protocol}")
        if way.mac:
            routes.append(f"neighbour delete {way.tunnel_end} dev {device}")
            entries.append(f"fdb delete {way.mac} dev {device} dst {way.address}")
    for way in new:
        if way.mac:
            lead = f"neighbour replace {way.tunnel_end} lladdr {way.mac} dev {device} nud permanent"
            routes.append(lead)
            entries.append(f"fdb replace {way.mac} dev {device} dst {way.address}")
            via = f"via {way.tunnel_end} dev {device} onlink"
        else:
            via = f"via {way.address}"
        routes.append(f"route replace {way.subnet} {via} proto {protocol}")
    return routes, entries
