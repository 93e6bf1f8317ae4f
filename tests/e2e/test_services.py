"""R-SYS-2: services lead to their pods: from pods and from the machine, by cluster IP and node port."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
SERVE = "mkdir /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"
REGISTER = (
    "curl -X POST http://$MANAGEMENT_SERVICE_HOST:$MANAGEMENT_SERVICE_PORT/register"
    " -d 'instance=$(POD_NAME)&ip=$(POD_IP)'"
)
CURL = """#!/bin/sh
exec wget -qO- --post-data "$5" "$3"
"""
RECEIVE = """
read -r method path version || exit
while read -r name value && [ "${name%?}" ]; do
    case $name in [Cc]ontent-[Ll]ength:) length=${value%?};; esac
done
echo "$path $(head -c "$length")" > /proc/1/fd/1
printf 'HTTP/1.0 200 OK\\r\\nContent-Length: 11\\r\\n\\r\\nregistered\\n'
"""
"""Prints the path and body of a request, and answers."""
WITHIN = 20.0
"""Seconds, on a machine with other work."""
AT_ONCE = 2.0
"""A refusal is told; silence would last longer."""


def ask(url: str) -> str:
    """Raises URLError."""
    said: str = build_opener(ProxyHandler({})).open(url, timeout=AT_ONCE).read().decode().strip()
    return said


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end


def refuses(url: str) -> bool:
    try:
        ask(url)
    except URLError as error:
        return isinstance(error.reason, ConnectionRefusedError)
    return False


def answers(url: str, said: str) -> bool:
    try:
        return ask(url) == said
    except URLError:
        return False


def run(podling: Podling, namespace: str, name: str, script: str, *options: str) -> None:
    command = ("--command", "--", "sh", "-c", script)
    podling.kubectl("run", name, "-n", namespace, f"--image={BUSYBOX}", *options, *command)


def over(podling: Podling, namespace: str, name: str) -> str:
    """What a pod has said by its end."""
    ended = "--for=jsonpath={.status.phase}=Succeeded"
    podling.kubectl("wait", ended, f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70)
    said: str = podling.kubectl("logs", name, "-n", namespace).stdout
    return said


def service(podling: Podling, namespace: str, name: str) -> Any:
    return podling.get("service", name, "-n", namespace)["spec"]


@pytest.fixture
def web(podling: Podling, namespace: str) -> str:
    """The address of a service `web` at port 80, with one pod, `web`."""
    run(podling, namespace, "web", SERVE, "--port=8080")
    podling.kubectl(
        "expose", "pod", "web", "-n", namespace, "--port=80", "--target-port=8080", "--type=NodePort"
    )
    podling.kubectl("wait", "--for=condition=Ready", "pod/web", "-n", namespace, "--timeout=60s")
    address: str = service(podling, namespace, "web")["clusterIP"]
    until(lambda: answers(f"http://{address}/", "web"))
    return address


def test_pods_and_the_machine_reach_a_service(podling: Podling, namespace: str, web: str) -> None:
    """Also the pod that is its only endpoint; by the node's port at the node's address; and through the API
    server."""
    for name in ("client", "web"):
        if name == "client":
            run(podling, namespace, name, "sleep 1000")
            podling.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
        asked = ("exec", name, "-n", namespace, "--", "timeout", "5", "wget", "-qO-", f"http://{web}/")
        assert podling.kubectl(*asked).stdout == "web\n"
    (port,) = service(podling, namespace, "web")["ports"]
    (node,) = podling.get("nodes")["items"]
    address = node["status"]["addresses"][0]["address"]
    until(lambda: answers(f"http://{address}:{port['nodePort']}/", "web"))
    proxied = f"/api/v1/namespaces/{namespace}/services/web:80/proxy/"
    until(lambda: podling.kubectl("get", "--raw", proxied, check=False).stdout == "web\n")
    # Another port of the address is nobody's.
    assert refuses(f"http://{web}:81/")
    podling.kubectl("delete", "pod", "web", "-n", namespace, "--grace-period=0", "--force")
    until(lambda: refuses(f"http://{web}/"))
    refused = podling.kubectl(
        "exec", "client", "-n", namespace, "--", "timeout", "5", "wget", "-qO-", f"http://{web}/", check=False
    )
    assert "refused" in refused.stderr
    podling.kubectl("delete", "service", "web", "-n", namespace)


def test_an_init_container_waits_for_a_service(podling: Podling, namespace: str) -> None:
    run(podling, namespace, "management", SERVE, "--port=8080", "--expose")
    podling.kubectl("wait", "--for=condition=Ready", "pod/management", "-n", namespace, "--timeout=60s")
    url = "http://$MANAGEMENT_SERVICE_HOST:$MANAGEMENT_SERVICE_PORT/"
    wait = f"until timeout 1 wget -qO- {url}; do sleep 0.1; done"
    told = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "told", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{"name": "wait", "image": BUSYBOX, "command": ["sh", "-c", wait]}],
            "containers": [{"name": "app", "image": BUSYBOX, "command": ["true"]}],
        },
    }
    podling.apply(told)
    over(podling, namespace, "told")
    assert podling.kubectl("logs", "told", "-c", "wait", "-n", namespace).stdout.endswith("management\n")


def test_an_init_container_registers_its_pod(podling: Podling, namespace: str) -> None:
    """The command as the proposal of init containers has it; curl is a script for busybox."""
    serve = "exec nc -ll -p 8080 -e sh /script/serve"
    script = {"serve": RECEIVE, "curl": CURL}
    meta = {"namespace": namespace}
    podling.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", **meta}, "data": script}
    )
    volumes = [{"name": "it", "configMap": {"name": "it", "defaultMode": 0o755}}]
    mounts = [{"name": "it", "mountPath": "/script"}]
    server: dict[str, Any] = {
        "name": "app",
        "image": BUSYBOX,
        "command": ["sh", "-c", serve],
        "volumeMounts": mounts,
    }
    server["readinessProbe"] = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    labels = {"run": "management"}
    spec = {"volumes": volumes, "containers": [server]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "management", "labels": labels, **meta}}
    podling.apply({**made, "spec": spec})
    podling.kubectl("expose", "pod", "management", "-n", namespace, "--port=80", "--target-port=8080")
    podling.kubectl("wait", "--for=condition=Ready", "pod/management", "-n", namespace, "--timeout=60s")
    of = {"POD_NAME": "metadata.name", "POD_IP": "status.podIP"}
    register = {
        "name": "register",
        "image": BUSYBOX,
        "command": ["/bin/sh", "-c", REGISTER],
        "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in of.items()],
        "volumeMounts": [{"name": "it", "mountPath": "/bin/curl", "subPath": "curl"}],
    }
    told: dict[str, Any] = {"volumes": volumes, "initContainers": [register], "restartPolicy": "Never"}
    told["containers"] = [{"name": "run", "image": BUSYBOX, "command": ["true"]}]
    podling.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "told", **meta}, "spec": told})
    over(podling, namespace, "told")
    address = podling.get("pod", "told", "-n", namespace)["status"]["podIP"]
    assert podling.kubectl("logs", "told", "-c", "register", "-n", namespace).stdout == "registered\n"
    said = podling.kubectl("logs", "management", "-n", namespace).stdout
    assert f"/register instance=told&ip={address}\n" in said


def test_kubectl_forwards_a_port_of_a_service(podling: Podling, namespace: str, web: str) -> None:
    """To a pod that it selects, at its target port."""
    config = ("kubectl", "--kubeconfig", str(podling.instance.kubeconfig), "-n", namespace)
    command = [*config, "port-forward", "svc/web", ":80", "--address=127.0.0.1"]
    forwarding = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert forwarding.stdout
        _, _, address, arrow, port = forwarding.stdout.readline().split()
        assert (arrow, port) == ("->", "8080")
        assert ask(f"http://{address}/") == "web"
    finally:
        forwarding.kill()
        forwarding.communicate()


def test_no_connection_fails_while_pods_are_replaced(podling: Podling, namespace: str, web: str) -> None:
    """A pod that is deleted serves until nobody is led to it any more."""
    serve = SERVE.replace("exec httpd -f", "httpd")
    graceful = f"{serve}; trap 'sleep 1; exit' TERM; sleep 1000 & wait"
    for name in ("one", "two", "three"):
        run(podling, namespace, name, graceful, "--port=8080", "--labels=run=web")
    podling.kubectl("wait", "--for=condition=Ready", "pod", "-l", "run=web", "-n", namespace, "--timeout=60s")
    until(lambda: {ask(f"http://{web}/") for _ in range(50)} >= {"one", "two", "three"})
    podling.kubectl("delete", "pod", "web", "-n", namespace, "--grace-period=0", "--force")
    until(lambda: len(endpoints(podling, namespace)) == 3)
    for name in ("one", "two"):
        podling.kubectl("delete", "pod", name, "-n", namespace, "--wait=false")
        for _ in range(300):
            assert ask(f"http://{web}/")
    until(lambda: {ask(f"http://{web}/") for _ in range(50)} == {"three"})


def endpoints(podling: Podling, namespace: str) -> list[Any]:
    slices = podling.get("endpointslices", "-n", namespace)["items"]
    return [one for of in slices for one in of["endpoints"] if one["conditions"]["ready"]]


def test_annotations_limit_the_bandwidth_of_a_pod(podling: Podling, namespace: str) -> None:
    """By the kernel's token bucket, as the bandwidth plugin does; a pod without them has none."""
    limits = ("kubernetes.io/ingress-bandwidth=8M", "kubernetes.io/egress-bandwidth=4M")
    run(podling, namespace, "slow", "sleep 1000", *(f"--annotations={one}" for one in limits))
    run(podling, namespace, "plain", "sleep 1000")
    shaped = {}
    for name in ("slow", "plain"):
        podling.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s")
        address = podling.get("pod", name, "-n", namespace)["status"]["podIP"]
        link = told("ip", "-oneline", "route", "show", address).split()[2]
        shaped[name] = told("tc", "qdisc", "show", "dev", link)
        if name == "slow":
            filters = told("tc", "filter", "show", "dev", link, "ingress")
            (other,) = set(re.findall(r"Redirect to device (\w+)", filters))
            assert "rate 4Mbit" in told("tc", "qdisc", "show", "dev", other)
    assert "tbf" in shaped["slow"] and "rate 8Mbit" in shaped["slow"]
    assert "tbf" not in shaped["plain"]


def told(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
