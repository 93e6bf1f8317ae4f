"""The kubeconfigs by which users, parts and nodes reach an API server.

Nothing of a server is imported here: `podling kubeconfig` needs its certificates alone.
"""

from __future__ import annotations

from pathlib import Path

from podling.assemble.settle import LOOPBACK
from podling.client import kubeconfig
from podling.machine.instance import Instance
from podling.machine.pki import Authority, KeyPair
from podling.machine.start import writing
from podling.model.time import SystemClock
from podling.model.types.rbac import MASTERS

CLUSTER_NAME = "podling"
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "scheduler": ("system:kube-scheduler", ()),
    # Its role is to read everything, and to ask for the tokens of its controllers' accounts.
    "controller-manager": ("system:kube-controller-manager", ()),
    "kube-proxy": ("system:kube-proxy", ()),
}
"""The names, without `.conf`, of the kubeconfigs of parts that run alone; their users and groups."""


def write_admin(instance: Instance, port: int, authority: Authority) -> None:
    admin = authority.client("admin", "kubernetes-admin", [MASTERS])
    _write(instance.kubeconfig, f"https://{LOOPBACK}:{port}", authority, admin)


def write_parts(instance: Instance, port: int, authority: Authority) -> None:
    for name, (user, groups) in PARTS.items():
        pair = authority.client(name, user, groups)
        _write(instance.data_dir / f"{name}.conf", f"https://{LOOPBACK}:{port}", authority, pair)


def grant_node(instance: Instance, node: str, server: str, file: Path) -> None:
    """Write a kubeconfig for the kubelet of `node`, with a certificate of the API server that keeps its data
    in `instance`. Raises StartError."""
    with writing(file.parent):
        authority = Authority(instance.pki_dir, SystemClock().now())
        pair = authority.client(f"node-{node}", f"system:node:{node}", ["system:nodes"])
        _write(file, server, authority, pair)


def _write(file: Path, server: str, authority: Authority, client: KeyPair) -> None:
    kubeconfig.write(
        file,
        CLUSTER_NAME,
        server,
        certificate_authority=authority.ca.certificate.read_bytes(),
        client_certificate=client.certificate.read_bytes(),
        client_key=client.key.read_bytes(),
    )
