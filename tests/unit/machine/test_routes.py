"""What a machine says of links and routes, and which routes clash with the addresses of services."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from netns import apart
from podling.machine.network import (
    ROUTE_PROTOCOL,
    clashing,
    links_and_routes,
    note_services,
    set_up_service_route,
    tear_down_services,
)

OWN, RANGES = "10.200.0.1", ("10.96.0.0/16", "fd00:96::/112")


def test_routes_that_clash_with_the_addresses_of_services() -> None:
    """Others' alone: not the default, not podling's own, and not those beside them."""
    within, around = "10.96.3.0/24 dev tun0 proto static", "10.0.0.0/8 via 192.0.2.9 dev eth0"
    routes = [
        "default via 192.0.2.1 dev eth0",
        f"10.96.0.0/16 dev eth0 proto {ROUTE_PROTOCOL} scope link src 192.0.2.2",
        "10.97.0.0/16 dev eth1",
        "\tnexthop via 192.0.2.8 dev eth0 weight 1",
        within,
        around,
        f"{around} ",
    ]
    assert clashing("10.96.0.0/16", "\n".join(routes)) == [within, around]


def test_links_are_told_from_routes() -> None:
    routes = ["default via 192.0.2.1 dev eth0", "fd00:1::/108 dev eth0 proto 112 metric 1024 pref medium"]
    link = "2: eth0    inet 192.0.2.2/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever"
    assert links_and_routes("\n".join([*routes, link])) == (["eth0"], "\n".join(routes))
    assert links_and_routes("") == ([], "")


def ip(*command: str) -> str:
    return subprocess.run(["ip", *command], check=True, capture_output=True, text=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the network needs root")
@pytest.mark.parametrize(
    ("link", "of_ipv6"), [("own", f"{RANGES[1]} dev own"), ("lo", f"local {RANGES[1]} dev lo")]
)
def test_the_services_are_routed_to_the_link_of_the_nodes_address(
    tmp_path: Path, link: str, of_ipv6: str
) -> None:
    """Of either family, again, and after an older podling; to loopback IPv6 only as local, since otherwise it
    drops what others send there."""
    if not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("the kernel has no IPv6")

    def routes() -> str:
        shown = ("route", "show", "table", "all", "proto", ROUTE_PROTOCOL)
        return ip("-4", *shown) + ip("-6", *shown)

    def story() -> tuple[str, str]:
        ip("link", "set", "lo", "up")
        ip("link", "add", "own", "type", "veth", "peer", "name", "wire")
        ip("link", "set", "own", "up")
        ip("address", "add", f"{OWN}/24", "dev", link)
        # As pods' gateway it is at the end of their links, too.
        ip("link", "add", "pod", "type", "veth", "peer", "name", "other")
        ip("address", "add", f"{OWN}/32", "dev", "pod")
        ip("-6", "route", "add", RANGES[1], "dev", "lo", "proto", ROUTE_PROTOCOL)
        note_services(tmp_path, RANGES)
        for _ in range(2):
            for services in RANGES:
                asyncio.run(set_up_service_route(services, OWN))
        made = routes()
        asyncio.run(tear_down_services([], tmp_path))
        return made, routes()

    made, left = apart(story)
    of_ipv4, then = made.splitlines()
    assert of_ipv4.startswith(f"{RANGES[0]} dev {link} ") and f"src {OWN}" in of_ipv4
    assert then.startswith(f"{of_ipv6} ")
    assert left == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the network needs root")
def test_a_range_that_others_have_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the way by which they are reached, which stays as it was."""
    theirs = "10.96.3.0/24 dev tun0"

    def story() -> str:
        ip("link", "set", "lo", "up")
        ip("address", "add", f"{OWN}/24", "dev", "lo")
        ip("link", "add", "tun0", "type", "veth", "peer", "name", "wire")
        ip("link", "set", "tun0", "up")
        ip("route", "add", *theirs.split())
        note_services(tmp_path, RANGES[:1])
        asyncio.run(set_up_service_route(RANGES[0], OWN))
        asyncio.run(tear_down_services([], tmp_path))
        return ip("route")

    left = apart(story)
    (said,) = caplog.messages
    assert said.startswith(f"the addresses of services ({RANGES[0]}) are also others', whom this machine")
    assert theirs in said and "choose another range with --service-cluster-ip-range" in said
    assert theirs in left and RANGES[0] not in left
