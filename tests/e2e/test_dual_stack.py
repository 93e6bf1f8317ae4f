"""R-SYS-1, R-SYS-2: where services have addresses of IPv4 and IPv6, pods have both, too, and everything that
leads to them, names them or keeps others from them knows both.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.machine.gateways import gateway6
from podling.machine.network import has_ipv6

if TYPE_CHECKING:
    from e2e.conftest import Podling

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.skipif(not has_ipv6(), reason="the kernel has no IPv6"),
]

BUSYBOX = "podling.test/busybox:1"
RANGES = "10.239.0.0/16,fd00:6464:7::/108"
"""Not one that another podling may have chosen."""
SERVE = (
    "env | grep ^IPS= > /dev/termination-log; mkdir /tmp/www && hostname > /tmp/www/index.html && "
    "exec httpd -f -p 8080 -h /tmp/www"
)
WITHIN = 20.0
"""Seconds, on a machine with other work."""


@pytest.fixture(scope="module")
def podling(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Podling:
    made = make_podling()
    made.up("--service-cluster-ip-range", RANGES)
    made.command("images", "load", str(image_archives[BUSYBOX]))
    return made


def pod(name: str, namespace: str, script: str) -> dict[str, Any]:
    ips = {"name": "IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}}
    container = {"name": "a", "image": BUSYBOX, "command": ["sh", "-c", script], "env": [ips]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    labels = {"app": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


@pytest.fixture
def web(podling: Podling, namespace: str) -> dict[str, Any]:
    """The status of a pod `web` that serves its name at port 8080. `client` is beside it."""
    podling.apply(pod("web", namespace, SERVE), pod("client", namespace, "exec sleep 1000"))
    for name in ("web", "client"):
        podling.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
    status: dict[str, Any] = podling.get("pod", "web", "-n", namespace)["status"]
    return status


def expose(podling: Podling, namespace: str, **spec: Any) -> dict[str, Any]:
    """A service of both families before `web`; what became of its spec."""
    ports = [{"port": 80, "targetPort": 8080}]
    policy = {"ipFamilyPolicy": "RequireDualStack", "selector": {"app": "web"}, "ports": ports}
    meta = {"name": "web", "namespace": namespace}
    podling.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {**policy, **spec}})
    made: dict[str, Any] = podling.get("service", "web", "-n", namespace)["spec"]
    return made


def asked_by(podling: Podling, namespace: str, address: str, port: int = 80) -> str:
    """What the pod `client` is told there within two seconds; empty if it is told nothing. Not by wget: that
    of busybox fails with addresses of IPv6."""
    script = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {address} {port} | tail -n 1"
    asked = ("exec", "client", "-n", namespace, "--", "sh", "-c", script)
    return podling.kubectl(*asked, check=False).stdout.strip()


def answers(podling: Podling, namespace: str, *place: Any) -> Callable[[], bool]:
    return lambda: asked_by(podling, namespace, *place) == "web"


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end


def test_a_pod_and_its_node_have_addresses_of_both_families(
    podling: Podling, namespace: str, web: dict[str, Any]
) -> None:
    """In the order of the node's subnets, and wherever Kubernetes tells them."""
    (node,) = podling.get("nodes")["items"]
    subnets = node["spec"]["podCIDRs"]
    assert [ip_network(one).version for one in subnets] == [4, 6]
    assert node["spec"]["podCIDR"] == subnets[0]
    addresses = [one["ip"] for one in web["podIPs"]]
    assert web["podIP"] == addresses[0]
    for address, subnet in zip(addresses, subnets, strict=True):
        assert ip_address(address) in ip_network(subnet)
    own = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]
    assert [one["ip"] for one in web["hostIPs"]] == own
    said = podling.kubectl("exec", "web", "-n", namespace, "--", "cat", "/etc/hosts").stdout
    assert [line.split()[0] for line in said.splitlines() if line.endswith("\tweb")] == addresses
    told = podling.kubectl("exec", "web", "-n", namespace, "--", "cat", "/dev/termination-log").stdout
    assert told == f"IPS={','.join(addresses)}\n"


@pytest.mark.usefixtures("web")
def test_a_service_of_both_families_leads_to_the_pod(podling: Podling, namespace: str) -> None:
    """From a pod and from the machine, at its addresses, by name, and at the node's port."""
    spec = expose(podling, namespace, type="NodePort")
    (port,) = spec["ports"]
    (node,) = podling.get("nodes")["items"]
    own = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]
    places = [*((one, 80) for one in spec["clusterIPs"]), *((one, port["nodePort"]) for one in own)]
    assert len(places) >= 3
    for place in places:
        until(answers(podling, namespace, *place))
        with socket.create_connection(place, timeout=2) as asked:
            asked.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert asked.makefile().read().splitlines()[-1] == "web"
    name = f"web.{namespace}.svc.cluster.local"
    said = podling.kubectl("exec", "client", "-n", namespace, "--", "nslookup", name).stdout
    assert {*spec["clusterIPs"]} <= {line.split()[-1] for line in said.splitlines() if "Address" in line}
    slices = podling.get("endpointslices", "-n", namespace, "-l", "kubernetes.io/service-name=web")["items"]
    assert {one["addressType"] for one in slices} == {"IPv4", "IPv6"}


@pytest.mark.usefixtures("web")
def test_no_link_asks_whether_an_address_is_free(podling: Podling, namespace: str) -> None:
    """What a pod sends first would be unanswered for two seconds."""
    (node,) = podling.get("nodes")["items"]
    gateway = gateway6(node["spec"]["podCIDRs"][1])
    podling.apply(pod("early", namespace, "ip -6 address show dev eth0; exec sleep 1000"))
    podling.kubectl("wait", "--for=condition=Ready", "pod/early", "-n", namespace, "--timeout=60s")
    said = subprocess.run(
        ["ip", "-6", "address", "show", "to", gateway], capture_output=True, text=True, check=True
    )
    assert said.stdout.count(gateway) >= 3
    within = podling.kubectl("logs", "early", "-n", namespace).stdout
    assert within.count("scope global") == 1
    assert "tentative" not in said.stdout + within


def test_policies_hold_for_both_families(podling: Podling, namespace: str, web: dict[str, Any]) -> None:
    spec = expose(podling, namespace)
    places = [*((one, 80) for one in spec["clusterIPs"]), *((one["ip"], 8080) for one in web["podIPs"])]
    for place in places:
        until(answers(podling, namespace, *place))
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "nobody", "namespace": namespace},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
    }
    podling.apply(policy)
    for place in places:
        refused = answers(podling, namespace, *place)
        until(lambda refused=refused: not refused())  # type: ignore[misc]
    let_in = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}
    patch = json.dumps({"spec": {"ingress": [let_in]}})
    podling.kubectl("patch", "networkpolicy", "nobody", "-n", namespace, "--type=merge", "-p", patch)
    for place in places:
        until(answers(podling, namespace, *place))
