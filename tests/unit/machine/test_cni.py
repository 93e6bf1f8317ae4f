from __future__ import annotations

import json
from pathlib import Path

import pytest

from podling.machine.network import cni_configuration, gateway, has_ipv6, lead_on, ruleset


def test_the_list_names_subnet_default_route_and_address_store() -> None:
    written = json.loads(cni_configuration("10.64.3.0/24", Path("/run/x")))
    link, portmap, bandwidth = written["plugins"]
    assert link["type"] == "ptp"
    assert link["ipam"] == {
        "type": "host-local",
        "ranges": [[{"subnet": "10.64.3.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": "/run/x",
    }
    assert portmap["capabilities"] == {"portMappings": True}
    assert bandwidth["capabilities"] == {"bandwidth": True}


def test_pods_have_addresses_of_both_families_at_once() -> None:
    """After the addresses of IPv4: what the runtime shows first is the pod's own."""
    subnets = "10.64.3.0/24,fd70:6f64:6c69:4003::/64"
    loopback, tuning, link, *_ = json.loads(cni_configuration(subnets, Path("/run/x")))["plugins"]
    assert (loopback["type"], tuning["type"]) == ("loopback", "tuning")
    assert tuning["sysctl"] == {"net.ipv6.conf.default.accept_dad": "0"}
    assert link["ipam"]["ranges"] == [[{"subnet": one}] for one in subnets.split(",")]
    assert link["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]


def test_gateway() -> None:
    assert gateway("10.64.3.0/24") == gateway("10.64.3.0/24,fd70::/64") == "10.64.3.1"


def test_each_family_has_its_own_masquerade() -> None:
    script = ruleset("t", "10.64.3.0/24,fd70::/64", ["10.64.4.0/24", "fd71::/64"])
    assert "ip saddr 10.64.3.0/24 ip daddr != { 10.64.3.0/24, 10.64.4.0/24 } masquerade" in script
    assert "ip6 saddr fd70::/64 ip6 daddr != { fd70::/64, fd71::/64 } masquerade" in script


def proc(root: Path, **settings: str) -> dict[str, Path]:
    """Files below proc/sys/net, by their names with `__` for `/`."""
    files = {name: root / "proc/sys/net" / name.replace("__", "/") for name in settings}
    for name, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{settings[name]}\n")
    return files


HEARD = f"""\
{"0" * 32} 00 {"0" * 32} 00 fe80{"0" * 27}1 00000400 00000001 00000000 00450003 eth0
fe80{"0" * 28} 40 {"0" * 32} 00 {"0" * 32} 00000100 00000001 00000000 00000001 eth1
{"0" * 32} 00 {"0" * 32} 00 fd00{"0" * 27}1 00000400 00000001 00000000 00000003 eth1
fd00{"0" * 28} 40 {"0" * 32} 00 {"0" * 32} 00000100 00000001 00000000 004c0001 eth2
"""
"""eth0 has its default route from a router, eth2 its prefix; those of eth1 were set by hand."""


def test_a_machine_that_leads_on_still_believes_its_router_and_nobody_else(tmp_path: Path) -> None:
    """It would lose its own default route of IPv6 otherwise, or have it from a pod."""
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/ipv6_route").write_text(HEARD)
    files = proc(
        tmp_path,
        ipv4__ip_forward="0",
        ipv6__conf__all__forwarding="0",
        ipv6__conf__eth0__accept_ra="1",
        ipv6__conf__eth1__accept_ra="1",
        ipv6__conf__eth2__accept_ra="0",
        ipv6__conf__default__accept_ra="1",
    )
    lead_on("10.64.3.0/24", tmp_path)
    assert [file.read_text().strip() for file in files.values()] == ["1", "0", "1", "1", "0", "1"]
    lead_on("10.64.3.0/24,fd70::/64", tmp_path)
    assert [file.read_text().strip() for file in files.values()] == ["1", "1", "2", "1", "0", "1"]


@pytest.mark.parametrize(("setting", "has"), [("0", True), ("1", False)])
def test_a_machine_has_ipv6_if_new_links_have_it(setting: str, has: bool, tmp_path: Path) -> None:
    assert not has_ipv6(tmp_path)
    proc(tmp_path, ipv6__conf__default__disable_ipv6=setting)
    assert has_ipv6(tmp_path) is has
