"""Issue 13: a kubelet alone renews its certificates by requests, without a restart; they last for seconds
here."""

from __future__ import annotations

import base64
import json
import signal
import ssl
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from e2e.conftest import kubectl_program

if TYPE_CHECKING:
    from conftest import RealContainerd
    from e2e.conftest import Part, Podling

NODE = "rotating"
CREDENTIAL = "authentication.kubernetes.io/credential-id"
CLIENT, SERVING = "kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"


@pytest.fixture
def server(
    make_podling: Callable[[], Podling], make_part: Callable[..., Part], containerd: RealContainerd
) -> Iterator[Podling]:
    """API server, the controllers that sign for four seconds, and the kubelet."""
    server, node = make_podling(), make_podling()
    directory, pki = server.instance.data_dir, server.instance.pki_dir
    directory.mkdir()
    parts = {
        "apiserver": ["--data-dir", str(directory), "--port", str(server.port)],
        "controllers": [
            *("--kubeconfig", str(directory / "controller-manager.conf"), "--secure-port", "0"),
            *("--cluster-signing-cert-file", str(pki / "ca.crt")),
            *("--cluster-signing-key-file", str(pki / "ca.key"), "--cluster-signing-duration", "4s"),
        ],
        "kubelet": [
            *("--kubeconfig", str(directory / "kubelet.conf"), "--node-name", NODE),
            *("--data-dir", str(node.instance.data_dir), "--cri-endpoint", containerd.socket),
            *("--rotate-certificates", "--rotate-server-certificates"),
        ],
    }
    said = {"apiserver": "API server on ", "controllers": "Controlling for ", "kubelet": f"Node {NODE} of "}
    started: list[Part] = []
    try:
        for name, arguments in parts.items():
            started.append(make_part([name, *arguments], directory / f"{name}.log"))
            started[-1].start(said[name])
            if name == "apiserver":
                url = f"https://127.0.0.1:{server.port}"
                server.command("kubeconfig", "--node", NODE, "--server", url, str(directory / "kubelet.conf"))
        yield server
    finally:
        for part in reversed(started):
            part.end(signal.SIGTERM)


def requests(server: Podling) -> Generator[dict[str, Any], None, None]:
    """The requests for certificates, each time one is made or changes."""
    command = [kubectl_program(), "--kubeconfig", str(server.instance.kubeconfig), "get", "csr"]
    watching = subprocess.Popen([*command, "--watch", "-o", "json"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout
    decoder, text = json.JSONDecoder(), ""
    try:
        for line in watching.stdout:
            text += line
            if line.rstrip() == "}":
                found, text = decoder.decode(text), ""
                yield found
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


def issued(request: dict[str, Any]) -> x509.Certificate | None:
    pem = request["status"].get("certificate")
    return x509.load_pem_x509_certificate(base64.b64decode(pem)) if pem else None


def test_a_kubelet_outlives_its_certificates(server: Podling) -> None:
    """Each request is made with the certificate that was issued for the one before, the first of which has
    expired at the end; the server's certificate is the cluster's once an administrator has approved it."""
    clients: dict[str, x509.Certificate] = {}
    shown: dict[str, list[str]] = {}
    serving: x509.Certificate | None = None
    with closing(requests(server)) as seen:
        for request in seen:
            name, spec, certificate = request["metadata"]["name"], request["spec"], issued(request)
            assert spec["username"] == f"system:node:{NODE}"
            if spec["signerName"] == SERVING:
                if not request["status"]:
                    server.kubectl("certificate", "approve", name)
                serving = serving or certificate
                continue
            assert spec["signerName"] == CLIENT
            shown[name] = spec["extra"][CREDENTIAL]
            if certificate is not None:
                clients[name] = certificate
            first = next(iter(clients.values()), None)
            if serving and first and len(clients) > 3 and first.not_valid_after_utc < datetime.now(UTC):
                break
    credentials = [f"X509SHA256={one.fingerprint(SHA256()).hex()}" for one in clients.values()]
    used = [credential for (credential,) in shown.values()]
    assert used[1 : len(credentials)] == credentials[:-1]
    assert used[0] not in credentials, "the first shows the kubeconfig's"
    assert serving is not None
    # The node goes on: what is written now is written with a certificate of seconds.
    server.kubectl("wait", "--for=condition=Ready", f"node/{NODE}", "--timeout=30s")
    ends = next(iter(clients.values())).not_valid_after_utc
    lease = ["wait", "--for=jsonpath={.spec.renewTime}", f"lease/{NODE}", "-n", "kube-node-lease"]
    server.kubectl(*lease, "--timeout=30s")
    status = server.get("node", NODE)["status"]
    address = next(one["address"] for one in status["addresses"] if one["type"] == "InternalIP")
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    pem = ssl.get_server_certificate((address, port))
    found = x509.load_pem_x509_certificate(pem.encode())
    assert found.issuer == serving.issuer
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [NODE]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == [address]
    assert ends < datetime.now(UTC)
