"""R-SYS-8, R-CLI-5: webhooks in a pod behind a service, which the API server finds with no service proxy."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.machine.pki import Authority

if TYPE_CHECKING:
    from e2e.conftest import Podling

pytestmark = pytest.mark.containerd

BUSYBOX = "podling.test/busybox:1"
PROGRAM = Path(__file__).with_name("webhook_server.py")
PORT = 8443
REGISTRATION = "admissionregistration.k8s.io/v1"
ADDRESS = "--for=jsonpath={.subsets[0].addresses[0].ip}"
LABEL, WARNING = "webhook.example.com/seen", "debugging is written down"
MACHINE = [sys.base_prefix, "/usr/lib", "/lib", "/lib64"]
"""What this Python needs of the machine, which the image has nothing of."""


def named(name: str, namespace: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def text(*data: bytes) -> list[str]:
    return [base64.b64encode(one).decode() for one in data]


def sleeper(name: str, namespace: str) -> dict[str, Any]:
    container = {"name": "a", "image": BUSYBOX, "command": ["sleep", "1000"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", **named(name, namespace, spec=spec)}


def server_pod(namespace: str) -> dict[str, Any]:
    places = [Path(path) for path in MACHINE if Path(path).exists()]
    mounts = [
        {"name": f"machine-{n}", "mountPath": str(path), "readOnly": True} for n, path in enumerate(places)
    ]
    volumes = [
        {"name": f"machine-{n}", "hostPath": {"path": str(path.resolve())}} for n, path in enumerate(places)
    ]
    mounts += [{"name": "program", "mountPath": "/program"}, {"name": "tls", "mountPath": "/tls"}]
    volumes += [
        {"name": "program", "configMap": {"name": "program"}},
        {"name": "tls", "secret": {"secretName": "tls"}},
    ]
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    container = {
        "name": "server",
        "image": BUSYBOX,
        "command": [str(python), "/program/server.py", str(PORT), "/tls"],
        "ports": [{"name": "https", "containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "https", "scheme": "HTTPS"}, "periodSeconds": 1},
        "volumeMounts": mounts,
    }
    # The first process of a container hears no TERM, so it is still there when it is to go.
    spec = {"terminationGracePeriodSeconds": 10, "containers": [container], "volumes": volumes}
    pod = {"apiVersion": "v1", "kind": "Pod", **named("hooks", namespace, spec=spec)}
    pod["metadata"]["labels"] = {"app": "hooks"}
    return pod


def hook(name: str, path: str, namespace: str, ca: bytes, resources: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "clientConfig": {
            "service": {"name": "hooks", "namespace": namespace, "path": path},
            "caBundle": text(ca)[0],
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": resources,
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


@pytest.fixture
def hooks(podling: Podling, namespace: str, tmp_path: Path) -> Iterator[str]:
    """The namespace whose pods the webhooks see, while they are in force."""
    pair = Authority(tmp_path / "pki", datetime.now(UTC)).server("hooks", "hooks", [f"hooks.{namespace}.svc"])
    certificate, key = text(pair.certificate.read_bytes(), pair.key.read_bytes())
    ca = (tmp_path / "pki/ca.crt").read_bytes()
    ports = [{"port": 443, "targetPort": "https"}]
    parts: dict[str, dict[str, Any]] = {
        "Secret": named(
            "tls", namespace, data={"tls.crt": certificate, "tls.key": key}, type="kubernetes.io/tls"
        ),
        "ConfigMap": named("program", namespace, data={"server.py": PROGRAM.read_text()}),
        "Service": named("hooks", namespace, spec={"selector": {"app": "hooks"}, "ports": ports}),
    }
    podling.apply(*({"apiVersion": "v1", "kind": kind, **part} for kind, part in parts.items()))
    podling.apply(server_pod(namespace))
    podling.kubectl("wait", "--for=condition=Ready", "pod/hooks", "-n", namespace, "--timeout=50s")
    podling.kubectl("wait", ADDRESS, "endpoints/hooks", "-n", namespace, "--timeout=30s")
    everything = ["pods", "pods/ephemeralcontainers"]
    kinds = {
        "MutatingWebhookConfiguration": hook("label.hooks.example.com", "/mutate", namespace, ca, ["pods"]),
        "ValidatingWebhookConfiguration": hook(
            "deny.hooks.example.com", "/validate", namespace, ca, everything
        ),
    }
    podling.apply(
        *(
            {"apiVersion": REGISTRATION, "kind": kind, "metadata": {"name": namespace}, "webhooks": [one]}
            for kind, one in kinds.items()
        )
    )
    yield namespace
    for kind in kinds:
        podling.kubectl("delete", kind, namespace)


def test_a_webhook_in_a_pod_changes_pods_and_refuses_to_debug_in_its_words(
    podling: Podling, hooks: str
) -> None:
    podling.apply(sleeper("p", hooks))
    assert podling.get("pod", "p", "-n", hooks)["metadata"]["labels"] == {LABEL: "yes"}
    podling.kubectl("wait", "--for=condition=Ready", "pod/p", "-n", hooks, "--timeout=50s")

    asked = ["debug", "p", "-n", hooks, "--profile=general", "-c", "look"]
    refused = podling.kubectl(*asked, "--image=example.com/tools:1", "--", "true", check=False)
    assert refused.returncode == 1
    assert (
        'admission webhook "deny.hooks.example.com" denied the request: '
        f"nobody debugs p with example.com/tools:1, ask for {BUSYBOX}"
    ) in refused.stderr
    allowed = podling.kubectl(*asked, f"--image={BUSYBOX}", "--", "true")
    assert f"Warning: {WARNING}" in allowed.stderr
    assert [one["name"] for one in podling.get("pod", "p", "-n", hooks)["spec"]["ephemeralContainers"]] == [
        "look"
    ]


def test_a_pod_that_is_to_go_is_asked_no_more_and_nothing_is_let_through(
    podling: Podling, hooks: str
) -> None:
    podling.kubectl("delete", "pod", "hooks", "-n", hooks, "--wait=false")
    its = ["-n", hooks, "-l", "kubernetes.io/service-name=hooks", "--timeout=30s"]
    podling.kubectl("wait", "--for=jsonpath={.endpoints[0].conditions.ready}=false", "endpointslice", *its)
    body = json.dumps(sleeper("p", hooks))
    refused = podling.kubectl("create", "-f", "-", input=body, check=False)
    assert refused.returncode == 1
    assert 'failed calling webhook "label.hooks.example.com"' in refused.stderr
    assert 'no endpoints available for service "hooks"' in refused.stderr
