"""R-SYS-2: network policies hold for pods: denied by default and allowed again, by name of a port, before a
pod's first packet, and no longer when they are deleted."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ports import free_port

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
SERVE = "mkdir /tmp/www && echo here > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"
DENY = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def policy(namespace: str, name: str, spec: Any) -> Any:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def pod(namespace: str, name: str, script: str, **spec: Any) -> Any:
    container = {
        "name": "app",
        "image": BUSYBOX,
        "command": ["sh", "-c", script],
        "ports": [{"name": "web", "containerPort": 8080}],
    }
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture
def server(podling: Podling, namespace: str) -> str:
    """Its address; there is a pod `client`, too."""
    probe = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1}
    served = pod(namespace, "server", SERVE)
    served["spec"]["containers"][0]["readinessProbe"] = probe
    podling.apply(served, pod(namespace, "client", "sleep 1000"))
    podling.kubectl(
        "wait", "--for=condition=Ready", "pod/server", "pod/client", "-n", namespace, "--timeout=60s"
    )
    address: str = podling.get("pod", "server", "-n", namespace)["status"]["podIP"]
    return address


def reaches(podling: Podling, namespace: str, address: str, *, wanted: bool, port: int = 8080) -> bool:
    """Looks again until it is as wanted, for some seconds: a change takes some milliseconds."""
    ask = f"timeout 1 wget -qO- http://{address}:{port}/ >/dev/null"
    until = f"for i in 1 2 3 4 5; do if {ask}; then s=1; else s=0; fi; [ $s = {wanted:d} ] && break; done"
    told = podling.kubectl("exec", "client", "-n", namespace, "--", "sh", "-c", f"{until}; echo $s")
    return told.stdout.strip() == "1"


def test_denied_by_default_and_allowed(podling: Podling, namespace: str, server: str) -> None:
    """And without a warning that nobody enforces it. The node reaches its pods all the same."""
    assert reaches(podling, namespace, server, wanted=True)
    made = policy(namespace, "deny", DENY)
    told = podling.kubectl("apply", "-f", "-", input=json.dumps(made))
    assert told.stdout == "networkpolicy.networking.k8s.io/deny created\n"
    assert told.stderr == ""
    assert not reaches(podling, namespace, server, wanted=False)
    # The kubelet's probes go on.
    podling.kubectl("wait", "--for=condition=Ready", "pod/server", "-n", namespace, "--timeout=5s")
    clients = [{"podSelector": {"matchLabels": {"app": "client"}}}]
    ports = [{"port": "web"}]
    podling.apply(
        policy(
            namespace,
            "in",
            {
                "podSelector": {"matchLabels": {"app": "server"}},
                "ingress": [{"from": clients, "ports": ports}],
            },
        )
    )
    assert not reaches(podling, namespace, server, wanted=False)
    servers = [{"podSelector": {"matchLabels": {"app": "server"}}}]
    out = {"podSelector": {}, "egress": [{"to": servers, "ports": ports}], "policyTypes": ["Egress"]}
    podling.apply(policy(namespace, "out", out))
    assert reaches(podling, namespace, server, wanted=True)
    podling.kubectl("label", "pod", "client", "app=other", "--overwrite", "-n", namespace)
    assert not reaches(podling, namespace, server, wanted=False)
    podling.kubectl("delete", "networkpolicy", "--all", "-n", namespace)
    assert reaches(podling, namespace, server, wanted=True)


def test_a_pod_is_limited_from_its_first_packet(podling: Podling, namespace: str, server: str) -> None:
    """And may do what it is allowed to from its first, without a second try."""
    servers = [{"podSelector": {"matchLabels": {"app": "server"}}}]
    own = {"podSelector": {"matchLabels": {"app": "allowed"}}}
    podling.apply(
        policy(namespace, "deny", DENY),
        policy(namespace, "out", {**own, "egress": [{"to": servers}], "policyTypes": ["Egress"]}),
        policy(
            namespace,
            "in",
            {"podSelector": servers[0]["podSelector"], "ingress": [{"from": [own]}]},
        ),
    )
    ask = f"for i in 1 2 3 4 5; do timeout 1 wget -qO- http://{server}:8080/ && exit 7; done 2>/dev/null"
    first = f"timeout 1 wget -qO- http://{server}:8080/"
    podling.apply(
        *(pod(namespace, f"denied-{i}", ask, restartPolicy="Never") for i in range(3)),
        pod(namespace, "allowed", first, restartPolicy="Never"),
    )
    for name in ("denied-0", "denied-1", "denied-2", "allowed"):
        podling.kubectl(
            *("wait", "--for=jsonpath={.status.containerStatuses[0].state.terminated}", f"pod/{name}"),
            *("-n", namespace, "--timeout=60s"),
            timeout=70,
        )
        said = podling.kubectl("logs", name, "-n", namespace).stdout.replace("Terminated\n", "")
        assert said == ("here\n" if name == "allowed" else "")


def test_a_host_port_leads_to_a_pod_that_is_judged(podling: Podling, namespace: str) -> None:
    """By its own policies, about the client that asks the node."""
    port = free_port()
    served = pod(namespace, "server", SERVE)
    served["spec"]["containers"][0]["ports"][0]["hostPort"] = port
    podling.apply(served, pod(namespace, "client", "sleep 1000"))
    podling.kubectl(
        "wait", "--for=condition=Ready", "pod/server", "pod/client", "-n", namespace, "--timeout=60s"
    )
    node: str = podling.get("pod", "server", "-n", namespace)["status"]["hostIP"]
    assert reaches(podling, namespace, node, wanted=True, port=port)
    podling.apply(policy(namespace, "deny", {"podSelector": {}}))
    assert not reaches(podling, namespace, node, wanted=False, port=port)
    clients = {"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": "web"}]}
    podling.apply(policy(namespace, "in", {"podSelector": {}, "ingress": [clients]}))
    assert reaches(podling, namespace, node, wanted=True, port=port)
    # What counts is the pod's port, not the node's.
    other = {**clients, "ports": [{"port": port}]}
    podling.apply(policy(namespace, "in", {"podSelector": {}, "ingress": [other]}))
    assert not reaches(podling, namespace, node, wanted=False, port=port)


def test_policies_hold_while_podling_is_killed_and_comes_back(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path]
) -> None:
    """Nothing that they deny comes through, and nothing that they allow fails, at any time."""
    podling = make_podling()
    podling.up()
    podling.command("images", "load", str(image_archives[BUSYBOX]))
    clients = {"from": [{"podSelector": {"matchLabels": {"app": "allowed"}}}]}
    server = {"podSelector": {"matchLabels": {"app": "server"}}}
    podling.apply(pod("default", "server", SERVE), policy("default", "in", {**server, "ingress": [clients]}))
    podling.wait("condition=Ready", "pod/server")
    address = podling.get("pod", "server")["status"]["podIP"]
    ask = f"timeout 1 wget -qO- http://{address}:8080/ >/dev/null 2>&1"
    rounds = "i=0; while :; do i=$((i+1)); {}; echo $i; done"
    podling.apply(
        pod("default", "allowed", rounds.format(f"{ask} || echo failed; sleep 0.05")),
        *(pod("default", f"denied-{n}", rounds.format(f"{ask} && echo let through")) for n in range(4)),
    )
    names = ["allowed", *(f"denied-{n}" for n in range(4))]
    for name in names:
        podling.wait("condition=Ready", f"pod/{name}")
        podling.wait("jsonpath={.status.phase}=Running", f"pod/{name}")

    def last(name: str) -> int:
        said = podling.kubectl("logs", name).stdout.split()
        assert {"failed", "through"}.isdisjoint(said)
        return int(said[-1]) if said else 0

    def until(name: str, wanted: int) -> None:
        for _ in range(600):
            if last(name) >= wanted:
                return
        raise AssertionError(f"{name} has come to {last(name)}, not {wanted}")

    for _ in range(2):
        before = {name: last(name) for name in names}
        running = podling.instance.running()
        podling.send_signal(signal.SIGKILL)
        while running and Path(f"/proc/{running}").exists():
            pass
        podling.up()
        for name in names:
            until(name, before[name] + 3)
    # The next one enforces, too.
    podling.apply(policy("default", "in", {**server, "ingress": [{}]}))
    for _ in range(600):
        if "through" in podling.kubectl("logs", "denied-0").stdout:
            break
    else:
        raise AssertionError("what a changed policy allows is not let through")
    podling.command("down")
