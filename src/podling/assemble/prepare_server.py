"""What an API server's start settles before it is built: its certificates, and the kubeconfigs by
which users and the other parts reach it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from podling.assemble.audit_options import AuditOptions
from podling.client import kubeconfig
from podling.controllers.system_objects import ADDRESS as SERVICE_ADDRESS
from podling.instance import Instance
from podling.model.gates import DEFAULT_GATES, Gates
from podling.pki import Authority, KeyPair

LOOPBACK = "127.0.0.1"
CLUSTER_NAME = "podling"
MASTERS = "system:masters"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""Who the API server is to kubelets; one of the masters."""
PARTS = {"scheduler": "system:kube-scheduler", "controller-manager": "system:kube-controller-manager"}
"""The files, without `.conf`, in which parts that run alone find who they are."""


class ServerSettings(msgspec.Struct, frozen=True):
    """`hosts` are listened on, the first for users; pods and nodes reach the server at `address`. Kubelets
    show certificates of `kubelet_ca`; without one they are believed, as Kubernetes does by default."""

    instance: Instance
    port: int
    hosts: tuple[str, ...]
    address: str
    ca: Path
    serving: KeyPair
    kubelet_client: KeyPair
    signing_key: Path
    kubelet_ca: Path | None = None
    gates: Gates = DEFAULT_GATES
    audit: AuditOptions = AuditOptions()


def server_settings(
    instance: Instance, port: int, address: str, authority: Authority, gates: Gates, audit: AuditOptions
) -> ServerSettings:
    """Makes what is missing of certificates and keys."""
    return ServerSettings(
        instance=instance,
        port=port,
        hosts=tuple(dict.fromkeys([LOOPBACK, address])),
        address=address,
        ca=authority.ca.certificate,
        serving=authority.server("apiserver", "kube-apiserver", api_server_hosts(address)),
        kubelet_client=authority.client("apiserver-kubelet-client", KUBELET_CLIENT, [MASTERS]),
        signing_key=authority.signing_key("service-accounts"),
        gates=gates,
        audit=audit,
    )


def api_server_hosts(address: str) -> list[str]:
    """The names and addresses the API server's certificate is for."""
    service = "kubernetes.default.svc.cluster.local"
    parts = service.split(".")
    names = [".".join(parts[:count]) for count in (1, 2, 3, 5)]
    return list(dict.fromkeys(["localhost", *names, LOOPBACK, SERVICE_ADDRESS, address]))


def write_admin(instance: Instance, port: int, authority: Authority) -> None:
    admin = authority.client("admin", "kubernetes-admin", [MASTERS])
    _write(instance.kubeconfig, _local(port), authority, admin)


def write_parts(instance: Instance, port: int, authority: Authority) -> None:
    for name, user in PARTS.items():
        pair = authority.client(name, user)
        _write(instance.data_dir / f"{name}.conf", _local(port), authority, pair)


def write_node(instance: Instance, server: str, node: str, file: Path, now: datetime) -> None:
    """A kubeconfig for the kubelet of `node`, signed by the authority of this API server."""
    authority = Authority(instance.pki_dir, now)
    pair = authority.client(f"node-{node}", f"system:node:{node}", ["system:nodes"])
    _write(file, server, authority, pair)


def _local(port: int) -> str:
    return f"https://{LOOPBACK}:{port}"


def _write(file: Path, server: str, authority: Authority, client: KeyPair) -> None:
    kubeconfig.write(
        file,
        CLUSTER_NAME,
        server,
        certificate_authority=authority.ca.certificate.read_bytes(),
        client_certificate=client.certificate.read_bytes(),
        client_key=client.key.read_bytes(),
    )
