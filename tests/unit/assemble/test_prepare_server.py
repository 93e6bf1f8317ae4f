"""The names of an API server, and what a kubelet of another node is given."""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography import x509

from podling.assemble.control_plane import api_server_hosts
from podling.assemble.kubeconfigs import grant_node
from podling.client import kubeconfig
from podling.machine.instance import Instance


def test_the_api_server_is_known_by_every_name_clients_use() -> None:
    assert api_server_hosts("192.0.2.7", "10.96.0.1") == [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "10.96.0.1",
        "192.0.2.7",
    ]
    assert api_server_hosts("127.0.0.1", "10.96.0.1").count("127.0.0.1") == 1


def test_a_node_is_given_a_certificate_in_kubernetes_words(tmp_path: Path) -> None:
    file = tmp_path / "worker.conf"
    grant_node(Instance.at(tmp_path), "worker", "https://192.0.2.7:6443", file)
    access = kubeconfig.read(file)
    certificate = x509.load_pem_x509_certificate(access.client_certificate)
    assert access.server == "https://192.0.2.7:6443"
    assert certificate.subject.rfc4514_string() == "CN=system:node:worker,O=system:nodes"
    assert ssl.PEM_cert_to_DER_cert(access.certificate_authority.decode())
    assert file.stat().st_mode & 0o077 == 0
