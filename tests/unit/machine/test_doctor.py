"""What a machine needs: each check, on machines that have it and machines that do not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from netns import apart
from podling.machine import doctor
from podling.machine.doctor import Verdict, missing_packages
from podling.network.nft import program
from podling.network.table import IPV4, Shape, replacement

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
    (finding,) = doctor.forwarding(chains({**docker, "policy": "accept"}, {**docker, "hook": "output"}), "")
    assert finding.verdict is Verdict.OK
    assert list(doctor.forwarding("", "")) == []


DOCKER = ("iptables -N DOCKER-USER", "iptables -A FORWARD -j DOCKER-USER", "iptables -P FORWARD DROP")
UFW = (
    "iptables -N ufw-before-input",
    "iptables -A INPUT -j ufw-before-input",
    "iptables -P INPUT DROP",
    "iptables -P FORWARD DROP",
)
FIREWALLD = (
    "nft add table inet firewalld",
    "nft add chain inet firewalld filter_INPUT { type filter hook input priority 10; policy accept; }",
    "nft add chain inet firewalld filter_FORWARD { type filter hook forward priority 10; policy accept; }",
    "nft add rule inet firewalld filter_FORWARD reject with icmpx admin-prohibited",
)


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the network needs root")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        pytest.param(DOCKER, {"forwarding": "iptables -I FORWARD -s 10.64.0.0/24 -j ACCEPT"}, id="Docker"),
        pytest.param(
            UFW,
            {
                "forwarding": "ufw route allow from 10.64.0.0/24",
                "cluster DNS and API server, for pods": "ufw allow from 10.64.0.0/24",
            },
            id="ufw",
        ),
        pytest.param(
            FIREWALLD,
            {"forwarding": "firewall-cmd --permanent --zone=trusted --add-source=10.64.0.0/24"},
            id="firewalld",
        ),
    ],
)
def test_what_the_kernel_has_of_others_is_understood(made: Sequence[str], said: dict[str, str]) -> None:
    """As they make it themselves, beside podling's own tables."""

    def listed() -> str:
        shape = Shape(IPV4, "podling1-services", "10.64.0.0/24", "10.96.0.0/16")
        program(replacement(shape))
        for command in made:
            subprocess.run(command.split(), check=True)
        asked = ["nft", "-j", "list", "chains"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout

    found = {one.what: one for one in doctor.forwarding(apart(listed), "10.64.0.0/24")}
    assert {one.verdict for one in found.values()} == {Verdict.WARNING}
    assert found.keys() == said.keys()
    assert all(found[what].remedy.startswith(remedy) for what, remedy in said.items())
