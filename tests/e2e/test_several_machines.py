"""R-SYS-2: several machines are one cluster: they join, their pods reach one another, directly and through
VXLAN, and they are lost, cut off, emptied and taken out again.

`alpha` has the control plane, `beta` is on the same segment, `gamma` behind a router.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509

from podling.machine.network import has_ipv6
from podling.machine.pki import BACKDATE, Authority, Term

from .machines import PODLING, Machine, wired

pytestmark = pytest.mark.containerd

BUSYBOX = "podling.test/busybox:1"
SAYS = (
    "mkdir -p /www/cgi-bin; cd /www/cgi-bin; "
    "printf '#!/bin/sh\\necho\\necho $(hostname) $REMOTE_ADDR\\n' > who; chmod +x who; "
    "head -c 3000000 /dev/zero > /www/long; httpd -p [::]:8081 -h /www; httpd -f -p 0.0.0.0:8080 -h /www"
)
"""Answers with its own name, and the address of who asks."""
RANGE = "10.127.0.0/16"
RANGES = f"{RANGE},fd00:127::/108"
NOT_READY_WITHIN = 90
"""Seconds: a silent node counts as lost after 50."""
RENEWED_WITHIN = MOVED_WITHIN = 60


class Machines(msgspec.Struct):
    alpha: Machine
    beta: Machine
    gamma: Machine
    took: dict[str, float]
    """Seconds that `up` and each `join` took to Ready."""

    def get(self, *arguments: str) -> Any:
        return json.loads(self.alpha.kubectl("get", *arguments, "-o", "json").stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.alpha.kubectl("apply", "-f", "-", input=json.dumps(listed))

    def wait(self, what: str, condition: str, timeout: int = 60) -> None:
        waits = ("wait", what, f"--for={condition}", f"--timeout={timeout}s")
        self.alpha.kubectl(*waits, timeout=timeout + 10)

    def ask(self, pod: str, url: str) -> str:
        """What a server says to a pod."""
        return self.alpha.kubectl("exec", pod, "--", "timeout", "10", "wget", "-qO-", url).stdout.strip()

    def address(self, pod: str) -> str:
        found: str = self.get("pod", pod)["status"]["podIP"]
        return found


def pod(name: str, node: str, **labels: str) -> dict[str, Any]:
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", SAYS]}
    probe = {"httpGet": {"path": "/cgi-bin/who", "port": 8080}, "periodSeconds": 1}
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 0,
        "containers": [{**container, "readinessProbe": probe}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def service(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"app": "who"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def join(machines: Machines, machine: Machine, *arguments: str) -> float:
    """Seconds to Ready."""
    config = str(machines.alpha.instance.kubeconfig)
    made = machines.alpha.run(*PODLING, "token", "create", "--print-join-command", "--kubeconfig", config)
    began = time.monotonic()
    machine.podling(*made.stdout.split()[1:], "--detach", *arguments)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, image_archives: dict[str, Path]) -> Iterator[Machines]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with wired(tmp_path_factory.mktemp("machines")) as wire:
        alpha, beta, gamma = (
            wire.machine(name, segment) for name, segment in (("alpha", 1), ("beta", 1), ("gamma", 2))
        )
        made = Machines(alpha, beta, gamma, {})
        began = time.monotonic()
        alpha.podling("up", "--detach", "--service-cluster-ip-range", RANGES if has_ipv6() else RANGE)
        made.took["alpha"] = time.monotonic() - began
        made.took["beta"] = join(made, beta, "--node-labels", "rack=one")
        made.took["gamma"] = join(made, gamma, "--register-with-taints", "far=yes:PreferNoSchedule")
        for machine in (alpha, beta, gamma):
            machine.podling("images", "load", str(image_archives[BUSYBOX]))
        made.apply(
            *(pod(f"on-{name}", name, app="who") for name in ("alpha", "beta", "gamma")), service("who")
        )
        for name in ("alpha", "beta", "gamma"):
            made.wait(f"pod/on-{name}", "condition=Ready")
        yield made


NAMES = ("alpha", "beta", "gamma")


def test_a_node_is_ready_soon_after_it_joins(machines: Machines) -> None:
    """In about the time that a whole podling takes to start."""
    took = machines.took
    sys.stdout.write(
        f"up to Ready {took['alpha']:.2f} s, join to Ready {took['beta']:.2f} and {took['gamma']:.2f} s\n"
    )
    assert max(took["beta"], took["gamma"]) < max(3.0, 1.5 * took["alpha"])
    nodes = {one["metadata"]["name"]: one for one in machines.get("nodes")["items"]}
    assert sorted(nodes) == sorted(NAMES)
    assert len({one["spec"]["podCIDR"] for one in nodes.values()}) == 3
    assert nodes["beta"]["metadata"]["labels"]["rack"] == "one"
    assert nodes["gamma"]["spec"]["taints"] == [{"key": "far", "value": "yes", "effect": "PreferNoSchedule"}]


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("server", NAMES)
def test_pods_of_all_nodes_reach_one_another_with_their_own_addresses(
    machines: Machines, client: str, server: str
) -> None:
    said = machines.ask(f"on-{client}", f"http://{machines.address(f'on-{server}')}:8080/cgi-bin/who")
    assert said == f"on-{server} {machines.address(f'on-{client}')}"


@pytest.mark.skipif(not has_ipv6(), reason="the kernel has no IPv6")
@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("server", NAMES)
def test_pods_of_all_nodes_reach_one_another_over_ipv6(machines: Machines, client: str, server: str) -> None:
    """With their own addresses. busybox's wget fails with such addresses."""
    own, there = (machines.get("pod", f"on-{name}")["status"]["podIPs"][1]["ip"] for name in (client, server))
    script = f"printf 'GET /cgi-bin/who HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {there} 8081 | tail -n 1"
    said = machines.alpha.kubectl("exec", f"on-{client}", "--", "sh", "-c", script).stdout
    assert said.replace("[", "").replace("]", "") == f"on-{server} {own}\n"


def test_what_is_long_passes_the_tunnel(machines: Machines) -> None:
    """Packets of its full length, which are 50 bytes shorter than the wire's."""
    url = f"http://{machines.address('on-gamma')}:8080/long"
    counted = machines.alpha.kubectl(
        "exec", "on-alpha", "--", "sh", "-c", f"timeout 20 wget -qO- {url} | wc -c"
    ).stdout
    assert counted.strip() == "3000000"
    links = machines.gamma.run("ip", "-oneline", "link", "show", "type", "vxlan").stdout
    assert " mtu 1450 " in links
    assert not machines.beta.run("ip", "-oneline", "route", "show", "via", machines.gamma.address).stdout


@pytest.mark.parametrize("client", NAMES)
def test_names_and_services_lead_to_pods_of_all_nodes(machines: Machines, client: str) -> None:
    url = "http://who.default.svc.cluster.local/cgi-bin/who"
    script = f"for i in $(seq 30); do timeout 10 wget -qO- {url}; done"
    said = machines.alpha.kubectl("exec", f"on-{client}", "--", "sh", "-c", script).stdout.split("\n")
    own = machines.address(f"on-{client}")
    expected = {f"on-{name} {own}" for name in NAMES if name != client}
    assert expected <= {*said}
    assert {line.split()[0] for line in said if line} == {f"on-{name}" for name in NAMES}


def test_a_node_port_of_policy_local_keeps_the_clients_address(machines: Machines) -> None:
    machines.apply(service("near", type="NodePort", externalTrafficPolicy="Local"))
    port = machines.get("service", "near")["spec"]["ports"][0]["nodePort"]
    for name, machine in (("beta", machines.beta), ("gamma", machines.gamma)):
        url = f"http://{machine.address}:{port}/cgi-bin/who"
        for _ in range(50):
            said = machines.alpha.run(
                "busybox", "timeout", "2", "busybox", "wget", "-qO-", url, check=False
            ).stdout.strip()
            if said:
                break
        assert said == f"on-{name} {machines.alpha.address}"


def test_the_api_server_reaches_kubelets_and_containers_of_other_nodes(machines: Machines) -> None:
    for name in ("beta", "gamma"):
        assert machines.alpha.kubectl("exec", f"on-{name}", "--", "hostname").stdout == f"on-{name}\n"
        assert machines.alpha.kubectl("logs", f"on-{name}").stdout == ""
        config = ("--kubeconfig", str(machines.alpha.instance.kubeconfig))
        debugged = ("debug", f"on-{name}", "-m", BUSYBOX, *config, "--", "hostname")
        assert machines.alpha.run(*PODLING, *debugged).stdout.strip() == f"on-{name}"


def test_policies_hold_between_nodes(machines: Machines) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "only-beta"},
        "spec": {
            "podSelector": {"matchLabels": {"guarded": "yes"}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"goes": "in"}}}]}],
        },
    }
    machines.apply(policy, pod("guarded", "gamma", guarded="yes"), pod("in", "beta", goes="in"))
    for name in ("guarded", "in"):
        machines.wait(f"pod/{name}", "condition=Ready")
    url = f"http://{machines.address('guarded')}:8080/cgi-bin/who"
    assert machines.ask("in", url) == f"guarded {machines.address('in')}"
    blocked = ("exec", "on-beta", "--", "timeout", "2", "wget", "-qO-", url)
    assert machines.alpha.kubectl(*blocked, check=False).returncode != 0
    machines.alpha.kubectl("delete", "networkpolicy/only-beta", "pod/guarded", "pod/in")


def nearly_over(machines: Machines) -> bytes:
    """A certificate of beta's kubelet, with its key, of which a minute of ten and a half is left."""
    for name in ("ca.crt", "ca.key"):
        shutil.copy(machines.alpha.instance.pki_dir / name, machines.beta.directory)
    issued_at = datetime.now(UTC) - BACKDATE + timedelta(seconds=30)
    term = Term(BACKDATE + timedelta(seconds=30), timedelta())
    authority = Authority(machines.beta.directory, issued_at, term)
    pair = authority.client("ending", "system:node:beta", ["system:nodes"])
    return pair.certificate.read_bytes() + pair.key.read_bytes()


def test_a_start_needs_no_token_and_pods_go_on_meanwhile(machines: Machines) -> None:
    beta = machines.beta
    before = machines.get("pod", "on-beta")["status"]["containerStatuses"]
    beta.stop()
    # A node that an earlier version has made a member, and that was away nearly until its certificate ends.
    (beta.instance.pki_dir / "joined-node-current.pem").unlink()
    own = beta.instance.pki_dir / "kubelet-client-current.pem"
    own.write_bytes(ending := nearly_over(machines))
    said = machines.ask("on-alpha", f"http://{machines.address('on-beta')}:8080/cgi-bin/who")
    assert said.startswith("on-beta ")
    beta.podling("join", "--detach")
    assert machines.get("pod", "on-beta")["status"]["containerStatuses"] == before
    said = machines.ask("on-beta", f"http://{machines.address('on-gamma')}:8080/cgi-bin/who")
    assert said == f"on-gamma {machines.address('on-beta')}"
    until = time.monotonic() + RENEWED_WITHIN
    while (found := own.read_bytes()) == ending:
        assert time.monotonic() < until
    renewed = x509.load_pem_x509_certificate(found)
    assert renewed.subject.rfc4514_string() == "CN=system:node:beta,O=system:nodes"
    assert renewed.not_valid_after_utc > datetime.now(UTC) + timedelta(days=300)


def test_a_node_reads_no_more_than_one_of_kubernetes(machines: Machines) -> None:
    """What its network reads has a certificate of its own, which may remove its Node and no other."""

    def may(config: str, *arguments: str) -> bool:
        asked = ("auth", "can-i", *arguments, "--kubeconfig", config)
        return machines.beta.kubectl(*asked, check=False).returncode == 0

    node = machines.beta.instance
    assert not may(str(node.joined_kubeconfig), "list", "pods", "-A")
    assert not may(str(node.joined_kubeconfig), "list", "networkpolicies", "-A")
    assert not may(str(node.joined_kubeconfig), "delete", "nodes/beta")
    text = node.joined_kubeconfig.read_text()
    beside = node.data_dir / "beside.conf"
    beside.write_text(text.replace("kubelet-client-current.pem", "joined-node-current.pem"))
    assert may(str(beside), "list", "pods", "-A")
    assert may(str(beside), "delete", "nodes/beta")
    assert not may(str(beside), "delete", "nodes/alpha")
    assert not may(str(beside), "get", "secrets", "-A")


def deployment(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    made = pod("", "", app=name)["spec"]
    del made["nodeName"]
    # Each on another of the nodes that joined as long as there are any, and not long on one that is lost.
    hostname, preferred = "kubernetes.io/hostname", "preferredDuringSchedulingIgnoredDuringExecution"
    joined = {"matchExpressions": [{"key": hostname, "operator": "NotIn", "values": ["alpha"]}]}
    others = {"topologyKey": hostname, "labelSelector": {"matchLabels": {"app": name}}}
    made["affinity"] = {
        "nodeAffinity": {preferred: [{"weight": 100, "preference": joined}]},
        "podAntiAffinity": {preferred: [{"weight": 100, "podAffinityTerm": others}]},
    }
    lost = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    made["tolerations"] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1} for key in lost
    ]
    made["tolerations"].append({"key": "far", "operator": "Exists", "effect": "PreferNoSchedule"})
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**made, **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def nodes_of(machines: Machines, app: str) -> list[str]:
    """Of its pods that are Ready and stay."""
    return sorted(
        one["spec"]["nodeName"]
        for one in machines.get("pods", "-l", f"app={app}")["items"]
        if "deletionTimestamp" not in one["metadata"]
        and any((c["type"], c["status"]) == ("Ready", "True") for c in one["status"].get("conditions", ()))
    )


def test_a_node_leaves_when_its_pods_may_go(machines: Machines) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    machines.apply(deployment("kept", 1, nodeSelector={"kubernetes.io/hostname": "gamma"}), budget)
    machines.wait("deployment/kept", "condition=Available")
    machines.alpha.kubectl("delete", "pod/on-gamma")
    refused = machines.gamma.podling("leave", "--timeout", "3s", check=False)
    assert refused.returncode == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused.stdout
    assert "these pods are still there: default/kept-" in refused.stderr
    assert machines.get("node", "gamma")["spec"]["unschedulable"] is True
    machines.apply(deployment("kept", 1))
    machines.alpha.kubectl("rollout", "status", "deployment/kept", "--timeout=60s")
    said = machines.gamma.podling("leave").stdout
    assert said.endswith("gamma has left the cluster\n")
    assert machines.alpha.kubectl("get", "node", "gamma", check=False).returncode == 1
    assert not (machines.gamma.instance.data_dir / "kubelet.conf").exists()
    assert "podling" not in machines.gamma.run("nft", "list", "tables").stdout
    assert not machines.gamma.run("ip", "-oneline", "link", "show", "type", "vxlan").stdout
    join(machines, machines.gamma)


def test_nodes_that_are_lost_lose_their_pods_and_come_back(machines: Machines) -> None:
    """One is cut off and the other dies, both at once: it takes 50 s until a silent node is lost."""
    beta, gamma = machines.beta, machines.gamma
    machines.apply(deployment("moves", 2))
    machines.wait("deployment/moves", "condition=Available")
    assert nodes_of(machines, "moves") == ["beta", "gamma"]
    beta.cut()
    gamma.kill()
    for lost in (beta, gamma):
        machines.wait(f"node/{lost.name}", "condition=Ready=Unknown", NOT_READY_WITHIN)
    # The Deployment may say that it is available before it knows that its pods are not.
    until = time.monotonic() + MOVED_WITHIN
    while nodes_of(machines, "moves") != ["alpha", "alpha"]:
        assert time.monotonic() < until
    assert machines.ask("on-alpha", "http://who/cgi-bin/who").startswith("on-alpha ")
    beta.mend()
    gamma.wire.start(gamma)
    gamma.podling("join", "--detach")
    for lost in (beta, gamma):
        machines.wait(f"node/{lost.name}", "condition=Ready", NOT_READY_WITHIN)
        # What was evicted is gone once its kubelet hears of it.
        evicted = ("pods", "-l", "app=moves", f"--field-selector=spec.nodeName={lost.name}")
        machines.alpha.kubectl("wait", *evicted, "--for=delete", "--timeout=60s")
    assert machines.ask("on-beta", "http://who/cgi-bin/who").startswith("on-")
