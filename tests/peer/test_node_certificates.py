"""Issue 13: podling's kubelet renews its certificates by requests on Kubernetes' own API server, and
kube-controller-manager approves and signs them, for seconds here."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from peer.server import Server, running
from podling.machine.pki import Authority

pytestmark = pytest.mark.interop("kube-apiserver", "kubelet")

NODE = "peer-rotating"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
GROUP = "rbac.authorization.k8s.io"
CREDENTIAL = "authentication.kubernetes.io/credential-id"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"
RENEWS: dict[str, Any] = {
    "metadata": {"name": "peer-nodes-renew"},
    "roleRef": {
        "apiGroup": GROUP,
        "kind": "ClusterRole",
        "name": "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    },
    "subjects": [{"kind": "Group", "name": "system:nodes", "apiGroup": GROUP}],
}
"""As kubeadm makes it."""
APPROVED = {"type": "Approved", "status": "True", "reason": "Test", "message": "it is the node's"}


@pytest.fixture
def cluster(
    kubernetes: Server, kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """With the controllers that approve and sign, for twelve seconds, and podling's kubelet."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory, pki = tmp_path_factory.mktemp("rotating"), kubernetes.ca.parent
    owner = Authority(pki, datetime.now(UTC)).client("rotating", f"system:node:{NODE}", ["system:nodes"])
    config = yaml.safe_load(kubernetes.kubeconfig.read_text())
    config["users"][0]["user"] = {"client-certificate": str(owner.certificate), "client-key": str(owner.key)}
    (directory / "node.conf").write_text(yaml.safe_dump(config))
    data = ["--data-dir", str(directory / "node")]
    podling = [sys.executable, "-m", "podling"]
    flags = {
        "kubeconfig": kubernetes.kubeconfig,
        "controllers": (
            "certificatesigningrequest-approving-controller,certificatesigningrequest-signing-controller"
        ),
        "cluster-signing-cert-file": kubernetes.ca,
        "cluster-signing-key-file": pki / "ca.key",
        "cluster-signing-duration": "12s",
        "secure-port": 0,
        "leader-elect": "false",
    }
    commands = {
        "controllers": [
            str(kubernetes_programs / "kube-controller-manager"),
            *(f"--{name}={value}" for name, value in flags.items()),
        ],
        "kubelet": [
            *(*podling, "kubelet", "--kubeconfig", str(directory / "node.conf"), "--node-name", NODE, *data),
            *("--rotate-certificates", "--rotate-server-certificates"),
        ],
    }
    assert kubernetes.ask("POST", BINDINGS, RENEWS).code == 201
    with ExitStack() as stack:
        stack.callback(kubernetes.ask, "DELETE", f"{BINDINGS}/{RENEWS['metadata']['name']}")
        stack.callback(kubernetes.ask, "DELETE", f"/api/v1/nodes/{NODE}")
        stack.callback(subprocess.run, [*podling, "down", *data], check=True, timeout=120)
        for name, command in commands.items():
            stack.enter_context(running(command, directory / f"{name}.log"))
        yield kubernetes


def issued(request: dict[str, Any]) -> x509.Certificate | None:
    pem = request["status"].get("certificate")
    return x509.load_pem_x509_certificate(base64.b64decode(pem)) if pem else None


def approve(server: Server, request: dict[str, Any]) -> None:
    body = {**request, "status": {"conditions": [APPROVED]}}
    assert server.ask("PUT", f"{REQUESTS}/{request['metadata']['name']}/approval", body).code == 200


def test_a_kubelet_outlives_its_certificates(cluster: Server) -> None:
    """Each request shows the certificate that was issued for the one before; the first of them has expired at
    the end, and the node still says that it is ready."""
    clients: dict[str, x509.Certificate] = {}
    shown: dict[str, str] = {}
    serving: x509.Certificate | None = None
    with cluster.asking() as asking:
        for request in asking.watch(f"{REQUESTS}?watch=1"):
            name, spec, certificate = request["metadata"]["name"], request["spec"], issued(request)
            if spec["username"] != f"system:node:{NODE}":
                continue
            if spec["signerName"] == SERVING:
                if not request["status"]:
                    approve(cluster, request)
                serving = serving or certificate
                continue
            assert spec["signerName"] == CLIENT
            (shown[name],) = spec["extra"][CREDENTIAL]
            if certificate is not None:
                clients[name] = certificate
            first = next(iter(clients.values()), None)
            if serving and first and len(clients) > 2 and first.not_valid_after_utc < datetime.now(UTC):
                break
    credentials = [f"X509SHA256={one.fingerprint(SHA256()).hex()}" for one in clients.values()]
    assert serving is not None, "the watch has ended"
    assert list(shown.values())[1 : len(credentials)] == credentials[:-1]
    node = cluster.ask("GET", f"/api/v1/nodes/{NODE}").body
    assert "True" in [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
    address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    found = x509.load_pem_x509_certificate(ssl.get_server_certificate((address, port)).encode())
    assert found.issuer == serving.issuer
