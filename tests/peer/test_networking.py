"""R-SYS-8: the kinds of networking.k8s.io/v1 are defaulted, validated and changed as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/networking.k8s.io/v1"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
Changes = list[tuple[str, Any]]

META: Changes = [
    ("metadata.name", "No_Name"),
    ("metadata.labels", {"a": "-"}),
    ("metadata.generation", 7),
    ("status", {"a": 1}),
    ("spec.unknown", 1),
    ("spec", GONE),
]
PARAMETERS = {"apiGroup": "example.com", "kind": "Settings", "name": "n"}
LONG = "example.com/" + "a" * 239
CLASS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "IngressClass",
    "metadata": {"name": "c"},
    "spec": {"controller": "example.com/c"},
}
CLASSES: Changes = [
    *(
        ("spec.controller", value)
        for value in ["", GONE, "c", "/c", "example.com/", "Example/c", "e.com/a/b", "e.com/a b", LONG, 3]
    ),
    ("spec.parameters", {}),
    ("spec.parameters", PARAMETERS),
    ("spec.parameters", PARAMETERS | {"apiGroup": ""}),
    ("spec.parameters", PARAMETERS | {"apiGroup": "No_Group"}),
    ("spec.parameters", {"kind": "Settings", "name": "n"}),
    ("spec.parameters", PARAMETERS | {"kind": "a/b"}),
    ("spec.parameters", PARAMETERS | {"kind": ""}),
    ("spec.parameters", PARAMETERS | {"name": "a%b"}),
    ("spec.parameters", PARAMETERS | {"name": ".."}),
    ("spec.parameters", PARAMETERS | {"scope": "Cluster", "namespace": "a"}),
    ("spec.parameters", PARAMETERS | {"scope": "Namespace", "namespace": "a"}),
    ("spec.parameters", PARAMETERS | {"scope": "Namespace", "namespace": "No_Name"}),
    ("spec.parameters", PARAMETERS | {"scope": "Namespace", "namespace": ""}),
    ("spec.parameters", PARAMETERS | {"scope": "Namespace"}),
    ("spec.parameters", PARAMETERS | {"scope": "World", "namespace": "a"}),
    ("spec.parameters", PARAMETERS | {"scope": ""}),
    ("spec.parameters", PARAMETERS | {"scope": None}),
    ("metadata.annotations", {"ingressclass.kubernetes.io/is-default-class": "maybe"}),
]
CLASS_UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("spec.controller", "example.com/d"),
    ("spec.controller", "d"),
    ("spec.controller", ""),
    ("spec.parameters", PARAMETERS),
    ("spec.parameters.scope", "World"),
    ("spec.parameters.scope", "Namespace"),
    ("spec.parameters", GONE),
    ("spec", GONE),
]

POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "p"},
    "spec": {"podSelector": {"matchLabels": {"app": "a"}}},
}
PODS = {"podSelector": {"matchLabels": {"app": "b"}}}
SPACES = {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
BAD = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


def block(cidr: Any, *excepted: Any) -> dict[str, Any]:
    return {"ipBlock": {"cidr": cidr, **({"except": list(excepted)} if excepted else {})}}


PORTS: list[Any] = [
    {},
    {"port": 80},
    {"port": 0},
    {"port": 65536},
    {"port": "http"},
    {"port": "No_Port"},
    {"port": ""},
    {"port": "80"},
    *({"port": value} for value in [1.5, True, {}, [], 5_000_000_000]),
    {"protocol": "UDP"},
    {"protocol": "SCTP", "port": 7},
    {"protocol": "ICMP"},
    {"protocol": ""},
    {"protocol": "tcp"},
    {"port": 80, "endPort": 90},
    {"port": 80, "endPort": 80},
    {"port": 80, "endPort": 79},
    {"port": 80, "endPort": 70000},
    {"port": 80, "endPort": 0},
    {"port": 0, "endPort": -1},
    {"port": "http", "endPort": 90},
    {"port": "No_Port", "endPort": 90},
    {"endPort": 90},
]
PEERS: list[Any] = [
    {},
    PODS,
    SPACES,
    PODS | SPACES,
    {"podSelector": {}},
    {"podSelector": BAD},
    {"namespaceSelector": BAD},
    {"ipBlock": {}},
    block("10.0.0.0/8"),
    block("10.0.0.0/8") | PODS,
    block("10.0.0.0/8") | PODS | SPACES,
    block("10.0.0.0"),
    block("x"),
    block(""),
    block("", "10.0.0.0/8"),
    block("x", "10.0.0.0/8", "y"),
    block("10.0.0.1/8"),
    block("010.0.0.0/8"),
    block("10.0.0.0/08"),
    block("10.0.0.0/8", "10.1.0.0/16"),
    block("10.0.0.0/8", "10.0.0.0/8"),
    block("10.0.0.0/8", "11.0.0.0/16"),
    block("10.0.0.0/8", "0.0.0.0/0"),
    block("10.0.0.0/8", "10.1.0.1/16", "y", ""),
    block("10.0.0.1/8", "10.1.0.0/16", "11.0.0.0/16"),
    block("10.0.0.0/8", "2001:db8::/64"),
    block("2001:db8::/32", "2001:db8:1::/48"),
    block("2001:DB8::/32", "2001:DB8:1:0::/64"),
    block("::ffff:10.0.0.0/104"),
    block("::/0", "::ffff:10.0.0.0/104"),
    block("0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/8"),
]
POLICIES: Changes = [
    ("spec.podSelector", GONE),
    ("spec.podSelector", {}),
    ("spec.podSelector", {"matchLabels": {"-": "b"}}),
    ("spec.podSelector", {"matchLabels": {"a": "-"}}),
    ("spec.podSelector", BAD),
    *(
        ("spec.policyTypes", value)
        for value in [
            [],
            ["Egress"],
            ["Ingress", "Egress"],
            ["Ingress", "Ingress"],
            ["Odd", "ingress"],
            ["Ingress", "Egress", "Odd"],
            [""],
        ]
    ),
    ("spec.ingress", []),
    ("spec.ingress", [{}]),
    ("spec.egress", []),
    ("spec.egress", [{}]),
    ("spec.ingress", [{}, {"ports": [{}, {"port": 0}], "from": [PODS, {}]}]),
    *(("spec.ingress", [{"ports": [port]}]) for port in PORTS),
    *(("spec.egress", [{"ports": [port]}]) for port in PORTS[:5]),
    *(("spec.ingress", [{"from": [peer]}]) for peer in PEERS),
    *(("spec.egress", [{"to": [peer]}]) for peer in PEERS),
]
POLICY_UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("spec.podSelector", {"matchLabels": {"app": "b"}}),
    ("spec.podSelector", {"matchLabels": {"app": "-"}}),
    ("spec.egress", [{"to": [block("10.0.0.0/8", "10.1.0.0/16")]}]),
    ("spec.policyTypes", ["Ingress", "Egress"]),
    ("spec.egress", [{"to": [block("10.0.0.1/8")]}]),
    ("spec.ingress", [{"ports": [{"port": "No_Port"}]}]),
    ("spec.ingress", [{"ports": [{"port": 1}]}]),
    ("spec.policyTypes", ["Odd"]),
    ("spec.policyTypes", GONE),
    ("status", {"a": 1}),
    ("spec", GONE),
]

SERVICE = {"service": {"name": "s", "port": {"number": 80}}}
RESOURCE = {"resource": {"apiGroup": "example.com", "kind": "Bucket", "name": "b"}}
INGRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "i"},
    "spec": {"defaultBackend": SERVICE},
}


def service(**fields: Any) -> dict[str, Any]:
    return {"service": {"name": "s", **fields}}


def resource(**fields: Any) -> dict[str, Any]:
    return {"resource": RESOURCE["resource"] | fields}


def rule(path: Any = "/", kind: Any = "Prefix", backend: Any = SERVICE) -> dict[str, Any]:
    return {"http": {"paths": [{"path": path, "pathType": kind, "backend": backend}]}}


BACKENDS: list[Any] = [
    {},
    RESOURCE,
    SERVICE | RESOURCE,
    service(),
    service(port={}),
    service(port={"name": "http"}),
    service(port={"name": "No_Port"}),
    service(port={"name": "http", "number": 80}),
    service(port={"number": 0}),
    service(port={"number": 65536}),
    service(port={"number": -1}),
    service(port={"number": "80"}),
    service(name="", port={"number": 80}),
    service(name="No_Name", port={"number": 80}),
    service(name="a" * 64, port={"number": 80}),
    service(name="1a", port={"number": 80}),
    service(name="a.b", port={"number": 80}),
    {"service": {}},
    {"resource": {}},
    resource(apiGroup=""),
    resource(apiGroup=None),
    resource(apiGroup="No_Group"),
    resource(kind=""),
    resource(kind="a/b"),
    resource(name=""),
    resource(name="a%b"),
]
PATHS = [
    "",
    "/",
    "a",
    "/a",
    "/a/",
    "/a//b",
    "/./a",
    "/a/../b",
    "/a/..",
    "/a/.",
    "/a%2fb",
    "/%2F//./../..",
    "*",
    "/a b",
]
HOSTS = [
    "example.com",
    "Example.com",
    "*.example.com",
    "*",
    "a.*.example.com",
    "*example.com",
    "10.0.0.1",
    "010.0.0.1",
    "::1",
    "a_b",
    "example.com:80",
    "",
    "a" * 254,
    "*." + "a" * 254,
]
INGRESSES: Changes = [
    ("spec.defaultBackend", GONE),
    *(("spec.defaultBackend", backend) for backend in BACKENDS),
    ("spec.rules", []),
    ("spec.rules", [{}]),
    ("spec.rules", [{"http": {}}]),
    ("spec.rules", [{"http": {"paths": []}}]),
    ("spec.rules", [rule(), rule("a")]),
    ("spec.rules", [{"host": "a.example.com"}, {"host": "_"} | rule(kind="Odd", backend={})]),
    *(("spec.rules", [rule(backend=backend)]) for backend in BACKENDS[:10]),
    *(("spec.rules", [rule(path)]) for path in PATHS),
    *(("spec.rules", [rule(path, "Exact")]) for path in PATHS),
    *(("spec.rules", [rule(path, "ImplementationSpecific")]) for path in PATHS),
    *(("spec.rules", [rule(kind=kind)]) for kind in ["", None, "Odd", "prefix"]),
    *(("spec.rules", [{"host": host}]) for host in HOSTS),
    *(("spec.rules", [rule("a", "Odd") | {"host": host}]) for host in HOSTS[:5]),
    *(("spec.tls", [{"hosts": ["a.example.com", host]}]) for host in HOSTS),
    ("spec.tls", []),
    ("spec.tls", [{}]),
    ("spec.tls", [{}, {"secretName": "s"}]),
    ("spec.tls", [{}, {"secretName": "No_Name"}]),
    *(("spec.ingressClassName", name) for name in ["c", "No_Name", "", None, "a.b"]),
    ("metadata.annotations", {"kubernetes.io/ingress.class": "d"}),
    ("metadata.annotations", {"kubernetes.io/ingress.class": ""}),
    ("status", {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
]
INGRESS_UPDATES: Changes = [
    ("metadata.labels", {"x": "y"}),
    ("spec.ingressClassName", "c"),
    ("metadata.annotations", {"kubernetes.io/ingress.class": "d"}),
    ("spec.rules", [rule(), {"host": "*.example.com"}]),
    ("spec.rules", [rule("a"), {"host": "10.0.0.1"}]),
    ("spec.rules", GONE),
    ("spec.defaultBackend", GONE),
    ("spec.defaultBackend", RESOURCE),
    ("spec.defaultBackend.service", None),
    ("spec.tls", [{"hosts": ["_"], "secretName": "_"}]),
    ("status", {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
    ("spec", GONE),
]
PORT = {"port": 80, "protocol": "TCP"}
INGRESS_STATUS: Changes = [
    *(
        ("status.loadBalancer.ingress", value)
        for value in [
            [{"ip": "10.0.0.1"}],
            [{"ip": "10.0.0.1"}, {"hostname": "example.com"}],
            [{"ip": "010.0.0.1"}],
            [{"ip": "x"}],
            [{"ip": "::ffff:1.2.3.4"}],
            [{"hostname": "No_Host"}],
            [{"hostname": "10.0.0.1"}],
            [{"ip": "10.0.0.1", "hostname": "example.com"}],
            [{}],
            [{"ip": "10.0.0.1", "ports": [PORT]}],
            [{"ip": "10.0.0.1", "ports": [PORT | {"port": 0}]}],
            [{"ip": "10.0.0.1", "ports": [PORT | {"port": 70000}]}],
            [{"ip": "10.0.0.1", "ports": [PORT | {"protocol": "Odd"}]}],
            [{"ip": "10.0.0.1", "ports": [PORT | {"error": "No Error"}]}],
            [{"ip": "10.0.0.1", "ports": [{}]}],
            [],
        ]
    ),
    ("status", {"x": 1}),
    ("status.loadBalancer", GONE),
    ("spec.ingressClassName", "d"),
    ("spec.defaultBackend", RESOURCE),
    ("metadata.labels", {"from": "status"}),
    ("metadata.annotations", {"from": "status"}),
]


KINDS: dict[str, tuple[str, dict[str, Any], Changes, Changes]] = {
    "ingresses": (f"{GROUP}/namespaces/{{ns}}/ingresses", INGRESS, INGRESSES, INGRESS_UPDATES),
    "ingressclasses": (f"{GROUP}/ingressclasses", CLASS, CLASSES, CLASS_UPDATES),
    "networkpolicies": (f"{GROUP}/namespaces/{{ns}}/networkpolicies", POLICY, POLICIES, POLICY_UPDATES),
}
SHOWN: dict[str, Changes] = {
    "ingresses": [
        ("spec.tls", [{}]),
        ("spec.rules", [{"host": f"{name}.example.com"} for name in "abc"]),
        ("spec.rules", [{}, *({"host": f"{name}.example.com"} for name in "abcde")]),
        ("spec.rules", [*({"host": f"{name}.example.com"} for name in "abc"), {}]),
        ("spec.ingressClassName", "c"),
        ("metadata.annotations", {"kubernetes.io/ingress.class": "d"}),
    ],
    "ingressclasses": [
        ("spec.parameters", PARAMETERS),
        ("spec.parameters", {"kind": "Settings", "name": "n"}),
    ],
    "networkpolicies": [("spec.podSelector", {}), ("spec.podSelector", SPACES["namespaceSelector"])],
}


def sequences() -> list[Compared]:
    found = []
    for name, (target, base, changes, updates) in KINDS.items():
        place = f"{target}/{base['metadata']['name']}"
        found += [
            Compared(f"{name}: created", [*created(target, base, [*changes, *META]), Ask("DELETE", target)]),
            Compared(f"{name}: updated", updated(target, base, updates)),
            Compared(
                f"{name}: shown",
                [
                    Ask("POST", target, base),
                    *created(target, base, SHOWN[name]),
                    Ask("GET", place, headers=TABLE),
                    Ask("GET", target, headers=TABLE),
                    Ask("GET", f"{target}?fieldSelector=metadata.name%3D{base['metadata']['name']}"),
                    Ask("GET", f"{target}?fieldSelector=spec.controller%3Dx"),
                    Ask("GET", f"{target}?labelSelector=x"),
                    Ask("GET", f"{place}/status"),
                    Ask("DELETE", place, {"propagationPolicy": "Orphan"}),
                    Ask("GET", place),
                    Ask("DELETE", target),
                ],
            ),
        ]
    ingresses = KINDS["ingresses"][0]
    place = f"{ingresses}/i"
    addresses = [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2", "hostname": "example.com"}, {"hostname": "a.b"}]
    return [
        *found,
        Compared(
            "ingresses: status",
            [
                replace(ask, target=f"{place}/status") if ask.method == "PATCH" else ask
                for ask in updated(ingresses, INGRESS, INGRESS_STATUS)
            ],
        ),
        Compared(
            "ingresses: addresses",
            [
                Ask("POST", ingresses, INGRESS),
                Ask(
                    "PUT",
                    f"{place}/status",
                    changed(INGRESS, "status.loadBalancer.ingress", addresses),
                ),
                Ask("GET", place, headers=TABLE),
            ],
        ),
    ]


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_networking(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
