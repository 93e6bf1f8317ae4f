"""R-SYS-8: what objects of storage, devices, access, certificates, nodes and the rest of a cluster may become
is as in Kubernetes: each is made in several states, and each state is tried to be changed to each other.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from peer.mutations import GONE, changed
from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_admission_registration import CHECKED
from peer.test_certificates import BASE as REQUEST
from peer.test_certificates import ISSUED, NOBODY_ELSE
from podling.model.scheme import RESOURCES

DRY = "?dryRun=All"
ISSUED_TWICE = base64.b64encode(base64.b64decode(ISSUED) * 2).decode()
MERGE = {"Content_Type": MERGE_PATCH}
UID, OTHER_UID = "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-666666666666"
TIME, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z"
Body = dict[str, Any]


MOST = 300
"""Changes that are tried in a sequence; of more, they are taken evenly."""


class Kind(NamedTuple):
    """`stood`: the states that objects are made in, as what they have besides the `base`; each of them and of
    `tried` is what each object is changed to. `versioned`: a change has to name the version."""

    items: str
    base: Body
    stood: Sequence[Body]
    tried: Sequence[Body] = ()
    versioned: bool = False

    def tried_of(self, i: int) -> Sequence[Body]:
        """What is tried of the object in state `i`."""
        every = (*self.stood, *self.tried)
        step = -(-len(self.stood) * len(every) // MOST)
        return every[i % step :: step]


def of(base: Body, changes: Mapping[str, Any]) -> Body:
    made = base
    for path, value in changes.items():
        made = changed(made, path, value)
    return made


def named(base: Body, name: str, **more: Any) -> Body:
    return {**base, "metadata": {**base["metadata"], "name": name, **more}}


def matrix(kind: Kind) -> list[Ask]:
    """Each object as it stands, and all that it is tried to become, as dry runs."""
    asks: list[Ask] = []
    stem = kind.base["metadata"]["name"]
    for i, state in enumerate(kind.stood):
        name = f"{stem}-{i}"
        place = f"{kind.items}/{name}"
        asks.append(Ask("POST", kind.items, named(of(kind.base, state), name), what=str(state)))
        version = {"resourceVersion": f"${len(asks) - 1}.metadata.resourceVersion"} if kind.versioned else {}
        asks += [
            Ask(
                "PUT",
                f"{place}{DRY}",
                named(of(kind.base, other), name, **version),
                what=f"{state} -> {other}",
            )
            for other in kind.tried_of(i)
        ]
        asks.append(Ask("DELETE", f"{place}?gracePeriodSeconds=0"))
    return asks


def replaced(kind: Kind) -> list[Ask]:
    """As `matrix`, of objects whose version changes meanwhile: each change replaces their only field."""
    asks: list[Ask] = []
    stem = kind.base["metadata"]["name"]
    for i, state in enumerate(kind.stood):
        name = f"{stem}-{i}"
        asks.append(Ask("POST", kind.items, named(of(kind.base, state), name), what=str(state)))
        asks += [
            Ask(
                "PATCH",
                f"{kind.items}/{name}{DRY}",
                [{"op": "replace", "path": f"/{path}", "value": value} for path, value in other.items()],
                {"Content_Type": JSON_PATCH},
                what=f"{state} -> {other}",
            )
            for other in kind.tried_of(i)
        ]
        asks.append(Ask("DELETE", f"{kind.items}/{name}"))
    return asks


def type_of(kind: Kind) -> Body:
    plural = kind.items.rpartition("/")[2]
    group = kind.items.split("/")[2] if kind.items.startswith("/apis/") else ""
    resource = next(one for one in RESOURCES if (one.plural, one.group) == (plural, group))
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def merged_statuses(kind: Kind, stood: Sequence[Any]) -> list[Ask]:
    """As `merged`, of statuses."""
    asks: list[Ask] = []
    stem, typed, count = kind.base["metadata"]["name"], type_of(kind), len(stood)
    for i, status in enumerate(stood):
        name = f"{stem}-{i}"
        place = f"{kind.items}/{name}"
        asks.append(Ask("POST", kind.items, named(kind.base, name)))
        asks.append(Ask("PATCH", f"{place}/status", {"status": status}, MERGE, what=f"{status}"))
        for other in [stood[(i + step) % count] for step in (1, 2, 3, 5)]:
            body, what = {**typed, **named(kind.base, name), "status": other}, f"{status} + {other}"
            asks += [
                Ask("PATCH", f"{place}/status{DRY}", body, {"Content_Type": form}, what)
                for form in (MERGE_PATCH, STRATEGIC_PATCH)
            ]
            asks += [
                Ask(
                    "PATCH",
                    f"{place}/status{DRY}&fieldManager=other{force}",
                    body,
                    {"Content_Type": APPLY},
                    what,
                )
                for force in ("", "&force=true")
            ]
        asks.append(Ask("DELETE", place))
    return asks


def merged(kind: Kind) -> list[Ask]:
    """Each object as it stands, and some of the other states merged into it, in all ways."""
    asks: list[Ask] = []
    stem, typed, count = kind.base["metadata"]["name"], type_of(kind), len(kind.stood)
    for i, state in enumerate(kind.stood):
        name = f"{stem}-{i}"
        place = f"{kind.items}/{name}"
        asks.append(Ask("POST", kind.items, named(of(kind.base, state), name), what=str(state)))
        for other in [kind.stood[(i + step) % count] for step in (1, 3, 5)]:
            body, what = {**typed, **named(of(kind.base, other), name)}, f"{state} + {other}"
            asks += [
                Ask("PATCH", f"{place}{DRY}", body, {"Content_Type": form}, what)
                for form in (MERGE_PATCH, STRATEGIC_PATCH)
            ]
            asks += [
                Ask("PATCH", f"{place}{DRY}&fieldManager=other{force}", body, {"Content_Type": APPLY}, what)
                for force in ("", "&force=true")
            ]
        asks.append(Ask("DELETE", f"{place}?gracePeriodSeconds=0"))
    return asks


def statuses(kind: Kind, stood: Sequence[Any], tried: Sequence[Any], part: str = "status") -> list[Ask]:
    """Of an object in each status, what its status is tried to become."""
    asks: list[Ask] = []
    stem = kind.base["metadata"]["name"]
    for i, status in enumerate(stood):
        name = f"{stem}-{i}"
        place = f"{kind.items}/{name}"
        asks.append(Ask("POST", kind.items, named(kind.base, name)))
        asks.append(Ask("PATCH", f"{place}/{part}", {"status": status}, MERGE, what=f"{status}"))
        version = {"resourceVersion": f"${len(asks) - 1}.metadata.resourceVersion"} if kind.versioned else {}
        asks += [
            Ask(
                "PUT",
                f"{place}/{part}{DRY}",
                {**named(kind.base, name, **version), "status": other},
                what=f"{status} -> {other}",
            )
            for other in (*stood, *tried)
        ]
        asks.append(Ask("DELETE", place))
    return asks


def each(path: str, *values: Any) -> list[Body]:
    return [{path: value} for value in values]


def on(*terms: Any) -> Body:
    return {"required": {"nodeSelectorTerms": list(terms)}}


def term(key: str, *values: str, operator: str = "In") -> Body:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(name: str) -> Body:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


SECRET = {"name": "s", "namespace": "n"}
VOLUME = {
    "metadata": {"name": "cluster-rules"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
}
CSI = {"driver": "d.test", "volumeHandle": "h"}
ISCSI = {"targetPortal": "1.2.3.4:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
SOURCES: list[Body] = [
    {"spec.hostPath": {"path": "/a"}},
    {"spec.hostPath": {"path": "/a", "type": "Directory"}},
    {"spec.nfs": {"server": "s", "path": "/p"}},
    {"spec.nfs": {"server": "s", "path": "/p", "readOnly": True}},
    {"spec.csi": CSI},
    {"spec.csi": {**CSI, "controllerExpandSecretRef": SECRET}},
    {"spec.csi": {**CSI, "controllerExpandSecretRef": {**SECRET, "name": "t"}}},
    {"spec.csi": {**CSI, "nodeExpandSecretRef": SECRET, "nodeStageSecretRef": SECRET}},
    {"spec.csi": {**CSI, "volumeAttributes": {"a": "b"}}},
    {"spec.csi": {**CSI, "fsType": "ext4", "readOnly": True}},
    {"spec.local": {"path": "/a"}, "spec.nodeAffinity": on(term("a", "b"))},
    {"spec.local": {"path": "/a", "fsType": "ext4"}, "spec.nodeAffinity": on(term("a", "b"))},
    {"spec.local": {"path": "/a"}, "spec.nodeAffinity": on(term("a", "c"))},
    {"spec.iscsi": ISCSI},
    {"spec.iscsi": {**ISCSI, "iscsiInterface": "default"}},
    {"spec.rbd": {"monitors": ["m"], "image": "i"}},
    {"spec.rbd": {"monitors": ["m"], "image": "i", "pool": "rbd", "keyring": "/etc/ceph/keyring"}},
    {"spec.azureDisk": {"diskName": "a", "diskURI": "https://b"}},
    {"spec.azureFile": {"secretName": "a", "shareName": "b"}},
    {"spec.azureFile": {"secretName": "a", "shareName": "b", "secretNamespace": "n"}},
    {"spec.flexVolume": {"driver": "a/b"}},
    {"spec.scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": SECRET}},
    {"spec.fc": {"wwids": ["a"]}},
    {"spec.fc": {"targetWWNs": ["a"], "lun": 1}},
    {"spec.cephfs": {"monitors": ["m"]}},
    {"spec.gcePersistentDisk": {"pdName": "p"}},
    {"spec.awsElasticBlockStore": {"volumeID": "v"}},
]
BAD_SOURCES: list[Body] = [
    {},
    {"spec.csi": CSI, "spec.nfs": {"server": "s", "path": "/p"}},
    {"spec.csi": {}, "spec.volumeMode": "Block"},
    {"spec.csi": {**CSI, "controllerExpandSecretRef": {"name": "s"}}},
    {"spec.local": {"path": "/a"}},
    {"spec.local": {"path": "/b"}, "spec.nodeAffinity": on(term("a", "b")), "spec.volumeMode": "Block"},
]
ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
ARCH, BETA_ARCH = "kubernetes.io/arch", "beta.kubernetes.io/arch"
TYPE, BETA_TYPE = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
CLAIM_REF = {"namespace": "n", "name": "c"}
VOLUME_STATES: list[Body] = [
    {},
    *each(
        "spec.claimRef",
        CLAIM_REF,
        {**CLAIM_REF, "uid": UID},
        {**CLAIM_REF, "uid": OTHER_UID},
        {
            **CLAIM_REF,
            "uid": UID,
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "resourceVersion": "7",
        },
        {"name": "d", "namespace": "n", "uid": UID},
    ),
    *each("spec.persistentVolumeReclaimPolicy", "Retain", "Delete", "Recycle"),
    *each(
        "spec.nodeAffinity",
        {"required": {"nodeSelectorTerms": [{}]}},
        on(term(ZONE, "a")),
        on(term(BETA_ZONE, "a")),
        on(term(ZONE, "a", "b")),
        on(term(ZONE, "b", "a")),
        on(term(ZONE, "a"), term(REGION, "r")),
        on(term(BETA_REGION, "r"), term(BETA_ZONE, "a")),
        on(
            {
                "matchExpressions": [
                    *term(BETA_ZONE, "a")["matchExpressions"],
                    *term("x", "y")["matchExpressions"],
                ]
            }
        ),
        on({"matchExpressions": [*term(ZONE, "a")["matchExpressions"], *term("x", "y")["matchExpressions"]]}),
        on(term(BETA_ARCH, "a")),
        on(term(ARCH, "a")),
        on(term(BETA_TYPE, "a")),
        on(term(TYPE, "a")),
        on(field("n")),
        on({**term(ZONE, "a"), **field("n")}),
        on({**term(BETA_ZONE, "a"), **field("n")}),
    ),
    *each("spec.capacity", {"storage": "2Gi"}, {"storage": "1Mi"}, {"storage": "1073741824"}),
    *each("spec.accessModes", ["ReadWriteMany"], ["ReadWriteOncePod"], ["ReadOnlyMany", "ReadWriteOnce"]),
    *each("spec.volumeMode", "Block", "Filesystem"),
    *each("spec.storageClassName", "a", "b"),
    *each("spec.mountOptions", ["ro"], ["ro", "soft"]),
    *each("spec.volumeAttributesClassName", "a", "b"),
    {"metadata.annotations": {"volume.beta.kubernetes.io/storage-class": "a"}},
    {"spec.claimRef": {**CLAIM_REF, "uid": UID}, "spec.volumeAttributesClassName": "a"},
    {
        "spec.claimRef": {**CLAIM_REF, "uid": UID},
        "spec.storageClassName": "a",
        "spec.capacity": {"storage": "3Gi"},
    },
]
BAD_VOLUMES: list[Body] = [
    {"spec.volumeAttributesClassName": ""},
    {"spec.volumeMode": "", "spec.nodeAffinity": {}},
    {"spec.nodeAffinity": {"required": None}},
    {"spec.nodeAffinity": on()},
    {"spec.nodeAffinity": on(term("-", "a"), term(ZONE, "a", operator="Exists"))},
    {"spec.nodeAffinity": on(term(ZONE, operator="In"))},
    {"spec.nodeAffinity": on(term(ZONE, "a", operator="Gt"))},
    {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteOnce"], "spec.capacity": {"storage": "0"}},
    {"spec.csi": None, "spec.hostPath": {"path": "/a/.."}, "spec.volumeAttributesClassName": "a"},
    {"metadata.annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}},
    {"spec.claimRef": {}},
    {"spec.storageClassName": "A_", "spec.persistentVolumeReclaimPolicy": "Odd", "spec.volumeMode": "Odd"},
]
VOLUMES = "/api/v1/persistentvolumes"
OF_CSI = changed(VOLUME, "spec.csi", CSI)
VOLUME_STATUSES: list[Any] = [
    {},
    {"phase": "Pending"},
    {"phase": "Available"},
    {"phase": "Available", "lastPhaseTransitionTime": TIME},
    {"phase": "Bound", "lastPhaseTransitionTime": LATER},
    {"phase": "Released", "message": "m", "reason": "r"},
    {"phase": "Failed", "lastPhaseTransitionTime": None},
    {"phase": "Odd"},
]

CLAIM = {
    "metadata": {"name": "c"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
}
CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
THIS = {"kind": "PersistentVolumeClaim", "name": "x"}
ODD = {"apiGroup": "a.test", "kind": "Odd", "name": "x"}
SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "x"}
CLASS = "spec.storageClassName"
ATTRIBUTES = "spec.volumeAttributesClassName"
CLAIM_STATES: list[Body] = [
    {},
    *each("spec.dataSource", THIS, SNAPSHOT),
    *each(
        "spec.dataSourceRef", THIS, ODD, SNAPSHOT, {**ODD, "namespace": "other"}, {**THIS, "namespace": ""}
    ),
    {"spec.dataSource": THIS, "spec.dataSourceRef": THIS},
    *each("spec.volumeName", "v", "w"),
    *each(CLASS, "", "a", "b"),
    *each(ATTRIBUTES, "a", "b", ""),
    *each("spec.volumeMode", "Block", "Filesystem"),
    *each("spec.accessModes", ["ReadWriteMany"], ["ReadWriteOncePod"]),
    *each("spec.selector", {"matchLabels": {"a": "b"}}, {}),
    *each(
        "spec.resources",
        {"requests": {"storage": "3Gi"}},
        {"requests": {"storage": "2Gi"}, "limits": {"storage": "9Gi"}},
    ),
    {"spec.volumeName": "v", CLASS: "a", ATTRIBUTES: "a"},
    {"spec.volumeName": "v", "spec.resources": {"requests": {"storage": "1Gi"}}},
]
BAD_CLAIMS: list[Body] = [
    {"spec.accessModes": []},
    {"spec.resources": {}, "spec.volumeName": "v"},
    {"spec.resources": {"requests": {"storage": "0"}}},
    {"spec.dataSource": THIS, "spec.dataSourceRef": ODD},
    {"spec.dataSource": THIS, "spec.dataSourceRef": {**THIS, "namespace": "other"}},
    {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteMany"], CLASS: "A_", ATTRIBUTES: "A_"},
    {"spec.volumeMode": "Odd", "spec.selector": {"matchLabels": {"-": "-"}}},
]
CLAIM_STATUSES: list[Any] = [
    {},
    {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOncePod"]},
    {"phase": "Lost", "capacity": {"storage": "2Gi"}},
    {
        "phase": "Bound",
        "capacity": {"storage": "1Gi"},
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
    },
    {"phase": "Bound", "capacity": {"storage": "3Gi"}, "allocatedResources": {"storage": "1Gi"}},
    {"phase": "Bound", "currentVolumeAttributesClassName": "a"},
    {
        "phase": "Bound",
        "currentVolumeAttributesClassName": "a",
        "modifyVolumeStatus": {"targetVolumeAttributesClassName": "b", "status": "InProgress"},
    },
    {"conditions": [{"type": "Resizing", "status": "True", "lastTransitionTime": TIME}]},
    {"conditions": [{"type": "Unused", "status": "True", "lastTransitionTime": TIME}]},
]
BAD_CLAIM_STATUSES: list[Any] = [
    {"phase": "Bound", "allocatedResources": {"storage": "-1"}},
    {"allocatedResourceStatuses": {"storage": "Odd"}, "allocatedResources": {"storage": "1Gi"}},
    {"modifyVolumeStatus": {}},
    {"conditions": [{"type": "", "status": ""}] * 2},
    {"capacity": {"storage": "x"}},
]


def grown() -> list[Ask]:
    """What a claim may ask for, by what it is known to have: the class of all grows."""
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    made = {"metadata": {"name": "cluster-rules-grow"}, "provisioner": "p.test", "allowVolumeExpansion": True}
    base = of(CLAIM, {CLASS: "cluster-rules-grow", "spec.volumeName": "v"})
    asks = [Ask("POST", classes, made)]
    for i, status in enumerate(CLAIM_STATUSES):
        name = f"grown-{i}"
        asks += [
            Ask("POST", CLAIMS, named(base, name)),
            Ask("PATCH", f"{CLAIMS}/{name}/status", {"status": status}, MERGE, what=str(status)),
        ]
        wanted: list[Body] = [
            *(
                {"spec.resources": {"requests": {"storage": amount}}}
                for amount in ("3Gi", "2Gi", "1536Mi", "1Gi", "1Mi", "1", "0", "-1", "3000000000500m")
            ),
            {"spec.resources": {}},
            {"spec.resources": {"requests": {}}},
            {"spec.resources": {"requests": {}, "limits": {}}},
            {"spec.resources": {"requests": {"storage": "3Gi", "cpu": "1"}}},
            {"spec.resources": {"requests": {"storage": "3Gi"}, "limits": {"storage": "1Gi"}}},
            {ATTRIBUTES: "a"},
            {ATTRIBUTES: ""},
            {ATTRIBUTES: "b", "spec.resources": {"requests": {"storage": "3Gi"}}},
            {CLASS: "other", "spec.resources": {"requests": {"storage": "3Gi"}}},
            {"spec.volumeName": "w", "spec.resources": {"requests": {"storage": "1Gi"}}},
            {"spec.accessModes": ["ReadWriteMany"], "spec.resources": {"requests": {"storage": "1536Mi"}}},
        ]
        if i == 1:
            until = of(base, {"spec.resources": {"requests": {"storage": "9Gi"}}})
            asks.append(Ask("PUT", f"{CLAIMS}/{name}{DRY}", named(until, name), until=200))
        asks += [
            Ask("PUT", f"{CLAIMS}/{name}{DRY}", named(of(base, one), name), what=f"{status} {one}")
            for one in wanted
        ]
    return [*asks, Ask("DELETE", f"{classes}/cluster-rules-grow")]


STORAGE = "/apis/storage.k8s.io/v1"


def topology(*requirements: tuple[str, list[str]]) -> Body:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key, values in requirements]}


DRIVER = {"name": "d.test", "nodeID": "n", "topologyKeys": ["a", "b"]}
ERROR = {"message": "m", "time": TIME, "errorCode": 5}
OF_STORAGE: dict[str, Kind] = {
    "storage classes": Kind(
        f"{STORAGE}/storageclasses",
        {"metadata": {"name": "cluster-rules"}, "provisioner": "p.test"},
        [
            {},
            *each("parameters", {"a": "b"}, {"a": "c"}, {}),
            *each("reclaimPolicy", "Retain", "Delete"),
            *each("mountOptions", ["ro"], []),
            *each("allowVolumeExpansion", True, False),
            *each("volumeBindingMode", "WaitForFirstConsumer", "Immediate"),
            *each("allowedTopologies", [topology(("a", ["b"]))], [topology(("a", ["c"]))], []),
        ],
        [
            {"provisioner": "q.test"},
            {"provisioner": "", "parameters": {"": "b"}, "reclaimPolicy": "Odd", "volumeBindingMode": "Odd"},
            {
                "provisioner": "q.test",
                "parameters": {"x": "y"},
                "reclaimPolicy": "Retain",
                "volumeBindingMode": "",
            },
            {"allowedTopologies": [topology(("a", [])), topology(("a", ["b"]), ("a", ["b"]))]},
            {"reclaimPolicy": "", "volumeBindingMode": None},
        ],
    ),
    "attachments": Kind(
        f"{STORAGE}/volumeattachments",
        {
            "metadata": {"name": "cluster-rules"},
            "spec": {"attacher": "a.test", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
        },
        [
            {},
            {"spec.source": {"inlineVolumeSpec": {"csi": CSI, "accessModes": ["ReadWriteOnce"]}}},
            {
                "spec.source": {
                    "inlineVolumeSpec": {"csi": CSI, "accessModes": ["ReadWriteOnce"], "mountOptions": ["a"]}
                }
            },
            {"spec.nodeName": "m"},
            {"status": {"attached": True}},
        ],
        [
            {"spec.attacher": "A_", "spec.nodeName": "", "spec.source": {}},
            {"spec.source": {"persistentVolumeName": ""}},
            {"spec.source": {"persistentVolumeName": "A_"}},
            {"spec.source": {"persistentVolumeName": "v", "inlineVolumeSpec": {}}},
            {
                "spec.source": {
                    "inlineVolumeSpec": {"csi": {}, "accessModes": [], "capacity": {"storage": "1"}}
                }
            },
            {"status": {"attachError": {"message": "x" * 2000}}},
        ],
        versioned=True,
    ),
    "nodes of drivers": Kind(
        f"{STORAGE}/csinodes",
        {"metadata": {"name": "cluster-rules"}},
        [
            {"spec": {}},
            {"spec.drivers": [DRIVER]},
            {"spec.drivers": [{**DRIVER, "topologyKeys": ["b", "a"]}]},
            {"spec.drivers": [{**DRIVER, "topologyKeys": []}]},
            {"spec.drivers": [{**DRIVER, "allocatable": {"count": 0}}]},
            {"spec.drivers": [{**DRIVER, "allocatable": {"count": 3}}]},
            {"spec.drivers": [{**DRIVER, "allocatable": {}}]},
            {"spec.drivers": [DRIVER, {**DRIVER, "name": "e.test", "allocatable": {"count": 1}}]},
            {"spec.drivers": [{**DRIVER, "name": "e.test"}, DRIVER]},
            {"spec.drivers": [{**DRIVER, "name": "e.test"}]},
        ],
        [
            {"spec.drivers": [DRIVER, {**DRIVER, "nodeID": "m"}]},
            {"spec.drivers": [{**DRIVER, "nodeID": ""}]},
            {"spec.drivers": [{**DRIVER, "nodeID": "m"}, {**DRIVER, "name": "e.test", "topologyKeys": [""]}]},
            {"spec.drivers": [{**DRIVER, "allocatable": {"count": -1}}]},
            {},
            {"metadata.annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "a"}},
        ],
        versioned=True,
    ),
    "drivers": Kind(
        f"{STORAGE}/csidrivers",
        {"metadata": {"name": "cluster-rules"}, "spec": {}},
        [
            {},
            *each("spec.attachRequired", False),
            *each("spec.podInfoOnMount", True),
            *each("spec.fsGroupPolicy", "File", "None"),
            *each("spec.storageCapacity", True),
            *each("spec.requiresRepublish", True),
            *each("spec.seLinuxMount", True),
            *each(
                "spec.volumeLifecycleModes",
                ["Ephemeral"],
                ["Persistent", "Ephemeral"],
                ["Ephemeral", "Persistent"],
            ),
            *each("spec.tokenRequests", [{"audience": "a"}], [{"audience": "a", "expirationSeconds": 600}]),
            {"spec.tokenRequests": [{"audience": "a"}], "spec.serviceAccountTokenInSecrets": True},
            {"spec.tokenRequests": [{"audience": "a"}], "spec.serviceAccountTokenInSecrets": False},
            *each("spec.nodeAllocatableUpdatePeriodSeconds", 10, 60),
        ],
        [
            {"spec.attachRequired": False, "spec.fsGroupPolicy": "Odd", "spec.volumeLifecycleModes": ["Odd"]},
            {"spec.tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
            {"spec.tokenRequests": [{"audience": "a", "expirationSeconds": 1}], "spec.podInfoOnMount": True},
            {"spec.serviceAccountTokenInSecrets": False},
            {"spec.nodeAllocatableUpdatePeriodSeconds": 9},
            {"spec": GONE},
        ],
    ),
    "capacities": Kind(
        f"{STORAGE}/namespaces/{{ns}}/csistoragecapacities",
        {"metadata": {"name": "c"}, "storageClassName": "a"},
        [
            {},
            *each("nodeTopology", {}, {"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "c"}}),
            *each("storageClassName", "b"),
            *each("capacity", "1Gi", "0"),
            *each("maximumVolumeSize", "1Gi", "0"),
            {"capacity": "1Gi", "maximumVolumeSize": "2Gi"},
        ],
        [
            {"storageClassName": "", "nodeTopology": {"matchLabels": {"-": "-"}}},
            {"capacity": "-1"},
            {"maximumVolumeSize": "-1"},
            {"storageClassName": "A_", "capacity": "-1", "maximumVolumeSize": "-1"},
        ],
        versioned=True,
    ),
    "attributes": Kind(
        f"{STORAGE}/volumeattributesclasses",
        {"metadata": {"name": "cluster-rules"}, "driverName": "d.test", "parameters": {"a": "b"}},
        [{}, {"parameters": {"a": "c"}}, {"driverName": "D.test"}, {"parameters": {"a": "b", "c": ""}}],
        [
            {"driverName": "", "parameters": {}},
            {"driverName": "a/b/c", "parameters": {"": "x"}},
            {"parameters": GONE},
            {"driverName": "e.test", "parameters": {"z": "y"}},
        ],
    ),
}
ATTACHED: list[Any] = [
    {"attached": False},
    {"attached": True, "attachmentMetadata": {"a": "b"}},
    {"attached": False, "attachError": ERROR},
    {"attached": True, "detachError": {"message": "m"}},
]
BAD_ATTACHED: list[Any] = [
    {},
    {"attached": True, "attachError": {**ERROR, "errorCode": -1}, "detachError": {"message": "x" * 1025}},
    {"attached": True, "attachmentMetadata": {"a": "x" * 262_145}},
]
ACCESS = "/apis/rbac.authorization.k8s.io/v1"
DEVICES = "/apis/resource.k8s.io/v1"
DEVICE_CLAIMS = f"{DEVICES}/namespaces/{{ns}}/resourceclaims"
USER = {"resource": "pods", "name": "p", "uid": UID}
OTHER_USER = {"apiGroup": "a.test", "resource": "things", "name": "q", "uid": OTHER_UID}


def cel(*expressions: str) -> list[Body]:
    return [{"cel": {"expression": one}} for one in expressions]


def opaque(driver: str = "d.test", parameters: Any = None, **more: Any) -> Body:
    return {"opaque": {"driver": driver, "parameters": parameters or {"a": 1}}, **more}


def asked(name: str = "r", **fields: Any) -> Body:
    return {"name": name, "exactly": {"deviceClassName": "c", **fields}}


def first(name: str, *fields: Body) -> Body:
    return {
        "name": name,
        "firstAvailable": [{"name": f"s{i}", "deviceClassName": "c", **one} for i, one in enumerate(fields)],
    }


def result(device: str = "e", **fields: Any) -> Body:
    return {"request": "r", "driver": "d.test", "pool": "p", "device": device, **fields}


def allocated(*results: Body, config: Any = (), **more: Any) -> Body:
    return {"devices": {"results": list(results), "config": list(config)}, **more}


def of_device(device: str = "e", **fields: Any) -> Body:
    return {"driver": "d.test", "pool": "p", "device": device, **fields}


READY = {"type": "Ready", "status": "True", "reason": "r", "message": "", "lastTransitionTime": TIME}
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
DEVICE_CLAIM = {
    "metadata": {"name": "d"},
    "spec": {"devices": {"requests": [asked(), first("f", {}, {"count": 2})]}},
}
CLAIMED: list[Body] = [
    {},
    *(
        {"spec.devices.requests": one}
        for one in (
            [asked(allocationMode="All")],
            [asked(count=2)],
            [asked(adminAccess=False)],
            [asked(selectors=cel('device.driver == "a"'))],
            [asked(tolerations=[TOLERATION])],
            [
                asked(
                    tolerations=[
                        {"operator": "Exists"},
                        {"key": "b", "value": "c", "effect": "NoExecute", "tolerationSeconds": 5},
                    ]
                )
            ],
            [asked(capacity={"requests": {"memory": "1Gi", "d.test/cores": "2"}})],
            [first("r", {}, {"allocationMode": "All"})],
            [
                first(
                    "r",
                    {"selectors": cel("true"), "tolerations": [TOLERATION]},
                    {"capacity": {"requests": {"m": "1"}}},
                )
            ],
        )
    ),
    {"spec.devices.constraints": [{"matchAttribute": "d.test/a"}]},
    {"spec.devices.constraints": [{"matchAttribute": "d.test/a", "requests": ["r", "f/s0"]}]},
    {"spec.devices.constraints": [{"distinctAttribute": "d.test/a", "requests": ["f"]}]},
    {"spec.devices.config": [opaque(), opaque(requests=["f/s1"])]},
]
BADLY_CLAIMED: list[Body] = [
    {"spec.devices.requests": [{"name": "r"}]},
    {
        "spec.devices.requests": [
            asked(allocationMode="All", count=1),
            asked("q", allocationMode="Odd", count=0),
        ]
    },
    {"spec.devices.requests": [{**asked(), **first("r", {})}]},
    {"spec.devices.requests": [first("r", *[{}] * 9)]},
    {"spec.devices.requests": [first("r", {"adminAccess": True}), asked("q", adminAccess=True)]},
    {
        "spec.devices.requests": [
            asked(selectors=cel("1", "device.x", "device.attributes['a'].b", "x" * 11_000))
        ]
    },
    {
        "spec.devices.requests": [
            asked(selectors=cel("[1,2,3].all(x, [1,2].all(y, device.driver.matches('a+')))"))
        ]
    },
    {
        "spec.devices.requests": [
            asked(tolerations=[{"key": "-", "effect": "Odd", "operator": "Odd"}, {"value": "x"}])
        ]
    },
    {
        "spec.devices.constraints": [
            {
                "matchAttribute": "d.test/a",
                "distinctAttribute": "d.test/a",
                "requests": ["x", "f/x", "f/s0/y"],
            }
        ]
    },
    {"spec.devices.constraints": [{}, {"matchAttribute": "a"}, {"distinctAttribute": "-/-"}]},
    {"spec.devices.config": [{}, opaque("A_"), opaque(requests=["q", "r", "r", "r/x"])]},
    {"spec.devices.requests.0.exactly.capacity": {"requests": {"-": "1"}}},
    {"spec.devices.requests.0.exactly.deviceClassName": "A_"},
]
CLAIM_HAS: list[Any] = [
    {},
    {"allocation": allocated()},
    {"allocation": allocated(result())},
    {"allocation": allocated(result(), result("f", request="f/s0"))},
    {"allocation": allocated(result(shareID=UID), result(shareID=OTHER_UID))},
    {"allocation": allocated(result(), nodeSelector={"nodeSelectorTerms": [field("n")]})},
    {"allocation": allocated(result(), allocationTimestamp=TIME)},
    {
        "allocation": allocated(
            result(), config=[opaque(source="FromClass"), opaque(source="FromClaim", requests=["f/s1"])]
        )
    },
    {"allocation": allocated(result(consumedCapacity={"memory": "1Gi"}, shareID=UID))},
    {"allocation": allocated(result(tolerations=[TOLERATION]))},
    {"allocation": allocated(result(bindingConditions=["a"], bindingFailureConditions=["b"]))},
    {"allocation": allocated(result()), "reservedFor": [USER]},
    {"allocation": allocated(result()), "reservedFor": [USER, OTHER_USER]},
    {"allocation": allocated(result()), "reservedFor": [OTHER_USER], "devices": [of_device()]},
    {"allocation": allocated(result()), "devices": [of_device(conditions=[READY], data={"a": 1})]},
    {
        "allocation": allocated(result()),
        "devices": [
            of_device(networkData={"interfaceName": "i", "ips": ["10.0.0.1/24"], "hardwareAddress": "h"})
        ],
    },
    {"allocation": allocated(result(shareID=UID)), "devices": [of_device(shareID=UID)]},
]
CLAIM_MAY_NOT: list[Any] = [
    None,
    {"reservedFor": [USER]},
    {"devices": [of_device()]},
    {"allocation": allocated(result()), "devices": [of_device("f")]},
    {"allocation": allocated(result()), "devices": [of_device(), of_device()]},
    {"allocation": allocated(result()), "devices": [of_device(shareID=UID)]},
    {"allocation": allocated(result(shareID=UID)), "devices": [of_device()]},
    {"allocation": allocated(result()), "reservedFor": [USER, {**OTHER_USER, "uid": UID}]},
    {"allocation": allocated(result()), "reservedFor": [{"name": "p"}, {"uid": "x", "resource": "pods"}]},
    {"allocation": allocated(result(request="q")), "reservedFor": [USER]},
    {"allocation": allocated(result(request="f"), result("f", request="f/s2"), result("g", request="r/s0"))},
    {"allocation": allocated(result(), result())},
    {"allocation": allocated(result(shareID="x", driver="A_", pool="-", device="A.B"))},
    {
        "allocation": allocated(
            result(), config=[{}, opaque(source="Odd"), opaque("", source="FromClass", requests=["x"])]
        )
    },
    {"allocation": allocated(result(), nodeSelector={"nodeSelectorTerms": [field("n"), field("m")]})},
    {"allocation": allocated(result(), nodeSelector={"nodeSelectorTerms": [term("-", "-")]})},
    {"allocation": allocated(result(bindingConditions=["a"], bindingFailureConditions=["a", "-"]))},
    {"allocation": allocated(result(bindingConditions=["a"]))},
    {"allocation": allocated(result(adminAccess=True))},
    {"allocation": allocated(result(consumedCapacity={"a/b/c": "1"}))},
    {"allocation": allocated(result()), "devices": [of_device(conditions=[READY, READY], data="x")]},
    {
        "allocation": allocated(result()),
        "devices": [of_device(networkData={"ips": ["10.0.0.1", "10.0.0.1/24", "10.0.0.1/24"]})],
    },
    {"allocation": allocated(result()), "reservedFor": [{**USER, "uid": str(n)} for n in range(257)]},
]


MAY: dict[str, tuple[bool, list[Body]]] = {
    "nothing": (True, []),
    "binding": (True, [{"resources": ["resourceclaims/binding"], "verbs": ["update", "patch"]}]),
    "binding-here": (False, [{"resources": ["resourceclaims/binding"], "verbs": ["*"]}]),
    "update": (True, [{"resources": ["resourceclaims/binding"], "verbs": ["update"]}]),
    "plain-driver": (True, [{"resources": ["resourceclaims/driver"], "verbs": ["update", "patch"]}]),
    "driver": (
        True,
        [
            {
                "resources": ["resourceclaims/driver"],
                "verbs": ["arbitrary-node:update"],
                "resourceNames": ["d.test"],
            }
        ],
    ),
    "drivers-here": (
        False,
        [
            {
                "resources": ["resourceclaims/driver"],
                "verbs": ["arbitrary-node:update", "arbitrary-node:patch"],
            }
        ],
    ),
    "near": (
        True,
        [
            {
                "resources": ["resourceclaims/driver"],
                "verbs": ["associated-node:update"],
                "resourceNames": ["d.test"],
            }
        ],
    ),
}
"""What else they may write who may write the statuses of claims: everywhere, or in one namespace."""
EXTRA = "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name"
NEAR = "system:serviceaccount:default:near"


def of_nobody(name: str) -> str:
    return NEAR if name == "near" else f"cluster-rules-{name}"


def by_parts() -> list[Ask]:
    """Who may write which part of the status of a claim."""
    asks: list[Ask] = []
    status = {"resources": ["resourceclaims/status"], "verbs": ["get", "update", "patch"]}
    for name, (everywhere, rules) in MAY.items():
        of_all = ACCESS if everywhere else f"{ACCESS}/namespaces/{{ns}}"
        roles, bindings = ("clusterroles", "clusterrolebindings") if everywhere else ("roles", "rolebindings")
        whole = [{"apiGroups": ["resource.k8s.io"], **rule} for rule in (status, *rules)]
        ref = {"kind": "ClusterRole" if everywhere else "Role", "name": f"cluster-rules-{name}"}
        meta = {"name": f"cluster-rules-{name}"}
        subjects = [{"kind": "User", "name": of_nobody(name)}]
        asks += [
            Ask("POST", f"{of_all}/{roles}", {"metadata": meta, "rules": whole}),
            Ask("POST", f"{of_all}/{bindings}", {"metadata": meta, "roleRef": ref, "subjects": subjects}),
        ]
    other = result("f", driver="o.test")
    here = {"nodeSelector": {"nodeSelectorTerms": [field("n")]}}
    had: list[Body] = [
        {},
        {"allocation": allocated(result(), other, **here), "devices": [of_device(data={"a": 1})]},
    ]
    held = had[1]
    ways: list[Body] = [
        *had,
        {**held, "reservedFor": [USER]},
        {**held, "devices": []},
        {**held, "devices": [of_device(data={"a": 2})]},
        {**held, "devices": [of_device(data={"a": 1}), of_device("f", driver="o.test")]},
        {**held, "devices": [of_device("f", driver="o.test")]},
        {**held, "devices": [of_device("g")]},
        {**held, "allocation": allocated(result(), other), "reservedFor": [{}]},
        {**held, "reservedFor": [USER], "devices": []},
        {"allocation": allocated(other)},
        {"allocation": allocated(result(), **here), "devices": [of_device()]},
        {"devices": [of_device("g"), of_device("f", driver="q.test")]},
    ]
    users: list[tuple[str, dict[str, str]]] = [
        *((of_nobody(name), {}) for name in MAY),
        (NEAR, {EXTRA: "n"}),
        (NEAR, {EXTRA: "m"}),
        ("cluster-rules-driver", {EXTRA: "n"}),
    ]
    for i, status in enumerate(had):
        place = f"{DEVICE_CLAIMS}/p-{i}/status"
        asks.append(Ask("POST", DEVICE_CLAIMS, named(DEVICE_CLAIM, f"p-{i}")))
        asks.append(Ask("PATCH", place, {"status": status}, MERGE))
        for user, more in users:
            by = {"Impersonate-User": user, **more}
            label = {"metadata": {"labels": {"a": "b"}}}
            asks.append(Ask("PATCH", f"{place}{DRY}", label, {**MERGE, **by}, until=200))
            asks += [
                Ask(
                    "PUT",
                    f"{place}{DRY}",
                    {**named(DEVICE_CLAIM, f"p-{i}"), "status": one},
                    by,
                    f"{status} {one}",
                )
                for one in ways
            ]
            asks += [
                Ask("PATCH", f"{place}{DRY}", {"status": one}, {**MERGE, **by}, f"{status} {one}")
                for one in ways[2::3]
            ]
    for name, (everywhere, _) in MAY.items():
        if everywhere:
            asks += [
                Ask("DELETE", f"{ACCESS}/{kind}/cluster-rules-{name}")
                for kind in ("clusterroles", "clusterrolebindings")
            ]
    return asks


def slice_of(**spec: Any) -> Body:
    whole = {"driver": "d.test", "pool": {"name": "p", "resourceSliceCount": 1}, **spec}
    return {"spec": whole}


def device(name: str = "e", **fields: Any) -> Body:
    return {"name": name, **fields}


def policy(value: str, default: str | None = None, **fields: Any) -> Body:
    said = {**fields, **({"default": default} if default is not None else {})}
    return device(allowMultipleAllocations=True, capacity={"memory": {"value": value, "requestPolicy": said}})


HERE = {"nodeName": "n"}
COUNTERS = {"memory": {"value": "8Gi"}, "cores": {"value": "4"}}
EXISTING = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
VALUES: list[Body] = [{"int": 1}, {"bool": True}, {"string": "x"}, {"version": "1.2.3"}]
ALL_OF_THEM = {f"a{i}": value for i, value in enumerate(VALUES)}
TAINT = {"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": TIME}
SLICES: list[Body] = [
    slice_of(**HERE, devices=[device()]),
    slice_of(nodeName="m", devices=[device()]),
    slice_of(allNodes=True, devices=[device()]),
    slice_of(nodeSelector=EXISTING, devices=[device()]),
    slice_of(perDeviceNodeSelection=True, devices=[device(nodeName="n"), device("f", allNodes=True)]),
    slice_of(perDeviceNodeSelection=True, devices=[device(nodeSelector=EXISTING)]),
    slice_of(**HERE, devices=[]),
    slice_of(**HERE, sharedCounters=[{"name": "s", "counters": COUNTERS}]),
    slice_of(**HERE, devices=[device(consumesCounters=[{"counterSet": "s", "counters": COUNTERS}])]),
    slice_of(**HERE, devices=[device(attributes=ALL_OF_THEM)]),
    slice_of(**HERE, devices=[device(attributes={"d.test/a": {"string": "y"}})]),
    slice_of(**HERE, devices=[device(capacity={"memory": {"value": "1Gi"}})]),
    slice_of(**HERE, devices=[policy("8", "2", validValues=["1", "2", "4"])]),
    slice_of(**HERE, devices=[policy("8", "2", validRange={"min": "1", "max": "8", "step": "1"})]),
    slice_of(**HERE, devices=[device(taints=[TAINT])]),
    slice_of(
        **HERE, devices=[device(taints=[TAINT, {"key": "b", "effect": "NoExecute", "timeAdded": LATER}])]
    ),
    slice_of(**HERE, devices=[device(taints=[{**TAINT, "effect": "None"}])]),
    slice_of(
        **HERE, devices=[device(bindsToNode=True, bindingConditions=["a"], bindingFailureConditions=["b"])]
    ),
    {"spec": {"driver": "d.test", "pool": {"name": "p", "resourceSliceCount": 2, "generation": 3}, **HERE}},
    {"spec": {"driver": "d.test", "pool": {"name": "q/r", "resourceSliceCount": 1}, **HERE}},
    {"spec": {"driver": "D.test", "pool": {"name": "p", "resourceSliceCount": 1}, **HERE}},
]
BAD_SLICES: list[Body] = [
    slice_of(),
    slice_of(**HERE, allNodes=True, perDeviceNodeSelection=True, nodeSelector=EXISTING),
    slice_of(allNodes=False, devices=[device()]),
    slice_of(perDeviceNodeSelection=False),
    slice_of(perDeviceNodeSelection=True, devices=[device(), device("f", nodeName="n", allNodes=True)]),
    slice_of(
        **HERE,
        devices=[device(nodeName="n"), device("f", allNodes=False), device("g", nodeSelector=EXISTING)],
    ),
    slice_of(nodeSelector={"nodeSelectorTerms": [field("n"), field("m")]}),
    slice_of(nodeSelector={"nodeSelectorTerms": []}),
    slice_of(**HERE, sharedCounters=[{"name": "s", "counters": COUNTERS}], devices=[device()]),
    slice_of(**HERE, sharedCounters=[{"name": "s"}, {"name": "s", "counters": {"A_": {"value": "1"}}}]),
    slice_of(
        **HERE,
        devices=[
            device(
                consumesCounters=[
                    {"counterSet": "s"},
                    {"counterSet": "s", "counters": {"A_": {"value": "1"}}},
                ]
            )
        ],
    ),
    slice_of(**HERE, devices=[device(attributes={"a": {}})]),
    slice_of(**HERE, devices=[device(attributes={"a": {"int": 1, "string": "x"}})]),
    slice_of(
        **HERE,
        devices=[
            device(attributes={"a": {"version": "1.2"}}),
            device("f", attributes={"b": {"string": "x" * 65}}),
        ],
    ),
    slice_of(**HERE, devices=[device(), device(), device("A_")]),
    slice_of(**HERE, devices=[policy("8", "3", validValues=["1", "2"])]),
    slice_of(**HERE, devices=[policy("8", None, validValues=["1", "2"])]),
    slice_of(
        **HERE,
        devices=[policy("8", "3", validValues=["9"], validRange={"min": "4", "max": "9", "step": "3"})],
    ),
    slice_of(**HERE, devices=[policy("8", "2", validRange={"min": "1", "max": "16", "step": "2"})]),
    slice_of(**HERE, devices=[policy("8", "2", validRange={"max": "8"})]),
    slice_of(**HERE, devices=[device(capacity={"m": {"value": "1", "requestPolicy": {"default": "1"}}})]),
    slice_of(**HERE, devices=[device(taints=[TAINT, TAINT, {"key": "-"}])]),
    slice_of(**HERE, devices=[device(f"d{n}", taints=[TAINT]) for n in range(65)]),
    slice_of(**HERE, devices=[device(bindingConditions=["a"]), device("f", bindingFailureConditions=["b"])]),
    slice_of(**HERE, devices=[device(bindingConditions=["a", "a"], bindingFailureConditions=["a", "-"])]),
    slice_of(**HERE, pool={"name": "/", "resourceSliceCount": 0, "generation": -1}, driver="A_"),
]
DEVICE_KINDS: dict[str, Kind] = {
    "claims": Kind(DEVICE_CLAIMS, DEVICE_CLAIM, CLAIMED, BADLY_CLAIMED),
    "templates": Kind(
        f"{DEVICES}/namespaces/{{ns}}/resourceclaimtemplates",
        {"metadata": {"name": "t"}, "spec": {"spec": DEVICE_CLAIM["spec"]}},
        [
            *({f"spec.{path}": value for path, value in one.items()} for one in CLAIMED[::2]),
            {"spec.metadata": {"labels": {"a": "b"}}},
            {"spec.metadata": {"annotations": {"a": "b"}}},
        ],
        [
            *({f"spec.{path}": value for path, value in one.items()} for one in BADLY_CLAIMED),
            {"spec.metadata": {"labels": {"-": "b"}, "name": "x"}},
        ],
    ),
    "slices": Kind(f"{DEVICES}/resourceslices", {"metadata": {"name": "cluster-rules"}}, SLICES, BAD_SLICES),
    "classes": Kind(
        f"{DEVICES}/deviceclasses",
        {"metadata": {"name": "cluster-rules"}, "spec": {}},
        [
            {},
            {"spec.selectors": cel('device.driver == "a"')},
            {"spec.selectors": cel('device.attributes["a"].b == 1', "true")},
            {"spec.config": [opaque()]},
            {"spec.config": [opaque(parameters={"b": [1, {}]}), opaque("e.test")]},
            {"spec.extendedResourceName": "a.test/b"},
            {"spec.extendedResourceName": "a.test/c", "spec.selectors": cel("true")},
        ],
        [
            {"spec.selectors": cel("1", "x", "device.driver")},
            {"spec.selectors": [{}, {"cel": {"expression": ""}}]},
            {
                "spec.selectors": cel(
                    "device.attributes.all(k, device.attributes.all(l, "
                    "device.attributes.all(m, k == l && l == m)))"
                )
            },
            {"spec.config": [{}, opaque("A_"), {"opaque": {"driver": "d.test"}}]},
            {"spec.extendedResourceName": "cpu"},
            {"spec.extendedResourceName": "kubernetes.io/c", "spec.selectors": [{}], "spec.config": [{}]},
            {"spec": GONE},
        ],
    ),
}


def counted(sets: int, counters: int, key: str = "counterSet") -> list[Body]:
    amounts = {f"c{i}": {"value": "1"} for i in range(counters)}
    return [{key: f"s{i}", "counters": amounts} for i in range(sets)]


def numbered(count: int, **fields: Any) -> list[Body]:
    return [device(f"d{i}", **fields) for i in range(count)]


def attributes(count: int, value: Any = None) -> Body:
    return {f"a{i}": value or {"int": i} for i in range(count)}


def limits() -> list[Ask]:
    """As much as there may be, and one more."""
    taints = [{"key": f"t{i}", "effect": "NoExecute", "timeAdded": TIME} for i in range(17)]
    amounts = {f"c{i}": {"value": "1"} for i in range(40)}
    slices: list[Body] = [
        *(
            slice_of(**HERE, sharedCounters=counted(sets, each_, "name"))
            for sets, each_ in ((8, 32), (9, 1), (8, 33), (1, 256), (2, 129))
        ),
        *(slice_of(**HERE, devices=numbered(*many)) for many in ((128,), (129,))),
        *(
            slice_of(**HERE, devices=numbered(count, consumesCounters=counted(sets, each_)))
            for count, sets, each_ in (
                (64, 1, 1),
                (65, 1, 1),
                (64, 2, 16),
                (64, 2, 32),
                (64, 2, 33),
                (16, 2, 32),
                (1, 3, 1),
                (17, 2, 64),
            )
        ),
        slice_of(**HERE, devices=[*numbered(60, taints=taints[:1]), *(device(f"e{i}") for i in range(60))]),
        slice_of(**HERE, devices=[*numbered(64, taints=taints[:16]), device("e")]),
        slice_of(**HERE, devices=[device(taints=taints)]),
        *(
            slice_of(
                **HERE, devices=[device(attributes=attributes(a), capacity=dict([*amounts.items()][:c]))]
            )
            for a, c in ((32, 0), (33, 0), (16, 16), (16, 17), (0, 32), (0, 33), (31, 2))
        ),
        slice_of(**HERE, devices=numbered(128, attributes=attributes(32, {"string": "x" * 64}))),
        *(
            slice_of(
                **HERE,
                devices=[
                    device(
                        bindingConditions=[f"a{i}" for i in range(a)],
                        bindingFailureConditions=[f"b{i}" for i in range(b)],
                    )
                ],
            )
            for a, b in ((4, 4), (5, 4), (4, 5))
        ),
        slice_of(perDeviceNodeSelection=True, devices=numbered(128, nodeSelector=EXISTING)),
        slice_of(**HERE, devices=[policy("8", "1", validValues=[str(i) for i in range(1, 12)])]),
    ]
    selectors = cel(*["device.driver == 'x'"] * 33)
    requests: list[Any] = [
        [asked(f"r{i}") for i in range(32)],
        [asked(f"r{i}") for i in range(33)],
        [first(f"r{i}", *[{}] * 8) for i in range(32)],
        [first("r", *[{}] * 8), first("q", *[{}] * 9)],
        [asked(selectors=selectors[:32], tolerations=[TOLERATION] * 16)],
        [asked(selectors=selectors, tolerations=[TOLERATION] * 17)],
        [asked(selectors=cel("true" + " " * 10_236))],
        [asked(selectors=cel("true" + " " * 10_237))],
        [asked(selectors=cel(f"device.driver == '{'é' * 5_000}'"))],
        [asked(capacity={"requests": {f"k{i}": "1" for i in range(33)}})],
        [asked(count=2**31)],
        [asked(count=2**63 - 1)],
    ]
    many = [asked(f"r{i}") for i in range(32)]
    rest: list[Body] = [
        {
            "requests": many,
            "constraints": [{"matchAttribute": "a/b", "requests": [f"r{i}" for i in range(32)]}] * 32,
        },
        {"requests": many, "constraints": [{"matchAttribute": "a/b"}] * 33},
        {"requests": many, "config": [opaque(requests=[f"r{i}" for i in range(32)])] * 32},
        {"requests": many, "config": [opaque()] * 33},
        {
            "requests": many,
            "config": [opaque(parameters={"a": "x" * 10_232}), opaque(parameters={"a": "x" * 10_233})],
        },
        {"requests": many, "config": [opaque(parameters={"a": "é" * 5_117})]},
    ]
    classes: list[Body] = [
        {"spec.selectors": selectors[:32], "spec.config": [opaque()] * 32},
        {"spec.selectors": selectors, "spec.config": [opaque()] * 33},
    ]
    return [
        *(
            Ask("POST", f"{DEVICES}/resourceslices{DRY}", {**DEVICE_KINDS["slices"].base, **one})
            for one in slices
        ),
        *(
            Ask("POST", f"{DEVICE_CLAIMS}{DRY}", {**DEVICE_CLAIM, "spec": {"devices": one}})
            for one in (*({"requests": one} for one in requests), *rest)
        ),
        *(
            Ask("POST", f"{DEVICES}/deviceclasses{DRY}", of(DEVICE_KINDS["classes"].base, one))
            for one in classes
        ),
    ]


def freed() -> list[Ask]:
    """What a claim that is being deleted may still become."""
    place = f"{DEVICE_CLAIMS}/g"
    had = {"allocation": allocated(result()), "reservedFor": [USER]}
    ways: list[Any] = [
        had,
        {**had, "reservedFor": []},
        {**had, "reservedFor": [USER, OTHER_USER]},
        {**had, "reservedFor": [OTHER_USER]},
        {"reservedFor": [USER]},
        {},
        {"allocation": allocated(result("f"))},
        {**had, "devices": [of_device()]},
    ]
    whole = named(DEVICE_CLAIM, "g", finalizers=["a.test/b"])
    asks = [Ask("POST", DEVICE_CLAIMS, whole)]
    for status in (
        {"allocation": allocated(result()), "reservedFor": [USER]},
        {"reservedFor": None},
        {"allocation": None},
    ):
        asks.append(Ask("PATCH", f"{place}/status", {"status": status}, MERGE))
        if len(asks) == 2:
            asks += [Ask("PUT", f"{place}/status{DRY}", {**whole, "status": one}) for one in ways]
            asks.append(Ask("DELETE", place))
        asks += [
            Ask("PUT", f"{place}/status{DRY}", {**whole, "status": one}, what=f"{status} {one}")
            for one in ways
        ]
        asks += [
            Ask("PUT", f"{place}{DRY}", one)
            for one in (whole, named(DEVICE_CLAIM, "g"), named(DEVICE_CLAIM, "g", finalizers=["a.test/c"]))
        ]
    return [*asks, Ask("PATCH", place, {"metadata": {"finalizers": None}}, MERGE), Ask("GET", place)]


RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
RULES: list[Any] = [
    [],
    [RULE],
    [{**RULE, "resourceNames": ["a"]}],
    [{**RULE, "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    [RULE, {**RULE, "resources": ["pods/log"]}, RULE],
    [{**RULE, "verbs": [""], "resources": [""]}],
]
BAD_RULES: list[Any] = [
    [{}],
    [{"verbs": ["get"]}],
    [{**RULE, "verbs": []}],
    [{**RULE, "apiGroups": []}],
    [{**RULE, "resources": []}, RULE, {**RULE, "verbs": []}],
    [{"verbs": ["get"], "nonResourceURLs": ["*a", "/b", "a"]}],
    [{**RULE, "nonResourceURLs": ["/a"]}],
    [{"verbs": ["get"], "nonResourceURLs": ["/a"], "resourceNames": ["b"]}],
]
AGGREGATION: list[Body] = [
    {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"cluster-rules": "x"}}]}},
    {
        "aggregationRule": {
            "clusterRoleSelectors": [
                {"matchExpressions": [{"key": "cluster-rules", "operator": "In", "values": ["x"]}]}
            ]
        },
        "rules": [RULE],
    },
]
PERSON = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}
ACCOUNT = {"kind": "ServiceAccount", "name": "default", "namespace": "n"}
SUBJECTS: list[Any] = [
    [],
    [PERSON],
    [{"kind": "Group", "name": "g"}],
    [ACCOUNT],
    [PERSON, ACCOUNT, PERSON],
    [{**PERSON, "namespace": "n"}],
]
BAD_SUBJECTS: list[Any] = [
    [{}],
    [{**PERSON, "apiGroup": "other"}, {**PERSON, "name": ""}],
    [{"kind": "User", "name": "u", "apiGroup": "v1"}],
    [{"kind": "ServiceAccount", "name": "a"}],
    [
        {**ACCOUNT, "apiGroup": "rbac.authorization.k8s.io"},
        {**ACCOUNT, "name": "A_"},
        {**ACCOUNT, "namespace": "N_"},
    ],
    [{"kind": "Odd", "name": "x"}, {"kind": "Group", "apiGroup": "x", "name": ""}],
]
REFERENCES: list[Body] = [
    {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}},
    {"roleRef": {"kind": "ClusterRole", "name": "edit"}},
]
BAD_REFERENCES: list[Body] = [
    {"roleRef": {"apiGroup": "other", "kind": "Odd", "name": ""}},
    {"roleRef": {"kind": "Role", "name": "a/b"}},
    {"roleRef": {"kind": "", "name": "view"}},
    {"roleRef": {"kind": "clusterrole", "name": "view"}, "subjects": [{}]},
    {"roleRef": GONE},
]
REFERENCE = REFERENCES[0]["roleRef"]
ACCESS_KINDS: dict[str, Kind] = {
    "roles": Kind(
        f"{ACCESS}/namespaces/{{ns}}/roles",
        {"metadata": {"name": "r"}},
        each("rules", *RULES[1:]),
        [*each("rules", *BAD_RULES), {}, *each("rules", [{"verbs": ["get"], "nonResourceURLs": ["/a"]}])],
    ),
    "cluster roles": Kind(
        f"{ACCESS}/clusterroles",
        {"metadata": {"name": "cluster-rules"}},
        [
            *each("rules", *RULES[1:]),
            *AGGREGATION,
            *each("rules", [{"verbs": ["get"], "nonResourceURLs": ["*", "/a/*"]}]),
        ],
        [
            *each("rules", *BAD_RULES),
            {},
            {"aggregationRule": {}},
            {"aggregationRule": {"clusterRoleSelectors": []}},
            {"aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": [{}]},
            {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"-": "-"}}]}},
            {
                "aggregationRule": {
                    "clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]
                }
            },
        ],
    ),
    "bindings": Kind(
        f"{ACCESS}/namespaces/{{ns}}/rolebindings",
        {"metadata": {"name": "b"}, "roleRef": REFERENCE},
        [*each("subjects", *SUBJECTS[1:]), *REFERENCES, {"roleRef": {"kind": "Role", "name": "view"}}],
        [
            *each("subjects", *BAD_SUBJECTS),
            *BAD_REFERENCES,
            {"roleRef": {"kind": "Role", "name": "edit"}, "subjects": [{}]},
        ],
    ),
    "cluster bindings": Kind(
        f"{ACCESS}/clusterrolebindings",
        {"metadata": {"name": "cluster-rules"}, "roleRef": REFERENCE},
        [*each("subjects", *SUBJECTS[1:]), *REFERENCES],
        [
            *each("subjects", *BAD_SUBJECTS),
            *BAD_REFERENCES,
            {"roleRef": {"kind": "Role", "name": "edit"}, "subjects": [{}]},
        ],
    ),
}

NODE = {"metadata": {"name": "cluster-rules"}, "spec": {}}
NODE_TAINT = {"key": "a", "value": "b", "effect": "NoSchedule"}
CONFIG_SOURCE = {"configMap": {"namespace": "n", "name": "m", "kubeletConfigKey": "k", "uid": UID}}
NODES = Kind(
    "/api/v1/nodes",
    NODE,
    [
        {},
        {"spec.podCIDR": "10.1.0.0/24"},
        {"spec.podCIDRs": ["10.1.0.0/24"]},
        {"spec.podCIDR": "10.1.0.0/24", "spec.podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
        {"spec.podCIDRs": ["fd00::/64", "10.1.0.0/24"]},
        {"spec.podCIDR": "010.1.0.0/24"},
        {"spec.podCIDR": "10.1.0.1/24"},
        {"spec.providerID": "a://b"},
        {"spec.taints": [NODE_TAINT]},
        {"spec.taints": [NODE_TAINT, {**NODE_TAINT, "effect": "NoExecute", "timeAdded": TIME}]},
        {"spec.taints": [{**NODE_TAINT, "value": ""}, {**NODE_TAINT, "effect": "PreferNoSchedule"}]},
        {"spec.unschedulable": True},
        {"spec.externalID": "e"},
        {"spec.configSource": CONFIG_SOURCE},
        {"status": {"capacity": {"cpu": "2"}, "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}},
    ],
    [
        {"spec.podCIDR": "10.2.0.0/24", "spec.podCIDRs": ["10.1.0.0/24", "fd00::/64"]},
        {"spec.podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]},
        {"spec.podCIDRs": ["10.1.0.0/24", "fd00::/64", "10.2.0.0/24"]},
        {"spec.podCIDRs": ["10.1.0.0/24", "x"]},
        {"spec.podCIDR": "x"},
        {"spec.podCIDRs": ["010.1.0.0/24", "fd00:0::/64"]},
        {"spec.podCIDR": "10.1.0.0/33", "spec.providerID": "c"},
        {"spec.taints": [NODE_TAINT, {**NODE_TAINT, "value": "c"}]},
        {"spec.taints": [{"key": "-", "value": "-"}, {"key": "", "effect": "Odd"}]},
        {"spec.externalID": "f", "spec.providerID": "c", "spec.podCIDR": "10.3.0.0/24"},
        {"spec.configSource": {}},
        {"status": {"capacity": {"cpu": "-1"}, "addresses": [{"type": "a", "address": "b"}] * 2}},
        {"metadata.labels": {"-": "-"}, "spec.taints": [NODE_TAINT] * 2},
        {"metadata.annotations": {"scheduler.alpha.kubernetes.io/preferAvoidPods": "{}"}},
    ],
)
IMAGE = {"names": ["a:1"], "sizeBytes": 5}
NODE_STATUSES: list[Any] = [
    {},
    {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}, {"type": "Hostname", "address": "h"}]},
    {"capacity": {"cpu": "2", "memory": "1Gi"}, "allocatable": {"cpu": "1"}},
    {"allocatable": {"cpu": "1500m"}},
    {"capacity": {"cpu": "4"}},
    {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "Odd"}]},
    {"phase": "Running", "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}},
    {"images": [IMAGE, {"names": []}, IMAGE]},
    {"volumesInUse": ["a", "a"], "volumesAttached": [{"name": "a", "devicePath": "/d"}]},
    {"declaredFeatures": ["A", "B/c"]},
    {
        "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
        "features": {"supplementalGroupsPolicy": True},
    },
    {"config": {"error": "e", "active": CONFIG_SOURCE}},
    {"nodeInfo": {"machineID": "m", "kubeletVersion": "v1", "swap": {"capacity": 5}}},
]
BAD_NODE_STATUSES: list[Any] = [
    {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}] * 3},
    {"capacity": {"cpu": "-1"}, "allocatable": {"memory": "1500m"}},
    {"capacity": {"example.com/gpu": "1.5"}},
    {"capacity": {"a_/-": "1"}},
    {"declaredFeatures": ["B", "A", "A", "b", "x" * 254]},
    {"config": {}, "capacity": {"cpu": "-1"}, "declaredFeatures": ["a"]},
]

LEASE = {"metadata": {"name": "l"}, "spec": {}}
MICRO = "2026-01-02T03:04:05.123456Z"
LEASES = Kind(
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
    LEASE,
    [
        {},
        {
            "spec": {
                "holderIdentity": "a",
                "leaseDurationSeconds": 15,
                "acquireTime": MICRO,
                "renewTime": MICRO,
                "leaseTransitions": 1,
            }
        },
        {"spec": {"holderIdentity": "", "leaseTransitions": 0}},
        {"spec": {"holderIdentity": "b", "renewTime": MICRO}},
        {"spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "b"}},
    ],
    [
        {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}},
        {"spec": {"strategy": "odd", "preferredHolder": ""}},
        {"spec": GONE},
    ],
    versioned=True,
)

SECRETS = "/api/v1/namespaces/{ns}/secrets"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


DOCKER = b64('{"auths": {}}')
SECRET_STATES: list[Body] = [
    {},
    {"data": {"a": b64("b")}},
    {"data": {"a": ""}},
    {"stringData": {"a": "c"}},
    {"data": {"a": b64("b")}, "stringData": {"a": "c", "d": ""}},
    {"data": {"a": b64("b")}, "immutable": True},
    {"data": {"a": b64("b")}, "immutable": False},
    {"immutable": True},
    {"type": "a.test/odd", "data": {"a": b64("b")}},
    {"type": "kubernetes.io/basic-auth", "data": {"username": b64("u")}},
    {"type": "kubernetes.io/basic-auth", "stringData": {"password": "p"}},
    {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": b64("k")}},
    {"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}},
    {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": DOCKER}},
    {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": DOCKER}},
    {"type": "bootstrap.kubernetes.io/token", "data": {"token-id": b64("abcdef")}},
    {
        "type": "kubernetes.io/service-account-token",
        "metadata.annotations": {"kubernetes.io/service-account.name": "default"},
    },
]
BAD_SECRETS: list[Body] = [
    {"type": "kubernetes.io/basic-auth"},
    {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
    {"type": "kubernetes.io/tls", "data": {"tls.crt": b64("x")}},
    {"type": "kubernetes.io/tls"},
    {"type": "kubernetes.io/dockercfg", "data": {"a": ""}},
    {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": b64("x")}},
    {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": ""}},
    {"type": "kubernetes.io/service-account-token"},
    {
        "type": "kubernetes.io/service-account-token",
        "metadata.annotations": {"kubernetes.io/service-account.name": ""},
    },
    {"data": {"-/": b64("b")}},
    {"data": {"a": b64("x" * 1_048_577)}},
    {"data": {"a": b64("x" * 1_000_000)}, "stringData": {"b": "x" * 48_576}},
    {"data": {"a": b64("x" * 1_000_000)}, "stringData": {"b": "x" * 48_577}},
    {"immutable": True, "data": {"a": b64("c")}, "type": "a.test/other"},
    {"immutable": False, "stringData": {"a": "b"}},
    {"data": None, "stringData": None, "immutable": None, "type": ""},
]
MAPS: list[Body] = [
    {},
    {"data": {"a": "b"}},
    {"data": {"a": "b"}, "binaryData": {"c": b64("d")}},
    {"binaryData": {"a": b64("b")}},
    {"data": {"a": "b"}, "immutable": True},
    {"binaryData": {"a": b64("b")}, "immutable": True},
    {"immutable": False},
]
BAD_MAPS: list[Body] = [
    {"data": {"a": "b"}, "binaryData": {"a": b64("b")}},
    {"data": {"a": "x" * 1_048_577}},
    {"data": {"a": "x" * 1_000_000}, "binaryData": {"b": b64("x" * 48_576)}},
    {"data": {"a": "x" * 1_000_000}, "binaryData": {"b": b64("x" * 48_577)}},
    {"data": {"-/": "b"}},
    {"data": {"a": "c"}, "binaryData": {"a": b64("b")}, "immutable": True},
    {"data": {"a" * 254: "b"}},
    {"data": {"a": "é" * 524_288}},
    {"data": {"a": "é" * 524_289}},
]

EVENT = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"}}
OLD_EVENTS = "/api/v1/namespaces/{ns}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
NEW_EVENT: Body = {
    "metadata": {"name": "n"},
    "regarding": {"kind": "Pod", "name": "p", "namespace": "{ns}"},
    "eventTime": MICRO,
    "reportingController": "c.test/x",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}
SERIES = {"count": 2, "lastObservedTime": MICRO}
OLD_STATES: list[Body] = [
    {},
    {
        "reason": "r",
        "message": "m",
        "type": "Odd",
        "count": 3,
        "firstTimestamp": TIME,
        "lastTimestamp": LATER,
    },
    {"eventTime": MICRO, "reportingComponent": "c", "reportingInstance": "i", "action": "a", "reason": "r"},
    {
        "eventTime": MICRO,
        "reportingComponent": "c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "series": SERIES,
    },
    {"source": {"component": "c", "host": "h"}, "related": {"kind": "Node", "name": "n"}},
]
BAD_OLD: list[Body] = [
    {"involvedObject.namespace": "other"},
    {"involvedObject.namespace": "default", "eventTime": MICRO},
    {"eventTime": MICRO},
    {
        "eventTime": MICRO,
        "reportingComponent": "-",
        "action": "x" * 129,
        "reason": "é" * 65,
        "message": "é" * 513,
    },
    {"series": {"count": 0}},
    {"reportingInstance": "x" * 200, "message": "x" * 2000},
    {"metadata.name": "A_"},
]
NEW_STATES: list[Body] = [
    {},
    {"series": SERIES},
    {"series": {**SERIES, "count": 5}},
    {"type": "Warning", "note": "n", "related": {"kind": "Node", "name": "n"}},
    {"note": "é" * 512},
]
BAD_NEW: list[Body] = [
    {"series": {"count": 1, "lastObservedTime": MICRO}},
    {"series": {"count": 2}},
    {"series": {}},
    {"eventTime": GONE},
    {"eventTime": "2026-01-02T03:04:06.000000Z", "reason": "s", "action": "b"},
    {"regarding.namespace": "other"},
    {"regarding": {}},
    {"type": "Odd", "note": "x" * 1025, "reportingInstance": "x" * 129},
    {
        "deprecatedCount": 1,
        "deprecatedFirstTimestamp": TIME,
        "deprecatedLastTimestamp": TIME,
        "deprecatedSource": {"component": "c"},
    },
    {"reportingController": "", "reportingInstance": "", "action": "", "reason": ""},
    {"reportingController": "a/b/c", "type": "", "series": SERIES},
]


def between_events() -> list[Ask]:
    """What was written through one version, changed through the other."""
    of_old = {
        name: value
        for name, value in NEW_EVENT.items()
        if name not in ("regarding", "reportingController", "metadata")
    }
    of_old |= {"involvedObject": NEW_EVENT["regarding"], "reportingComponent": "c.test/x"}
    asks: list[Ask] = []
    for i, state in enumerate(OLD_STATES):
        asks.append(Ask("POST", OLD_EVENTS, named(of(EVENT, state), f"o-{i}")))
        asks.append(Ask("GET", f"{NEW_EVENTS}/o-{i}"))
        asks += [
            Ask(
                "PUT",
                f"{NEW_EVENTS}/o-{i}{DRY}",
                named(of(NEW_EVENT, other), f"o-{i}"),
                what=f"{state} -> {other}",
            )
            for other in (*NEW_STATES, *BAD_NEW)
        ]
        asks += [
            Ask("PATCH", f"{NEW_EVENTS}/o-{i}{DRY}", patch, MERGE, what=f"{state} -> {patch}")
            for patch in (
                {"series": SERIES},
                {"note": "x"},
                {"metadata": {"labels": {"a": "b"}}},
                {"deprecatedCount": 7},
            )
        ]
    for i, state in enumerate(NEW_STATES):
        asks.append(Ask("POST", NEW_EVENTS, named(of(NEW_EVENT, state), f"n-{i}")))
        asks.append(Ask("GET", f"{OLD_EVENTS}/n-{i}"))
        asks += [
            Ask(
                "PUT",
                f"{OLD_EVENTS}/n-{i}{DRY}",
                named(of({**EVENT, **of_old}, other), f"n-{i}"),
                what=f"{state} -> {other}",
            )
            for other in (*OLD_STATES, *BAD_OLD[:-1])
        ]
        asks += [
            Ask("PATCH", f"{OLD_EVENTS}/n-{i}{DRY}", patch, MERGE, what=f"{state} -> {patch}")
            for patch in (
                {"series": None},
                {"message": "x" * 1025},
                {"count": 7, "firstTimestamp": TIME},
                {"eventTime": None},
            )
        ]
    return [
        *asks,
        # A change of nothing drops what the other version has of the fields.
        Ask("PATCH", f"{OLD_EVENTS}/n-0", {"type": "Normal"}, MERGE),
        Ask("GET", f"{NEW_EVENTS}/n-0"),
        Ask("PATCH", f"{NEW_EVENTS}/o-3", {"series": SERIES}, MERGE),
        Ask("GET", f"{OLD_EVENTS}/o-3"),
    ]


CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CSR = named(REQUEST, "cluster-rules")


def condition(kind: str, status: str = "True", **more: Any) -> Body:
    return {"type": kind, "status": status, "reason": "R", "message": "m", **more}


DECIDED: list[list[tuple[str, Any]]] = [
    [],
    [("approval", {"conditions": [condition("Approved")]})],
    [("approval", {"conditions": [condition("Denied")]})],
    [("approval", {"conditions": [condition("Odd", "False")]})],
    [("approval", {"conditions": [condition("Approved"), condition("Odd")]})],
    [("status", {"conditions": [condition("Failed")]})],
    [("status", {"conditions": [condition("Odd", "Unknown")]})],
    [("status", {"certificate": ISSUED})],
    [("approval", {"conditions": [condition("Approved")]}), ("status", {"certificate": ISSUED})],
    [
        ("approval", {"conditions": [condition("Approved")]}),
        ("status", {"conditions": [condition("Approved"), condition("Failed")]}),
    ],
]
DECISIONS: list[Any] = [
    {},
    {"conditions": [condition("Approved")]},
    {"conditions": [condition("Approved", reason="S", message="n")]},
    {"conditions": [condition("Approved", lastTransitionTime=TIME, lastUpdateTime=LATER)]},
    {"conditions": [condition("Approved", "False")]},
    {"conditions": [condition("Denied")]},
    {"conditions": [condition("Failed")]},
    {"conditions": [condition("Odd"), condition("Approved")]},
    {"conditions": [condition("Odd", "False")]},
    {"conditions": [condition("Odd", "False"), condition("Odd")]},
    {"conditions": [condition("Approved"), condition("Denied")]},
    {"conditions": [condition("Approved"), condition("Approved")]},
    {"conditions": [condition("Approved"), condition("Failed")]},
    {"conditions": [condition("Denied"), condition("Failed")]},
    {"conditions": [condition("Failed"), condition("Approved")]},
    {"conditions": [condition("")]},
    {"certificate": ISSUED},
    {"certificate": ISSUED, "conditions": [condition("Approved")]},
    {"certificate": ISSUED_TWICE, "conditions": [condition("Approved")]},
    {"certificate": b64("x"), "conditions": [condition("Approved")]},
    {"certificate": ISSUED, "conditions": [condition("Approved"), condition("Failed")]},
    {"certificate": ISSUED, "conditions": [condition("Denied")]},
]


def decided() -> list[Ask]:
    """What each endpoint makes of a request for a certificate in each state."""
    asks: list[Ask] = []
    for i, way in enumerate(DECIDED):
        name = f"cluster-rules-{i}"
        asks.append(Ask("POST", CSRS, named(CSR, name)))
        asks += [Ask("PATCH", f"{CSRS}/{name}/{part}", {"status": status}, MERGE) for part, status in way]
        asks += [
            Ask(
                "PUT",
                f"{CSRS}/{name}{part}{DRY}",
                {**named(CSR, name), "status": status},
                what=f"{way} {status}",
            )
            for part in ("/approval", "/status", "")
            for status in DECISIONS[:: 1 if part else 5]
        ]
        asks += [
            Ask("PUT", f"{CSRS}/{name}{part}{DRY}", of(named(CSR, name), {path: value}), what=f"{way} {path}")
            for part in ("/approval", "/status", "")
            for path, value in (
                ("spec.usages", ["server auth"]),
                ("spec.signerName", "example.com/x"),
                ("spec.username", "mallory"),
                ("metadata.labels", {"a": "b"}),
            )
        ]
        asks.append(Ask("DELETE", f"{CSRS}/{name}"))
    return [msgspec.structs.replace(ask, headers={**ask.headers, **NOBODY_ELSE}) for ask in asks]


FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
HUMAN = {"kind": "User", "user": {"name": "nobody-at-all"}}
THINGS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
QUEUING = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
FLOW_KINDS: dict[str, Kind] = {
    "levels": Kind(
        f"{FLOW}/prioritylevelconfigurations",
        {"metadata": {"name": "cluster-rules"}},
        [
            {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
            {
                "spec": {
                    "type": "Limited",
                    "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}},
                }
            },
            {
                "spec": {
                    "type": "Limited",
                    "limited": {"limitResponse": {"type": "Queue", "queuing": QUEUING}},
                }
            },
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "lendablePercent": 50,
                        "borrowingLimitPercent": 0,
                        "limitResponse": {"type": "Queue"},
                    },
                }
            },
            {"spec": {"type": "Exempt"}},
            {"spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 5, "lendablePercent": 10}}},
        ],
        [
            {"spec": {"type": "Limited"}},
            {"spec": {"type": "Exempt", "limited": {"limitResponse": {"type": "Reject"}}}},
            {"spec": {"type": "Limited", "exempt": {}, "limited": {"limitResponse": {"type": "Odd"}}}},
            {
                "spec": {
                    "type": "Limited",
                    "limited": {"limitResponse": {"type": "Reject", "queuing": QUEUING}},
                }
            },
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "limitResponse": {
                            "type": "Queue",
                            "queuing": {"queues": 2, "handSize": 4, "queueLengthLimit": -1},
                        }
                    },
                }
            },
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "limitResponse": {
                            "type": "Queue",
                            "queuing": {"queues": 10_000_001, "handSize": 20, "queueLengthLimit": 1},
                        }
                    },
                }
            },
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": -1,
                        "lendablePercent": 101,
                        "borrowingLimitPercent": -1,
                        "limitResponse": {"type": "Reject"},
                    },
                }
            },
            {"spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": 101}}},
            {"spec": {"type": "Odd"}},
            {"status": {"conditions": [{"type": "A", "status": "Odd"}]}},
        ],
    ),
    "schemas": Kind(
        f"{FLOW}/flowschemas",
        {
            "metadata": {"name": "cluster-rules"},
            "spec": {"priorityLevelConfiguration": {"name": "global-default"}},
        },
        [
            {},
            {"spec.matchingPrecedence": 1},
            {"spec.matchingPrecedence": 10_000},
            {"spec.distinguisherMethod": {"type": "ByUser"}},
            {"spec.distinguisherMethod": {"type": "ByNamespace"}},
            {"spec.rules": [{"subjects": [HUMAN], "resourceRules": [THINGS]}]},
            {
                "spec.rules": [
                    {
                        "subjects": [HUMAN, HUMAN],
                        "resourceRules": [{**THINGS, "clusterScope": True, "namespaces": []}],
                    }
                ]
            },
            {
                "spec.rules": [
                    {
                        "subjects": [HUMAN],
                        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/a/*", "*"]}],
                    }
                ]
            },
        ],
        [
            {"spec.matchingPrecedence": 0},
            {"spec.matchingPrecedence": 10_001, "spec.priorityLevelConfiguration": {"name": ""}},
            {"spec.distinguisherMethod": {"type": "Odd"}},
            {"spec.rules": [{"subjects": [HUMAN]}, {"resourceRules": [THINGS]}]},
            {
                "spec.rules": [
                    {
                        "subjects": [HUMAN],
                        "resourceRules": [{**THINGS, "namespaces": []}, {**THINGS, "verbs": ["get", "*"]}],
                    }
                ]
            },
            {
                "spec.rules": [
                    {
                        "subjects": [HUMAN],
                        "resourceRules": [{**THINGS, "clusterScope": True, "namespaces": ["-"]}],
                    }
                ]
            },
            {
                "spec.rules": [
                    {
                        "subjects": [{**HUMAN, "group": {"name": "g"}}, {"kind": "Group"}],
                        "nonResourceRules": [{"verbs": ["x"], "nonResourceURLs": ["a", "/a*", "/"]}],
                    }
                ]
            },
        ],
    ),
}
CONDITIONS: list[Any] = [
    {},
    {"conditions": [{"type": "A", "status": "True"}]},
    {"conditions": [{"type": "A", "status": "False", "lastTransitionTime": TIME}, {"type": "B"}]},
    {"conditions": [{"type": "C", "status": "Odd", "reason": "r", "message": "m"}]},
]
NAMESPACES: list[Any] = [
    {},
    {"phase": "Active"},
    {"phase": "Terminating"},
    {"phase": "Odd", "conditions": [{"type": "A", "status": "True", "lastTransitionTime": TIME}]},
    {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]},
]
CLASSES: dict[str, Kind] = {
    "priorities": Kind(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "cluster-rules"}, "value": 5},
        [{}, {"description": "d"}, {"preemptionPolicy": "Never"}, {"value": -5}, {"value": 1_000_000_000}],
        [
            {"value": 1_000_000_001},
            {"preemptionPolicy": "Odd"},
            {"preemptionPolicy": ""},
            {"value": 6, "preemptionPolicy": "Never"},
        ],
    ),
    "runtimes": Kind(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"metadata": {"name": "cluster-rules"}, "handler": "h"},
        [
            {},
            {"handler": "i"},
            {"overhead": {"podFixed": {"cpu": "1"}}},
            {"overhead": {}},
            {"scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}},
            {"scheduling": {}},
        ],
        [
            {"handler": "A_"},
            {"handler": "", "overhead": {"podFixed": {"cpu": "-1"}}},
            {"scheduling": {"nodeSelector": {"-": "-"}, "tolerations": [{"key": "-", "operator": "Odd"}]}},
            {"scheduling": {"tolerations": [{"operator": "Exists"}] * 2}},
        ],
        versioned=True,
    ),
    "ingress": Kind(
        "/apis/networking.k8s.io/v1/ingressclasses",
        {"metadata": {"name": "cluster-rules"}, "spec": {"controller": "a.test/b"}},
        [
            {},
            {"spec.controller": "a.test/c"},
            {"spec.parameters": {"apiGroup": "a.test", "kind": "K", "name": "n"}},
            {"spec.parameters": {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "x"}},
        ],
        [
            {"spec.controller": "a"},
            {"spec.controller": ""},
            {"spec.parameters": {"kind": "K", "name": "n", "scope": "Cluster", "namespace": "x"}},
            {"spec.parameters": {"kind": "K", "name": "n", "scope": "Namespace"}},
            {"spec.parameters": {"apiGroup": "-", "kind": "a/b", "name": "-/", "scope": "Odd"}},
            {"spec": GONE},
        ],
    ),
    "revisions": Kind(
        "/apis/apps/v1/namespaces/{ns}/controllerrevisions",
        {"metadata": {"name": "r"}, "revision": 1},
        [{"data": {"a": 1}}, {"data": {"a": 1}, "revision": 2}, {"data": {"a": 2}}, {"data": {}}],
        [
            {},
            {"data": None},
            {"revision": -1},
            {"data": {"b": 1}, "revision": -1},
            {"data": "x"},
            {"data": [1]},
        ],
        versioned=False,
    ),
    "accounts": Kind(
        "/api/v1/namespaces/{ns}/serviceaccounts",
        {"metadata": {"name": "a"}},
        [
            {},
            {"secrets": [{"name": "s"}]},
            {"imagePullSecrets": [{"name": "i"}, {"name": "i"}]},
            {"automountServiceAccountToken": False},
            {"metadata.annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
            {"metadata.annotations": {"kubernetes.io/enforce-mountable-secrets": "false"}},
        ],
        [{"secrets": [{}]}, {"imagePullSecrets": [{"name": "-"}]}],
    ),
}
ADMITTING = "/apis/admissionregistration.k8s.io/v1"
NOWHERE = {
    "operations": ["CREATE"],
    "apiGroups": ["none.test"],
    "apiVersions": ["v1"],
    "resources": ["nones"],
}
WEBHOOK = {
    "name": "a.none.test",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Ignore",
    "rules": [NOWHERE],
}


def hooked(*webhooks: Body) -> Body:
    return {"webhooks": list(webhooks)}


HOOKS: list[Body] = [
    hooked(WEBHOOK),
    hooked({**WEBHOOK, "name": "b.none.test"}, WEBHOOK),
    hooked({**WEBHOOK, "matchConditions": [{"name": "a", "expression": "object.metadata.name == 'x'"}]}),
    hooked(
        {
            **WEBHOOK,
            "matchConditions": [
                {"name": "b", "expression": "true"},
                {"name": "c", "expression": "has(object.a)"},
            ],
        }
    ),
    hooked(
        {**WEBHOOK, "clientConfig": {"service": {"namespace": "n", "name": "s", "path": "/p", "port": 9}}}
    ),
    hooked({**WEBHOOK, "matchPolicy": "Exact", "timeoutSeconds": 30, "sideEffects": "NoneOnDryRun"}),
    hooked({**WEBHOOK, "objectSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}),
]
BAD_HOOKS: list[Body] = [
    hooked(WEBHOOK, WEBHOOK),
    hooked(
        {
            **WEBHOOK,
            "matchConditions": [
                {"name": "a", "expression": "object.metadata.name == 'x'"},
                {"name": "a", "expression": "1"},
            ],
        }
    ),
    hooked(
        {**WEBHOOK, "matchConditions": [{"name": "a", "expression": ""}, {"name": "", "expression": "nope"}]}
    ),
    hooked({**WEBHOOK, "matchConditions": [{"name": f"n{i}", "expression": "true"} for i in range(65)]}),
    hooked({**WEBHOOK, "clientConfig": {}}),
    hooked(
        {**WEBHOOK, "clientConfig": {"url": "http://a/b?c#d", "service": {"name": "s", "namespace": "n"}}}
    ),
    hooked(
        {**WEBHOOK, "sideEffects": "Some", "admissionReviewVersions": ["v1", "v1", "-"], "timeoutSeconds": 31}
    ),
    hooked({**WEBHOOK, "sideEffects": "Unknown", "admissionReviewVersions": ["v9"]}),
    hooked(
        {
            **WEBHOOK,
            "rules": [{**NOWHERE, "resources": ["*", "a"], "operations": ["*", "CREATE"], "apiVersions": []}],
        }
    ),
    hooked({**WEBHOOK, "name": "a"}, {**WEBHOOK, "failurePolicy": "Odd", "matchPolicy": "Odd"}),
    hooked({**WEBHOOK, "objectSelector": {"matchLabels": {"-": "-"}}}),
]
PARAMETERS: Body = {"apiVersion": "v1", "kind": "Secret"}
"""Kubernetes does not follow a kind any more once its last policy has gone: others have ConfigMaps."""
CONSTRAINED: Body = {"matchConstraints": {"resourceRules": [NOWHERE]}, "failurePolicy": "Ignore"}
VALIDATED: list[Body] = [
    {"spec": {**CONSTRAINED, "validations": [{"expression": "true"}], **more}}
    for more in (
        {},
        {"validations": [{"expression": "object.a == 1", "message": "m", "reason": "Invalid"}]},
        {
            "validations": [{"expression": "params.x > 1", "messageExpression": "'a' + 'b'"}],
            "paramKind": PARAMETERS,
        },
        {"variables": [{"name": "v", "expression": "1"}, {"name": "w", "expression": "variables.v + 1"}]},
        {"matchConditions": [{"name": "a", "expression": "true"}]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'x'"}]},
        {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{**NOWHERE, "resourceNames": ["n"], "scope": "Namespaced"}],
                "matchPolicy": "Exact",
            },
        },
    )
]
MANY = [{"name": f"n{i}", "expression": "true"} for i in range(200)]
BADLY_VALIDATED: list[Body] = [
    {"spec": {**CONSTRAINED, **more}}
    for more in (
        {"validations": [{"expression": "true"}], "matchConditions": MANY[:64]},
        {"validations": [{"expression": "true"}], "matchConditions": MANY[:65]},
        {"validations": [{"expression": "true"}], "variables": MANY},
        {"validations": [{"expression": "true"}] * 300},
        {"auditAnnotations": [{"key": f"k{i}", "valueExpression": "'x'"} for i in range(20)]},
        {"auditAnnotations": [{"key": f"k{i}", "valueExpression": "'x'"} for i in range(21)]},
        {"auditAnnotations": [{"key": "k", "valueExpression": "'x'"}] * 2},
        {"auditAnnotations": [{"key": "k", "valueExpression": f"'{'x' * 5_119}'"}]},
        {"validations": [{"expression": f"'{'x' * 20_000}' == ''", "message": "m" * 5_000}]},
        {
            "validations": [
                {"expression": "[1,2,3].all(a, [1,2,3].all(b, object.x.all(c, object.x.all(d, c == d))))"}
            ]
        },
        {
            "validations": [
                {"expression": "object.x.all(a, object.y.all(b, object.z.all(c, a == b && b == c)))"}
            ]
        },
        {},
        {"validations": [{"expression": "params.x"}, {"expression": "1"}, {"expression": ""}]},
        {
            "validations": [{"expression": "variables.v"}],
            "variables": [{"name": "v", "expression": "variables.w"}, {"name": "w", "expression": "1"}],
        },
        {
            "validations": [{"expression": "true"}],
            "variables": [
                {"name": "v", "expression": "1"},
                {"name": "v", "expression": "nope"},
                {"name": "1a", "expression": ""},
            ],
        },
        {
            "validations": [
                {"expression": "true", "message": "a\nb", "messageExpression": "1", "reason": "Odd"}
            ]
        },
        {"auditAnnotations": [{"key": "a/b", "valueExpression": "1"}, {"key": "", "valueExpression": ""}]},
        {
            "validations": [{"expression": "true"}],
            "matchConditions": [
                {"name": "a", "expression": "params.x"},
                {"name": "-", "expression": "variables.v"},
            ],
        },
        {"validations": [{"expression": "true"}], "paramKind": {"apiVersion": "a/b/c", "kind": ""}},
        {
            "validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": []},
            "failurePolicy": "Odd",
        },
    )
]
MUTATED: list[Body] = [
    {
        "spec": {
            **CONSTRAINED,
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
            ],
            **more,
        }
    }
    for more in (
        {},
        {
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/a', value: 1}]"},
                }
            ]
        },
        {"reinvocationPolicy": "IfNeeded", "variables": [{"name": "v", "expression": "1"}]},
        {
            "paramKind": PARAMETERS,
            "matchConditions": [{"name": "a", "expression": "true"}],
        },
    )
]
BADLY_MUTATED: list[Body] = [
    {"spec": {**CONSTRAINED, "reinvocationPolicy": "Never", **more}}
    for more in (
        {},
        {"mutations": [{"patchType": "Odd"}]},
        {"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]},
        {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "1"}}]},
        {
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": "Object{}"}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression": ""}},
            ]
        },
        {"mutations": [], "reinvocationPolicy": "Odd"},
    )
]
BOUND: list[Body] = [
    {"spec": {"policyName": "p", **more}}
    for more in (
        {"validationActions": ["Deny"]},
        {"validationActions": ["Audit", "Warn"]},
        {"validationActions": ["Deny"], "paramRef": {"name": "n", "parameterNotFoundAction": "Allow"}},
        {
            "validationActions": ["Deny"],
            "paramRef": {"selector": {}, "namespace": "x", "parameterNotFoundAction": "Deny"},
        },
        {"validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
    )
]
BADLY_BOUND: list[Body] = [
    {"spec": {"policyName": "p", **more}}
    for more in (
        {},
        {"validationActions": ["Deny", "Warn"]},
        {"validationActions": ["Deny", "Deny", "Odd"]},
        {"validationActions": ["Deny"], "policyName": "q"},
        {"validationActions": ["Deny"], "policyName": ""},
        {"validationActions": ["Deny"], "paramRef": {}},
        {
            "validationActions": ["Deny"],
            "paramRef": {"name": "n", "selector": {}, "parameterNotFoundAction": "Odd"},
        },
        {"validationActions": ["Deny"], "paramRef": {"name": "A_/", "parameterNotFoundAction": ""}},
        {"validationActions": ["Deny"], "matchResources": {"resourceRules": [{}], "matchPolicy": "Odd"}},
    )
]


def without_actions(states: Sequence[Body]) -> list[Body]:
    return [
        {"spec": {name: value for name, value in one["spec"].items() if name != "validationActions"}}
        for one in states
    ]


READS: dict[str, tuple[bool, list[Body]]] = {
    "nothing": (True, []),
    "all-maps": (True, [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]),
    "one-map": (
        True,
        [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"], "resourceNames": ["n"]}],
    ),
    "maps-here": (False, [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]),
    "a-group": (True, [{"apiGroups": ["none.test"], "resources": ["*"], "verbs": ["get"]}]),
    "everything": (True, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]),
}
"""What they may read who may write policies and bindings: everywhere, or in one namespace."""


def with_parameters() -> list[Ask]:
    """Who may write policies and bindings with which parameters."""
    writes = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    asks: list[Ask] = []
    made: list[str] = []
    for name, (everywhere, rules) in READS.items():
        meta, ref = (
            {"name": f"cluster-rules-{name}"},
            {"kind": "ClusterRole", "name": f"cluster-rules-{name}"},
        )
        subjects = [{"kind": "User", "name": f"cluster-rules-{name}"}]
        roles, bindings = f"{ACCESS}/clusterroles", f"{ACCESS}/clusterrolebindings"
        asks.append(Ask("POST", roles, {"metadata": meta, "rules": [writes, *(rules if everywhere else [])]}))
        asks.append(Ask("POST", bindings, {"metadata": meta, "roleRef": ref, "subjects": subjects}))
        made += [f"{roles}/{meta['name']}", f"{bindings}/{meta['name']}"]
        if not everywhere:
            here = f"{ACCESS}/namespaces/{{ns}}"
            of_here = {"kind": "Role", "name": meta["name"]}
            asks.append(Ask("POST", f"{here}/roles", {"metadata": meta, "rules": rules}))
            binding = {"metadata": meta, "roleRef": of_here, "subjects": subjects}
            asks.append(Ask("POST", f"{here}/rolebindings", binding))
    kinds: dict[str, Any] = {
        "map": PARAMETERS,
        "role": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"},
        "none": {"apiVersion": "none.test/v1", "kind": "None"},
        "unsaid": None,
        "bad": {"apiVersion": "v1", "kind": ""},
    }
    chosen: list[Body] = [
        {"name": "n", "namespace": "{ns}"},
        {"name": "n"},
        {"name": "m"},
        {"selector": {}},
        {"selector": {}, "namespace": "{ns}"},
    ]
    for prefix, whole, bound in (
        ("validating", VALIDATED[0]["spec"], {"validationActions": ["Deny"]}),
        ("mutating", MUTATED[0]["spec"], {}),
    ):
        policies, bindings = (
            f"{ADMITTING}/{prefix}admissionpolicies",
            f"{ADMITTING}/{prefix}admissionpolicybindings",
        )

        def bodied(name: str, **spec: Any) -> Body:
            return {"metadata": {"name": f"cluster-rules-{name}"}, "spec": spec}

        asks += [
            Ask("POST", policies, bodied(kind, **whole, paramKind=said))
            for kind, said in kinds.items()
            if kind != "bad"
        ]
        made += [f"{policies}/cluster-rules-{kind}" for kind in kinds if kind != "bad"]
        refs = [{**one, "parameterNotFoundAction": "Allow"} for one in chosen]
        spec = {**bound, "policyName": "cluster-rules-map", "paramRef": refs[0]}
        asks.append(Ask("POST", bindings, bodied("bound", **spec)))
        made.append(f"{bindings}/cluster-rules-bound")
        for name in READS:
            by = {
                "Impersonate-User": f"cluster-rules-{name}",
                "Impersonate-Extra-B": "c",
                "Impersonate-Extra-A": "b",
            }
            asks.append(Ask("GET", f"{policies}/cluster-rules-map", headers=by, until=200))
            asks += [
                Ask("POST", f"{policies}{DRY}", bodied("new", **whole, paramKind=said), by)
                for said in kinds.values()
            ]
            asks += [
                Ask("PATCH", f"{policies}/cluster-rules-map{DRY}", {"spec": one}, {**by, **MERGE})
                for one in ({"failurePolicy": "Fail"}, {"paramKind": kinds["role"]}, {"paramKind": None})
            ]
            asks += [
                Ask(
                    "POST",
                    f"{bindings}{DRY}",
                    bodied("new", **bound, policyName=f"cluster-rules-{kind}", paramRef=ref),
                    by,
                )
                for kind in (*kinds, "missing")
                for ref in (*refs[:: 1 if kind == "map" else 3], None)
            ]
            asks += [
                Ask("PATCH", f"{bindings}/cluster-rules-bound{DRY}", one, {**by, **MERGE})
                for one in (
                    {"metadata": {"labels": {"a": "b"}}},
                    {"spec": {"paramRef": {"name": "o"}}},
                    {"spec": {"paramRef": None}},
                    {"spec": {"policyName": "x"}},
                )
            ]
    return [*asks, *(Ask("DELETE", one) for one in made)]


NAMELESS: Body = {"metadata": {"name": "cluster-rules"}}
ADMISSION: dict[str, Kind] = {
    "validating webhooks": Kind(f"{ADMITTING}/validatingwebhookconfigurations", NAMELESS, HOOKS, BAD_HOOKS),
    "mutating webhooks": Kind(
        f"{ADMITTING}/mutatingwebhookconfigurations",
        NAMELESS,
        [*HOOKS[::2], hooked({**WEBHOOK, "reinvocationPolicy": "IfNeeded"})],
        [*BAD_HOOKS, hooked({**WEBHOOK, "reinvocationPolicy": "Odd"})],
    ),
    "policies": Kind(f"{ADMITTING}/validatingadmissionpolicies", NAMELESS, VALIDATED, BADLY_VALIDATED),
    "bindings": Kind(f"{ADMITTING}/validatingadmissionpolicybindings", NAMELESS, BOUND, BADLY_BOUND),
    "mutating policies": Kind(f"{ADMITTING}/mutatingadmissionpolicies", NAMELESS, MUTATED, BADLY_MUTATED),
    "mutating bindings": Kind(
        f"{ADMITTING}/mutatingadmissionpolicybindings",
        NAMELESS,
        without_actions(BOUND[1:]),
        without_actions(BADLY_BOUND),
    ),
}
VOLUME_KIND = Kind(VOLUMES, OF_CSI, [])
CLAIM_KIND = Kind(CLAIMS, CLAIM, [])


def sequences() -> Iterator[Compared]:
    yield Compared("volumes: sources", matrix(Kind(VOLUMES, VOLUME, SOURCES, BAD_SOURCES)), apart=True)
    yield Compared("volumes: rest", matrix(Kind(VOLUMES, OF_CSI, VOLUME_STATES, BAD_VOLUMES)), apart=True)
    yield Compared("volumes: phases", statuses(VOLUME_KIND, VOLUME_STATUSES, [None]), apart=True)
    yield Compared("claims: pending", matrix(Kind(CLAIMS, CLAIM, CLAIM_STATES, BAD_CLAIMS)), apart=True)
    yield Compared("claims: statuses", statuses(CLAIM_KIND, CLAIM_STATUSES, BAD_CLAIM_STATUSES), apart=True)
    yield Compared("claims: grown", grown(), apart=True)
    for name, kind in OF_STORAGE.items():
        yield Compared(f"storage: {name}", matrix(kind), apart=True)
    yield Compared(
        "storage: attached", statuses(OF_STORAGE["attachments"], ATTACHED, BAD_ATTACHED), apart=True
    )
    for name, kind in DEVICE_KINDS.items():
        yield Compared(f"devices: {name}", matrix(kind), apart=True)
    yield Compared(
        "devices: allocated", statuses(DEVICE_KINDS["claims"], CLAIM_HAS, CLAIM_MAY_NOT), apart=True
    )
    yield Compared("devices: freed", freed(), apart=True)
    yield Compared("devices: by parts", by_parts(), apart=True)
    yield Compared("devices: limits", limits(), apart=True)
    for name, kind in ACCESS_KINDS.items():
        yield Compared(f"access: {name}", matrix(kind), apart=True)
    yield Compared("nodes: rest", matrix(NODES), apart=True)
    yield Compared("nodes: statuses", statuses(NODES, NODE_STATUSES, BAD_NODE_STATUSES), apart=True)
    yield Compared("leases", matrix(LEASES), apart=True)
    secret = {"metadata": {"name": "s"}}
    yield Compared("secrets", matrix(Kind(SECRETS, secret, SECRET_STATES, BAD_SECRETS)), apart=True)
    configs = SECRETS.replace("secrets", "configmaps")
    yield Compared("maps", matrix(Kind(configs, secret, MAPS, BAD_MAPS)), apart=True)
    yield Compared("events: old", matrix(Kind(OLD_EVENTS, EVENT, OLD_STATES, BAD_OLD)), apart=True)
    yield Compared("events: new", matrix(Kind(NEW_EVENTS, NEW_EVENT, NEW_STATES, BAD_NEW)), apart=True)
    yield Compared("events: between", between_events(), apart=True)
    yield Compared("certificates: decided", decided(), apart=True)
    for name, kind in FLOW_KINDS.items():
        yield Compared(f"flow: {name}", matrix(kind), apart=True)
    for name, kind in CLASSES.items():
        yield Compared(f"classes: {name}", matrix(kind), apart=True)
    for name, kind in ADMISSION.items():
        yield Compared(f"admission: {name}", replaced(kind), apart=True)
    every = {
        "volumes": Kind(VOLUMES, OF_CSI, VOLUME_STATES),
        "sources": Kind(VOLUMES, VOLUME, SOURCES),
        "claims": Kind(CLAIMS, CLAIM, CLAIM_STATES),
        "nodes": NODES,
        "leases": LEASES,
        "secrets": Kind(SECRETS, secret, SECRET_STATES),
        "maps": Kind(configs, secret, MAPS),
        "old events": Kind(OLD_EVENTS, EVENT, OLD_STATES),
        "new events": Kind(NEW_EVENTS, NEW_EVENT, NEW_STATES),
        **{f"storage {name}": kind for name, kind in OF_STORAGE.items()},
        **{f"device {name}": kind for name, kind in DEVICE_KINDS.items()},
        **{f"access {name}": kind for name, kind in ACCESS_KINDS.items()},
        **{f"flow {name}": kind for name, kind in FLOW_KINDS.items()},
        **{f"classes {name}": kind for name, kind in CLASSES.items()},
        **{f"admission {name}": kind for name, kind in ADMISSION.items()},
    }
    for name, kind in every.items():
        yield Compared(f"merged: {name}", merged(kind), apart=True)
    with_status: dict[str, tuple[Kind, Sequence[Any]]] = {
        "volumes": (VOLUME_KIND, VOLUME_STATUSES),
        "claims": (CLAIM_KIND, [*CLAIM_STATUSES, *BAD_CLAIM_STATUSES[:1]]),
        "nodes": (NODES, [*NODE_STATUSES, *BAD_NODE_STATUSES[:1]]),
        "devices": (DEVICE_KINDS["claims"], [*CLAIM_HAS, *CLAIM_MAY_NOT[1:8]]),
        "attachments": (OF_STORAGE["attachments"], ATTACHED),
        "levels": (
            FLOW_KINDS["levels"]._replace(base=of(FLOW_KINDS["levels"].base, FLOW_KINDS["levels"].stood[0])),
            CONDITIONS,
        ),
        "namespaces": (
            Kind("/api/v1/namespaces", {"metadata": {"name": "cluster-rules-of"}}, []),
            NAMESPACES,
        ),
    }
    for name, (kind, stood) in with_status.items():
        yield Compared(f"merged statuses: {name}", merged_statuses(kind, stood), apart=True)
    yield Compared("admission: parameters of policies", with_parameters(), apart=True)


@pytest.mark.parametrize("sequence", [*sequences()], ids=lambda sequence: sequence.name)
def test_what_they_may_become(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"cluster-{sequence.name.replace(': ', '-').replace(' ', '-')}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    if "policies" in sequence.name:
        found = [one for one in found if not CHECKED.fullmatch(one.path)]
    assert not found, f"\n{shown(sequence, found)}"
