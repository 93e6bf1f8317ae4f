"""R-SYS-8: volumes are defaulted, validated, protected, changed and shown as by Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from peer.mutations import changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import Compared, differences, shown
from peer.server import Server
from peer.volumes import (
    AMOUNTS,
    CLASS_ANNOTATION,
    LONG,
    META,
    MODES,
    OPTIONS_ANNOTATION,
    SECRETS,
    labelled,
    seen,
    status,
)

VOLUMES = "/api/v1/persistentvolumes"
BETA_ZONE, ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
BETA_OS, OS = "beta.kubernetes.io/os", "kubernetes.io/os"


def volume(name: str, **spec: Any) -> dict[str, Any]:
    of_all = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": of_all | spec}


def on(*keys: str, operator: str = "Exists", values: list[str] | None = None) -> dict[str, Any]:
    wanted = {} if values is None else {"values": values}
    terms = [{"key": key, "operator": operator, **wanted} for key in keys]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}


HOST = {"hostPath": {"path": "/data"}}
BAD_SECRET = {"name": "No_", "namespace": "n.o"}
IQN = "iqn.2001-04.com.example:disk"
SOURCES: dict[str, list[dict[str, Any]]] = {
    "hostPath": [
        {},
        {"path": "/"},
        {"path": "a/../b"},
        {"path": "/a", "type": "Odd"},
        {"path": "/a", "type": "File"},
    ],
    "gcePersistentDisk": [{}, {"pdName": "a", "partition": 256}, {"pdName": "a", "partition": -1}],
    "awsElasticBlockStore": [{}, {"volumeID": "a", "partition": 256}, {"volumeID": "a", "fsType": "x"}],
    "glusterfs": [
        {},
        {"endpoints": "a", "path": "b"},
        *({"endpoints": "a", "path": "b", "endpointsNamespace": one} for one in ("", "n", "n_")),
    ],
    "flocker": [{}, {"datasetName": "a"}, {"datasetName": "a", "datasetUUID": "b"}, {"datasetName": "a/b"}],
    "nfs": [{}, {"server": "a", "path": "b"}, {"server": "a", "path": "/b"}],
    "rbd": [
        {},
        {"monitors": ["a"]},
        *({"monitors": ["a"], "image": "b", "secretRef": one} for one in SECRETS),
    ],
    "quobyte": [
        {},
        {"registry": "a", "volume": "b"},
        {"registry": "a:1,b:2", "volume": "b"},
        {"registry": "a:1", "volume": "b", "tenant": LONG},
    ],
    "cephfs": [{}, {"monitors": ["a"]}, {"monitors": ["a"], "secretRef": {}}],
    "iscsi": [
        {},
        {"targetPortal": "a", "iqn": IQN},
        {"targetPortal": "a", "iqn": "bad", "lun": 256},
        *(
            {"targetPortal": "a", "iqn": IQN, "chapAuthSession": True, "secretRef": one}
            for one in [None, *SECRETS]
        ),
        {"targetPortal": "p" * 80, "iqn": IQN, "initiatorName": "bad", "secretRef": {}},
        {"initiatorName": IQN, "chapAuthDiscovery": True},
    ],
    "cinder": [{}, *({"volumeID": "a", "secretRef": one} for one in SECRETS)],
    "fc": [
        {},
        {"wwids": ["a"]},
        {"targetWWNs": ["a"]},
        {"targetWWNs": ["a"], "lun": 1},
        {"targetWWNs": ["a"], "wwids": ["b"], "lun": 256},
    ],
    "flexVolume": [
        {},
        {"driver": "a"},
        {"driver": "a", "options": {"k8s.io/a": "b"}},
        {"driver": "a", "secretRef": {}},
    ],
    "azureFile": [
        {},
        {"secretName": "a", "shareName": "b"},
        *({"secretName": "a", "shareName": "b", "secretNamespace": one} for one in ("", "n", "n_")),
    ],
    "vsphereVolume": [{}, {"volumePath": "a"}],
    "photonPersistentDisk": [{}, {"pdID": "a"}],
    "portworxVolume": [{}, {"volumeID": "a"}],
    "azureDisk": [
        {},
        {"diskName": "a", "diskURI": "https://a"},
        {"diskName": "a", "diskURI": "https://a", "kind": "Managed"},
        {"diskName": "a", "diskURI": "https://a", "kind": "Odd", "cachingMode": "Odd"},
    ],
    "scaleIO": [
        {},
        *({"gateway": "a", "system": "b", "volumeName": "c", "secretRef": one} for one in [None, *SECRETS]),
    ],
    "local": [{}, {"path": "/a"}, {"path": "a/../b"}, {"path": "a", "fsType": ""}],
    "storageos": [
        {},
        {"volumeName": "a_"},
        *({"volumeName": "a", "volumeNamespace": "b", "secretRef": one} for one in SECRETS),
        {"volumeName": "a", "volumeNamespace": "b_"},
    ],
    "csi": [
        {},
        {
            "driver": "a.test",
            "volumeHandle": "b",
            "volumeAttributes": {"a": "b"},
            "fsType": "ext4",
            "readOnly": True,
        },
        {"driver": "a_", "volumeHandle": "b"},
        {"driver": "a" * 64, "volumeHandle": ""},
        *(
            {"driver": "a.test", "volumeHandle": "b", f"{name}SecretRef": one}
            for name in ("controllerPublish", "nodeStage", "nodePublish", "controllerExpand", "nodeExpand")
            for one in [*SECRETS, BAD_SECRET]
        ),
    ],
}
VALID: dict[str, dict[str, Any]] = {
    "gcePersistentDisk": {"pdName": "a"},
    "awsElasticBlockStore": {"volumeID": "a"},
    "glusterfs": {"endpoints": "a", "path": "b"},
    "flocker": {"datasetName": "a"},
    "nfs": {"server": "a", "path": "/b"},
    "rbd": {"monitors": ["a"], "image": "b"},
    "quobyte": {"registry": "a:1", "volume": "v"},
    "cephfs": {"monitors": ["a"]},
    "iscsi": {"targetPortal": "a", "iqn": IQN},
    "cinder": {"volumeID": "a"},
    "fc": {"wwids": ["a"]},
    "flexVolume": {"driver": "a"},
    "azureFile": {"secretName": "a", "shareName": "b", "secretNamespace": "c"},
    "vsphereVolume": {"volumePath": "a"},
    "photonPersistentDisk": {"pdID": "a"},
    "portworxVolume": {"volumeID": "a"},
    "azureDisk": {"diskName": "a", "diskURI": "https://a"},
    "scaleIO": {"gateway": "a", "system": "b", "volumeName": "c", "secretRef": {"name": "a"}},
    "local": {"path": "/a"},
    "storageos": {"volumeName": "a"},
    "csi": {"driver": "a", "volumeHandle": "b"},
}
AFFINITIES: list[Any] = [
    {},
    {"required": {}},
    {"required": {"nodeSelectorTerms": []}},
    {"required": {"nodeSelectorTerms": [{}]}},
    {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "x", "operator": "Gt", "values": ["1"]}]}]}},
    {
        "required": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["No_"]}]}
            ]
        }
    },
    on("a", operator="In"),
    on("a", operator="In", values=["-"]),
    on("a", operator="Odd"),
    on("-"),
    on(BETA_OS, "a", BETA_ZONE),
]
OF_VOLUME: list[tuple[str, Any]] = [
    *META,
    *(("spec.accessModes", value) for value in MODES),
    *(("spec.capacity.storage", value) for value in AMOUNTS),
    ("spec.capacity", {"cpu": "1"}),
    ("spec.capacity", {"cpu": "1", "storage": "1Gi"}),
    *(("spec.persistentVolumeReclaimPolicy", value) for value in ("", "Retain", "Delete", "Recycle", "Odd")),
    *(("spec.volumeMode", value) for value in ("", "Block", "Filesystem", "Odd", None)),
    *(("spec.storageClassName", value) for value in ("", "a", "No_", LONG)),
    *(("spec.mountOptions", value) for value in ([], [""], ["a", "a"], "a")),
    *(("spec.volumeAttributesClassName", value) for value in ("", "a", "No_")),
    *(("spec.claimRef", value) for value in ({}, {"name": "a"}, {"name": "a", "namespace": "b", "uid": "1"})),
    *(("spec.nodeAffinity", value) for value in AFFINITIES),
    ("spec.hostPath", None),
    ("spec.hostPath", {"path": "/a/.."}),
    *((f"spec.{name}", value) for name, values in SOURCES.items() for value in values if name != "hostPath"),
    *((f"spec.{name}", value) for name, value in VALID.items()),
    ("status", {"phase": "Bound", "message": "m"}),
]
OF_SOURCES: list[tuple[str, Any]] = [
    *(("spec", volume("", **{name: value})["spec"]) for name, values in SOURCES.items() for value in values),
    ("spec", volume("", local={"path": "/a"}, nodeAffinity={})["spec"]),
    ("spec", volume("", local={"path": "/a"}, nodeAffinity=on("a"))["spec"]),
    ("spec", volume("", **HOST, **VALID)["spec"]),
    ("spec", volume("", flexVolume={}, csi=VALID["csi"])["spec"]),
    ("spec", volume("", flexVolume={}, nfs=VALID["nfs"])["spec"]),
    ("spec", volume("", csi=VALID["csi"], volumeAttributesClassName="a")["spec"]),
    ("spec", volume("", csi=VALID["csi"], volumeAttributesClassName="")["spec"]),
    *(
        ("spec", volume("", hostPath={"path": path}, persistentVolumeReclaimPolicy="Recycle")["spec"])
        for path in ("/", "//", "/a/..", "", ".", "..", "/.", "a")
    ),
]
UPDATES_OF_VOLUME: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.labels", {"a": "-"}),
    ("metadata.annotations", {OPTIONS_ANNOTATION: "ro"}),
    ("metadata.annotations", {CLASS_ANNOTATION: "a"}),
    ("metadata.generation", 9),
    ("spec.accessModes", ["ReadWriteMany"]),
    ("spec.accessModes", []),
    ("spec.capacity.storage", "2Gi"),
    ("spec.capacity.storage", "1Mi"),
    ("spec.capacity.storage", "0"),
    ("spec.persistentVolumeReclaimPolicy", "Delete"),
    ("spec.persistentVolumeReclaimPolicy", "Odd"),
    ("spec.volumeMode", "Block"),
    ("spec.volumeMode", None),
    ("spec.storageClassName", "a"),
    ("spec.storageClassName", None),
    ("spec.mountOptions", ["a"]),
    ("spec.claimRef", {"name": "a", "namespace": "b"}),
    ("spec.claimRef", {"uid": "1"}),
    ("spec.claimRef", None),
    ("spec.volumeAttributesClassName", "a"),
    ("spec.volumeAttributesClassName", ""),
    ("spec.volumeAttributesClassName", None),
    ("spec.nodeAffinity", on(BETA_ZONE, BETA_OS)),
    ("spec.nodeAffinity", on(ZONE, BETA_OS)),
    ("spec.nodeAffinity", on(BETA_ZONE, OS)),
    ("spec.nodeAffinity", on(ZONE, OS, "a")),
    ("spec.nodeAffinity", on(ZONE, OS)),
    ("spec.nodeAffinity", {"required": None}),
    ("spec.nodeAffinity", None),
    ("status", {"phase": "Bound"}),
    ("spec", None),
]
UPDATES_OF_HOST = [("spec.hostPath.path", "/other"), ("spec.hostPath", None), ("spec.nfs", VALID["nfs"])]
UPDATES_OF_CSI = [
    ("spec.volumeAttributesClassName", "a"),
    ("spec.volumeAttributesClassName", "b"),
    ("spec.volumeAttributesClassName", ""),
    ("spec.volumeAttributesClassName", None),
    ("spec.csi.nodeExpandSecretRef", SECRETS[-1]),
    ("spec.csi.controllerExpandSecretRef", {"name": "a"}),
    ("spec.csi.controllerExpandSecretRef", SECRETS[-1]),
    ("spec.csi.controllerExpandSecretRef.name", "b"),
    ("spec.csi.controllerExpandSecretRef", None),
    ("spec.csi.volumeHandle", "c"),
]
VOLUME_STATUSES: list[Any] = [
    {"phase": "Odd", "message": "m"},
    {"phase": "Bound", "lastPhaseTransitionTime": "2020-01-02T03:04:05Z"},
    {"phase": "Released"},
    {"lastPhaseTransitionTime": None},
    {"lastPhaseTransitionTime": "2020-01-02T03:04:05Z"},
    {"phase": None},
    {"phase": "Available", "reason": "r", "unknown": 1},
    None,
]


AFFINE = volume("affine", **HOST, nodeAffinity=on(BETA_ZONE, BETA_OS))
CSI = volume("csi", csi=VALID["csi"])
ON_CSI = changed(CSI, "metadata.name", "on-csi")
SEQUENCES = [
    Compared("volumes: created", created(VOLUMES, volume("made", **HOST), OF_VOLUME)),
    Compared("volumes: of each source", created(VOLUMES, volume("source"), OF_SOURCES)),
    Compared(
        "volumes: with options",
        created(
            VOLUMES,
            changed(volume("options"), "metadata.annotations", {OPTIONS_ANNOTATION: "ro"}),
            [("spec", volume("", **{name: value})["spec"]) for name, value in VALID.items()],
        ),
    ),
    Compared("volumes: updated", updated(VOLUMES, AFFINE, UPDATES_OF_VOLUME)),
    Compared("volumes: updated source", updated(VOLUMES, volume("host", **HOST), UPDATES_OF_HOST)),
    Compared("volumes: updated csi", updated(VOLUMES, CSI, UPDATES_OF_CSI)),
    Compared("volumes: status", status(VOLUMES, volume("status", **HOST), VOLUME_STATUSES)),
    Compared(
        "volumes: seen",
        seen(
            VOLUMES,
            [
                labelled(volume("shown", **HOST)),
                labelled(
                    volume(
                        "shown-more",
                        csi=VALID["csi"],
                        storageClassName="c",
                        volumeMode="Block",
                        volumeAttributesClassName="v",
                        claimRef={"name": "a", "namespace": "b"},
                        accessModes=MODES[1],
                    )
                ),
                changed(volume("shown-old", **HOST), "metadata.annotations", {CLASS_ANNOTATION: "old"}),
            ],
        ),
    ),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_volumes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
