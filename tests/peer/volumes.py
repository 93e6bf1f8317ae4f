"""What is asked about volumes and claims alike."""

from __future__ import annotations

from typing import Any

from peer.mutations import GONE, changed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask

TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
MERGE = {"Content_Type": MERGE_PATCH}
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"
LONG = "x" * 300
SECRETS: list[Any] = [{}, {"name": "s"}, {"namespace": "n"}, {"name": "s", "namespace": "n"}]
META: list[tuple[str, Any]] = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "a.b"),
    ("metadata.name", LONG),
    ("metadata.labels", {"a": "-"}),
    ("metadata.finalizers", ["a.test/b"]),
    ("metadata.finalizers", ["a"]),
    ("metadata.generation", 7),
    ("metadata.annotations", {CLASS_ANNOTATION: "No_"}),
    ("metadata.annotations", {OPTIONS_ANNOTATION: "ro"}),
    ("unknown", 1),
    ("spec.unknown", 1),
    ("spec", GONE),
]
MODES: list[Any] = [
    [],
    ["ReadWriteMany", "ReadOnlyMany", "ReadWriteMany"],
    ["Odd"],
    ["ReadWriteOncePod"],
    ["ReadWriteOncePod", "ReadWriteOncePod"],
    ["ReadWriteOncePod", "Odd"],
    ["ReadWriteOncePod", "ReadWriteOnce"],
]
AMOUNTS: list[Any] = ["0", "-1", "-500m", "1500m", "0.1m", "1e3", "x", 5, None]


def status(target: str, base: dict[str, Any], statuses: list[Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}/status"
    return [
        Ask("POST", target, base),
        *(Ask("PATCH", place, {"status": one}, MERGE) for one in statuses),
        Ask("PATCH", place, {"spec": {"accessModes": []}, "metadata": {"labels": {"a": "b"}}}, MERGE),
        Ask("PATCH", place, {"metadata": {"finalizers": ["a.test/b"], "annotations": {"a": "b"}}}, MERGE),
        Ask("PUT", place, base),
        Ask("GET", place),
        Ask("POST", place, base),
        *ended(target, base),
    ]


def ended(target: str, base: dict[str, Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}"
    return [
        Ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE),
        Ask("DELETE", place),
        Ask("GET", place),
    ]


def seen(target: str, objects: list[dict[str, Any]]) -> list[Ask]:
    asks = [Ask("POST", target, one) for one in objects]
    for one in objects:
        asks += [Ask("GET", f"{target}/{one['metadata']['name']}", headers=TABLE)]
    place = f"{target}/{objects[0]['metadata']['name']}"
    return [
        *asks,
        Ask("GET", f"{target}?labelSelector=of%3Dtables", headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=metadata.name%3D{objects[0]['metadata']['name']}"),
        *(
            Ask("GET", f"{target}?fieldSelector={name}%3Da")
            for name in ("name", "status.phase", "spec.volumeName")
        ),
        Ask(
            "PATCH", place, {"spec": {"accessModes": ["ReadWriteOncePod"]}}, {"Content_Type": STRATEGIC_PATCH}
        ),
        Ask(
            "PATCH",
            place,
            [{"op": "add", "path": "/metadata/labels", "value": {"j": "p"}}],
            {"Content_Type": JSON_PATCH},
        ),
        Ask(
            "PATCH",
            f"{place}?fieldManager=m",
            {**objects[0], "metadata": {"name": objects[0]["metadata"]["name"], "labels": {"a": "b"}}},
            {"Content_Type": APPLY},
        ),
        Ask(
            "PATCH",
            f"{target}/applied?fieldManager=m",
            changed(objects[0], "metadata.name", "applied"),
            {"Content_Type": APPLY},
        ),
        Ask("DELETE", place, {"propagationPolicy": "Background", "dryRun": ["All"]}),
        Ask("DELETE", place, {"propagationPolicy": "Foreground"}),
        Ask("GET", place, headers=TABLE),
        Ask("DELETE", place),
        Ask("PATCH", place, {"metadata": {"finalizers": ["a.test/b"]}}, MERGE),
        Ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE),
        Ask("GET", place),
        Ask("PUT", place, objects[0]),
        Ask("POST", f"{target}?dryRun=All", objects[0]),
        Ask("DELETE", f"{target}?labelSelector=of%3Dtables"),
    ]


def labelled(base: dict[str, Any]) -> dict[str, Any]:
    return changed(base, "metadata.labels", {"of": "tables"})
