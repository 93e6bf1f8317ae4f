"""R-SYS-8: services of each type become each other, and they and what lies beside them (endpoints, ranges,
ingresses, policies) are defaulted, validated and warned of as by Kubernetes, by each way to write them.

Most is tried dry, on objects that stay as they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from peer import test_dual_stack
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

Fields = dict[str, Any]
CORE, DRY = "/api/v1/namespaces/{ns}", "?dryRun=All"
SERVICES, ENDPOINTS = f"{CORE}/services", f"{CORE}/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"
NETWORKING = "/apis/networking.k8s.io/v1"
INGRESSES, POLICIES = (
    f"{NETWORKING}/namespaces/{{ns}}/{plural}" for plural in ("ingresses", "networkpolicies")
)
MERGE, STRATEGIC, JSON, APPLIED = (
    {"Content_Type": kind} for kind in (MERGE_PATCH, STRATEGIC_PATCH, JSON_PATCH, APPLY)
)
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}

TYPES: dict[str, Fields] = {
    "ClusterIP": {},
    "headless": {"clusterIP": "None"},
    "NodePort": {"type": "NodePort"},
    "LoadBalancer": {"type": "LoadBalancer"},
    "ExternalName": {"type": "ExternalName", "externalName": "a.test"},
}
RANGES_NOTE = "service.beta.kubernetes.io/load-balancer-source-ranges"
HINTS, MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def named(name: str, spec: Fields | None = None, **more: Any) -> Fields:
    meta = {"name": name, **more.pop("metadata", {})}
    return {"metadata": meta, **({} if spec is None else {"spec": spec}), **more}


def of(name: str, values: Iterable[Any]) -> list[Fields]:
    return [{name: value} for value in values]


def port(number: Any = 80, **fields: Any) -> Fields:
    return {"port": number, **fields}


def ports(*each: Fields) -> Fields:
    return {"ports": list(each)}


ADDRESS_FIELDS: list[Fields] = [
    *of(
        "clusterIP",
        ["", "None", "none", "x", "10.9.0.1", "10.96.0.1", "10.96.1.77", "010.96.1.77", "fd00::1"],
    ),
    *of("clusterIP", ["::ffff:10.96.1.77", "10.96.0.0", "10.96.255.255", " None", None]),
    *of(
        "clusterIPs", [[], ["None"], ["None", "None"], ["10.96.1.77"], ["10.96.1.77", "fd00::1"], ["x"], [""]]
    ),
    *of("clusterIPs", [["10.96.1.77", "10.96.1.78"], ["10.96.1.77", "fd00::1", "10.96.1.79"], ["fd00::1"]]),
    {"clusterIP": "None", "clusterIPs": ["None"]},
    {"clusterIP": "None", "clusterIPs": ["10.96.1.77"]},
    {"clusterIP": "", "clusterIPs": ["10.96.1.77"]},
    {"clusterIP": "10.96.1.77", "clusterIPs": ["10.96.1.77"]},
    {"clusterIP": "10.96.1.77", "clusterIPs": ["10.96.1.78"]},
    {"clusterIP": "10.96.1.77", "clusterIPs": ["10.96.1.77", "None"]},
    {
        "clusterIP": "10.96.1.77",
        "clusterIPs": ["10.96.1.77", "fd00::1"],
        "ipFamilyPolicy": "RequireDualStack",
    },
    {"clusterIP": "10.96.1.77", "clusterIPs": ["10.96.1.77", "fd00::1"], "ipFamilyPolicy": "PreferDualStack"},
    {"clusterIP": "10.96.1.77", "clusterIPs": ["10.96.1.77", "fd00::1"], "ipFamilyPolicy": "SingleStack"},
    *of("ipFamilies", [[], ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv4", "IPv4"], ["x"]]),
    *of("ipFamilies", [["IPv4", "IPv6", "IPv4"], ["ipv4"], [""]]),
    *of("ipFamilyPolicy", ["SingleStack", "PreferDualStack", "RequireDualStack", "x", "", None]),
    *(
        {"ipFamilies": families, "ipFamilyPolicy": policy}
        for families in (["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"])
        for policy in ("SingleStack", "PreferDualStack", "RequireDualStack")
    ),
    {"ipFamilies": ["IPv6"], "clusterIP": "10.96.1.77"},
    {"ipFamilies": ["IPv4"], "clusterIP": "fd00::1"},
    {"ipFamilies": ["IPv6"], "clusterIP": "None"},
    {"ipFamilies": ["IPv6"], "clusterIP": "None", "selector": {"a": "b"}},
    {"ipFamilies": ["IPv6", "IPv4"], "clusterIP": "None", "selector": {}},
    {"ipFamilies": ["IPv4", "IPv6"], "clusterIP": "None", "selector": {"a": "b"}},
    {"clusterIP": "None", "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]},
    {"clusterIP": "None", "ipFamilyPolicy": "PreferDualStack"},
    {"clusterIP": "None", "ipFamilyPolicy": "PreferDualStack", "selector": {"a": "b"}},
    {"clusterIP": "None", "ipFamilyPolicy": "RequireDualStack", "selector": {"a": "b"}},
    {"clusterIP": "None", "ports": []},
    {"clusterIP": "None", "ports": None, "selector": None},
]
PORT_FIELDS: list[Fields] = [
    ports(),
    *(ports(port(number)) for number in (0, -1, 65535, 65536)),
    ports({"name": "a"}),
    ports(port(), port(81)),
    ports(port(name="a"), port(81)),
    ports(port(name="a"), port(81, name="a")),
    ports(port(name="a"), port(name="b")),
    ports(port(name="a"), port(name="b", protocol="UDP")),
    ports(port(name="a"), port(name="b", protocol="UDP"), port(name="c", protocol="SCTP")),
    ports(port(name="a", nodePort=30701), port(name="b", protocol="UDP")),
    ports(port(name="a"), port(name="b", protocol="UDP", nodePort=30701)),
    ports(port(name="a", nodePort=30701), port(name="b", protocol="UDP", nodePort=30701)),
    ports(port(name="a", nodePort=30701), port(name="b", protocol="UDP", nodePort=30702)),
    ports(port(name="a", nodePort=30701), port(81, name="b", protocol="UDP", nodePort=30701)),
    ports(port(name="a", nodePort=30701), port(81, name="b", nodePort=30701)),
    ports(port(name="a", nodePort=30701), port(name="b", nodePort=30701)),
    ports(port(name="a", nodePort=30700), port(name="b", protocol="UDP")),
    ports(port(name="a", nodePort=30700), port(81, name="b", nodePort=29999)),
    *(ports(port(nodePort=number)) for number in (30700, 30701, 29999, 32767, 32768, 30000, 0, -1, 70000)),
    ports(port(nodePort=30700, protocol="UDP")),
    *(ports(port(name=name)) for name in ("A", "a_b", "a.b", "a" * 63, "a" * 64, "-a", "1", "", "a b")),
    *(ports(port(protocol=one)) for one in ("", "TCP", "UDP", "SCTP", "tcp", "HTTP")),
    *(
        ports(port(appProtocol=one))
        for one in ("http", "kubernetes.io/h2c", "", "a b", "x/y/z", "HTTP", "/a", "A.b/c")
    ),
    *(
        ports(port(targetPort=one))
        for one in (0, 1, 65536, -1, "", "a", "A", "a" * 15, "a" * 16, "1", "80", "a--b", "-a", "a_b")
    ),
    *(ports(port(nodePort=number)) for number in (30720, 30721, 30722, 30723)),
    ports(port(nodePort=30722, name="a"), port(81, nodePort=30721, name="b")),
    ports(port(unknown=1)),
    ports(*(port(number, name=f"p{number}") for number in range(1, 102))),
]
TRAFFIC_FIELDS: list[Fields] = [
    *of("externalTrafficPolicy", ["", "Cluster", "Local", "local", None]),
    *of("internalTrafficPolicy", ["", "Cluster", "Local", "local", None]),
    *of("trafficDistribution", ["", "PreferClose", "PreferSameZone", "PreferSameNode", "x", None]),
    *of("healthCheckNodePort", [0, 30702, 30700, 30703, 29999, -1, 70000]),
    *(
        {"externalTrafficPolicy": "Local", "healthCheckNodePort": number}
        for number in (0, 30702, 30700, 30703, 29999, -1, 65536)
    ),
    {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30704, "ports": [port(nodePort=30704)]},
    {
        "externalTrafficPolicy": "Local",
        "ports": [port(nodePort=30704)],
        "allocateLoadBalancerNodePorts": False,
    },
    {"externalTrafficPolicy": "Cluster", "healthCheckNodePort": 30704},
    *(
        {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": number, **more}
        for number in (30721, 30723)
        for more in ({}, {"ports": [port(nodePort=30705)]}, {"ports": [port(81)]})
    ),
    {"externalTrafficPolicy": "Local", "externalIPs": ["1.2.3.4"]},
    *of("sessionAffinity", ["", "None", "ClientIP", "clientIP", None]),
    *(
        {"sessionAffinity": kind, "sessionAffinityConfig": config}
        for kind in ("None", "ClientIP", "x")
        for config in (
            *({"clientIP": {"timeoutSeconds": seconds}} for seconds in (None, 0, 1, 86400, 86401, -1)),
            *of("clientIP", [{}, None]),
            *({}, None),
        )
    ),
    {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
    *of("publishNotReadyAddresses", [True, False, None]),
    *of(
        "externalName",
        ["", "b.test", "b.test.", "b.test..", "B.test", "1.2.3.4", "010.2.3.4", "*.b.test", "a_b"],
    ),
    *of("externalName", ["::1", "a" * 254, "https://a.b", ".", " a.b"]),
]
BALANCER_FIELDS: list[Fields] = [
    *of("loadBalancerIP", ["", "1.2.3.4", "01.2.3.4", "x", "FD00::1", "::ffff:1.2.3.4", "1.2.3.4/32"]),
    *of("loadBalancerClass", ["", "a", "a.b/c", "A b", "service.k8s.aws/nlb", "/a", "a/b/c", None]),
    *of(
        "loadBalancerSourceRanges",
        [[], ["10.0.0.0/8"], ["10.0.0.1/8"], ["010.0.0.0/8"], ["10.0.0.0"], ["x", ""]],
    ),
    *of(
        "loadBalancerSourceRanges", [[" 10.0.0.0/8 "], ["FD00::/8"], ["::ffff:10.0.0.0/104"], ["10.0.0.0/08"]]
    ),
    *of("allocateLoadBalancerNodePorts", [True, False, None]),
    {"allocateLoadBalancerNodePorts": False, "ports": [port(nodePort=30701)]},
    {"allocateLoadBalancerNodePorts": False, "ports": [port(nodePort=30700)]},
    *of(
        "externalIPs", [[], ["1.2.3.4"], ["01.2.3.4"], ["x"], ["127.0.0.1"], ["0.0.0.0"], ["224.0.0.1"], [""]]
    ),
    *of(
        "externalIPs",
        [["169.254.1.1"], ["FD00:0::1"], ["::ffff:1.2.3.4"], ["1.2.3.4", "1.2.3.4"], ["10.96.0.1"]],
    ),
    *of("externalIPs", [["fe80::1"], ["::"], ["0::0"], ["ff02::1"], ["1.2.3.4", "fd00::1", "x"]]),
]
OTHER_FIELDS: list[Fields] = [
    *of("selector", [None, {}, {"a": ""}, {"a": "b c"}, {"a b": "c"}, {"": "x"}, {"a/b/c": "d"}]),
    *of("type", ["", "x", "clusterip", None]),
    {"unknown": 1},
    {"topologyKeys": ["*"]},
    {"ipFamily": "IPv4"},
]
ANNOTATIONS: list[dict[str, str]] = [
    *(
        {RANGES_NOTE: value}
        for value in ("", " ", "10.0.0.0/8", "10.0.0.1/8", "x", "10.0.0.0/8, 11.0.0.0/8", ",")
    ),
    {HINTS: "Auto"},
    {MODE: "Auto"},
    {HINTS: "Auto", MODE: "Auto"},
    {HINTS: "Auto", MODE: "auto"},
    {HINTS: "", MODE: ""},
    {"service.alpha.kubernetes.io/tolerate-unready-endpoints": "true"},
    {"service.beta.kubernetes.io/external-traffic": "OnlyLocal"},
]
NAMES = ("1a", "a.b", "A", "a" * 63, "a" * 64, "a-", "kubernetes", "")
FIELDS = [*ADDRESS_FIELDS, *PORT_FIELDS, *TRAFFIC_FIELDS, *BALANCER_FIELDS, *OTHER_FIELDS]
TAKEN = named(
    "taken",
    {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30703,
        "clusterIP": "10.96.1.79",
        "ports": [port(nodePort=30700)],
    },
)


def created(base: Fields, fields: Iterable[Fields] = FIELDS) -> list[Ask]:
    """Of one type, with each field in turn."""
    spec = {"ports": [port()], "selector": {"a": "b"}, **base}
    new = f"{SERVICES}{DRY}"
    return [
        Ask("POST", SERVICES, TAKEN),
        *(Ask("POST", new, named("s", {**spec, **more}), what=str(more)) for more in fields),
        *(Ask("POST", new, named("s", spec, metadata={"annotations": one})) for one in ANNOTATIONS),
        *(Ask("POST", new, named(name, spec)) for name in NAMES),
        Ask("POST", new, named("s", {**spec, "clusterIP": "10.96.1.79"})),
        Ask("POST", new, named("s", spec, status={"loadBalancer": {"ingress": [{"ip": "x"}]}})),
        Ask("POST", new, named("s", spec, metadata={"generation": 5, "finalizers": ["a"]})),
        Ask("POST", new, named("s", spec, metadata={"finalizers": ["a.b/c"], "generateName": "A"})),
        Ask("POST", new, named("s")),
        Ask("DELETE", f"{SERVICES}/taken"),
    ]


OLD: dict[str, Fields] = {
    "cluster": {"type": "ClusterIP"},
    "headless": {"clusterIP": "None"},
    "selectorless": {"clusterIP": "None", "selector": None, "ports": None},
    "external-ips": {"externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Local"},
    "node": {
        "type": "NodePort",
        "ports": [port(name="a", nodePort=30723), port(81, name="b", protocol="UDP", nodePort=30724)],
    },
    "balancer": {
        "type": "LoadBalancer",
        "loadBalancerClass": "a.b/c",
        "loadBalancerIP": "1.2.3.4",
        "ports": [port(nodePort=30726)],
    },
    "local": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30720,
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "ports": [port(name="a", nodePort=30721), port(81, name="b", nodePort=30722)],
    },
    "bare": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
    "name": {"type": "ExternalName", "externalName": "a.test"},
    "sticky": {
        "sessionAffinity": "ClientIP",
        "internalTrafficPolicy": "Local",
        "trafficDistribution": "PreferClose",
    },
}
CHANGES: list[Fields] = [
    {},
    *(
        {**kind, **more}
        for kind in (*TYPES.values(), {"type": "ClusterIP"}, {"type": ""}, {"type": "x"})
        for more in (
            {},
            {"clusterIP": "", "clusterIPs": None},
            {"clusterIP": "10.96.1.80"},
            {"clusterIP": "None", "clusterIPs": ["None"]},
            {"ports": [port(name="a", nodePort=30721), port(81, name="b", nodePort=30725)]},
            {"ports": [port(name="b"), port(81, name="a")]},
            {"externalTrafficPolicy": "Local"},
            {"externalTrafficPolicy": ""},
            {"externalTrafficPolicy": "Local", "healthCheckNodePort": 30727},
            {"healthCheckNodePort": 0, "allocateLoadBalancerNodePorts": None, "loadBalancerClass": None},
            {"loadBalancerClass": "d/e"},
            {"allocateLoadBalancerNodePorts": False},
            {"ipFamilies": None, "ipFamilyPolicy": None},
            {"internalTrafficPolicy": None, "sessionAffinity": "None"},
            {"externalIPs": ["4.3.2.1"]},
            {"externalName": "", "selector": None},
            {"publishNotReadyAddresses": True, "loadBalancerIP": "4.3.2.1"},
        )
    ),
]


def changed(name: str, old: Fields, fields: Iterable[Fields] = ()) -> Iterator[Ask]:
    """One service, changed in each way by each kind of write, and in each of its fields."""
    spec = {"ports": [port()], "selector": {"a": "b"}, **old}
    place = f"{SERVICES}/{name}"
    yield Ask("POST", SERVICES, TAKEN)
    yield Ask("POST", SERVICES, named(name, spec))
    # There is an odd number of each type: what is a PATCH with one is a PUT with the next.
    for index, more in enumerate(CHANGES):
        if index % 2:
            yield Ask("PATCH", f"{place}{DRY}", {"spec": more}, MERGE, what=str(more))
        else:
            yield Ask("PUT", f"{place}{DRY}", named(name, {**spec, **more}), what=str(more))
    for more in fields:
        yield Ask("PATCH", f"{place}{DRY}", {"spec": more}, MERGE, what=str(more))
    for note in ANNOTATIONS:
        yield Ask("PATCH", f"{place}{DRY}", {"metadata": {"annotations": note}}, MERGE)
    for patch in PATCHES:
        yield Ask("PATCH", f"{place}{DRY}", {"spec": patch}, STRATEGIC, what=str(patch))
    yield Ask("GET", place)
    yield Ask("DELETE", f"{SERVICES}/taken")
    yield Ask("DELETE", place)


PATCHES: list[Fields] = [
    ports(port(81)),
    ports(port(80, name="renamed")),
    ports(port(80, name="renamed", protocol="TCP")),
    ports(port(80, protocol="UDP", name="u")),
    ports(port(81, protocol="UDP", name="u")),
    ports(port(81, protocol="TCP", name="u", nodePort=30731)),
    ports(port(81, name="new"), {"port": 80, "$patch": "delete"}),
    ports({"port": 80, "$patch": "delete"}),
    ports({"port": 80, "protocol": "UDP", "$patch": "delete"}),
    ports(port(81, name="only"), {"$patch": "replace"}),
    ports({"$patch": "replace"}),
    ports({"name": "a"}),
    ports(port(80, nodePort=None)),
    ports(port(80, targetPort="web", appProtocol="http")),
    {"$setElementOrder/ports": [port(81), port(80)]},
    {"$setElementOrder/ports": [port(81), port(80)], **ports(port(81, name="q"))},
    {"$retainKeys": ["type", "ports"], "type": "NodePort"},
    {"$retainKeys": ["type", "externalName"], "type": "ExternalName", "externalName": "c.test"},
    {"$patch": "replace", "ports": [port(7)]},
    {"selector": {"$patch": "replace", "c": "d"}},
    {"selector": {"a": None}},
    {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 7}}},
    {"clusterIPs": ["10.96.1.81"]},
    {"clusterIPs": None, "clusterIP": None},
    {"externalIPs": ["9.9.9.9"]},
    {"ports": None},
    {"type": None},
]


# Services that are written, one after the other: numbers that are asked for, given back and had by others.
CHAIN: list[Fields] = [
    {"type": "NodePort", "ports": [port(nodePort=30740)]},
    {"type": "NodePort", "ports": [port(nodePort=29999)]},
    {"type": "NodePort", "ports": [port(nodePort=32768)]},
    {"type": "NodePort", "ports": [port(nodePort=-1)]},
    {"type": "LoadBalancer", "ports": [port(nodePort=30741)]},
    {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 29999},
    {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 70000},
    {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30741},
    {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30742},
    {"type": "LoadBalancer", "ports": [port(nodePort=30742)]},
    {"type": "LoadBalancer", "ports": [port(nodePort=30743, name="a"), port(81, name="b")]},
    {"ports": [port(80, name="b", nodePort=30743), port(81, name="a", nodePort=30744)]},
    {"ports": [port(80, name="b"), port(81, name="a")]},
    {"ports": [port(80, name="b"), port(80, name="a", protocol="UDP")]},
    {"type": "ClusterIP", "ports": [port(80, name="b")]},
    {"type": "NodePort", "ports": [port(80, name="b", nodePort=30744)], "externalTrafficPolicy": "Local"},
    {"type": "LoadBalancer"},
    {"type": "LoadBalancer", "loadBalancerClass": "a/b"},
    {"type": "LoadBalancer", "loadBalancerClass": None},
    {"type": "NodePort"},
    {"type": "LoadBalancer", "loadBalancerClass": "a/b"},
    {"loadBalancerClass": "a/c"},
    {"externalTrafficPolicy": "Cluster"},
    {"allocateLoadBalancerNodePorts": False},
    {"ports": [port(82)]},
    {"ports": [port(82, nodePort=30744)]},
    {"type": "ExternalName", "externalName": "a.test"},
    {"type": "ExternalName", "externalName": "a.test", "ports": [port(82)]},
    {"externalName": "b.test", "ports": [port(82, name="p"), port(82, name="q")]},
    {"externalName": "b.test", "ports": [port(82, name="p"), port(83, name="q")]},
    {"clusterIP": "10.96.1.90"},
    {"type": "ClusterIP", "clusterIP": "10.96.1.90"},
    {"type": "ClusterIP", "clusterIP": "10.96.1.91"},
    {"clusterIP": "None"},
    {"type": "ExternalName", "externalName": "a.test", "clusterIP": None, "clusterIPs": None},
    {"type": "ClusterIP", "clusterIP": "None", "externalName": None},
    {"clusterIP": None, "clusterIPs": None},
    {"clusterIP": "10.96.1.92", "clusterIPs": ["10.96.1.92"]},
    {"type": "NodePort"},
    {"selector": None},
    {"ports": None},
    {"ipFamilyPolicy": "PreferDualStack"},
    {"ipFamilyPolicy": "RequireDualStack"},
    {"type": "ExternalName", "clusterIPs": None, "clusterIP": None},
]
INGRESS_STATUS: list[Any] = [
    [{"ip": "1.2.3.4"}],
    [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "a.test"}],
    [{"ip": "1.2.3.4", "ipMode": "Proxy"}],
    [{"ip": "1.2.3.4", "ipMode": "Odd"}],
    [{"ip": "1.2.3.4", "ipMode": ""}],
    [{"hostname": "a.test", "ipMode": "VIP"}],
    [{"ip": "x"}],
    [{"ip": "01.2.3.4"}],
    [{"ip": "FD00::1"}],
    [{"hostname": "A.test"}],
    [{"hostname": "1.2.3.4"}],
    [{"hostname": "*.a.test"}],
    [{}],
    [],
    [{"ip": "1.2.3.4", "ports": [{"port": 80, "protocol": "TCP"}]}],
    [{"ip": "1.2.3.4", "ports": [{"port": 0, "protocol": "x", "error": "no good"}, {}]}],
    [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}],
]
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Because",
    "message": "m",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
CONDITIONS: list[Any] = [
    [CONDITION],
    [CONDITION, CONDITION],
    [CONDITION, {**CONDITION, "type": "a.b/Other", "observedGeneration": -1}],
    [{**CONDITION, "type": "", "status": "", "reason": ""}],
    [{**CONDITION, "type": "No Type", "status": "Perhaps", "reason": "no reason", "message": "m" * 32769}],
    [{**CONDITION, "lastTransitionTime": None}],
    [{"type": "Ready"}],
    [],
]


def written() -> Iterator[Ask]:
    place = f"{SERVICES}/s"
    yield Ask("POST", SERVICES, named("s", {"ports": [port()], "selector": {"a": "b"}}))
    for index, fields in enumerate(CHAIN):
        yield Ask("PATCH", place, {"spec": fields}, MERGE, what=str(fields))
        if "nodePort" in str(fields) or "NodePort" in str(fields):
            yield Ask(
                "POST", SERVICES, named(f"other-{index}", {"ports": [port()], **fields}), what=str(fields)
            )
            yield Ask("DELETE", f"{SERVICES}/other-{index}")
    yield Ask("GET", place, headers=TABLE)
    yield Ask("DELETE", place)


def versioned() -> Iterator[Ask]:
    """Whole services that leave out what was given, or say of which version they are."""
    place, spec = f"{SERVICES}/s", {"ports": [port(name="a", nodePort=30750)], "type": "NodePort"}
    yield Ask("POST", SERVICES, named("s", spec))
    yield Ask("PUT", place, named("s", spec))
    yield Ask("PUT", place, named("s", {**spec, "ports": [port(name="a")]}))
    yield Ask("PUT", place, named("s", {**spec, "ports": [port(name="z")]}))
    yield Ask("PUT", f"{place}{DRY}", named("s", {**spec, "ports": [port(nodePort=30750)]}))
    for version in ("", "0", "1", "x", "$0.metadata.resourceVersion", "$3.metadata.resourceVersion"):
        body = named("s", spec, metadata={"resourceVersion": version})
        yield Ask("PUT", f"{place}{DRY}", body, what=version)
        yield Ask("PATCH", f"{place}{DRY}", {"metadata": {"resourceVersion": version}}, MERGE, what=version)
    for uid in ("x", "$0.metadata.uid"):
        yield Ask("PUT", f"{place}{DRY}", named("s", spec, metadata={"uid": uid}))
    yield Ask("PUT", f"{place}{DRY}", named("t", spec))
    yield Ask("PUT", f"{SERVICES}/new{DRY}", named("new", spec))
    yield Ask("PUT", f"{SERVICES}/new{DRY}", named("new", {**spec, "ports": [port()]}))
    yield Ask("PUT", f"{SERVICES}/new{DRY}", named("new", spec, metadata={"resourceVersion": "5"}))
    yield Ask("PUT", f"{SERVICES}/new{DRY}", named("new", spec, metadata={"uid": "5"}))
    yield Ask("PUT", f"{SERVICES}/new/status{DRY}", named("new", spec))
    yield Ask("PUT", f"{SERVICES}/new", named("new", {"ports": [port()]}))
    yield Ask("PUT", f"{SERVICES}/new", named("new", {"type": "ExternalName", "externalName": "a.test"}))
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "remove", "path": "/spec/clusterIP"}], JSON)
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "remove", "path": "/spec/clusterIPs"}], JSON)
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "remove", "path": "/spec/type"}], JSON)
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "remove", "path": "/spec/ports/0/nodePort"}], JSON)
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "replace", "path": "/spec/clusterIP", "value": ""}], JSON)
    yield Ask("PATCH", f"{place}{DRY}", [{"op": "remove", "path": "/spec"}], JSON)
    applied = {"apiVersion": "v1", "kind": "Service"}
    for fields in (
        {"ports": [port()]},
        {"ports": [port(protocol="TCP")]},
        {"ports": [port(protocol="TCP", name="a", nodePort=30750)]},
        {"ports": [port(protocol="UDP", name="u")]},
        {"type": "ClusterIP"},
        {"type": "ExternalName", "externalName": "a.test"},
        {"clusterIP": "None"},
        {"selector": {"c": "d"}},
    ):
        for force in ("", "&force=true"):
            body = {**applied, **named("s", fields)}
            yield Ask("PATCH", f"{place}{DRY}&fieldManager=m{force}", body, APPLIED, what=str(fields))
        body = {**applied, **named("fresh", fields)}
        yield Ask("PATCH", f"{SERVICES}/fresh{DRY}&fieldManager=m", body, APPLIED, what=str(fields))
    # What has a finalizer keeps its numbers, and is changed no more.
    yield Ask("PATCH", place, {"metadata": {"finalizers": ["a.b/c"]}}, MERGE)
    yield Ask("DELETE", place)
    yield Ask("DELETE", place)
    yield Ask("POST", SERVICES, named("t", spec))
    yield Ask("POST", SERVICES, named("s", spec))
    yield Ask("PATCH", place, {"spec": {"type": "ClusterIP"}}, MERGE)
    yield Ask("POST", SERVICES, named("t", spec))
    yield Ask("PATCH", place, {"metadata": {"finalizers": ["d.e/f"]}}, MERGE)
    yield Ask("PATCH", place, {"metadata": {"finalizers": None}, "spec": {"ports": [port(0)]}}, MERGE)
    yield Ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE)
    yield Ask("GET", place)
    yield Ask("DELETE", f"{SERVICES}/t", {"preconditions": {"uid": "x"}})
    yield Ask("DELETE", SERVICES)


def statuses() -> Iterator[Ask]:
    ways: tuple[tuple[str, Fields], ...] = (
        ("balancer", {"type": "LoadBalancer", "ports": [port(nodePort=30750)], "externalIPs": ["1.2.3.4"]}),
        ("cluster", {}),
    )
    for name, fields in ways:
        place, spec = f"{SERVICES}/{name}", {"ports": [port()], **fields}
        yield Ask("POST", SERVICES, named(name, spec))
        for field, values in (("loadBalancer", of("ingress", INGRESS_STATUS)), ("conditions", CONDITIONS)):
            for value in values:
                status = {"status": {field: value}}
                yield Ask("PATCH", f"{place}/status{DRY}", status, MERGE, what=str(value))
                yield Ask("PATCH", f"{place}/status{DRY}", status, STRATEGIC, what=str(value))
                yield Ask("PUT", f"{place}/status{DRY}", named(name, spec, **status), what=str(value))
                yield Ask("PATCH", f"{place}{DRY}", status, MERGE, what=str(value))
        yield Ask("PATCH", f"{place}/status{DRY}", {"spec": {"ports": [port(0)]}}, MERGE)
        yield Ask("PATCH", f"{place}/status{DRY}", {"spec": {"type": "NodePort"}}, MERGE)
        yield Ask("PATCH", f"{place}/status{DRY}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        yield Ask("PATCH", f"{place}/status{DRY}", {"metadata": {"finalizers": ["a"]}}, MERGE)
        yield Ask("PATCH", f"{place}/status{DRY}", {"metadata": {"annotations": {RANGES_NOTE: "x"}}}, MERGE)
        yield Ask("PUT", f"{place}/status{DRY}", named(name))
        yield Ask("PATCH", f"{place}/status", {"status": {"conditions": [CONDITION]}}, MERGE)
    place = f"{SERVICES}/balancer"
    ingress = [{"ip": "1.2.3.4"}, {"hostname": "a.test"}, {"ip": "fd00::1", "ipMode": "Proxy"}]
    yield Ask("PATCH", f"{place}/status", {"status": {"loadBalancer": {"ingress": ingress}}}, MERGE)
    for fields in TYPES.values():
        yield Ask("PATCH", f"{place}{DRY}", {"spec": fields}, MERGE)
        yield Ask("PUT", f"{place}{DRY}", named("balancer", {"ports": [port()], **fields}))
        yield Ask("PATCH", f"{place}/status{DRY}", {"spec": fields}, MERGE)
    yield Ask("PATCH", f"{place}/status{DRY}", {"status": None}, MERGE)
    yield Ask("PATCH", f"{place}/status{DRY}", {"status": {"loadBalancer": None}}, MERGE)
    yield Ask("PATCH", f"{place}/status{DRY}", {"status": {"loadBalancer": {"ingress": None}}}, MERGE)
    yield Ask("GET", place, headers=TABLE)
    yield Ask("PATCH", place, {"spec": {"type": "NodePort"}}, MERGE)
    yield Ask("GET", f"{place}/status")
    yield Ask("DELETE", SERVICES)


ADDRESSES: list[Any] = [
    {},
    *of(
        "ip", ["1.2.3.4", "01.2.3.4", "x", "", "127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "FD00::1"]
    ),
    *of("ip", ["::1", "fe80::1", "ff02::1", "::ffff:1.2.3.4", "::", "0::0", "fd00::1"]),
    *({"ip": "1.2.3.4", "hostname": name} for name in ("a", "A", "a.b", "", "a" * 64)),
    *({"ip": "1.2.3.4", "nodeName": name} for name in ("n", "N", "a.b", "", None)),
    {"ip": "1.2.3.4", "targetRef": {"kind": "Pod", "name": "p", "namespace": "x", "unknown": 1}},
    {"ip": "1.2.3.4", "unknown": 1},
]
OF_ENDPOINTS: list[Any] = [
    {},
    port(),
    port(0),
    port(65536),
    *(port(name=name) for name in ("a", "A", "a" * 64, "")),
    *(port(protocol=one) for one in ("UDP", "SCTP", "", "tcp", None)),
    *(port(appProtocol=one) for one in ("http", "a b", "", "kubernetes.io/ws")),
]
ONE = {"ip": "1.2.3.4"}
SUBSETS: list[Any] = [
    None,
    [],
    [{}],
    [{"ports": [port()]}],
    *([{"addresses": [one], "ports": [port()]}] for one in ADDRESSES),
    *([{"notReadyAddresses": [one]}] for one in ADDRESSES[:6]),
    *([{"addresses": [ONE], "ports": [one]}] for one in OF_ENDPOINTS),
    [{"addresses": [ONE], "ports": [port(), port(81)]}],
    [{"addresses": [ONE], "ports": [port(name="a"), port(81, name="a")]}],
    [{"addresses": [ONE], "ports": [port(name="a"), port(name="b")]}],
    [{"addresses": [ONE], "ports": [port(), port()]}],
    [{"addresses": [ONE, ONE]}],
    [{"addresses": [{"ip": "2.2.2.2"}, ONE]}],
    [{"addresses": [ONE], "notReadyAddresses": [ONE], "ports": [port()]}],
    [{"addresses": [ONE], "ports": [port(81)]}, {"addresses": [{"ip": "1.1.1.1"}], "ports": [port(81)]}],
    [
        {"addresses": [ONE], "ports": [port(81), port(80)]},
        {"addresses": [ONE], "ports": [port(80, name="b")]},
    ],
    [{"addresses": [{"ip": f"1.2.{i // 250}.{i % 250 + 1}"} for i in range(1001)], "ports": [port()]}],
    [{"addresses": [ONE], "ports": [port(i + 1, name=f"p{i}") for i in range(101)]}],
]


def endpoints() -> Iterator[Ask]:
    place = f"{ENDPOINTS}/e"
    standing = [{"addresses": [ONE], "notReadyAddresses": [{"ip": "5.6.7.8"}], "ports": [port()]}]
    yield Ask("POST", ENDPOINTS, named("e", subsets=standing))
    for value in SUBSETS:
        yield Ask("POST", f"{ENDPOINTS}{DRY}", named("new", subsets=value), what=str(value)[:80])
        yield Ask("PUT", f"{place}{DRY}", named("e", subsets=value), what=str(value)[:80])
        yield Ask("PATCH", f"{place}{DRY}", {"subsets": value}, STRATEGIC, what=str(value)[:80])
    for name in NAMES:
        yield Ask("POST", f"{ENDPOINTS}{DRY}", named(name))
    for notes in (
        {"endpoints.kubernetes.io/last-change-trigger-time": "x"},
        {"endpoints.kubernetes.io/over-capacity": "truncated"},
        {"control-plane.alpha.kubernetes.io/leader": "x"},
    ):
        yield Ask("PATCH", f"{place}{DRY}", {"metadata": {"annotations": notes}}, MERGE)
    yield Ask("PUT", f"{ENDPOINTS}/new{DRY}", named("new", subsets=standing, metadata={"uid": "x"}))
    yield Ask("PUT", f"{ENDPOINTS}/new", named("new", subsets=standing))
    yield Ask("PATCH", f"{ENDPOINTS}/new", {"subsets": [{"addresses": None}]}, MERGE)
    yield Ask("GET", ENDPOINTS, headers=TABLE)
    yield Ask("GET", f"{ENDPOINTS}/new", headers=TABLE)
    yield Ask("GET", f"{place}/status")
    yield Ask("DELETE", place)
    yield Ask("DELETE", ENDPOINTS)


def slice_of(name: str = "new", kind: Any = "IPv4", **fields: Any) -> Fields:
    each: Fields = {"endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [port(name="a")], **fields}
    return named(name, metadata=each.pop("metadata", {}), addressType=kind, **each)


ENDS: list[Any] = [
    {},
    *of("addresses", [[], None, [""], ["x"], ["1.2.3.4", "1.2.3.4"], ["1.2.3.4", "2.3.4.5"], ["fd00::1"]]),
    *of(
        "addresses",
        [["01.2.3.4"], ["FD00::1"], ["::ffff:1.2.3.4"], ["127.0.0.1"], ["::1"], ["0.0.0.0"], ["::"]],
    ),
    *of(
        "addresses", [["169.254.1.1"], ["fe80::1"], ["224.0.0.1"], ["a.test"], ["A.test"], ["a"], ["a.test."]]
    ),
    *of("addresses", [["FE80::1"], ["FF02:0::1"], ["0::1"], ["0::0"], ["::FFFF:1.2.3.4"], ["fe80::1%eth0"]]),
    *of("addresses", [["*.a.test"], ["a_b.test"], [f"1.2.3.{i}" for i in range(1, 101)]]),
    *of("addresses", [[f"1.2.3.{i}" for i in range(1, 102)]]),
    *(
        {"addresses": ["1.2.3.4"], name: value}
        for name, values in (
            ("hostname", ["a", "A", "a.b", "", "a" * 64, None]),
            ("nodeName", ["n", "N", "a.b", "", "a_b"]),
            ("zone", ["z", "Z Z", "", "a" * 300]),
            (
                "conditions",
                [{}, None, {"ready": False}, {"ready": None, "serving": True, "terminating": True}],
            ),
            ("conditions", [{"unknown": True}, {"ready": "x"}]),
            ("deprecatedTopology", [{"a": "b"}, {}, {"kubernetes.io/hostname": "n"}]),
            ("targetRef", [{}, {"kind": "Pod", "name": "p"}, None]),
            (
                "hints",
                [{}, None, {"forZones": []}, {"forZones": [{"name": "a"}]}, {"forZones": [{"name": ""}]}],
            ),
            ("hints", [{"forZones": [{"name": "a"}, {"name": "a"}]}, {"forZones": [{"name": "a b"}]}]),
            ("hints", [{"forZones": [{"name": f"z{i}"} for i in range(number)]} for number in (8, 9)]),
            ("hints", [{"forNodes": [{"name": f"n{i}"} for i in range(number)]} for number in (1, 8, 9)]),
            ("hints", [{"forNodes": [{"name": "N"}]}, {"forNodes": [{"name": ""}, {"name": ""}]}]),
            ("hints", [{"forZones": [{"name": "-"}], "forNodes": [{"name": "-"}]}, {"forZones": [{}]}]),
        )
        for value in values
    ),
]
SLICE_PORTS: list[Any] = [
    None,
    [],
    [{}],
    [{}, {}],
    [{"name": None}, {"name": ""}],
    *([{"name": name, "port": 1}] for name in ("A", "a_b", "a.b", "a" * 63, "a" * 64)),
    [{"name": "a", "port": 1}, {"name": "a", "port": 2}],
    [{"name": "a", "port": 1}, {"name": "b", "port": 1}],
    *([{"port": number}] for number in (0, -1, 65535, 65536, None)),
    *([{"port": 1, "protocol": one}] for one in ("UDP", "SCTP", "", "tcp", None)),
    *([{"port": 1, "appProtocol": one}] for one in ("http", "a b", "", "a/b", None)),
    [{"name": f"p{i}", "port": i + 1} for i in range(101)],
]
SLICE_LABELS: list[Any] = [
    {"kubernetes.io/service-name": "s"},
    {"kubernetes.io/service-name": ""},
    {"kubernetes.io/service-name": "a b"},
    {"endpointslice.kubernetes.io/managed-by": "me"},
    {"service.kubernetes.io/headless": ""},
]


def slices() -> Iterator[Ask]:
    place, new = f"{SLICES}/old", f"{SLICES}{DRY}"
    yield Ask("POST", SLICES, slice_of("old"))
    for kind in ("IPv4", "IPv6", "FQDN", "", "IP", "ipv4", None):
        yield Ask("POST", new, slice_of(kind=kind))
        yield Ask("POST", new, slice_of(kind=kind, endpoints=[]))
        yield Ask("PUT", f"{place}{DRY}", slice_of("old", kind))
        yield Ask("PATCH", f"{place}{DRY}", {"addressType": kind}, MERGE)
        for one in ENDS[:35] if kind in ("IPv6", "FQDN", "IP") else ():
            yield Ask("POST", new, slice_of(kind=kind, endpoints=[one]), what=str(one)[:80])
    for one in ENDS:
        yield Ask("POST", new, slice_of(endpoints=[one]), what=str(one)[:80])
        yield Ask("PUT", f"{place}{DRY}", slice_of("old", endpoints=[one]), what=str(one)[:80])
        yield Ask("PATCH", f"{place}{DRY}", {"endpoints": [one]}, STRATEGIC, what=str(one)[:80])
    for value in SLICE_PORTS:
        yield Ask("POST", new, slice_of(ports=value), what=str(value)[:80])
        yield Ask("PATCH", f"{place}{DRY}", {"ports": value}, MERGE, what=str(value)[:80])
    for labels in SLICE_LABELS:
        yield Ask("POST", new, slice_of(metadata={"labels": labels}))
        yield Ask("PATCH", f"{place}{DRY}", {"metadata": {"labels": labels}}, MERGE)
    for many in (1000, 1001):
        each = [{"addresses": [f"1.2.{i // 250}.{i % 250 + 1}"]} for i in range(many)]
        yield Ask("POST", new, slice_of(endpoints=each), what=str(many))
    yield Ask("POST", new, slice_of(endpoints=[{"addresses": ["1.2.3.4"]}, {"addresses": ["1.2.3.4"]}]))
    yield Ask("POST", new, slice_of(ports=[{"name": f"p{i}"} for i in range(20_001)], endpoints=[]))
    yield Ask("POST", new, named("new", addressType="IPv4"))
    yield Ask("POST", new, named("new", addressType="IPv4", endpoints=None, ports=None))
    yield Ask("POST", new, slice_of(metadata={"generation": 7}))
    yield Ask("PATCH", place, {"metadata": {"annotations": {"a": "b"}}}, MERGE)
    yield Ask("PATCH", place, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    yield Ask(
        "PATCH", place, {"endpoints": [{"addresses": ["1.2.3.4"], "deprecatedTopology": {"a": "b"}}]}, MERGE
    )
    yield Ask("PATCH", place, {"endpoints": [{"addresses": ["1.2.3.4"], "zone": "z"}]}, MERGE)
    yield Ask("PATCH", place, [{"op": "add", "path": "/endpoints/0/addresses/-", "value": "1.2.3.4"}], JSON)
    applied = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}
    for name in ("old", "new"):
        body = {**applied, **slice_of(name, ports=[port(name="a"), port(name="b")])}
        yield Ask("PATCH", f"{SLICES}/{name}{DRY}&fieldManager=m&force=true", body, APPLIED)
    yield Ask("PUT", f"{SLICES}/absent", slice_of("absent"))
    yield Ask("GET", SLICES, headers=TABLE)
    yield Ask("GET", f"{SLICES}?fieldSelector=addressType=IPv4")
    yield Ask("GET", f"{place}/status")
    yield Ask("DELETE", SLICES)


CLASS_NOTE = "kubernetes.io/ingress.class"
BACKEND: Fields = {"service": {"name": "s", "port": {"number": 80}}}
RESOURCE: Fields = {"resource": {"apiGroup": "a.test", "kind": "Bucket", "name": "b"}}


def path_of(path: Any = "/", kind: Any = "Prefix", backend: Any = BACKEND) -> Fields:
    return {"path": path, "pathType": kind, "backend": backend}


def rules_of(*paths: Fields, **fields: Any) -> Fields:
    return {"rules": [{"http": {"paths": list(paths)}, **fields}]}


SPECS_OF_INGRESSES: list[Fields] = [
    {"defaultBackend": None},
    {"defaultBackend": None, "rules": [{"host": "a.test"}]},
    {"defaultBackend": None, "rules": [{}]},
    *of("defaultBackend", [RESOURCE, {**BACKEND, **RESOURCE}, {}, {"service": {"name": "s"}}]),
    *of(
        "defaultBackend",
        [
            {"service": {"name": "s", "port": {"name": name}}}
            for name in ("http", "HTTP", "a--b", "", "80", "a" * 16)
        ],
    ),
    *of(
        "defaultBackend",
        [{"service": {"name": name, "port": {"number": 1}}} for name in ("1a", "a.b", "A", "a" * 64)],
    ),
    *(
        rules_of(path_of(path, kind))
        for kind in ("Exact", "Prefix", "ImplementationSpecific")
        for path in (
            "/a",
            None,
            "/$1",
            "/*",
            "/(.*)",
            "/a//",
            "/a/%2E%2E/b",
            "/\u00e9",
            "/a?b",
            "/a#b",
            "",
            "/a\tb",
            "//",
        )
    ),
    rules_of(path_of(), path_of(), path_of("/", "Exact")),
    rules_of(path_of(), host="a.test"),
    *(
        rules_of(path_of(), host=host)
        for host in ("*.test", "*.A.test", "**.test", "a.*", "1.2.3.4", "01.2.3.4", "[::1]")
    ),
    *(
        rules_of(path_of(), host=host)
        for host in ("a" * 253, "a" * 64 + ".test", "a.test.", ".test", "a..test", "*.", " ")
    ),
    rules_of(path_of(backend=RESOURCE), path_of("/b", backend={**BACKEND, **RESOURCE})),
    rules_of({"backend": BACKEND}),
    rules_of({"path": "/", "pathType": "Prefix"}),
    *of(
        "tls",
        [
            [{"hosts": hosts, "secretName": "s"}]
            for hosts in ([], ["a.test"], ["*"], ["*.test"], [""], ["1.2.3.4"])
        ],
    ),
    *of("tls", [[{"secretName": name}] for name in ("", "a", "A", "a.b", "a/b", "a" * 254)]),
    *of("ingressClassName", ["c", "C", "a.b", "", "a" * 254, None]),
    {"backend": BACKEND},
    {"unknown": 1},
]


def ingresses() -> Iterator[Ask]:
    place, spec = f"{INGRESSES}/old", {"defaultBackend": BACKEND, "ingressClassName": "c"}
    noted, new = f"{INGRESSES}/noted", f"{INGRESSES}{DRY}"
    note = {"annotations": {CLASS_NOTE: "c"}}
    yield Ask("POST", INGRESSES, named("old", spec))
    yield Ask("POST", INGRESSES, named("noted", {"defaultBackend": BACKEND}, metadata=note))
    for more in SPECS_OF_INGRESSES:
        yield Ask("POST", new, named("new", {"defaultBackend": BACKEND, **more}), what=str(more)[:80])
        yield Ask("PATCH", f"{place}{DRY}", {"spec": more}, MERGE, what=str(more)[:80])
        yield Ask(
            "PUT", f"{noted}{DRY}", named("noted", {"defaultBackend": BACKEND, **more}), what=str(more)[:80]
        )
    for one in ("c", "d", "", "No_Name", None):
        for two in ("c", "", "x"):
            body = {"defaultBackend": BACKEND, "ingressClassName": one}
            yield Ask("POST", new, named("new", body, metadata={"annotations": {CLASS_NOTE: two}}))
        for where in (place, noted):
            yield Ask("PATCH", f"{where}{DRY}", {"spec": {"ingressClassName": one}}, MERGE)
            yield Ask("PATCH", f"{where}{DRY}", {"metadata": {"annotations": {CLASS_NOTE: one}}}, MERGE)
    for value in [*INGRESS_STATUS, [{"ip": "FD00::1"}], [{"ip": "1.2.3.4", "hostname": "a"}]]:
        status = {"status": {"loadBalancer": {"ingress": value}}}
        yield Ask("PATCH", f"{place}/status{DRY}", status, MERGE, what=str(value))
        yield Ask("PUT", f"{place}/status{DRY}", named("old", spec, **status), what=str(value))
        yield Ask("PATCH", f"{place}{DRY}", status, STRATEGIC, what=str(value))
        yield Ask("POST", new, named("new", spec, **status), what=str(value))
    for error in ("a", "a.b/C", "A B", "", "a/b/c"):
        each = [{"ip": "1.2.3.4", "ports": [{"port": 1, "protocol": "TCP", "error": error}]}]
        yield Ask(
            "PATCH", f"{place}/status{DRY}", {"status": {"loadBalancer": {"ingress": each}}}, MERGE, error
        )
    for patch in (
        {"rules": [{"host": "a.test"}]},
        {"rules": [{"host": "a.test", "http": {"paths": [path_of()]}}], "$patch": "replace"},
        {"tls": [{"hosts": ["a.test"]}], "defaultBackend": {"$patch": "replace", **RESOURCE}},
        {"defaultBackend": RESOURCE},
        {"defaultBackend": {"service": {"port": {"name": "http"}}}},
        {"defaultBackend": {"service": {"port": {"name": "http", "number": None}}}},
    ):
        yield Ask("PATCH", f"{place}{DRY}", {"spec": patch}, STRATEGIC, what=str(patch))
    applied = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
    for name in ("old", "new"):
        for more in ({}, {"defaultBackend": RESOURCE}, rules_of(path_of())):
            body = {**applied, **named(name, more)}
            yield Ask(
                "PATCH", f"{INGRESSES}/{name}{DRY}&fieldManager=m&force=true", body, APPLIED, what=str(more)
            )
    for name in NAMES:
        yield Ask("POST", new, named(name, spec))
    yield Ask("PUT", f"{INGRESSES}/absent", named("absent", spec))
    yield Ask("PATCH", place, {"spec": {"ingressClassName": "d"}}, MERGE)
    yield Ask("PATCH", place, {"metadata": {"annotations": {CLASS_NOTE: "e"}}}, MERGE)
    yield Ask("PATCH", place, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    each = [
        {"ip": "2.2.2.2"},
        {"hostname": "b.test"},
        {"ip": "1.1.1.1"},
        {"ip": "1.1.1.1", "hostname": "a.test"},
    ]
    yield Ask("PATCH", f"{place}/status", {"status": {"loadBalancer": {"ingress": [*each, {}]}}}, MERGE)
    yield Ask("GET", INGRESSES, headers=TABLE)
    yield Ask("DELETE", INGRESSES)


def block(cidr: Any, *excepted: Any) -> Fields:
    return {"ipBlock": {"cidr": cidr, "except": list(excepted)}}


PEERS: list[Any] = [
    block("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9"),
    block("10.0.0.0/8", "010.0.0.0/9"),
    block("10.0.0.0/8", "10.0.0.1/9", "::/0"),
    block("0.0.0.0/0", "0.0.0.0/0"),
    block("0.0.0.0/0", "0.0.0.0/1"),
    block("10.0.0.0/32", "10.0.0.0/32"),
    block("10.0.0.0/31", "10.0.0.1/32"),
    block("10.0.0.0/-1"),
    block("10.0.0.0/33"),
    block(" 10.0.0.0/8"),
    block("10.0.0/8"),
    block("fe80::%1/64"),
    block("FD00::/8", "FD00::/16"),
    block("fd00::/008"),
    block("::ffff:10.0.0.0/104", "::ffff:10.0.0.0/112"),
    {"ipBlock": {"cidr": "10.0.0.0/8", "except": None}},
    {"ipBlock": None},
    {"podSelector": None, "namespaceSelector": {}},
    {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}},
    {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
    {"podSelector": {"matchExpressions": [{"key": "a b", "operator": "In", "values": ["b c"]}]}},
    {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
    {"namespaceSelector": {"matchLabels": {"a": "b c"}}},
    {"namespaceSelector": {"matchLabels": {}, "matchExpressions": []}},
    {"unknown": {}},
]
POLICY_PORTS: list[Any] = [
    *(
        {"port": one, "endPort": end}
        for one in (1, 100, "a", None, 65535, 0)
        for end in (1, 100, 65535, 65536, -1, 0)
    ),
    *({"port": one} for one in ("a" * 15, "a" * 16, "1", "a--b", "-a", "A", 65535)),
    *({"port": 1, "protocol": one} for one in ("TCP", "UDP", "SCTP", "", "tcp", "ICMP", None)),
    {"unknown": 1},
]
TYPES_OF_POLICIES: list[Any] = [
    None,
    *(
        [*kinds]
        for kinds in ([], ["Ingress"], ["Egress"], ["Egress", "Ingress"], ["Egress", "Egress"], ["x"], [""])
    ),
    ["Ingress", "Egress", "Ingress"],
    ["Ingress", "Egress", "x"],
]


def policies() -> Iterator[Ask]:
    place, new = f"{POLICIES}/old", f"{POLICIES}{DRY}"
    standing = {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{"from": [block("10.0.0.0/8")]}]}
    yield Ask("POST", POLICIES, named("old", standing))
    ways: list[Fields] = [
        {},
        *of("ingress", [[], None]),
        *of("egress", [[], None, [{}], [{"ports": [{"port": 1}]}]]),
        {"ingress": None, "egress": None},
    ]
    specs: list[Fields] = [
        *({way: [{peers: [one]}]} for way, peers in (("ingress", "from"), ("egress", "to")) for one in PEERS),
        *({way: [{"ports": [one]}]} for way in ("ingress", "egress") for one in POLICY_PORTS),
        *({"policyTypes": kinds, **more} for kinds in TYPES_OF_POLICIES for more in ways),
        {"ingress": [{"ports": [], "from": []}]},
        {"ingress": [{"ports": None, "from": None}, {}]},
        {"ingress": [{"to": []}]},
        {"podSelector": None},
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}},
        {"unknown": 1},
    ]
    for index, spec in enumerate(specs):
        yield Ask("POST", new, named("new", {"podSelector": {}, **spec}), what=str(spec))
        if index % 2:
            yield Ask("PATCH", f"{place}{DRY}", {"spec": spec}, MERGE, what=str(spec))
        else:
            yield Ask("PUT", f"{place}{DRY}", named("old", {**standing, **spec}), what=str(spec))
    patches: list[Fields] = [
        {"ingress": [{"from": [block("11.0.0.0/8")]}]},
        {"policyTypes": ["Egress"]},
        {"policyTypes": None, "egress": [{}]},
        {"podSelector": {"matchLabels": {"a": None}}},
        {"podSelector": {"$patch": "replace", "matchLabels": {"c": "d"}}},
        {"$patch": "replace"},
    ]
    for patch in patches:
        yield Ask("PATCH", f"{place}{DRY}", {"spec": patch}, STRATEGIC, what=str(patch))
    applied = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    for name in ("old", "new"):
        for more in (*ways, {"podSelector": {}}):
            body = {**applied, **named(name, more)}
            yield Ask(
                "PATCH", f"{POLICIES}/{name}{DRY}&fieldManager=m&force=true", body, APPLIED, what=str(more)
            )
    for name in NAMES:
        yield Ask("POST", new, named(name, standing))
    yield Ask("POST", new, named("new"))
    yield Ask("POST", new, named("new", standing, status={"conditions": []}))
    yield Ask("PUT", f"{POLICIES}/absent", named("absent", standing))
    yield Ask("PATCH", place, {"metadata": {"annotations": {"a": "b"}}}, MERGE)
    yield Ask("PATCH", place, {"spec": {"egress": []}}, MERGE)
    yield Ask("PATCH", place, {"spec": {"ingress": None}}, MERGE)
    yield Ask("PATCH", f"{place}/status", {"status": {}}, MERGE)
    yield Ask("GET", POLICIES, headers=TABLE)
    yield Ask("DELETE", POLICIES)


def shown_and_gone() -> Iterator[Ask]:
    """Services of each sort in tables and under selectors, and what goes with them."""
    selector = {"selector": {"b": "c", "a": "d"}}
    many = {
        "ports": [port(name="a"), port(81, name="b", protocol="UDP"), port(82, name="c", protocol="SCTP")]
    }
    each: dict[str, Fields] = {
        "plain": {"ports": [port()], **selector},
        "many": many,
        "headless": {"clusterIP": "None", **selector},
        "outside": {"ports": [port()], "externalIPs": ["1.2.3.4", "fd00::1"]},
        "node": {"type": "NodePort", "ports": [port(nodePort=30760)]},
        "bare": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": [port()]},
        "balancer": {"type": "LoadBalancer", "ports": [port(nodePort=30761)], "externalIPs": ["1.2.3.4"]},
        "name": {"type": "ExternalName", "externalName": "a.test"},
        "ports-of-name": {
            "type": "ExternalName",
            "externalName": "a.test.",
            "externalIPs": ["1.2.3.4"],
            **many,
        },
    }
    for name, spec in each.items():
        yield Ask("POST", SERVICES, named(name, spec, metadata={"labels": {"sort": name}}))
        meta = {"finalizers": ["a.b/c"]} if name == "headless" else {}
        yield Ask(
            "POST", ENDPOINTS, named(name, metadata=meta, subsets=[{"addresses": [ONE], "ports": [port()]}])
        )
        yield Ask("POST", SLICES, slice_of(name, metadata={"labels": {"kubernetes.io/service-name": name}}))
    long = [{}, *({"ip": f"100.100.100.10{i % 4}"} for i in range(5))]
    for name in ("bare", "balancer"):
        status = {"status": {"loadBalancer": {"ingress": [*long, {"hostname": "a.test", "ip": "1.1.1.1"}]}}}
        yield Ask("PATCH", f"{SERVICES}/{name}/status", status, MERGE)
    yield Ask("GET", SERVICES, headers=TABLE)
    for query in (
        "spec.type=NodePort",
        "spec.type!=ClusterIP",
        "spec.clusterIP=None",
        "spec.clusterIP=",
        "spec.x=y",
    ):
        yield Ask("GET", f"{SERVICES}?fieldSelector={query}", headers=TABLE)
    yield Ask("GET", f"{SERVICES}?labelSelector=sort%20in%20(node,bare)", headers=TABLE)
    yield Ask("DELETE", f"{SERVICES}/plain{DRY}")
    yield Ask("GET", f"{ENDPOINTS}/plain")
    for name, options in (
        ("plain", None),
        ("many", {"propagationPolicy": "Orphan"}),
        ("node", {"propagationPolicy": "Foreground"}),
        ("headless", {"gracePeriodSeconds": 5}),
        ("name", {"propagationPolicy": "x"}),
    ):
        yield Ask("DELETE", f"{SERVICES}/{name}", options)
        for items in (SERVICES, ENDPOINTS, SLICES):
            yield Ask("GET", f"{items}/{name}")
    yield Ask("PATCH", f"{SERVICES}/node", {"metadata": {"finalizers": None}}, MERGE)
    yield Ask("GET", f"{ENDPOINTS}/node")
    yield Ask("DELETE", f"{SERVICES}?labelSelector=sort%20in%20(bare,balancer){DRY.replace('?', '&')}")
    yield Ask("DELETE", f"{SERVICES}?fieldSelector=spec.type=LoadBalancer")
    yield Ask("DELETE", SERVICES)
    yield Ask("GET", ENDPOINTS)
    yield Ask("PATCH", f"{ENDPOINTS}/headless", {"metadata": {"finalizers": None}}, MERGE)
    yield Ask("DELETE", ENDPOINTS)
    yield Ask("DELETE", SLICES)


def ranges() -> Iterator[Ask]:
    """Ranges and addresses, by the writes that are rare."""
    cidrs, addresses = f"{NETWORKING}/servicecidrs", f"{NETWORKING}/ipaddresses"
    group = {"apiVersion": "networking.k8s.io/v1"}
    parent = {"resource": "services", "namespace": "x", "name": "y"}
    yield Ask("POST", addresses, named("10.240.7.1", {"parentRef": parent}))
    for fields in ({"name": "z"}, {"group": "a.test"}, {"name": None}, {"$patch": "replace"}, {"unknown": 1}):
        body = {"spec": {"parentRef": fields}}
        for kind in (MERGE, STRATEGIC):
            yield Ask("PATCH", f"{addresses}/10.240.7.1{DRY}", body, kind, what=str(fields))
        applied = {**group, "kind": "IPAddress", "metadata": {"name": "10.240.7.1"}, **body}
        yield Ask("PATCH", f"{addresses}/10.240.7.1{DRY}&fieldManager=m&force=true", applied, APPLIED)
        new = {**applied, "metadata": {"name": "10.240.7.2"}}
        yield Ask("PATCH", f"{addresses}/10.240.7.2{DRY}&fieldManager=m", new, APPLIED)
    yield Ask("PUT", f"{addresses}/10.240.7.1{DRY}", named("10.240.7.1", {"parentRef": parent}))
    yield Ask("PUT", f"{addresses}/10.240.7.1{DRY}", named("10.240.7.1"))
    yield Ask("PATCH", f"{addresses}/10.240.7.1", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    yield Ask("DELETE", f"{addresses}/10.240.7.1")
    for value in (["10.250.7.0/24"], ["10.250.7.0/24", "fd07::/112"], ["10.250.7.1/24"], [], None):
        applied = {**group, "kind": "ServiceCIDR", **named("applied", {"cidrs": value})}
        yield Ask("PATCH", f"{cidrs}/applied{DRY}&fieldManager=m", applied, APPLIED)
        yield Ask("PATCH", f"{cidrs}/kubernetes{DRY}", {"spec": {"cidrs": value}}, STRATEGIC)
        yield Ask("PATCH", f"{cidrs}/kubernetes{DRY}", {"spec": {"cidrs": value}}, MERGE)
    for conditions in CONDITIONS:
        body = {"status": {"conditions": conditions}}
        for kind in (MERGE, STRATEGIC):
            yield Ask("PATCH", f"{cidrs}/kubernetes/status{DRY}", body, kind, what=str(conditions)[:80])
        yield Ask("PATCH", f"{cidrs}/kubernetes{DRY}", body, MERGE)
    yield Ask("DELETE", f"{cidrs}/kubernetes{DRY}")


def compared() -> Iterator[Compared]:
    of_new = {"headless": [*ADDRESS_FIELDS, *BALANCER_FIELDS], "NodePort": [*PORT_FIELDS, *TRAFFIC_FIELDS]}
    of_old = {
        "cluster": FIELDS,
        "headless": ADDRESS_FIELDS,
        "local": [*PORT_FIELDS, *TRAFFIC_FIELDS, *BALANCER_FIELDS],
    }
    for name, base in TYPES.items():
        yield Compared(f"new {name}", created(base, of_new.get(name, FIELDS)), apart=True)
    for name, old in OLD.items():
        yield Compared(f"old {name}", list(changed(name, old, of_old.get(name, []))), apart=True)
    yield Compared("written", list(written()), apart=True)
    yield Compared("versioned", list(versioned()))
    yield Compared("endpoints", list(endpoints()), apart=True)
    yield Compared("slices", list(slices()), apart=True)
    yield Compared("ingresses", list(ingresses()), apart=True)
    yield Compared("policies", list(policies()), apart=True)
    yield Compared("shown and gone", list(shown_and_gone()), apart=True)
    yield Compared("ranges", list(ranges()), apart=True)
    yield Compared("statuses", list(statuses()), apart=True)


SEQUENCES = {one.name: one for one in compared()}
BOTH = {"ipFamilyPolicy": "RequireDualStack"}
OF_BOTH_FAMILIES: dict[str, Fields] = {
    "cluster": {},
    "headless": {"clusterIP": "None", "selector": None},
    "local": OLD["local"],
    "both": BOTH,
}
FIELDS_OF_BOTH: list[Fields] = [
    *ADDRESS_FIELDS,
    *(
        {"clusterIP": addresses[0], "clusterIPs": addresses, "ipFamilyPolicy": policy, "ipFamilies": families}
        for addresses in (["10.96.1.77", "fd00:96::77"], ["fd00:96::77", "10.96.1.77"])
        for policy in ("SingleStack", "PreferDualStack", "RequireDualStack", None)
        for families in (None, ["IPv4"], ["IPv4", "IPv6"], ["IPv6", "IPv4"])
    ),
    *({"clusterIP": "fd00:96::77", "ipFamilies": families} for families in (None, ["IPv4"], ["IPv6"])),
    *of("clusterIP", ["fd00:96::", "fd00:96::ffff", "FD00:96::5"]),
    {"clusterIPs": None, "ipFamilies": None, "ipFamilyPolicy": "SingleStack"},
]
DUAL = {
    "new": Compared("new", created({}, FIELDS_OF_BOTH), apart=True),
    **{
        name: Compared(name, list(changed(name, old, FIELDS_OF_BOTH)), apart=True)
        for name, old in OF_BOTH_FAMILIES.items()
    },
}
dual = test_dual_stack.dual


@pytest.mark.parametrize("name", SEQUENCES)
def test_services(name: str, kubernetes: Server, podling: Server) -> None:
    sequence = SEQUENCES[name]
    found = unnamed(differences(sequence, f"rules-{name.replace(' ', '-').lower()}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize("name", DUAL)
def test_services_of_both_families(name: str, dual: tuple[Server, Server]) -> None:
    found = unnamed(differences(DUAL[name], f"rules-{name}", *dual))
    assert not found, f"\n{shown(DUAL[name], found)}"
