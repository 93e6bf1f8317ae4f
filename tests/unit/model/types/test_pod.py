"""The pod as it is on the wire: a manifest that uses much of it survives unchanged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podling.model.codec import json
from podling.model.codec.strict import field_faults
from podling.model.types.node import Node
from podling.model.types.pod import Eviction, Pod

MANIFEST: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "neato",
        "namespace": "default",
        "generation": 2,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"app": "neato"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
        ],
        "managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {}}}],
    },
    "spec": {
        "volumes": [
            {"name": "site", "emptyDir": {}},
            {"name": "host", "hostPath": {"path": "/tmp", "type": ""}},
            {"name": "image", "image": {"reference": "r/i:1", "pullPolicy": "IfNotPresent"}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]
                            }
                        },
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        "initContainers": [
            {"name": "proxy", "image": "r/p", "resources": {}, "restartPolicy": "Always"},
        ],
        "containers": [
            {
                "name": "web",
                "image": "r/web:1",
                "ports": [{"containerPort": 80, "hostIP": "127.0.0.1"}],
                "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}},
                "volumeMounts": [{"name": "site", "mountPath": "/site", "subPathExpr": "$(IP)"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "startupProbe": {"grpc": {"port": 9, "service": ""}},
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}}, "stopSignal": "SIGUSR1"},
                "securityContext": {
                    "seLinuxOptions": {"level": "s0"},
                    "runAsNonRoot": False,
                    "seccompProfile": {"type": "RuntimeDefault"},
                    "appArmorProfile": {"type": "Unconfined"},
                },
                "tty": True,
            }
        ],
        "ephemeralContainers": [
            {"name": "debugger", "image": "r/b", "resources": {}, "stdin": True, "targetContainerName": "web"}
        ],
        "hostPID": True,
        "hostIPC": True,
        "securityContext": {"supplementalGroups": [1, 2], "fsGroup": 0, "seLinuxChangePolicy": "Recursive"},
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "setHostnameAsFQDN": True,
        "hostUsers": False,
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {
                "type": "Ready",
                "observedGeneration": 2,
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": None,
            }
        ],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "containerStatuses": [
            {
                "name": "web",
                "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 0,
                        "startedAt": None,
                        "finishedAt": None,
                        "containerID": "containerd://x",
                    }
                },
                "ready": False,
                "restartCount": 0,
                "image": "r/web:1",
                "imageID": "",
                "started": False,
            }
        ],
        "qosClass": "Burstable",
    },
}


def test_a_full_manifest_is_known_in_full() -> None:
    assert field_faults(msgspec.json.encode(MANIFEST), Pod) == []


def test_a_full_manifest_comes_back_unchanged_and_in_order() -> None:
    data = msgspec.json.encode(MANIFEST)
    assert json.encode(json.decode(data, Pod)) == data


def test_what_go_writes_even_when_zero_is_written() -> None:
    status = {"containerStatuses": [{"name": "a"}]}
    written = json.to_data(json.decode(msgspec.json.encode({"status": status}), Pod))
    assert written["status"]["containerStatuses"] == [
        {
            "name": "a",
            "state": {},
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]


def test_the_kubelets_port_has_a_capital() -> None:
    text = b'{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}}}}'
    assert json.decode(text, Node).status.daemon_endpoints.kubelet_endpoint.port == 10250


@pytest.mark.parametrize("version", ["v1", "meta.k8s.io/v1", "policy/v1"])
def test_delete_options_may_come_in_any_groups_name(version: str) -> None:
    text = f'{{"deleteOptions":{{"kind":"DeleteOptions","apiVersion":"{version}","gracePeriodSeconds":0}}}}'
    options = json.decode(text.encode(), Eviction).delete_options
    assert options is not None
    assert options.grace_period_seconds == 0
