"""What a machine says of links and routes, and which routes clash with the addresses of services."""

from __future__ import annotations

from podling.machine.network import ROUTE_PROTOCOL, clashing, links_and_routes


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
