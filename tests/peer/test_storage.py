"""R-SYS-8: the kinds of storage.k8s.io are defaulted, validated, changed and shown as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server

GROUP = "/apis/storage.k8s.io/v1"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
LONG = "x" * 300
MANY = {f"k{number}": "v" for number in range(513)}


def made(kind: str, **fields: Any) -> dict[str, Any]:
    name = f"{kind.lower()}.example.test"
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **fields}


def terms(*requirements: tuple[str, list[str]]) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key, values in requirements]}


META: list[tuple[str, Any]] = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "two--dashes"),
    ("metadata.name", "a" * 64),
    ("metadata.name", LONG),
    ("metadata.labels", {"a": "-"}),
    ("metadata.namespace", "other"),
    ("unknown", 1),
]
PARAMETERS: list[tuple[str, Any]] = [
    ("parameters", GONE),
    ("parameters", {}),
    ("parameters", {"a": "b"}),
    ("parameters", {"": "b"}),
    ("parameters", {"a": ""}),
    ("parameters", {"a": 1}),
    ("parameters", MANY),
    ("parameters", {"a": "x" * 262_144}),
]
QUANTITIES: list[Any] = ["1Gi", "0", "-1", "1500m", "x", None, 5]
KINDS: dict[str, tuple[dict[str, Any], list[tuple[str, Any]], list[tuple[str, Any]]]] = {
    "storageclasses": (
        made("StorageClass", provisioner="p.example.test/P", parameters={"a": "b"}),
        [
            *PARAMETERS,
            *(
                ("provisioner", value)
                for value in (GONE, "", "a/b/c", "-", LONG, "kubernetes.io/no-provisioner")
            ),
            *(("reclaimPolicy", value) for value in ("Retain", "Delete", "Recycle", "Odd", "", None)),
            *(("volumeBindingMode", value) for value in ("WaitForFirstConsumer", "Odd", "", None)),
            *(("mountOptions", value) for value in ([], ["ro"], [""], ["a b"], "ro")),
            *(("allowVolumeExpansion", value) for value in (True, False, "x")),
            ("metadata.annotations", {"storageclass.kubernetes.io/is-default-class": "true"}),
            ("metadata.annotations", {"storageclass.beta.kubernetes.io/is-default-class": "true"}),
            ("metadata.annotations", {"storageclass.kubernetes.io/is-default-class": "yes"}),
            ("allowedTopologies", []),
            ("allowedTopologies", [{}]),
            ("allowedTopologies", [{}, {}]),
            ("allowedTopologies", [terms(("zone", ["a"]))]),
            ("allowedTopologies", [terms(("failure-domain.beta.kubernetes.io/zone", ["a"]))]),
            ("allowedTopologies", [terms(("zone", ["a", "a"]))]),
            ("allowedTopologies", [terms(("zone", []))]),
            ("allowedTopologies", [terms(("zone", ["a"]), ("zone", ["b"]))]),
            ("allowedTopologies", [terms(("zone", ["a", "b"])), terms(("zone", ["b", "a"]))]),
            ("allowedTopologies", [terms(("-", ["-"]))]),
            ("allowedTopologies", [terms(("", [""]))]),
        ],
        [
            ("parameters", {"a": "c"}),
            ("parameters", {"b": "c"}),
            ("provisioner", "other"),
            ("reclaimPolicy", "Retain"),
            ("reclaimPolicy", "Delete"),
            ("volumeBindingMode", "WaitForFirstConsumer"),
            ("volumeBindingMode", "Odd"),
            ("mountOptions", ["ro"]),
            ("allowVolumeExpansion", True),
            ("allowedTopologies", [terms(("zone", ["a"]))]),
        ],
    ),
    "csidrivers": (
        made("CSIDriver", spec={}),
        [
            ("spec", GONE),
            *(("spec.attachRequired", value) for value in (True, False, None)),
            *(("spec.podInfoOnMount", value) for value in (True, False, None)),
            *(("spec.storageCapacity", value) for value in (True, False, None)),
            *(("spec.requiresRepublish", value) for value in (True, False, None)),
            *(("spec.seLinuxMount", value) for value in (True, False, None)),
            *(("spec.serviceAccountTokenInSecrets", value) for value in (True, False, None)),
            *(("spec.preventPodSchedulingIfMissing", value) for value in (True, False, None)),
            *(
                ("spec.fsGroupPolicy", value)
                for value in ("File", "None", "ReadWriteOnceWithFSType", "Odd", "", None)
            ),
            *(
                ("spec.volumeLifecycleModes", value)
                for value in ([], ["Persistent"], ["Ephemeral", "Persistent"], ["Ephemeral"], ["Odd", "Even"])
            ),
            ("spec.volumeLifecycleModes", ["Ephemeral", "Ephemeral"]),
            *(("spec.nodeAllocatableUpdatePeriodSeconds", value) for value in (0, -1, 9, 10, 60)),
            ("spec.tokenRequests", []),
            ("spec.tokenRequests", [{"audience": ""}]),
            ("spec.tokenRequests", [{"audience": "a"}, {"audience": "b"}]),
            ("spec.tokenRequests", [{"audience": "a"}, {"audience": "a"}]),
            ("spec.tokenRequests", [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]),
            ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 599}]),
            ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 600}]),
            ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 4294967296}]),
            ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 4294967297}]),
            (
                "spec",
                {"serviceAccountTokenInSecrets": True, "tokenRequests": [{"audience": "a"}]},
            ),
        ],
        [
            ("spec.attachRequired", False),
            ("spec.podInfoOnMount", True),
            ("spec.storageCapacity", True),
            ("spec.fsGroupPolicy", "File"),
            ("spec.fsGroupPolicy", "Odd"),
            ("spec.volumeLifecycleModes", ["Ephemeral"]),
            ("spec.requiresRepublish", True),
            ("spec.seLinuxMount", True),
            ("spec.tokenRequests", [{"audience": "a"}]),
            ("spec.tokenRequests", [{"audience": "a", "expirationSeconds": 9}]),
            ("spec.serviceAccountTokenInSecrets", True),
            ("spec.nodeAllocatableUpdatePeriodSeconds", 20),
            ("spec.nodeAllocatableUpdatePeriodSeconds", 2),
        ],
    ),
    "csinodes": (
        made(
            "CSINode", spec={"drivers": [{"name": "d.example.test", "nodeID": "n", "topologyKeys": ["zone"]}]}
        ),
        [
            ("spec", GONE),
            ("spec", {}),
            *(
                ("spec.drivers.0.name", value)
                for value in (GONE, "", "No_Name", "Upper.Case", "a" * 64, LONG)
            ),
            *(("spec.drivers.0.nodeID", value) for value in (GONE, "", "x" * 192, "x" * 193, "x" * 300)),
            *(
                ("spec.drivers.0.topologyKeys", value)
                for value in (GONE, [], [""], ["a", "a"], ["a", "b"], ["-"], ["example.test/zone"])
            ),
            *(("spec.drivers.0.allocatable", value) for value in ({}, None, {"count": 0}, {"count": 5})),
            ("spec.drivers.0.allocatable", {"count": -1}),
            ("spec.drivers.0.allocatable", {"count": "x"}),
            ("spec.drivers", [{"name": "a", "nodeID": "n"}, {"name": "b", "nodeID": "n"}]),
            ("spec.drivers", [{"name": "a", "nodeID": "n"}, {"name": "a", "nodeID": "m"}]),
        ],
        [
            ("spec.drivers", [{"name": "d.example.test", "nodeID": "m", "topologyKeys": ["zone"]}]),
            ("spec.drivers", [{"name": "d.example.test", "nodeID": "n", "topologyKeys": ["other"]}]),
            ("spec.drivers", [{"name": "d.example.test", "nodeID": "n"}]),
            (
                "spec.drivers",
                [
                    {"name": "d.example.test", "nodeID": "n", "topologyKeys": ["zone"]},
                    {"name": "new", "nodeID": "n", "allocatable": {"count": 3}},
                ],
            ),
            (
                "spec.drivers",
                [
                    {"name": "d.example.test", "nodeID": "n", "topologyKeys": ["zone"]},
                    {"name": "new", "nodeID": "n", "allocatable": {"count": 4}},
                ],
            ),
            (
                "spec.drivers",
                [
                    {
                        "name": "d.example.test",
                        "nodeID": "o",
                        "topologyKeys": ["zone"],
                        "allocatable": {"count": -4},
                    }
                ],
            ),
            ("spec.drivers", [{"name": "new", "nodeID": "n", "allocatable": {"count": 4}}]),
            ("spec.drivers", []),
        ],
    ),
    "csistoragecapacities": (
        made("CSIStorageCapacity", storageClassName="fast"),
        [
            *(("storageClassName", value) for value in (GONE, "", "No_Name", LONG, "a.b")),
            *(("capacity", value) for value in QUANTITIES),
            *(("maximumVolumeSize", value) for value in QUANTITIES),
            ("nodeTopology", {}),
            ("nodeTopology", None),
            ("nodeTopology", {"matchLabels": {"zone": "a"}}),
            ("nodeTopology", {"matchLabels": {"-": "a"}}),
            ("nodeTopology", {"matchLabels": {"zone": "-"}}),
            ("nodeTopology", {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}),
            ("nodeTopology", {"matchExpressions": [{"key": "a", "operator": "In"}]}),
            ("nodeTopology", {"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            ("nodeTopology", {"matchExpressions": [{"key": "-", "operator": "Exists", "values": ["a"]}]}),
        ],
        [
            ("storageClassName", "slow"),
            ("storageClassName", "No_Name"),
            ("capacity", "5Gi"),
            ("capacity", "-5Gi"),
            ("maximumVolumeSize", "1Gi"),
            ("capacity", None),
            ("nodeTopology", {}),
            ("nodeTopology", {"matchLabels": {"zone": "a"}}),
        ],
    ),
}
SHOWN: dict[str, list[tuple[str, Any]]] = {
    "storageclasses": [
        ("metadata.annotations", {"storageclass.kubernetes.io/is-default-class": "true"}),
        ("metadata.annotations", {"storageclass.beta.kubernetes.io/is-default-class": "true"}),
        ("metadata.annotations", {"storageclass.kubernetes.io/is-default-class": "yes"}),
        ("allowVolumeExpansion", True),
        ("reclaimPolicy", ""),
    ],
    "csidrivers": [
        ("spec.tokenRequests", [{"audience": ""}]),
        ("spec.tokenRequests", [{"audience": "a"}, {"audience": "b"}]),
        ("spec.volumeLifecycleModes", ["Persistent", "Ephemeral"]),
    ],
}
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.finalizers", ["example.test/nothing"]),
    ("metadata.finalizers", None),
    ("metadata.generation", 9),
    ("unknown", 1),
]


def sequences() -> list[Compared]:
    found = []
    for plural, (base, changes, updates) in KINDS.items():
        target = f"{GROUP}/{plural}"
        if plural == "csistoragecapacities":
            target = f"{GROUP}/namespaces/{{ns}}/{plural}"
        name = base["metadata"]["name"]
        found += [
            Compared(f"{plural}: created", created(target, base, [*changes, *META])),
            Compared(f"{plural}: updated", updated(target, base, [*updates, *UPDATES])),
            Compared(f"{plural}: shown", in_tables(target, base, SHOWN.get(plural, []))),
            Compared(f"{plural}: put", [
                Ask("PUT", f"{target}/{name}", base),
                Ask("POST", target, base),
                Ask("POST", target, base),
                Ask("PUT", f"{target}/{name}", base),
                Ask("PUT", f"{target}/{name}", {**base, "metadata": {"name": name, "resourceVersion": "1"}}),
                Ask("GET", f"{target}/{name}/status"),
                Ask("DELETE", f"{target}/{name}", {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
                Ask("DELETE", f"{target}/{name}"),
            ]),
        ]  # fmt: skip
    return found


def in_tables(target: str, base: dict[str, Any], others: list[tuple[str, Any]]) -> list[Ask]:
    shown = changed(base, "metadata.name", "shown.example.test")
    place = f"{target}/{base['metadata']['name']}"
    return [
        Ask("POST", target, base),
        Ask("GET", place, headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=metadata.name%3D{base['metadata']['name']}", headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=spec.x%3D0"),
        Ask("GET", f"{target}?labelSelector=x"),
        Ask("DELETE", place, {"propagationPolicy": "Background"}),
        Ask("GET", place),
        *created(target, shown, others),
        *(Ask("GET", f"{target}/shown.example.test-{i}", headers=TABLE) for i in range(len(others))),
        # The newest class is the default of claims that other tests make.
        *(Ask("DELETE", f"{target}/shown.example.test-{i}") for i in range(len(others))),
    ]


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_storage(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
