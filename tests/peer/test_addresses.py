"""R-SYS-8: ServiceCIDRs and IPAddresses are validated, changed and shown as by Kubernetes, and services get
their addresses, and are refused them, in its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/networking.k8s.io/v1"
RANGES, ADDRESSES = f"{GROUP}/servicecidrs", f"{GROUP}/ipaddresses"
SERVICES = "/api/v1/namespaces/{ns}/services"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
Changes = list[tuple[str, Any]]

RANGE = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "ServiceCIDR",
    "metadata": {"name": "range"},
    "spec": {"cidrs": ["10.250.0.0/24"]},
}
META: Changes = [
    ("metadata.name", "No_Name"),
    ("metadata.labels", {"a": "b"}),
    ("metadata.generation", 7),
    ("metadata.finalizers", ["bad"]),
    ("metadata.finalizers", ["example.com/a"]),
    ("metadata.namespace", "default"),
    ("status", {"conditions": []}),
    ("spec.unknown", 1),
    ("spec", GONE),
]
CIDRS: list[Any] = [
    [],
    GONE,
    [""],
    ["x"],
    "10.250.0.0/24",
    ["10.250.0.0"],
    ["10.250.0.1/24"],
    ["010.250.0.0/24"],
    ["10.250.0.0/024"],
    ["10.250.0.0/33"],
    ["10.250.0.0/32"],
    ["10.250.0.0/31"],
    ["10.250.0.0/-1"],
    ["0.0.0.0/0"],
    ["127.0.0.0/8"],
    ["fd00::/64"],
    ["FD00::/64"],
    ["fd00:0::/64"],
    ["fd00::1/64"],
    ["fd00::/129"],
    ["fd00::/20"],
    ["::ffff:10.250.0.0/120"],
    ["fe80::%eth0/64"],
    ["10.250.0.0/24", "fd00::/64"],
    ["fd00::/64", "10.250.0.0/24"],
    ["10.250.0.0/24", "10.251.0.0/24"],
    ["10.250.0.0/24", "10.250.0.0/24"],
    ["fd00::/64", "fd01::/64"],
    ["10.250.0.0/24", "x"],
    ["x", "y"],
    ["10.250.0.0/24", "FD00::/64"],
    ["10.250.0.0/24", "fd00::/64", "fd01::/64"],
    [1],
    [None],
]
RANGE_UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.labels", {"x": "-"}),
    ("metadata.finalizers", ["example.com/a"]),
    ("metadata.finalizers", GONE),
    ("spec.cidrs", ["10.251.0.0/24"]),
    ("spec.cidrs", ["x"]),
    ("spec.cidrs", []),
    ("spec.cidrs", ["10.250.0.0/24", "10.251.0.0/24"]),
    ("spec.cidrs", ["fd00::/64", "10.250.0.0/24"]),
    ("spec.cidrs", ["x", "y"]),
    ("spec.cidrs", ["10.250.0.0/24", "x"]),
    ("spec.cidrs", ["10.250.0.0/24", "FD00::/64"]),
    ("spec.cidrs", ["10.250.0.0/24", "fd00::/64", "fd01::/64"]),
    ("status", {"conditions": [{"type": "Ready", "status": "True"}]}),
    ("spec.cidrs", ["10.250.0.0/24", "fd00::/64"]),
    ("spec.cidrs", ["10.250.0.0/24", "fd01::/64"]),
    ("spec.cidrs", ["10.251.0.0/24", "fd01::/64"]),
    ("spec.cidrs", ["10.250.0.0/24"]),
    ("spec.cidrs", ["10.250.0.0/24", "fd00::/64", "fd01::/64"]),
]
CONDITION = {
    "type": "Other",
    "status": "True",
    "reason": "Because",
    "message": "m",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
RANGE_STATUS: Changes = [
    ("status.conditions", [CONDITION]),
    ("status.conditions", [CONDITION | {"observedGeneration": 3}]),
    ("status.conditions", [{"type": "Other"}]),
    ("status.conditions", [CONDITION | {"status": "Perhaps", "type": "No Type", "reason": "no reason"}]),
    ("status.unknown", 1),
    ("spec.cidrs", ["10.251.0.0/24"]),
    ("metadata.labels", {"from": "status"}),
    ("metadata.annotations", {"from": "status"}),
    ("metadata.finalizers", ["example.com/a"]),
    ("status", GONE),
]

PARENT = {"group": "example.com", "resource": "things", "namespace": "a", "name": "b"}
ADDRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "IPAddress",
    "metadata": {"name": "10.240.0.1"},
    "spec": {"parentRef": PARENT},
}
NAMES = [
    "",
    "x",
    "10.240.0",
    "10.240.0.1/32",
    "010.240.0.2",
    "10.240.0.256",
    "10.240.0.2",
    "0.0.0.0",
    "127.0.0.1",
    "255.255.255.255",
    "fd00::2",
    "FD00::3",
    "fd00:0::3",
    "fd00::",
    "fd00-0000-0000-0000-0000-0000-0000-0002",
    "::ffff:10.240.0.2",
    "fe80::1%eth0",
    "1" * 300,
]
PARENTS: Changes = [
    ("spec.parentRef", GONE),
    ("spec.parentRef", {}),
    ("spec.parentRef", "services"),
    *(("spec.parentRef.group", value) for value in [GONE, "", "No_Group", "a", "a.b", "a" * 254]),
    *(("spec.parentRef.resource", value) for value in [GONE, "", "No/R", "a%b", "..", ".", "Things"]),
    *(("spec.parentRef.namespace", value) for value in [GONE, "", "No_Name", "a/b", "..", "a%"]),
    *(("spec.parentRef.name", value) for value in [GONE, "", "No_Name", "a/b", "..", ".", "a%b", "b" * 300]),
    ("spec.parentRef.unknown", 1),
    ("spec.parentRef.uid", "u"),
    ("spec", GONE),
    ("status", {}),
    ("metadata.namespace", "default"),
    ("metadata.finalizers", ["bad"]),
    ("metadata.labels", {"ipaddress.kubernetes.io/ip-family": "IPv5"}),
]
ADDRESS_UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("spec.parentRef.name", "c"),
    ("spec.parentRef.name", "a/b"),
    ("spec.parentRef.group", GONE),
    ("spec.parentRef", GONE),
    ("spec", GONE),
    ("metadata.finalizers", ["example.com/a"]),
    ("metadata.finalizers", GONE),
]


def named(name: str) -> dict[str, Any]:
    return changed(ADDRESS, "metadata.name", name)


def numbered(changes: Changes) -> list[Ask]:
    """Each change in an address of its own."""
    bodies = (changed(named(f"10.241.0.{i}"), *change) for i, change in enumerate(changes))
    return [Ask("POST", ADDRESSES, body) for body in bodies]


def kinds() -> list[Compared]:
    cidrs: Changes = [("spec.cidrs", value) for value in CIDRS]
    place = f"{RANGES}/range"
    selected = "labelSelector=mine%3Dyes"
    mine = changed(RANGE, "metadata.labels", {"mine": "yes"})
    two = [
        changed(changed(mine, "metadata.name", name), "spec.cidrs", v)
        for name, v in (("one", ["10.252.0.0/24"]), ("two", ["10.252.1.0/24", "fd02::/112"]))
    ]
    own = [changed(named(name), "metadata.labels", {"mine": "yes"}) for name in ("10.240.0.8", "fd00::8")]
    bare = changed(own[0], "spec.parentRef", {"resource": "nodes", "name": "n"})
    apply, other = {"Content_Type": APPLY}, changed(RANGE, "spec.cidrs", ["10.1.0.0/16"])
    return [
        Compared(
            "ranges created",
            [
                *created(RANGES, RANGE, [*cidrs, *META]),
                *(Ask("DELETE", f"{RANGES}/range-{i}") for i in range(len(CIDRS) + len(META))),
            ],
        ),
        Compared("ranges updated", updated(RANGES, RANGE, RANGE_UPDATES)),
        Compared(
            "ranges status",
            [
                replace(ask, target=f"{place}/status") if ask.method == "PATCH" else ask
                for ask in updated(RANGES, RANGE, RANGE_STATUS)
            ],
        ),
        Compared(
            "ranges shown",
            [
                *(Ask("POST", RANGES, body) for body in two),
                Ask("POST", RANGES, two[0]),
                *(Ask("GET", f"{RANGES}?{selected}", headers=form) for form in ({}, TABLE, PARTIAL)),
                Ask("GET", f"{RANGES}/one", headers=TABLE),
                Ask("GET", f"{RANGES}/one/status"),
                Ask("GET", f"{RANGES}?fieldSelector=metadata.name%3Done"),
                Ask("GET", f"{RANGES}?fieldSelector=spec.cidrs%3Dx"),
                Ask("GET", "/apis/networking.k8s.io/v1/namespaces/default/servicecidrs/one"),
                Ask("PUT", f"{RANGES}/new", changed(mine, "metadata.name", "new")),
                Ask("PUT", f"{RANGES}/one", two[0]),
                Ask("PUT", f"{RANGES}/one", two[1]),
                Ask("PUT", f"{RANGES}/one/status", changed(two[0], "status", {"conditions": [CONDITION]})),
                Ask("POST", f"{RANGES}?dryRun=All", changed(two[0], "metadata.name", "dry")),
                Ask(
                    "PATCH",
                    f"{RANGES}/one",
                    [{"op": "add", "path": "/spec/cidrs/1", "value": "fd03::/112"}],
                    {"Content_Type": JSON_PATCH},
                ),
                Ask("PATCH", f"{RANGES}/applied?fieldManager=a", changed(RANGE, "metadata", {}), apply),
                Ask("PATCH", f"{RANGES}/applied?fieldManager=b", other, apply),
                Ask("DELETE", f"{RANGES}/applied"),
                Ask("DELETE", f"{RANGES}/one", {"propagationPolicy": "Foreground"}),
                Ask("DELETE", f"{RANGES}?{selected}"),
                Ask("GET", f"{RANGES}/one"),
                Ask("GET", f"{RANGES}/one/scale"),
            ],
        ),
        Compared(
            "addresses created",
            [*(Ask("POST", ADDRESSES, named(name)) for name in NAMES), *numbered(PARENTS)],
        ),
        Compared("addresses updated", updated(ADDRESSES, ADDRESS, ADDRESS_UPDATES)),
        Compared(
            "addresses shown",
            [
                *(Ask("POST", ADDRESSES, body) for body in own),
                Ask("POST", ADDRESSES, own[0]),
                *(Ask("GET", f"{ADDRESSES}?{selected}", headers=form) for form in ({}, TABLE, PARTIAL)),
                Ask("GET", f"{ADDRESSES}/fd00::8", headers=TABLE),
                Ask("GET", f"{ADDRESSES}/fd00::8/status"),
                Ask("GET", f"{ADDRESSES}?fieldSelector=metadata.name%3Dfd00::8"),
                Ask("GET", f"{ADDRESSES}?fieldSelector=spec.parentRef.name%3Dx"),
                Ask("PUT", f"{ADDRESSES}/10.240.0.9", named("10.240.0.9")),
                Ask("PUT", f"{ADDRESSES}/10.240.0.8", own[0]),
                Ask("PUT", f"{ADDRESSES}/10.240.0.8", bare),
                Ask("PATCH", f"{ADDRESSES}/10.240.0.10?fieldManager=a", named("10.240.0.10"), apply),
                Ask("PATCH", f"{ADDRESSES}/No?fieldManager=a", named("No"), apply),
                Ask("POST", ADDRESSES, {**ADDRESS, "metadata": {"generateName": "10.240.0."}}),
                Ask("DELETE", f"{ADDRESSES}/10.240.0.10", {"preconditions": {"uid": "x"}}),
                Ask("DELETE", f"{ADDRESSES}/10.240.0.10"),
                Ask("DELETE", f"{ADDRESSES}?{selected}"),
                Ask("GET", f"{ADDRESSES}/fd00::8"),
            ],
        ),
    ]


def asked(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, sequence.name.replace(" ", "-"), kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.usefixtures("no_ranges_left")
@pytest.mark.parametrize("sequence", kinds(), ids=lambda sequence: sequence.name)
def test_kinds(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    asked(sequence, kubernetes, podling)


def service(name: str, address: str | None = None, **spec: Any) -> dict[str, Any]:
    chosen = {} if address is None else {"clusterIP": address}
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **chosen, **spec}}


def internal(address: str) -> dict[str, Any]:
    return {"spec": {"type": "ClusterIP", "clusterIP": address}}


EXTERNAL = {"spec": {"type": "ExternalName", "externalName": "a.b", "clusterIP": "", "clusterIPs": None}}
OUTSIDE = ["10.9.0.1", "10.96.0.0", "10.96.255.255", "10.97.0.0", "10.97.0.15", "10.97.0.16", "fd00::1"]
FREE = ["10.96.0.20", "10.96.40.20", "10.97.0.3", "10.97.0.14"]
HELD = changed(ADDRESS, "metadata.name", "10.97.0.2")


def services() -> list[Compared]:
    dry, patch = f"{SERVICES}?dryRun=All", {"Content_Type": MERGE_PATCH}
    local = changed(EXTERNAL, "spec.internalTrafficPolicy", "Local")
    return [
        Compared(
            "chosen",
            [
                *(Ask("POST", SERVICES, service("outside", address)) for address in OUTSIDE),
                *(Ask("POST", SERVICES, service(f"s{i}", address)) for i, address in enumerate(FREE)),
                *(Ask("GET", f"{ADDRESSES}/{address}") for address in FREE),
                *(Ask("GET", f"{ADDRESSES}/{address}", headers=TABLE) for address in FREE[:2]),
                *(Ask("POST", SERVICES, service("again", address)) for address in [*FREE, "10.96.0.1"]),
                Ask("POST", SERVICES, service("s0", "10.97.0.7")),
                Ask("POST", ADDRESSES, HELD),
                Ask("POST", SERVICES, service("held", "10.97.0.2")),
                Ask("DELETE", f"{ADDRESSES}/10.97.0.2"),
                Ask("POST", SERVICES, service("held", "10.97.0.2", ports=[{"port": 0}])),
                Ask("POST", SERVICES, service("held", "10.97.0.2", ipFamilies=["IPv6"])),
                Ask("POST", SERVICES, service("held", "10.97.0.2", clusterIPs=["10.97.0.4"])),
                Ask("POST", SERVICES, service("held", "10.97.0.2", clusterIPs=["10.97.0.2", "fd00::2"])),
                Ask("POST", SERVICES, service("held", "010.97.0.2")),
                Ask("POST", SERVICES, service("held", "x")),
                Ask("GET", f"{ADDRESSES}/10.97.0.2"),
                Ask("DELETE", f"{SERVICES}/s0"),
                Ask("GET", f"{ADDRESSES}/{FREE[0]}"),
                Ask("POST", SERVICES, service("s0", FREE[0])),
                Ask("DELETE", SERVICES),
                *(Ask("GET", f"{ADDRESSES}/{address}") for address in FREE),
            ],
        ),
        Compared(
            "dry",
            [
                Ask("POST", dry, service("dry", "None")),
                Ask("POST", SERVICES, service("real", "10.96.0.31")),
                Ask("PATCH", f"{SERVICES}/real?dryRun=All", EXTERNAL, patch),
                Ask("GET", f"{ADDRESSES}/10.96.0.31"),
                Ask("DELETE", f"{SERVICES}/real?dryRun=All"),
                Ask("GET", f"{ADDRESSES}/10.96.0.31"),
                Ask("DELETE", f"{SERVICES}/real"),
            ],
        ),
        Compared(
            "changed",
            [
                Ask("POST", SERVICES, service("turns", "10.96.0.32")),
                Ask("PATCH", f"{SERVICES}/turns", {"spec": {"clusterIP": "10.96.0.33"}}, patch),
                Ask("PATCH", f"{SERVICES}/turns", {"spec": {"clusterIP": "None"}}, patch),
                Ask("PATCH", f"{SERVICES}/turns", {"metadata": {"labels": {"a": "b"}}}, patch),
                Ask("GET", f"{ADDRESSES}/10.96.0.32"),
                Ask("PATCH", f"{SERVICES}/turns?dryRun=All", local, patch),
                Ask("PATCH", f"{SERVICES}/turns", EXTERNAL, patch),
                Ask("GET", f"{ADDRESSES}/10.96.0.32"),
                Ask(
                    "PATCH",
                    f"{SERVICES}/turns",
                    {"spec": {"type": "ClusterIP", "clusterIP": "10.9.0.1"}},
                    patch,
                ),
                Ask(
                    "PATCH",
                    f"{SERVICES}/turns",
                    {"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1"}},
                    patch,
                ),
                Ask(
                    "PATCH",
                    f"{SERVICES}/turns",
                    {"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.33"}},
                    patch,
                ),
                Ask("GET", f"{ADDRESSES}/10.96.0.33"),
                Ask("PATCH", f"{ADDRESSES}/10.96.0.33", {"metadata": {"finalizers": ["a.b/c"]}}, patch),
                Ask("DELETE", f"{SERVICES}/turns"),
                Ask("GET", f"{ADDRESSES}/10.96.0.33"),
                Ask("POST", SERVICES, service("late", "10.96.0.33")),
                Ask("PATCH", f"{ADDRESSES}/10.96.0.33", {"metadata": {"finalizers": None}}, patch),
                Ask("GET", f"{ADDRESSES}/10.96.0.33"),
                Ask("POST", SERVICES, service("late", "10.96.0.33")),
                Ask("PATCH", f"{SERVICES}/late", {"metadata": {"finalizers": ["a.b/c"]}}, patch),
                Ask("DELETE", f"{SERVICES}/late"),
                Ask("GET", f"{ADDRESSES}/10.96.0.33"),
                Ask("PATCH", f"{SERVICES}/late", {"metadata": {"finalizers": None}}, patch),
                Ask("GET", f"{ADDRESSES}/10.96.0.33"),
                Ask("POST", SERVICES, service("any")),
                Ask("GET", f"{ADDRESSES}/$24.spec.clusterIP"),
                Ask("GET", f"{ADDRESSES}/$24.spec.clusterIP", headers=TABLE),
                Ask("GET", f"{RANGES}/kubernetes"),
                Ask("DELETE", f"{SERVICES}/any"),
            ],
        ),
    ]


@pytest.fixture(scope="module")
def second_range(kubernetes: Server, podling: Server) -> Iterator[None]:
    """10.97.0.0/28, which Kubernetes puts to use a moment after it was made."""
    probe = "/api/v1/namespaces/default/services"
    for server in (kubernetes, podling):
        body = changed(changed(RANGE, "metadata.name", "second"), "spec.cidrs", ["10.97.0.0/28"])
        assert server.ask("POST", RANGES, body).code == 201
        taken = (server.ask("POST", probe, service("probe", "10.97.0.1")).code for _ in range(5_000))
        assert 201 in taken
        assert server.ask("DELETE", f"{probe}/probe").code == 200
    yield
    for server in (kubernetes, podling):
        assert server.ask("DELETE", f"{RANGES}/second").code == 200


@pytest.mark.usefixtures("second_range")
@pytest.mark.parametrize("sequence", services(), ids=lambda sequence: sequence.name)
def test_services(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    asked(sequence, kubernetes, podling)
