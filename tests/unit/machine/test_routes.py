"""Which routes of a machine clash with the addresses of services."""

from __future__ import annotations

from podling.machine.network import ROUTE_PROTOCOL, clashing


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
