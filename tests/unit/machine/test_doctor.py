"""What a machine needs: each check, on machines that have it and machines that do not."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from podling.machine import doctor
from podling.machine.doctor import Verdict, missing_packages

ALL_CAPABILITIES = "Name:\tx\nCapEff:\t000001ffffffffff\n"


def test_no_root() -> None:
    assert doctor.user(0).verdict is Verdict.OK
    finding = doctor.user(1000)
    assert (finding.verdict, finding.found) == (Verdict.FAILED, "uid 1000")


@pytest.mark.parametrize(
    ("release", "verdict"),
    [
        ("6.1.0-18-amd64", Verdict.OK),
        ("4.19.0", Verdict.OK),
        ("4.9.0-1", Verdict.FAILED),
        ("3.10.0-1160.el7", Verdict.FAILED),
    ],
)
def test_kernel(release: str, verdict: Verdict) -> None:
    assert doctor.kernel(release).verdict is verdict


def test_capabilities() -> None:
    assert [f.verdict for f in doctor.capabilities(ALL_CAPABILITIES)] == [Verdict.OK]
    without_resource = ALL_CAPABILITIES.replace("000001ffffffffff", "000001fffeffffff")
    assert [(f.what, f.verdict) for f in doctor.capabilities(without_resource)] == [
        ("capabilities", Verdict.OK),
        ("CAP_SYS_RESOURCE", Verdict.WARNING),
    ]
    none = next(iter(doctor.capabilities("CapEff:\t0000000000000000\n")))
    assert none.verdict is Verdict.FAILED
    assert "CAP_SYS_ADMIN" in none.found


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ({"cgroup", "cgroup2"}, "v1 (hybrid)"),
        ({"cgroup"}, "v1"),
        ({"cgroup2", "ext4"}, "v2"),
        ({"ext4"}, "none mounted"),
    ],
)
def test_cgroups(kinds: set[str], found: str) -> None:
    finding = doctor.cgroups(kinds)
    assert finding.found == found
    assert (finding.verdict is Verdict.OK) == (found != "none mounted")


def test_missing_programs_name_their_packages(tmp_path: Path) -> None:
    findings = [*doctor.binaries(lambda name: None), *doctor.cni_plugins((tmp_path,))]
    assert missing_packages(findings) == [
        "catatonit", "containerd", "containernetworking-plugins", "iproute2", "iptables", "nftables", "runc",
    ]  # fmt: skip
    assert all(f.remedy.startswith("apt-get install ") for f in findings)


def test_cni_plugins_are_found_where_they_are(tmp_path: Path) -> None:
    for plugin in doctor.CNI_PLUGINS:
        (tmp_path / plugin).touch()
    (finding,) = doctor.cni_plugins((tmp_path / "elsewhere", tmp_path))
    assert (finding.verdict, finding.found) == (Verdict.OK, str(tmp_path))


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        finding = doctor.port("API server", server.getsockname()[1])
    assert (finding.verdict, finding.remedy) == (Verdict.FAILED, "choose another with --port")


def chains(*given: dict[str, str]) -> str:
    of_podling = {"family": "ip", "table": "podling1-services", "name": "forward", "hook": "forward"}
    listed = [{"metainfo": {"version": "1.0.6"}}, *({"chain": one} for one in (of_podling, *given))]
    return json.dumps({"nftables": listed})


def test_filters_that_drop_what_pods_send() -> None:
    """Docker and ufw have a policy, firewalld a last rule."""
    docker = {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"}
    (finding,) = doctor.forwarding(chains(docker), "10.64.0.0/24")
    assert finding.verdict is Verdict.WARNING
    assert finding.found == "dropped by table ip filter, chain FORWARD"
    assert "-s 10.64.0.0/24 -j ACCEPT" in finding.remedy
    firewalld = {"family": "inet", "table": "firewalld", "name": "filter_FORWARD", "hook": "forward"}
    (finding,) = doctor.forwarding(chains(firewalld), "10.64.0.0/24")
    assert (finding.verdict, "--add-source=10.64.0.0/24" in finding.remedy) == (Verdict.WARNING, True)
    (finding,) = doctor.forwarding(chains({**docker, "policy": "accept"}, {**docker, "hook": "input"}), "")
    assert finding.verdict is Verdict.OK
    assert list(doctor.forwarding("", "")) == []
