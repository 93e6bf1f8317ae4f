"""R-SYS-8: claims are defaulted, validated, protected, changed and shown as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from peer.volumes import AMOUNTS, CLASS_ANNOTATION, LONG, MERGE, META, MODES, labelled, seen, status

CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def claim(name: str, **spec: Any) -> dict[str, Any]:
    of_all = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": of_all | spec,
    }


THIS = {"kind": "PersistentVolumeClaim", "name": "x"}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}
ODD = {"apiGroup": "a.test", "kind": "Odd", "name": "x"}
DATA: list[Any] = [
    {},
    THIS,
    SNAPSHOT,
    ODD,
    {**THIS, "apiGroup": ""},
    {**ODD, "apiGroup": "a_"},
    {"kind": "Odd", "name": "x"},
    {**THIS, "name": ""},
]
OF_CLAIM: list[tuple[str, Any]] = [
    *META,
    *(("spec.accessModes", value) for value in MODES),
    *(("spec.resources.requests.storage", value) for value in AMOUNTS),
    ("spec.resources", {}),
    ("spec.resources", {"limits": {"storage": "1Gi"}}),
    (
        "spec.resources",
        {"requests": {"storage": "1Gi", "cpu": "1", "odd": "-1"}, "limits": {"storage": "1500m"}},
    ),
    ("spec.resources.claims", [{"name": "a"}]),
    *(("spec.volumeMode", value) for value in ("", "Block", "Filesystem", "Odd", None)),
    *(("spec.storageClassName", value) for value in ("", "a", "No_", LONG)),
    *(("spec.volumeName", value) for value in ("", "a", "No_")),
    *(("spec.volumeAttributesClassName", value) for value in ("", "a", "No_")),
    *(
        ("spec.selector", value)
        for value in (
            {},
            {"matchLabels": {"a": "-"}},
            {"matchExpressions": [{"key": "a", "operator": "Odd"}]},
        )
    ),
    *(("spec.dataSource", value) for value in DATA),
    *(("spec.dataSourceRef", value) for value in DATA),
    *(("spec.dataSourceRef", {**value, "namespace": "other"}) for value in DATA),
    *(("spec.dataSourceRef", {**THIS, "namespace": value}) for value in ("", "No_")),
    *(
        ("spec", claim("", dataSource=one, dataSourceRef=other)["spec"])
        for one in (THIS, SNAPSHOT, ODD)
        for other in (
            THIS,
            SNAPSHOT,
            ODD,
            {**THIS, "apiGroup": ""},
            {**THIS, "namespace": "other"},
            {**THIS, "name": "y"},
        )
    ),
    ("status", {"phase": "Bound", "capacity": {"storage": "1Gi"}}),
]
GROWN: list[tuple[str, Any]] = [
    ("spec.resources.requests.storage", "3Gi"),
    ("spec.resources.requests.storage", "1500Mi"),
    ("spec.resources.requests.storage", "1Gi"),
    ("spec.resources.requests.storage", "1Mi"),
    ("spec.resources.requests.storage", "0"),
    ("spec.resources.requests.storage", None),
    ("spec.resources.requests.cpu", "1"),
    ("spec.resources.limits", {"storage": "1Gi"}),
]
UPDATES_OF_CLAIM: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.annotations", {CLASS_ANNOTATION: "a"}),
    ("metadata.annotations", {"a": "b"}),
    ("spec.accessModes", ["ReadWriteMany"]),
    ("spec.accessModes", []),
    ("spec.volumeMode", "Block"),
    ("spec.volumeMode", None),
    ("spec.selector", {"matchLabels": {"a": "b"}}),
    ("spec.dataSource", THIS),
    ("spec.dataSource", ODD),
    ("spec.dataSourceRef", ODD),
    ("spec.dataSourceRef", {**ODD, "namespace": "other"}),
    ("spec.volumeAttributesClassName", "a"),
    ("spec.volumeAttributesClassName", ""),
    *GROWN,
    ("spec.storageClassName", "No_"),
    ("spec.storageClassName", "a"),
    ("spec.storageClassName", "b"),
    ("spec.storageClassName", ""),
    ("spec.storageClassName", None),
    ("spec.volumeName", "v"),
    ("spec.volumeName", "w"),
    ("spec.volumeName", None),
    ("status", {"phase": "Bound"}),
    ("spec", None),
]
UPDATES_OF_SOURCED: list[tuple[str, Any]] = [
    ("spec.dataSource.name", "y"),
    ("spec.dataSourceRef.name", "y"),
    ("spec.dataSourceRef.namespace", "other"),
]
CLAIM_STATUSES: list[Any] = [
    {"phase": "Odd", "accessModes": ["Odd"]},
    {"capacity": {"cpu": "1", "odd/x_": "1.5"}},
    {"capacity": {"storage": "-1"}},
    {"capacity": {"storage": "-500m"}},
    {"capacity": {"storage": "1500m"}},
    *(
        {"allocatedResources": {name: "1.5"}}
        for name in ("storage", "cpu", "a.test/b", "a_/b", "kubernetes.io/a", "")
    ),
    *({"allocatedResources": {name: "-1"}} for name in ("storage", "cpu", "a.test/b")),
    *(
        {"allocatedResourceStatuses": {name: "NodeResizePending"}}
        for name in ("storage", "cpu", "a.test/b", "a_/b", "")
    ),
    *({"allocatedResourceStatuses": {name: "Odd"}} for name in ("storage", "cpu", "a.test/b")),
    {"allocatedResourceStatuses": None, "allocatedResources": None, "capacity": None},
    {"conditions": [{"type": "A", "status": "Odd"}, {"type": "B", "status": "True"}]},
    {"conditions": [{"type": "Resizing", "status": "True", "lastProbeTime": "2020-01-02T03:04:05Z"}]},
    {"currentVolumeAttributesClassName": "No_", "modifyVolumeStatus": {"status": "Odd"}},
    {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "a", "status": ""}},
    {"phase": None},
    {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
    None,
]


def bound(base: dict[str, Any], changes: list[tuple[str, Any]], **status: Any) -> list[Ask]:
    """The updates of a claim that has its volume."""
    place = f"{CLAIMS}/{base['metadata']['name']}"
    first, *rest = updated(CLAIMS, base, changes)
    said = {"phase": "Bound", "capacity": {"storage": "1Gi"}, **status}
    return [first, Ask("PATCH", f"{place}/status", {"status": said}, MERGE), *rest]


def grown_by_class() -> list[Ask]:
    """What may grow: a claim of a class that says so."""
    asks = []
    ways = (("no", False), ("unsaid", None), ("yes", True))
    for name, grows in ways:
        made = {
            "metadata": {"name": f"grows-{name}"},
            "provisioner": "a.test/b",
            "allowVolumeExpansion": grows,
        }
        asks.append(Ask("POST", CLASSES, made))
    grown = claim("grows", storageClassName="grows-yes", resources={"requests": {"storage": "3Gi"}})
    asks += bound(claim("grows", storageClassName="grows-yes"), [])
    asks.append(Ask("PUT", f"{CLAIMS}/grows?dryRun=All", grown, until=200))
    for name, _ in ways:
        asks += bound(claim(f"grows-{name}", storageClassName=f"grows-{name}"), GROWN)
    annotated = changed(claim("annotated"), "metadata.annotations", {CLASS_ANNOTATION: "grows-yes"})
    asks += bound(annotated, GROWN)
    asks += bound(claim("missing", storageClassName="grows-never"), GROWN)
    asks += bound(
        claim("retroactive"),
        [("spec", {"storageClassName": "grows-yes", "resources": {"requests": {"storage": "2Gi"}}})],
    )
    asks += [Ask("DELETE", f"{CLASSES}/grows-{name}") for name in ("yes", "no", "unsaid")]
    return asks


def class_by_default() -> list[Ask]:
    key = "storageclass.kubernetes.io/is-default-class"
    beta = "storageclass.beta.kubernetes.io/is-default-class"
    classes: list[tuple[str, dict[str, str]]] = [
        ("b-not", {key: "yes"}),
        ("d-default", {key: "true"}),
        ("c-default", {beta: "true"}),
    ]
    return [
        *(
            Ask("POST", CLASSES, {"metadata": {"name": name, "annotations": said}, "provisioner": "a.test/b"})
            for name, said in classes
        ),
        Ask("POST", f"{CLAIMS}?dryRun=All", claim("unsaid"), until="c-default"),
        Ask("POST", CLAIMS, claim("unsaid")),
        Ask("POST", CLAIMS, claim("none", storageClassName="")),
        Ask("POST", CLAIMS, claim("named", storageClassName="x")),
        Ask("POST", CLAIMS, changed(claim("annotated"), "metadata.annotations", {CLASS_ANNOTATION: "x"})),
        Ask("POST", CLAIMS, changed(claim("annotated-none"), "metadata.annotations", {CLASS_ANNOTATION: ""})),
        Ask("PUT", f"{CLAIMS}/none", claim("none")),
        *(Ask("DELETE", f"{CLASSES}/{name}") for name, _ in classes),
    ]


def annotated(name: str, class_name: str | None, annotation: str | None) -> dict[str, Any]:
    made = claim(name) if class_name is None else claim(name, storageClassName=class_name)
    return (
        made if annotation is None else changed(made, "metadata.annotations", {CLASS_ANNOTATION: annotation})
    )


def classes_changed() -> list[Ask]:
    """From each way of saying a class to each other."""
    ways = [(None, None), ("a", None), ("", None), (None, "a"), (None, ""), ("a", "a"), ("a", "b")]
    asks = []
    for i, old in enumerate(ways):
        name = f"class-{i}"
        asks.append(Ask("POST", CLAIMS, annotated(name, *old)))
        asks += [Ask("PUT", f"{CLAIMS}/{name}?dryRun=All", annotated(name, *new)) for new in ways]
    return asks


def within_limits() -> list[Ask]:
    """What is there before a limit is judged by it when it changes."""
    ranges = "/api/v1/namespaces/{ns}/limitranges"
    label, free = {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": None}}

    def limits(name: str, **item: Any) -> Ask:
        spec = {"limits": [{"type": "PersistentVolumeClaim", **item}]}
        return Ask("POST", ranges, {"metadata": {"name": name}, "spec": spec})

    def wanted(name: str, amount: str) -> dict[str, Any]:
        return claim(name, resources={"requests": {"storage": amount}})

    def wanting(name: str, amount: str) -> Ask:
        return Ask("POST", CLAIMS, wanted(name, amount))

    return [
        wanting("before", "10Gi"),
        limits("one", min={"storage": "1Gi"}, max={"storage": "5Gi"}),
        *(wanting(f"of-{amount.lower()}", amount) for amount in ("500Mi", "1Gi", "5Gi", "5121Mi", "6")),
        Ask(
            "POST",
            CLAIMS,
            claim("odd", resources={"requests": {"storage": "2Gi"}, "limits": {"storage": "9Gi"}}),
        ),
        Ask("PATCH", f"{CLAIMS}/before", label, MERGE),
        Ask("PATCH", f"{CLAIMS}/of-1gi", label, MERGE),
        Ask("PATCH", f"{CLAIMS}/before/status", {"status": {"phase": "Lost"}}, MERGE),
        limits("two", min={"storage": "2Gi", "inodes": "5"}, max={"cpu": "1"}),
        Ask("POST", f"{CLAIMS}?dryRun=All", wanted("between", "1500Mi"), until=403),
        wanting("both", "900Mi"),
        wanting("either", "7Gi"),
        Ask("PATCH", f"{CLAIMS}/of-1gi", free, MERGE),
        Ask("DELETE", f"{CLAIMS}/of-1gi"),
        Ask("DELETE", ranges),
        Ask("PATCH", f"{CLAIMS}/before", label, MERGE, until=200),
    ]


SEQUENCES = [
    Compared("claims: created", created(CLAIMS, claim("made"), OF_CLAIM)),
    Compared("claims: updated", updated(CLAIMS, claim("pending"), UPDATES_OF_CLAIM)),
    Compared("claims: updated bound", bound(claim("bound"), UPDATES_OF_CLAIM)),
    Compared(
        "claims: updated with attributes",
        bound(
            claim("attributes", volumeAttributesClassName="a"),
            [("spec.volumeAttributesClassName", one) for one in ("b", "", None, "a", None)],
            currentVolumeAttributesClassName="a",
        ),
    ),
    *(
        Compared(
            f"claims: updated {name}", updated(CLAIMS, claim(name, **{field: value}), UPDATES_OF_SOURCED)
        )
        for name, field, value in (("sourced", "dataSource", THIS), ("filled", "dataSourceRef", ODD))
    ),
    Compared("claims: status", status(CLAIMS, claim("status"), CLAIM_STATUSES)),
    Compared("claims: within limits", within_limits()),
    Compared("claims: grown", grown_by_class()),
    Compared("claims: class by default", class_by_default()),
    Compared("claims: class changed", classes_changed()),
    Compared(
        "claims: seen",
        seen(
            CLAIMS,
            [
                labelled(claim("shown")),
                labelled(
                    claim(
                        "shown-more",
                        volumeName="v",
                        storageClassName="c",
                        volumeMode="Block",
                        volumeAttributesClassName="a",
                    )
                ),
                changed(claim("shown-old"), "metadata.annotations", {CLASS_ANNOTATION: "old"}),
            ],
        ),
    ),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_claims(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
