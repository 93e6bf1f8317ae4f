"""R-SYS-8: where services get addresses of both families, they get, keep, change and are refused them as in
Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/networking.k8s.io/v1"
SERVICES = "/api/v1/namespaces/{ns}/services"
MERGE = {"Content_Type": MERGE_PATCH}
RANGES = "--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112"
V4, V6 = "10.96.0.1%02d", "fd00:96::%d"
"""Of the lower part of the range, of which nobody is given any by chance."""
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
POLICIES = (None, SINGLE, PREFER, REQUIRE)
FAMILIES: tuple[list[str] | None, ...] = (None, ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"])


@pytest.fixture(scope="module")
def dual(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    theirs, ours = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with (
        control_plane.kubernetes(kubernetes_programs, theirs, RANGES) as kubernetes,
        control_plane.podling(ours, RANGES) as podling,
    ):
        yield kubernetes, podling


def service(name: str, **spec: Any) -> dict[str, Any]:
    given = {key: value for key, value in spec.items() if value is not None}
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}], "selector": {"a": "b"}, **given}}


def chosen(sort: dict[str, Any]) -> list[Ask]:
    """Each policy with each list of families. Where an address is given, it is by number."""
    asks = []
    for index, (policy, families) in enumerate(product(POLICIES, FAMILIES)):
        name = f"s-{index}"
        made = service(name, ipFamilyPolicy=policy, ipFamilies=families, **sort)
        asks += [Ask("POST", f"{SERVICES}?dryRun=All", made), Ask("POST", SERVICES, made)]
    return asks


def given() -> list[Ask]:
    asks = []
    wanted: list[list[str]] = [
        [V4],
        [V6],
        [V4, V6],
        [V6, V4],
        [V4, V4],
        [V6, "10.1.1.%d"],
        [V4, "fd01::%d"],
        ["fd01::%d"],
        [V4, V6, V6],
        ["None", V6],
    ]
    for index, (addresses, policy, families) in enumerate(product(wanted, POLICIES, FAMILIES[:4])):
        own = [one % (2 + index % 97) if "%" in one else one for one in addresses]
        name = f"g-{index}"
        made = service(name, clusterIP=own[0], clusterIPs=own, ipFamilyPolicy=policy, ipFamilies=families)
        asks += [
            Ask("POST", SERVICES, made, what=f"{own} {policy} {families}"),
            Ask("DELETE", f"{SERVICES}/{name}"),
        ]
    return asks


def changed(first: dict[str, Any]) -> list[Ask]:
    """From `first` in all ways, each time anew."""
    has_address = first.get("type") != "ExternalName"
    changes: list[dict[str, Any]] = [
        {"ipFamilyPolicy": policy, "ipFamilies": families}
        for policy, families in product((SINGLE, PREFER, REQUIRE), (["IPv4"], ["IPv4", "IPv6"], ["IPv6"]))
    ]
    changes += [{"ipFamilyPolicy": policy} for policy in (SINGLE, PREFER, REQUIRE, None)]
    changes += [{"ipFamilies": families} for families in FAMILIES]
    changes += [
        {"ipFamilyPolicy": REQUIRE, "clusterIPs": ["$FIRST", "fd00:96::e1"]},
        {"ipFamilyPolicy": REQUIRE, "clusterIPs": ["$FIRST", "fd01::1"]},
        {"ipFamilyPolicy": SINGLE, "clusterIPs": ["$FIRST"]},
        {"ipFamilyPolicy": PREFER, "clusterIPs": ["$FIRST"]},
        {"type": "ExternalName", "externalName": "a.example.com", "clusterIP": None, "clusterIPs": None},
        {"type": "NodePort"},
        {"selector": {"x": "y"}},
    ]
    asks: list[Ask] = []
    for index, change in enumerate(changes):
        name = f"c-{index}"
        step = len(asks)
        body = {
            key: [
                one.replace("$FIRST", f"${step}.spec.clusterIP" if has_address else "10.96.0.200")
                for one in value
            ]
            if key == "clusterIPs" and value
            else value
            for key, value in change.items()
        }
        asks += [
            Ask("POST", SERVICES, service(name, **first)),
            Ask("PATCH", f"{SERVICES}/{name}", {"spec": body}, MERGE, f"{change}"),
            Ask("GET", f"{SERVICES}/{name}"),
            Ask("PATCH", f"{SERVICES}/{name}", {"spec": {"ipFamilyPolicy": SINGLE}}, MERGE),
            Ask("PATCH", f"{SERVICES}/{name}", {"spec": {"ipFamilyPolicy": PREFER}}, MERGE),
            Ask("DELETE", f"{SERVICES}/{name}"),
        ]
    return asks


def kept() -> list[Ask]:
    """The IPAddresses of a service come and go with its addresses."""
    addresses = ["10.96.0.199", "fd00:96::c7"]
    both = {"clusterIP": addresses[0], "clusterIPs": addresses, "ipFamilyPolicy": REQUIRE}
    one = {"ipFamilyPolicy": SINGLE, "clusterIPs": addresses[:1], "ipFamilies": ["IPv4"]}
    two = {"ipFamilyPolicy": PREFER, "clusterIPs": addresses, "ipFamilies": ["IPv4", "IPv6"]}
    looks = [Ask("GET", f"{GROUP}/ipaddresses/{address}") for address in addresses]
    steps = [
        Ask("POST", SERVICES, service("a", **both)),
        Ask("POST", SERVICES, service("b", clusterIP=addresses[1], ipFamilies=["IPv6"])),
        Ask("PATCH", f"{SERVICES}/a", {"spec": one}, MERGE),
        Ask("PATCH", f"{SERVICES}/a", {"spec": two}, MERGE),
        Ask("PATCH", f"{SERVICES}/a", {"spec": {"ipFamilyPolicy": SINGLE}}, MERGE),
        Ask("PATCH", f"{SERVICES}/a?dryRun=All", {"spec": {"ipFamilyPolicy": REQUIRE}}, MERGE),
        Ask("DELETE", f"{SERVICES}/a"),
    ]
    # When a second address that somebody chose comes later, Kubernetes has no IPAddress of it until a
    # controller has noticed, and has it until one has noticed that it went; here they come and go together.
    return [ask for index, step in enumerate(steps) for ask in (step, *(looks if index < 3 else looks[:1]))]


COMPARED = [
    Compared("kept", kept()),
    Compared(
        "range",
        [Ask("GET", f"{GROUP}/servicecidrs/kubernetes")],
    ),
    Compared("cluster", chosen({}), apart=True),
    Compared("node-port", chosen({"type": "NodePort"}), apart=True),
    Compared("balancer", chosen({"type": "LoadBalancer"}), apart=True),
    Compared("headless", chosen({"clusterIP": "None"}), apart=True),
    Compared("anybodys", chosen({"clusterIP": "None", "selector": {}}), apart=True),
    Compared("external", chosen({"type": "ExternalName", "externalName": "a.example.com"}), apart=True),
    Compared("given", given(), apart=True),
    Compared("from-single", changed({}), apart=True),
    Compared("from-both", changed({"ipFamilyPolicy": REQUIRE}), apart=True),
    Compared("from-six", changed({"ipFamilies": ["IPv6"]}), apart=True),
    Compared("from-headless", changed({"clusterIP": "None", "ipFamilyPolicy": PREFER}), apart=True),
    Compared("from-external", changed({"type": "ExternalName", "externalName": "b.example.com"}), apart=True),
]


@pytest.mark.parametrize("compared", COMPARED, ids=lambda one: one.name)
def test_services_have_addresses_of_both_families(compared: Compared, dual: tuple[Server, Server]) -> None:
    found = unnamed(differences(compared, f"dual-{compared.name}", *dual))
    assert not found, shown(compared, found)
