"""R-SYS-1, R-SYS-3: real kubectl meets quotas, budgets, roles and services, and controllers follow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.model.rules.addresses import first_address

if TYPE_CHECKING:
    from e2e.conftest import Podling

pytestmark = pytest.mark.containerd

COMMANDS_PAGE = Path(__file__).parents[2] / "docs/commands.md"
BUSYBOX = "podling.test/busybox:1"


def pod(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "containerPort": 8080}]
    container = {"name": "a", "image": BUSYBOX, "command": ["sleep", "1000"], "ports": ports}
    meta = {"name": name, "namespace": namespace, "labels": {"app": "web"}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    "command",
    [
        "role r --verb=get,list --resource=pods",
        "rolebinding b --role=r --user=ann --serviceaccount=default:default",
        "quota q --hard=pods=5,requests.cpu=2 --scopes=NotTerminating",
        "poddisruptionbudget b --max-unavailable=30% --selector=app=web",
        "service nodeport s --tcp=80:8080",
        "service externalname e --external-name=example.com",
    ],
)
def test_kubectl_creates(podling: Podling, namespace: str, command: str) -> None:
    """In protobuf, as Go clients send it."""
    words = command.split()
    podling.kubectl("create", "-n", namespace, *words)
    kind = "service" if words[0] == "service" else words[0]
    name = words[2] if words[0] == "service" else words[1]
    assert podling.get(kind, name, "-n", namespace)["metadata"]["name"] == name
    podling.kubectl("describe", kind, name, "-n", namespace)


def test_who_am_i_and_what_may_i(podling: Podling) -> None:
    assert podling.kubectl("auth", "can-i", "create", "pods").stdout.strip() == "yes"
    who = json.loads(podling.kubectl("auth", "whoami", "-o", "json").stdout)
    assert who["status"]["userInfo"]["username"] == "kubernetes-admin"


def test_what_every_cluster_has(podling: Podling) -> None:
    podling.kubectl("wait", "--for=create", "endpointslice/kubernetes", "--timeout=30s")
    (cidr,) = podling.get("servicecidr", "kubernetes")["spec"]["cidrs"]
    assert podling.get("service", "kubernetes")["spec"]["clusterIP"] == first_address(cidr)
    assert podling.get("priorityclass", "system-node-critical")["value"] == 2_000_001_000


def test_the_roles_every_cluster_has(podling: Podling) -> None:
    """R-SYS-4"""
    podling.kubectl("wait", "--for=create", "clusterrolebinding/system:node", "--timeout=30s")
    lines = podling.kubectl("describe", "clusterrole", "cluster-admin").stdout.splitlines()
    assert [line.split() for line in lines if line.endswith("[*]")] == [
        ["*.*", "[]", "[]", "[*]"],
        ["[*]", "[]", "[*]"],
    ]
    podling.kubectl("wait", "--for=jsonpath={.rules[0].verbs}", "clusterrole/admin", "--timeout=30s")
    assert (
        "Group  system:masters" in podling.kubectl("describe", "clusterrolebinding", "cluster-admin").stdout
    )


@pytest.mark.parametrize("path", re.findall(r"`kubectl get --raw (\S+)`", COMMANDS_PAGE.read_text()))
def test_what_it_says_of_itself(podling: Podling, path: str) -> None:
    assert podling.kubectl("get", "--raw", path).stdout


def test_a_service_finds_its_pods_and_a_drain_keeps_them(podling: Podling, namespace: str) -> None:
    podling.kubectl("create", "-n", namespace, "service", "clusterip", "web", "--tcp=80:8080")
    podling.kubectl("create", "-n", namespace, "pdb", "all", "--min-available=100%", "--selector=app=web")
    podling.apply(pod("one", namespace))
    podling.kubectl("wait", "--for=condition=Ready", "pod/one", "-n", namespace, "--timeout=60s")
    podling.kubectl(
        "wait", "--for=jsonpath={.subsets[0].ports[0].port}=8080", "endpoints/web", "-n", namespace
    )
    address = podling.get("pod", "one", "-n", namespace)["status"]["podIP"]
    slices = podling.get("endpointslices", "-n", namespace)["items"]
    assert [one["addresses"] for one in slices[0]["endpoints"]] == [[address]]
    podling.kubectl("wait", "--for=jsonpath={.status.currentHealthy}=1", "pdb/all", "-n", namespace)
    node = podling.get("pod", "one", "-n", namespace)["spec"]["nodeName"]
    drain = ["drain", node, "--force", "--pod-selector=app=web", "--timeout=2s"]
    try:
        refused = podling.kubectl(*drain, check=False)
    finally:
        podling.kubectl("uncordon", node)
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused.stderr


def test_a_quota_is_counted_and_kept(podling: Podling, namespace: str) -> None:
    podling.kubectl("create", "-n", namespace, "quota", "q", "--hard=pods=1")
    podling.kubectl("wait", "--for=jsonpath={.status.used.pods}=0", "quota/q", "-n", namespace)
    podling.apply(pod("one", namespace))
    refused = podling.kubectl("apply", "-f", "-", input=json.dumps(pod("two", namespace)), check=False)
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in refused.stderr
    podling.kubectl("delete", "pod", "one", "-n", namespace)
    podling.kubectl("wait", "--for=jsonpath={.status.used.pods}=0", "quota/q", "-n", namespace)


def test_a_namespace_goes_with_all_in_it(podling: Podling) -> None:
    podling.kubectl("create", "namespace", "brief")
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "brief", "--timeout=30s")
    podling.kubectl("create", "-n", "brief", "role", "r", "--verb=get", "--resource=pods")
    podling.apply(pod("one", "brief"))
    podling.kubectl("delete", "namespace", "brief", "--timeout=60s")
    assert podling.kubectl("get", "namespace", "brief", check=False).returncode == 1
