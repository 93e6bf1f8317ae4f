"""What every kind must keep to, and the rules of the small ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.kinds.config import ConfigMaps, Secrets
from podling.apiserver.kinds.events import Events, EventsEvents
from podling.apiserver.kinds.kind import Kind, Part, View, storage_key
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.kinds.namespaces import Namespaces
from podling.apiserver.kinds.nodes import Leases, Nodes
from podling.apiserver.kinds.pods.pods import PodTemplates
from podling.apiserver.kinds.service_accounts import ServiceAccounts
from podling.apiserver.kinds.services import Endpoints, Services
from podling.model.codec import json
from podling.model.codec.json import from_data
from podling.model.types.core import EventsEvent
from podling.model.types.meta import DeleteOptions

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
CREATED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
LABELS = {"app": "a"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlHUU1FUUNBUUF3RVRFUE1BMEdBMVVFQXd3R2MyRnRjR3hs"
    "TUNvd0JRWURLMlZ3QXlFQUdDSFhrK3p3a2dlLwozVm16d2xOa0VSaS8rUmkwNE5DK1h3UnM3MW5HY1hPZ0FEQUZCZ01yWlhB"
    "RFFRQ0VHeDN6R1A1RDdPY2JIMmQ1Ck9KRzVNOUwwWE8xbEFNTUJsNjU3bmhwRVBCZE9PVUYza3FWMzJUcnBuNWhpVXFtc0V3"
    "NWJDMklXS1J4RmRuL0oKMzE4TwotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
"""A signed request in PEM, in base64."""
RUN_ONCE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
MATCH = {
    "resourceRules": [
        {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]},
    ]
}
MINIMAL: dict[str, dict[str, Any]] = {
    "APIService": {
        "metadata": {"name": "v1.example.test"},
        "spec": {"group": "example.test", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
    },
    "CustomResourceDefinition": {
        "metadata": {"name": "widgets.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    },
    "Pod": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
    "ValidatingAdmissionPolicy": {
        "spec": {"matchConstraints": MATCH, "validations": [{"expression": "true"}]}
    },
    "MutatingAdmissionPolicy": {
        "spec": {
            "matchConstraints": MATCH,
            "reinvocationPolicy": "Never",
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
            ],
        }
    },
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
    "MutatingAdmissionPolicyBinding": {"spec": {"policyName": "p"}},
    "PodTemplate": {"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "EndpointSlice": {"addressType": "IPv4"},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "example.test/c"}},
    "IPAddress": {"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": {"resource": "r", "name": "n"}}},
    "ServiceCIDR": {"spec": {"cidrs": ["10.0.0.0/24"]}},
    "PriorityClass": {"value": 1},
    "RuntimeClass": {"handler": "h"},
    "RoleBinding": {"roleRef": {"kind": "Role", "name": "r"}},
    "ClusterRoleBinding": {"roleRef": {"kind": "ClusterRole", "name": "r"}},
    "ReplicationController": {"spec": {"selector": LABELS, "template": TEMPLATE}},
    "Deployment": {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    "ReplicaSet": {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    "DaemonSet": {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    "StatefulSet": {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "maxReplicas": 3,
        }
    },
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {"name": "p"}}},
    "PriorityLevelConfiguration": {
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    },
    "Job": {"spec": {"template": RUN_ONCE}},
    "CronJob": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": RUN_ONCE}}}},
    "ControllerRevision": {"data": {}},
    "ResourceSlice": {
        "spec": {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True}
    },
    "StorageClass": {"provisioner": "p"},
    "CSIStorageCapacity": {"storageClassName": "s"},
    "VolumeAttachment": {
        "spec": {"attacher": "a.test", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "VolumeAttributesClass": {"driverName": "a.test", "parameters": {"a": "b"}},
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        }
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "CertificateSigningRequest": {
        "spec": {"request": REQUEST, "signerName": "example.test/signer", "usages": ["client auth"]}
    },
    "Event": {
        "involvedObject": {"namespace": "ns"},
        "regarding": {"namespace": "ns"},
        "eventTime": "2026-01-01T00:00:10.000000Z",
        "reportingComponent": "c",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "type": "Normal",
    },
}


def made(kind: Kind[Any], data: dict[str, Any] | None = None, **metadata: Any) -> Any:
    """An object of `kind` as it is when it is validated at creation, in the version that is stored."""
    place = {"namespace": "ns"} if kind.resource.namespaced else {}
    own = (data or {}).get("metadata", {})
    body = {**(data or {}), "metadata": {"name": "x", **place, **CREATED, **own, **metadata}}
    obj = from_data(body, kind.resource.type)
    kind.default(obj)
    if isinstance(kind, View):
        obj, kind = kind.to_stored(obj), kind.stored
        kind.default(obj)
    kind.prepare_create(obj, NOW)
    return obj


def faults(kind: Kind[Any], obj: Any) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in kind.validate(obj)]


STORED = [kind for kind in KINDS if kind.resource.stored]
OF_STORED = [kind.stored if isinstance(kind, View) else kind for kind in STORED]


def test_the_smallest_objects_are_valid() -> None:
    found = {
        rules.resource.qualified: rules.validate_create(made(kind, MINIMAL.get(kind.resource.kind)))
        for kind, rules in zip(STORED, OF_STORED, strict=True)
    }
    assert not {name: causes for name, causes in found.items() if causes}


def test_a_row_has_a_cell_for_every_column() -> None:
    rows = {kind: kind.row(made(kind, MINIMAL.get(kind.resource.kind)), NOW) for kind in OF_STORED}
    assert json.encode(list(rows.values()))
    # Kubernetes writes the age of an IPAddress and has no column for it.
    cells = {
        kind.resource.qualified: len(row) - (kind.resource.kind == "IPAddress") for kind, row in rows.items()
    }
    assert cells == {kind.resource.qualified: len(kind.columns) for kind in OF_STORED}


def test_an_update_that_changes_nothing_is_allowed_and_changes_nothing() -> None:
    for kind in OF_STORED:
        old, new = (made(kind, MINIMAL.get(kind.resource.kind)) for _ in range(2))
        kind.default(new)
        kind.prepare_update(new, old)
        assert kind.validate(new) + kind.validate_update(new, old) == [], kind
        assert json.encode(new) == json.encode(old), kind


def test_fields_that_select_can_be_read() -> None:
    for kind in STORED:
        obj = made(kind, MINIMAL.get(kind.resource.kind))
        obj = kind.from_stored(obj) if isinstance(kind, View) else obj
        for field, read in kind.selectable_fields.items():
            assert isinstance(read(obj), str), (kind, field)


def test_subresources_are_filed_under_their_names() -> None:
    for kind in STORED:
        assert [part.name for part in kind.subresources.values()] == list(kind.subresources), kind


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "key"),
    [
        (ConfigMaps(), "ns", "a", "/registry/configmaps/ns/a"),
        (ConfigMaps(), "ns", "", "/registry/configmaps/ns/"),
        (ConfigMaps(), "", "", "/registry/configmaps/"),
        (Nodes(), "", "a", "/registry/nodes/a"),
        (Leases(), "ns", "a", "/registry/coordination.k8s.io/leases/ns/a"),
    ],
)
def test_storage_keys(kind: Kind[Any], namespace: str, name: str, key: str) -> None:
    assert storage_key(kind.resource, namespace, name) == key


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
B64 = "YQ=="


@pytest.mark.parametrize(
    ("kind", "data", "cells"),
    [
        (ConfigMaps(), {"data": {"a": "1"}, "binaryData": {"b": B64}}, ["x", 2, "60s"]),
        (Secrets(), {"stringData": {"a": "1"}}, ["x", "Opaque", 1, "60s"]),
        (ServiceAccounts(), {"secrets": [{"name": "s"}]}, ["x", "60s"]),
        (Leases(), {"spec": {"holderIdentity": "me"}}, ["x", "me", "60s"]),
        (Namespaces(), {}, ["x", "Active", "60s"]),
        (
            Endpoints(),
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(4)], "ports": [{"port": 80}]}]},
            ["x", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more...", "60s"],
        ),
        (Endpoints(), {}, ["x", "<none>", "60s"]),
        (
            Services(),
            {
                "spec": {
                    "ports": [{"port": 80, "nodePort": 30080}],
                    "type": "NodePort",
                    "clusterIP": "10.1.0.1",
                }
            },
            ["x", "NodePort", "10.1.0.1", "<none>", "80:30080/TCP", "60s", "<none>"],
        ),
        (
            Services(),
            {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}], "selector": {"b": "2", "a": "1"}}},
            ["x", "LoadBalancer", "<none>", "<pending>", "1/TCP", "60s", "a=1,b=2"],
        ),
        (
            Services(),
            {"spec": {"type": "ExternalName", "externalName": "a.b"}},
            ["x", "ExternalName", "<none>", "a.b", "<none>", "60s", "<none>"],
        ),
        (
            Nodes(),
            {"status": {**READY, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
            ["x", "Ready", "<none>", "60s", "", "10.0.0.1", "<none>", "<unknown>", "<unknown>", "<unknown>"],
        ),
        (
            PodTemplates(),
            MINIMAL["PodTemplate"],
            ["x", "a", "a", "<none>"],
        ),
    ],
)
def test_rows(kind: Kind[Any], data: dict[str, Any], cells: list[Any]) -> None:
    assert kind.row(made(kind, data), NOW) == cells


@pytest.mark.parametrize(
    ("status", "spec", "labels", "shown"),
    [
        ({}, {}, {}, ("Unknown", "<none>")),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, {}, {}, ("NotReady", "<none>")),
        (READY, {"unschedulable": True}, {}, ("Ready,SchedulingDisabled", "<none>")),
        (READY, {}, {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}, ("Ready", "a,b")),
    ],
)
def test_nodes_show_readiness_and_roles(status: Any, spec: Any, labels: Any, shown: tuple[str, str]) -> None:
    node = made(Nodes(), {"status": status, "spec": spec}, labels=labels)
    assert tuple(Nodes().row(node, NOW)[1:3]) == shown


def event(**fields: Any) -> list[Any]:
    data = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"}, **fields}
    return Events().row(made(Events(), data), NOW)


def test_events_say_when_and_how_often() -> None:
    seen = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:30Z", "count": 3}
    cells = event(
        **seen, type="Normal", reason="Pulled", message=" ok\n", source={"component": "k", "host": "n"}
    )
    assert cells == ["30s", "Normal", "Pulled", "pod/p", "", "k, n", "ok", "60s", 3, "x"]


def test_events_of_the_newer_kind_of_recorder() -> None:
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:00:50.000000Z"}
    cells = event(eventTime="2026-01-01T00:00:10.000000Z", series=series, reportingComponent="s")
    assert (cells[0], cells[5], cells[7], cells[8]) == ("10s", "s", "50s", 7)


def test_an_event_of_one_version_is_the_same_in_the_other() -> None:
    kind = EventsEvents()
    data = {
        "eventTime": "2026-01-01T00:00:10.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"},
        "note": "n",
        "type": "Normal",
        "deprecatedCount": 2,
    }
    new = from_data({**data, "metadata": {"name": "x"}}, EventsEvent)
    stored = kind.to_stored(new)
    assert (stored.involved_object.name, stored.message, stored.count) == ("p", "n", 2)
    assert stored.api_version == "v1"
    assert json.encode(kind.from_stored(stored)) == json.encode(new)


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (
            ConfigMaps(),
            {"data": {"a/b": ""}},
            [
                'data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric '
                "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
                "regex used for validation is '[-._a-zA-Z0-9]+')"
            ],
        ),
        (
            ConfigMaps(),
            {"data": {"a": ""}, "binaryData": {"a": B64}},
            ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
        ),
        (ConfigMaps(), {"data": {"a": "x" * 1048577}}, ["[]: Too long: may not be more than 1048576 bytes"]),
        (
            Secrets(),
            {"type": "kubernetes.io/tls", "data": {"tls.crt": B64}},
            ["data[tls.key]: Required value"],
        ),
        (
            Secrets(),
            {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "x"}},
            [
                'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
                "invalid character 'x' looking for beginning of value"
            ],
        ),
        (
            Secrets(),
            {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
            ["data[ssh-privatekey]: Required value"],
        ),
        (
            Secrets(),
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        (
            Leases(),
            {"spec": {"leaseDurationSeconds": 0}},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            Nodes(),
            {"spec": {"taints": [{"key": "a", "effect": "X"}]}},
            [
                'metadata.taints[0].effect: Unsupported value: "X": supported values: '
                '"NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
        ),
        (Services(), {}, ["spec.ports: Required value"]),
        (
            Services(),
            {"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2}]}},
            ["spec.ports[1].name: Required value"],
        ),
        (
            Events(),
            {"involvedObject": {"namespace": "other"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
    ],
)
def test_faults(kind: Kind[Any], data: dict[str, Any], expected: list[str]) -> None:
    assert faults(kind, made(kind, data)) == expected


def test_text_of_a_secret_is_kept_as_data() -> None:
    secret = made(Secrets(), {"stringData": {"a": "new"}, "data": {"a": B64, "b": B64}})
    assert (secret.data, secret.string_data) == ({"a": b"new", "b": b"a"}, {})


@pytest.mark.parametrize("kind", [ConfigMaps(), Secrets()], ids=["configmap", "secret"])
def test_what_is_immutable_stays(kind: Kind[Any]) -> None:
    old = made(kind, {"immutable": True, "data": {"a": B64}})
    new = made(kind, {"data": {"a": "Yg=="}})
    assert [cause.field for cause in kind.validate_update(new, old)] == ["immutable", "data"]


def test_the_type_of_a_secret_stays() -> None:
    causes = Secrets().validate_update(made(Secrets(), {"type": "a"}), made(Secrets()))
    assert [(cause.field, cause.message) for cause in causes] == [
        ("type", 'Invalid value: "a": field is immutable')
    ]


def test_a_new_namespace_is_active_labelled_and_held() -> None:
    namespace = made(Namespaces())
    assert namespace.status.phase == "Active"
    assert namespace.spec.finalizers == ["kubernetes"]
    assert namespace.metadata.labels == {"kubernetes.io/metadata.name": "x"}


def test_a_deleted_namespace_stays_until_it_has_been_emptied() -> None:
    kind = Namespaces()
    namespace = made(kind)
    assert kind.graceful_delete(namespace, DeleteOptions(), NOW)
    assert namespace.status.phase == "Terminating"
    assert namespace.metadata.deletion_timestamp == "2026-01-01T00:01:00Z"
    assert not kind.may_vanish(namespace, namespace)
    finalized = made(kind, {}, deletionTimestamp="2026-01-01T00:01:00Z", deletionGracePeriodSeconds=0)
    finalized.spec.finalizers = []
    assert kind.may_vanish(finalized, namespace)


async def test_the_phase_of_a_namespace_is_that_of_its_deletion(api: Conversation) -> None:
    path = "/api/v1/namespaces/default/status"
    refused = await api.patch(path, {"status": {"phase": "Terminating"}})
    assert refused.message == (
        'Namespace "default" is invalid: status.Phase: Invalid value: "Terminating": '
        "may only be 'Active' if `deletionTimestamp` is empty"
    )
    path = "/api/v1/namespaces/other"
    await api.delete(path)
    refused = await api.patch(f"{path}/status", {"status": {"phase": "Active"}})
    assert "may only be 'Terminating' if `deletionTimestamp` is not empty" in refused.message
    held = {"metadata": {"name": "other"}, "spec": {"finalizers": ["kubernetes", "mine"]}}
    refused = await api.put(f"{path}/finalize", held)
    assert refused.body["details"]["causes"][0]["field"] == "spec.finalizers[1]"


def test_only_finalize_clears_the_finalizers_of_a_namespace() -> None:
    kind, old, new = Namespaces(), made(Namespaces()), made(Namespaces())
    new.spec.finalizers = []
    finalize = kind.subresources["finalize"]
    assert isinstance(finalize, Part)
    finalize.prepare_update(new, old)
    assert new.spec.finalizers == []
    kind.prepare_update(new, old)
    assert new.spec.finalizers == ["kubernetes"]


def test_what_a_node_was_given_is_not_taken_away() -> None:
    given = {"podCIDR": "10.0.0.0/24", "providerID": "a://b", "externalID": "e"}
    old, new = made(Nodes(), {"spec": given}), made(Nodes())
    assert [f"{cause.field}: {cause.message}" for cause in Nodes().validate_update(new, old)] == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        "spec.externalID: Forbidden: may not be updated",
    ]
