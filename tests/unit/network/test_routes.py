"""R-SYS-2: which ways lead to the pods of other nodes."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.node import Node
from podling.network.routes import (
    Link,
    Way,
    backend_annotations,
    is_next_hop,
    link_to,
    mac_of,
    scripts,
    tunnel,
    ways,
)

ROUTES = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0101C90A	0003	0	0	0	00000000	0	0	0
eth0	0001C90A	00000000	0001	0	0	0	00FFFFFF	0	0	0
eth1	0000C80A	0201C90A	0003	0	0	0	0000FFFF	0	0	0
"""
"""default via 10.201.1.1; 10.201.1.0/24 dev eth0; 10.200.0.0/16 via 10.201.1.2 dev eth1."""


def node(name: str, address: str = "", subnet: str = "", **annotations: str) -> Node:
    addresses = [{"type": "InternalIP", "address": address}] if address else []
    spec = {"podCIDR": subnet, "podCIDRs": [subnet]} if subnet else {}
    told: dict[str, Any] = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    return from_data({**told, "status": {"addresses": addresses}}, Node)


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("10.201.1.7", Link("eth0", on_link=True)),
        ("10.201.2.7", Link("eth0", on_link=False)),
        ("10.200.3.4", Link("eth1", on_link=False)),
    ],
)
def test_the_longest_prefix_says_how_an_address_is_reached(address: str, link: Link) -> None:
    assert link_to(address, ROUTES) == link


def test_without_a_route_nothing_leads_there() -> None:
    assert link_to("10.201.2.7", ROUTES.splitlines()[0]) is None


def test_a_node_of_the_same_link_is_the_next_hop() -> None:
    found = ways(
        [node("own", "10.201.1.2", "10.64.0.0/24"), node("b", "10.201.1.3", "10.64.1.0/24")], "own", ROUTES
    )
    assert found.ways == [Way("10.64.1.0/24", "10.201.1.3")]
    assert not found.tunnel_by


NONE = "0" * 32
ROUTES6 = f"""\
fd00{"0" * 28} 40 {NONE} 00 {NONE} 00000100 00000001 00000000 00000001     eth0
fd00{"0" * 27}2 80 {NONE} 00 {NONE} 00000000 00000004 00000000 80200001     eth0
{NONE} 00 {NONE} 00 fd00{"0" * 27}1 00000400 00000006 00000000 00000003     eth0
{NONE} 00 {NONE} 00 {NONE} ffffffff 00000001 00000000 00200200       lo
"""
"""fd00::/64 dev eth0; default via fd00::1 dev eth0; and what ends the table."""


@pytest.mark.parametrize(("address", "is_near"), [("fd00::3", True), ("fd01::3", False)])
def test_a_node_is_the_next_hop_of_ipv6_if_it_is_on_the_link(address: str, is_near: bool) -> None:
    assert is_next_hop(address, ROUTES6) is is_near
    assert not is_next_hop(address, "\n".join(ROUTES6.splitlines()[-1:]))


def test_the_subnets_of_a_node_of_the_same_link_are_reached_over_both_families() -> None:
    subnets = ["10.64.1.0/24", "fd70:6f64:6c69:4001::/64"]
    spec = {"podCIDR": subnets[0], "podCIDRs": subnets}
    for second, found in (("fd00::3", [Way(subnets[1], "fd00::3")]), ("fd01::3", []), ("", [])):
        addresses = [{"type": "InternalIP", "address": one} for one in ("10.201.1.3", second) if one]
        said = {"metadata": {"name": "b"}, "spec": spec, "status": {"addresses": addresses}}
        reached = ways([from_data(said, Node)], "own", ROUTES, ROUTES6).ways
        assert reached == [*found, Way(subnets[0], "10.201.1.3")]


def test_the_subnets_of_a_node_elsewhere_are_reached_through_the_same_tunnel() -> None:
    subnets = ["10.64.1.0/24", "fd70:6f64:6c69:4001::/64"]
    said = {
        "metadata": {"name": "b", "annotations": backend_annotations("b", "10.201.2.2")},
        "spec": {"podCIDR": subnets[0], "podCIDRs": subnets},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.201.2.2"}]},
    }
    found = ways([from_data(said, Node)], "own", ROUTES, ROUTES6).ways
    assert found == [Way(one, "10.201.2.2", mac_of("b")) for one in subnets]
    routes, _ = scripts([], found, "vx", "112")
    assert f"route replace {subnets[1]} via fd70:6f64:6c69:4001:: dev vx onlink proto 112" in routes


def test_a_node_elsewhere_is_reached_through_a_tunnel_once_it_has_said_how() -> None:
    silent = node("b", "10.201.2.2", "10.64.1.0/24")
    assert ways([silent], "own", ROUTES) == ([], "eth0")
    told = node("b", "10.201.2.2", "10.64.1.0/24", **backend_annotations("b", "10.201.2.2"))
    assert ways([told], "own", ROUTES).ways == [Way("10.64.1.0/24", "10.201.2.2", mac_of("b"))]


def test_a_node_of_flannel_is_reached_at_its_public_address() -> None:
    said = {
        "flannel.alpha.coreos.com/backend-type": "vxlan",
        "flannel.alpha.coreos.com/backend-data": '{"VNI":1,"VtepMAC":"82:8a:51:93:a8:c2"}',
        "flannel.alpha.coreos.com/public-ip": "10.201.3.9",
    }
    found = ways([node("f", "192.168.7.7", "10.244.2.0/24", **said)], "own", ROUTES)
    assert found.ways == [Way("10.244.2.0/24", "10.201.3.9", "82:8a:51:93:a8:c2")]


@pytest.mark.parametrize(
    "data",
    [
        "",
        "null",
        "{}",
        '{"VNI":2,"VtepMAC":"82:8a:51:93:a8:c2"}',
        '{"VNI":1,"VtepMAC":"x dev lo"}',
        '{"VNI":1,"VtepMAC":7}',
    ],
)
def test_what_a_node_says_of_its_tunnel_and_cannot_be_used_is_left(data: str) -> None:
    said = {"flannel.alpha.coreos.com/backend-data": data}
    assert not ways([node("b", "10.201.2.2", "10.64.1.0/24", **said)], "own", ROUTES).ways


def test_nodes_without_subnet_or_address_have_no_way_yet() -> None:
    found = [node("a", "10.201.1.3"), node("b", "", "10.64.1.0/24"), node("c", "fd00::3", "10.64.2.0/24")]
    assert ways(found, "own", ROUTES) == ([], "")


def test_the_annotations_are_those_of_flannel() -> None:
    said = backend_annotations("b", "10.201.2.2")
    assert said == {
        "flannel.alpha.coreos.com/backend-type": "vxlan",
        "flannel.alpha.coreos.com/backend-data": f'{{"VNI":1,"VtepMAC":"{mac_of("b")}"}}',
        "flannel.alpha.coreos.com/public-ip": "10.201.2.2",
        "flannel.alpha.coreos.com/kube-subnet-manager": "true",
    }
    # Locally administered, and of one receiver.
    assert int(mac_of("b")[:2], 16) & 3 == 2


def test_the_end_of_the_tunnel_is_the_first_address_of_the_subnet() -> None:
    made = tunnel("vx", "b", "10.201.2.2", "10.64.1.0/24", "eth0")
    kind = "type vxlan id 1 local 10.201.2.2 dev eth0 dstport 8472 nolearning"
    assert made == [
        f"link add vx address {mac_of('b')} {kind}",
        "address replace 10.64.1.0/32 dev vx",
        "link set vx up",
    ]


MAC = "82:8a:51:93:a8:c2"
TUNNELED = Way("10.64.1.0/24", "10.201.2.2", MAC)


@pytest.mark.parametrize(
    ("before", "after", "routes", "entries"),
    [
        (
            [],
            [Way("10.64.1.0/24", "10.201.1.3")],
            ["route replace 10.64.1.0/24 via 10.201.1.3 proto 112"],
            [],
        ),
        ([Way("10.64.1.0/24", "10.201.1.3")], [], ["route delete 10.64.1.0/24 proto 112"], []),
        (
            [],
            [TUNNELED],
            [
                f"neighbour replace 10.64.1.0 lladdr {MAC} dev vx nud permanent",
                "route replace 10.64.1.0/24 via 10.64.1.0 dev vx onlink proto 112",
            ],
            [f"fdb replace {MAC} dev vx dst 10.201.2.2"],
        ),
        (
            [TUNNELED],
            [Way("10.64.1.0/24", "10.201.1.3")],
            ["neighbour delete 10.64.1.0 dev vx", "route replace 10.64.1.0/24 via 10.201.1.3 proto 112"],
            [f"fdb delete {MAC} dev vx dst 10.201.2.2"],
        ),
        ([TUNNELED], [TUNNELED], [], []),
    ],
)
def test_only_what_differs_is_changed(
    before: list[Way], after: list[Way], routes: list[str], entries: list[str]
) -> None:
    assert scripts(before, after, "vx", "112") == (routes, entries)
