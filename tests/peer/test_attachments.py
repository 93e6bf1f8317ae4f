"""R-SYS-8: VolumeAttachments and VolumeAttributesClasses are defaulted, validated, changed and shown as by
Kubernetes.
"""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from peer.volumes import LONG, MERGE, SECRETS, TABLE, ended

GROUP = "/apis/storage.k8s.io/v1"
ATTACHMENTS, CLASSES = f"{GROUP}/volumeattachments", f"{GROUP}/volumeattributesclasses"
IQN = "iqn.2001-04.com.example:disk"
NAMED = {"persistentVolumeName": "v"}
INLINE = {"csi": {"driver": "a.test", "volumeHandle": "v"}, "accessModes": ["ReadWriteOnce"]}
ATTACHMENT: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttachment",
    "metadata": {"name": "attached"},
    "spec": {"attacher": "a.test", "nodeName": "n", "source": NAMED},
}
CLASS: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "VolumeAttributesClass",
    "metadata": {"name": "attributes"},
    "driverName": "a.test",
    "parameters": {"a": "b"},
}
META: list[tuple[str, Any]] = [
    ("metadata.name", "No_Name"),
    ("metadata.name", "a" * 64),
    ("metadata.name", LONG),
    ("metadata.labels", {"a": "-"}),
    ("metadata.generation", 7),
    ("metadata.finalizers", ["a.test/b"]),
    ("unknown", 1),
]
OF_INLINE: list[tuple[str, Any]] = [
    ("accessModes", GONE),
    ("accessModes", []),
    ("accessModes", ["Odd"]),
    ("accessModes", ["ReadWriteOncePod", "ReadOnlyMany"]),
    ("capacity", {"storage": "1Gi"}),
    ("claimRef", {"name": "a"}),
    ("storageClassName", "a"),
    ("storageClassName", ""),
    ("mountOptions", ["ro"]),
    ("nodeAffinity", {}),
    *(("volumeMode", value) for value in ("", "Block", "Filesystem")),
    *(("persistentVolumeReclaimPolicy", value) for value in ("", "Retain", "Delete", "Recycle")),
    *(("volumeAttributesClassName", value) for value in ("", "a", "No_")),
    ("csi", GONE),
    ("csi", {}),
    *(("csi.controllerPublishSecretRef", value) for value in SECRETS),
    ("hostPath", {"path": "/"}),
    ("local", {"path": "/a"}),
    ("flexVolume", {}),
    ("iscsi", {"targetPortal": "p" * 70, "initiatorName": IQN, "iqn": IQN}),
    ("rbd", {"monitors": ["a"], "image": "b"}),
]
OF_ATTACHMENT: list[tuple[str, Any]] = [
    *META,
    ("spec", GONE),
    *(("spec.attacher", value) for value in (GONE, "", "A.test", "a_", "a/b", "a" * 63, "a" * 64, "A_" * 40)),
    *(("spec.nodeName", value) for value in (GONE, "", "n.m", "No_")),
    ("spec.source", GONE),
    ("spec.source", {}),
    ("spec.source", {**NAMED, "inlineVolumeSpec": INLINE}),
    ("spec.source", {"persistentVolumeName": "", "inlineVolumeSpec": INLINE}),
    ("spec.source", {"inlineVolumeSpec": {}}),
    ("spec.source", {"inlineVolumeSpec": INLINE}),
    *(("spec.source.persistentVolumeName", value) for value in ("", "No_")),
    *(("spec.source", {"inlineVolumeSpec": changed(INLINE, path, value)}) for path, value in OF_INLINE),
    ("status", {"attached": True, "attachError": {"message": "x" * 1025}}),
]
UPDATES_OF_ATTACHMENT: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.generation", 9),
    ("spec.attacher", "b.test"),
    ("spec.attacher", ""),
    ("spec.nodeName", "m"),
    ("spec.source", {"persistentVolumeName": "w"}),
    ("spec", None),
    ("status", {"attached": True}),
]
STATUSES: list[Any] = [
    {"attached": True},
    {"attachmentMetadata": {"a": "b", "No_/": ""}},
    {"attachmentMetadata": {"a": "x" * 262_144}},
    {"attachError": {}},
    {"attachError": {"message": "x" * 1025, "errorCode": -1}},
    {"attachError": {"message": "x" * 1024, "errorCode": 3}},
    {"detachError": {"message": "x" * 1025, "time": "2020-01-02T03:04:05Z"}},
    {"detachError": {"errorCode": 2147483647, "time": "2020-01-02T03:04:05Z"}},
    {"attachError": None, "detachError": None, "attachmentMetadata": None},
    None,
]
OF_CLASS: list[tuple[str, Any]] = [
    *META,
    *(("driverName", value) for value in (GONE, "", "A.test", "a_", "a/b", "a/b/c", LONG)),
    *(
        ("parameters", value)
        for value in (
            GONE,
            {},
            {"": "b"},
            {"a": ""},
            {"a": 1},
            {f"k{number}": "v" for number in range(513)},
            {"a": "x" * 262_144},
        )
    ),
]
UPDATES_OF_CLASS: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("driverName", "b.test"),
    ("driverName", "a_"),
    ("driverName", None),
    ("parameters", {"c": "d"}),
    ("parameters", None),
    ("parameters", {"a": ""}),
]


def status() -> list[Ask]:
    place = f"{ATTACHMENTS}/attached"
    return [
        Ask("POST", ATTACHMENTS, ATTACHMENT),
        *(Ask("PATCH", f"{place}/status", {"status": one}, MERGE) for one in STATUSES),
        Ask("PATCH", f"{place}/status", {"spec": {"nodeName": "m"}}, MERGE),
        Ask(
            "PATCH",
            f"{place}/status",
            {"metadata": {"labels": {"a": "b"}, "finalizers": ["a.test/b"]}},
            MERGE,
        ),
        Ask("PUT", f"{place}/status", ATTACHMENT),
        Ask("GET", f"{place}/status"),
        Ask("DELETE", place),
    ]


def seen(target: str, base: dict[str, Any]) -> list[Ask]:
    place = f"{target}/{base['metadata']['name']}"
    return [
        Ask("PUT", place, base),
        Ask("POST", target, base),
        Ask("POST", target, base),
        Ask("GET", place, headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=metadata.name%3D{base['metadata']['name']}", headers=TABLE),
        Ask("GET", f"{target}?fieldSelector=spec.nodeName%3Dn"),
        Ask("GET", f"{target}?labelSelector=x"),
        Ask("PUT", place, base),
        Ask("PUT", place, {**base, "metadata": {**base["metadata"], "resourceVersion": "1"}}),
        Ask("GET", f"{place}/status"),
        Ask("DELETE", place, {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
        Ask("DELETE", place),
        *ended(target, base),
    ]


INLINED = changed(
    changed(ATTACHMENT, "spec.source", {"inlineVolumeSpec": INLINE}), "metadata.name", "inlined"
)
SEQUENCES = [
    Compared("attachments: created", created(ATTACHMENTS, ATTACHMENT, OF_ATTACHMENT)),
    Compared("attachments: updated", updated(ATTACHMENTS, ATTACHMENT, UPDATES_OF_ATTACHMENT)),
    Compared("attachments: status", status()),
    Compared("attachments: seen", seen(ATTACHMENTS, ATTACHMENT)),
    Compared("attachments: seen inline", seen(ATTACHMENTS, INLINED)),
    Compared("attributes: created", created(CLASSES, CLASS, OF_CLASS)),
    Compared("attributes: updated", [*updated(CLASSES, CLASS, UPDATES_OF_CLASS), *ended(CLASSES, CLASS)]),
    Compared("attributes: seen", seen(CLASSES, CLASS)),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_attachments(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
