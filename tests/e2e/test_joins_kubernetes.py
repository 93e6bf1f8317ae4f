"""R-SYS-2: a machine joins a cluster of Kubernetes' own API server, scheduler and controllers with `podling
join`, by what kubeadm makes there; an administrator approves the certificate of its network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from peer.server import running
from podling.apiserver.authz.roles.system_roles import joining_bindings, joining_roles
from podling.client import kubeconfig
from podling.controllers.bootstrap_tokens import cluster_info
from podling.machine.pki import Authority
from podling.model.codec import json as wire_form
from podling.model.types.rbac import MASTERS

from .machines import PODLING, Machine, wired

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.interop("kube-apiserver", "kubelet"),
    pytest.mark.interop("kube-controller-manager", "kubelet"),
    pytest.mark.interop("kube-scheduler", "kubelet"),
]

BUSYBOX = "podling.test/busybox:1"
SERVICES, FIRST, PODS = "10.96.0.0/16", "10.96.0.1", "10.244.0.0/16"
ETCD = "http://127.0.0.1:2379"
LOOKS = 600
JOINED_WITHIN = 120
"""Seconds."""


class Cluster(NamedTuple):
    control: Machine
    node: Machine

    def get(self, *arguments: str) -> Any:
        return json.loads(self.control.kubectl("get", *arguments, "-o", "json").stdout)


def programs(where: Path, control: Machine, authority: Authority) -> dict[str, dict[str, Any]]:
    """Name → flags."""
    address, ca = control.address, authority.ca
    names = [address, "127.0.0.1", FIRST, "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    serving = authority.server("apiserver", "kube-apiserver", names)
    kubelets = authority.client("kubelet-client", "kube-apiserver-kubelet-client", [MASTERS])
    accounts = authority.client("service-accounts", "service-accounts")
    admin = control.instance.kubeconfig
    part = {"kubeconfig": admin, "leader-elect": "false", "bind-address": "127.0.0.1", "cert-dir": where}
    return {
        "etcd": {
            "data-dir": where / "etcd",
            "listen-client-urls": ETCD,
            "advertise-client-urls": ETCD,
            "unsafe-no-fsync": "true",
            "log-level": "error",
        },
        "kube-apiserver": {
            "etcd-servers": ETCD,
            "advertise-address": address,
            "tls-cert-file": serving.certificate,
            "tls-private-key-file": serving.key,
            "client-ca-file": ca.certificate,
            "kubelet-client-certificate": kubelets.certificate,
            "kubelet-client-key": kubelets.key,
            "kubelet-preferred-address-types": "InternalIP",
            "service-cluster-ip-range": SERVICES,
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": accounts.certificate,
            "service-account-signing-key-file": accounts.key,
            "enable-bootstrap-token-auth": "true",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
        },
        "kube-controller-manager": {
            **part,
            "controllers": "*,bootstrap-signer-controller,token-cleaner-controller",
            "allocate-node-cidrs": "true",
            "cluster-cidr": PODS,
            "service-cluster-ip-range": SERVICES,
            "cluster-signing-cert-file": ca.certificate,
            "cluster-signing-key-file": ca.key,
            "root-ca-file": ca.certificate,
            "service-account-private-key-file": accounts.key,
        },
        "kube-scheduler": part,
    }


def as_kubeadm(control: Machine, authority: Authority) -> list[dict[str, Any]]:
    """What kubeadm makes for those who join, and what podling's nodes read."""
    url = f"https://{control.address}:6443"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "info"}
    meta = {"name": "info", "namespace": "kube-public"}
    anonymous = {"kind": "User", "apiGroup": role["apiGroup"], "name": "system:anonymous"}
    version = "rbac.authorization.k8s.io/v1"
    rule = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["cluster-info"],
        "verbs": ["get"],
    }
    info = cluster_info(url, authority.ca.certificate.read_text())
    return [
        *(wire_form.to_data(one) for one in (*joining_roles(), *joining_bindings())),
        {"apiVersion": version, "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": meta,
            "subjects": [anonymous],
            "roleRef": role,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-info", "namespace": "kube-public"},
            "data": {"kubeconfig": info},
        },
    ]


def approve_network(control: Machine) -> None:
    """What kube-controller-manager leaves to an administrator."""
    field = "--field-selector=spec.signerName=kubernetes.io/kube-apiserver-client"
    for _ in range(LOOKS):
        if asked := control.kubectl("get", "csr", field, "-o", "name").stdout.split():
            control.kubectl("certificate", "approve", *asked)
            return
    raise AssertionError("nobody asks for a certificate of a network")


@pytest.fixture(scope="module")
def cluster(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory, image_archives: dict[str, Path]
) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("kubernetes")
    with wired(directory) as wire, ExitStack() as stack:
        control, node = wire.machine("control"), wire.machine("node")
        control.instance.data_dir.mkdir()
        authority = Authority(directory / "pki", datetime.now(UTC))
        admin = authority.client("admin", "kubernetes-admin", [MASTERS])
        kubeconfig.write(
            control.instance.kubeconfig,
            "kubernetes",
            "https://127.0.0.1:6443",
            certificate_authority=authority.ca.certificate.read_bytes(),
            client_certificate=admin.certificate.read_bytes(),
            client_key=admin.key.read_bytes(),
        )
        for name, flags in programs(directory, control, authority).items():
            command = [
                str(kubernetes_programs / name),
                *(f"--{flag}={value}" for flag, value in flags.items()),
            ]
            stack.enter_context(running(control.within(*command), directory / f"{name}.log"))
        for _ in range(LOOKS):
            if control.kubectl("get", "--raw=/readyz", check=False).returncode == 0:
                break
        control.kubectl("wait", "--for=create", "namespace/kube-public", "--timeout=30s")
        made = {"apiVersion": "v1", "kind": "List", "items": as_kubeadm(control, authority)}
        control.kubectl("apply", "--validate=false", "-f", "-", input=json.dumps(made))
        config = str(control.instance.kubeconfig)
        told = control.run(*PODLING, "token", "create", "--print-join-command", "--kubeconfig", config).stdout
        joining = node.begin(*told.split()[1:], "--detach")
        approve_network(control)
        said, _ = joining.communicate(timeout=JOINED_WITHIN)
        assert joining.returncode == 0, said
        node.podling("images", "load", str(image_archives[BUSYBOX]))
        yield Cluster(control, node)


def test_a_pod_of_kubernetes_scheduler_runs_on_a_node_that_joined(cluster: Cluster) -> None:
    """With the subnet of kube-controller-manager, and reached by exec and logs of kube-apiserver."""
    subnet = cluster.get("node", "node")["spec"]["podCIDR"]
    assert subnet.startswith("10.244.")
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", "echo said; sleep 3600"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    cluster.control.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    cluster.control.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(pod))
    cluster.control.kubectl("wait", "pod/app", "--for=condition=Ready", "--timeout=60s")
    assert cluster.get("pod", "app")["status"]["podIP"].rpartition(".")[0] == subnet.rpartition(".")[0]
    assert cluster.control.kubectl("logs", "app").stdout == "said\n"
    assert cluster.control.kubectl("exec", "app", "--", "hostname").stdout == "app\n"


def test_a_node_leaves_a_cluster_of_kubernetes(cluster: Cluster) -> None:
    """Which lets no node remove itself: an administrator does."""
    cluster.control.kubectl("delete", "pod/app")
    refused = cluster.node.podling("leave", check=False)
    assert refused.returncode == 1
    assert 'User "podling:node:node" cannot delete resource "nodes"' in refused.stderr
    said = cluster.node.podling("leave", "--force").stdout
    assert "remove it there with `kubectl delete node node`" in said
    assert said.endswith("node has left the cluster\n")
    assert cluster.control.kubectl("delete", "node", "node").returncode == 0
