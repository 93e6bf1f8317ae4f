"""API server, scheduler, controllers and kubelet as four processes, each with credentials of its own.

The seam is the Kubernetes API: the kubelet knows no more of the server than its kubeconfig says.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

if TYPE_CHECKING:
    from conftest import RealContainerd
    from e2e.conftest import Part, Podling

BUSYBOX = "podling.test/busybox:1"
NODE = "apart"
CREDENTIALS = "client.authentication.k8s.io/v1"
FOREVER = "trap exit TERM; sleep 3600 & wait"
ROLE = Path(__file__).parents[2] / "examples/kubelet-role.yaml"
READY = {
    "apiserver": "API server on ",
    "scheduler": "Scheduling for ",
    "controllers": "Controlling for ",
    "kubelet": f"Node {NODE} of ",
}
"""What each says once it is at work."""


@dataclass
class Apart:
    """A cluster of four processes. `podling` has kubectl and the server's directory, `node` the kubelet's."""

    podling: Podling
    node: Podling
    parts: dict[str, Part] = field(default_factory=dict)

    def start(self, name: str) -> None:
        self.parts[name].start(READY[name])

    def end(self, name: str, number: signal.Signals) -> None:
        self.parts[name].end(number)

    def run_pod(self, name: str, script: str, **spec: Any) -> dict[str, Any]:
        """A pod whose app has begun."""
        self.podling.apply(pod(name, script, **spec))
        self.podling.wait("condition=Ready", f"pod/{name}")
        found: dict[str, Any] = self.podling.get("pod", name)
        return found


@pytest.fixture(scope="module")
def apart(
    make_podling: Callable[[], Podling], make_part: Callable[..., Part], image_archives: dict[str, Path]
) -> Iterator[Apart]:
    server, node = make_podling(), make_podling()
    directory = server.instance.data_dir
    directory.mkdir()
    at = ["--data-dir", str(directory), "--port", str(server.port)]
    own = ["--data-dir", str(node.instance.data_dir), "--node-name", NODE, "--node-labels", "seam=https"]
    arguments = {
        "apiserver": at,
        "scheduler": ["--kubeconfig", str(directory / "scheduler.conf")],
        "controllers": ["--kubeconfig", str(directory / "controller-manager.conf")],
        "kubelet": ["--kubeconfig", str(directory / "kubelet.conf"), *own],
    }
    log = directory / "parts.log"
    cluster = Apart(server, node, {name: make_part([name, *given], log) for name, given in arguments.items()})
    try:
        cluster.start("apiserver")
        url = f"https://127.0.0.1:{server.port}"
        server.command("kubeconfig", "--node", NODE, "--server", url, str(directory / "kubelet.conf"))
        for name in ("scheduler", "controllers", "kubelet"):
            cluster.start(name)
        for archive in image_archives.values():
            node.command("images", "load", str(archive))
        server.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
        yield cluster
    finally:
        for part in cluster.parts.values():
            part.end()
        node.command("down")


def pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    def shell(container: str, words: str) -> dict[str, Any]:
        return {"name": container, "image": BUSYBOX, "command": ["sh", "-c", words]}

    app = {**shell("app", script), "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    volumes = spec.pop("volumes", [{"name": "shared", "emptyDir": {}}])
    spec = {"initContainers": [shell("first", "echo first")], "containers": [app], "volumes": volumes, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def running(found: dict[str, Any]) -> tuple[str, int]:
    status = found["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def test_a_pod_lives_between_four_processes(apart: Apart) -> None:
    """R-SYS-2: it is scheduled, run, read from, entered and deleted."""
    found = apart.run_pod("whole", f"echo up; {FOREVER}")
    assert found["spec"]["nodeName"] == NODE
    assert apart.podling.kubectl("logs", "whole", "-c", "first").stdout == "first\n"
    assert apart.podling.kubectl("logs", "whole").stdout == "up\n"
    said = apart.podling.kubectl("exec", "-i", "whole", "--", "cat", input="over the seam")
    assert said.stdout == "over the seam"
    apart.podling.kubectl("delete", "pod", "whole", "--grace-period=2")
    assert apart.podling.get("pods")["items"] == []
    assert apart.podling.get("node", NODE)["metadata"]["labels"]["seam"] == "https"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_pods_outlive_their_kubelet(apart: Apart, number: signal.Signals) -> None:
    """R-INIT-11: the next kubelet takes over what runs, and begins what came meanwhile."""
    name = f"outlives-{number.name.lower()}"
    before = apart.run_pod(name, FOREVER)
    apart.end("kubelet", number)
    apart.podling.apply(pod(f"{name}-meanwhile", FOREVER))
    apart.start("kubelet")
    apart.podling.wait("condition=Ready", f"pod/{name}-meanwhile")
    assert apart.podling.kubectl("exec", name, "--", "echo", "here").stdout == "here\n"
    assert running(apart.podling.get("pod", name)) == running(before)


def test_the_kubelet_goes_on_without_its_server(apart: Apart, tmp_path: Path) -> None:
    """A container that ends is begun again while nobody can be told; the server hears of it afterwards."""
    os.mkfifo(tmp_path / "begun")
    shared = [{"name": "shared", "hostPath": {"path": str(tmp_path)}}]
    script = "echo begin > /shared/begun; until [ -e /shared/end ]; do sleep 0.1; done; rm /shared/end"
    apart.podling.apply(pod("alone", script, volumes=shared))
    assert (tmp_path / "begun").read_text() == "begin\n"
    apart.end("apiserver", signal.SIGKILL)
    (tmp_path / "end").touch()
    assert (tmp_path / "begun").read_text() == "begin\n"
    apart.start("apiserver")
    once = "jsonpath={.status.containerStatuses[0].restartCount}=1"
    apart.podling.kubectl("wait", f"--for={once}", "pod/alone", "--timeout=60s", timeout=70)
    apart.run_pod("afterwards", FOREVER)


def test_the_kubelet_serves_with_a_certificate_of_its_own(apart: Apart) -> None:
    """Who has none of the cluster's is answered 401; the API server's gets through."""
    status = apart.podling.get("node", NODE)["status"]
    address = next(a["address"] for a in status["addresses"] if a["type"] == "InternalIP")
    url = f"https://{address}:{status['daemonEndpoints']['kubeletEndpoint']['Port']}/pods"
    trusted = ssl.create_default_context(cafile=str(apart.node.instance.pki_dir / "ca.crt"))
    with pytest.raises(HTTPError) as refused:
        urlopen(url, timeout=10, context=trusted)
    with refused.value as answer:
        assert answer.code == 401
    pki = apart.podling.instance.pki_dir
    trusted.load_cert_chain(pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key")
    with urlopen(url, timeout=10, context=trusted) as answer:
        assert json.load(answer)["kind"] == "PodList"


def test_pods_find_the_api_server_where_their_kubelet_says(apart: Apart) -> None:
    """What the server's own service says, as with any kubelet, unless it is told another place."""

    def told(name: str) -> str:
        apart.run_pod(name, FOREVER)
        script = 'echo "$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"'
        said: str = apart.podling.kubectl("exec", name, "--", "sh", "-c", script).stdout
        return said

    service = apart.podling.get("service", "kubernetes")
    assert told("asks-service") == f"{service['spec']['clusterIP']}:443\n"
    kubelet, place = apart.parts["kubelet"], "--api-server-for-pods=192.0.2.1:6443"
    apart.end("kubelet", signal.SIGTERM)
    kubelet.arguments.append(place)
    apart.start("kubelet")
    kubelet.arguments.remove(place)
    assert told("asks-place") == "192.0.2.1:6443\n"


def test_another_kubelet_drives_a_runtime_it_did_not_start(
    apart: Apart,
    make_podling: Callable[[], Podling],
    make_part: Callable[..., Part],
    containerd: RealContainerd,
) -> None:
    """R-SYS-2: any CRI v1 socket will do. What runs there stays when the kubelet goes."""
    guest, server = make_podling(), apart.podling
    credentials = server.instance.data_dir / "guest.conf"
    url = f"https://127.0.0.1:{server.port}"
    server.command("kubeconfig", "--node", "guest", "--server", url, str(credentials))
    own = ["--data-dir", str(guest.instance.data_dir), "--node-name", "guest"]
    given = ["kubelet", "--kubeconfig", str(credentials), *own, "--cri-endpoint", containerd.socket]
    part = make_part(given, server.instance.data_dir / "guest.log")
    try:
        part.start("Node guest of ")
        found = apart.run_pod("visiting", f"echo up; {FOREVER}", nodeName="guest")
        assert found["spec"]["nodeName"] == "guest"
        assert apart.podling.kubectl("logs", "visiting").stdout == "up\n"
        part.end()
        part.start("Node guest of ")
        said = apart.podling.kubectl("exec", "-i", "visiting", "--", "cat", input="still here")
        assert said.stdout == "still here"
        apart.podling.kubectl("delete", "pod", "visiting", "--grace-period=2")
    finally:
        part.end()
    apart.podling.kubectl("delete", "node", "guest")


@contextmanager
def gateway(port: int, server: Podling, node: str, token: str) -> Iterator[None]:
    """Between a kubelet and its API server: lets those through who have `token`, as `node`."""
    program = [sys.executable, str(Path(__file__).with_name("token_gateway.py"))]
    told = [str(port), str(server.port), str(server.instance.pki_dir), node, token]
    with subprocess.Popen([*program, *told], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            assert running.stdout.readline() == "serving\n"
            yield
        finally:
            running.kill()


class TokenFile:
    """A token in a file that somebody replaces."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "token"
        self.user: dict[str, Any] = {"tokenFile": "token"}

    def give(self, token: str) -> None:
        replace(self._file, token)


class ExecPlugin:
    """A token from a program."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "answer.json"
        program = directory / "helper"
        program.write_text('#!/bin/sh\ncat "$ANSWER"\n')
        program.chmod(0o755)
        env = [{"name": "ANSWER", "value": str(self._file)}]
        told = {"apiVersion": CREDENTIALS, "command": "./helper", "interactiveMode": "Never", "env": env}
        self.user: dict[str, Any] = {"exec": told}

    def give(self, token: str) -> None:
        said = {"apiVersion": CREDENTIALS, "kind": "ExecCredential", "status": {"token": token}}
        replace(self._file, json.dumps(said))


def replace(file: Path, text: str) -> None:
    partial = file.with_name("new")
    partial.write_text(text)
    partial.replace(file)


@pytest.mark.parametrize("credential", [TokenFile, ExecPlugin])
def test_a_kubelet_goes_on_with_a_token_that_was_renewed(
    apart: Apart,
    make_podling: Callable[[], Podling],
    make_part: Callable[..., Part],
    containerd: RealContainerd,
    tmp_path: Path,
    credential: type[TokenFile | ExecPlugin],
) -> None:
    """The gateway forgets the first token while the kubelet runs: what that does then takes the second."""
    guest, server = make_podling(), apart.podling
    node = f"gated-{credential.__name__.lower()}"
    url = f"https://127.0.0.1:{server.port}"
    server.command("kubeconfig", "--node", node, "--server", url, str(tmp_path / "unused.conf"))
    given = credential(tmp_path)
    cluster = {"server": f"https://127.0.0.1:{guest.port}", "certificate-authority": "ca.crt"}
    shutil.copy(server.instance.pki_dir / "ca.crt", tmp_path)
    document = {
        "clusters": [{"name": "gate", "cluster": cluster}],
        "users": [{"name": "node", "user": given.user}],
        "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "node"}}],
        "current-context": "gate",
    }
    (tmp_path / "kubelet.conf").write_text(yaml.safe_dump(document))
    own = ["--data-dir", str(guest.instance.data_dir), "--node-name", node]
    started = ["kubelet", "--kubeconfig", str(tmp_path / "kubelet.conf"), *own]
    part = make_part([*started, "--cri-endpoint", containerd.socket], tmp_path / "log")
    try:
        given.give("first")
        with gateway(guest.port, server, node, "first"):
            part.start(f"Node {node} of ")
            apart.run_pod(f"{node}-first", FOREVER, nodeName=node)
        given.give("second")
        with gateway(guest.port, server, node, "second"):
            apart.run_pod(f"{node}-second", FOREVER, nodeName=node)
            apart.podling.kubectl("delete", "pod", f"{node}-first", f"{node}-second", "--grace-period=2")
    finally:
        part.end()
    apart.podling.kubectl("delete", "node", node)


def test_a_kubeconfig_that_cannot_be_is_refused_by_its_field(
    apart: Apart, make_podling: Callable[[], Podling], tmp_path: Path
) -> None:
    given = yaml.safe_load((apart.podling.instance.data_dir / "kubelet.conf").read_text())
    given["clusters"][0]["cluster"]["proxy-url"] = "socks5h://127.0.0.1:1080"
    (tmp_path / "kubelet.conf").write_text(yaml.safe_dump(given))
    refused = make_podling().command("kubelet", "--kubeconfig", str(tmp_path / "kubelet.conf"), check=False)
    assert refused.returncode == 1
    assert 'kubelet.conf: clusters "podling": proxy-url: \'socks5h://' in refused.stderr


def test_a_certificate_that_cannot_be_is_refused_by_its_option(
    apart: Apart, make_podling: Callable[[], Podling], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.crt"
    bad.write_text("no certificate")
    serving = ["--tls-cert-file", str(bad), "--tls-private-key-file", str(bad)]
    given = str(apart.podling.instance.data_dir / "kubelet.conf")
    refused = make_podling().command("kubelet", "--kubeconfig", given, *serving, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: --tls-cert-file, ") and f"{bad}: " in refused.stderr


def test_all_parts_are_found_healthy(apart: Apart) -> None:
    found = apart.podling.get("componentstatuses")["items"]
    health = {one["metadata"]["name"]: one["conditions"][0]["status"] for one in found}
    assert health == {"scheduler": "True", "controller-manager": "True", "etcd-0": "True"}


def test_no_controller_asks_for_more_than_its_role_allows(apart: Apart) -> None:
    users = set()
    for line in apart.podling.instance.audit_log.read_text().splitlines():
        event = json.loads(line)
        user = event["user"]["username"]
        if user.startswith(("system:serviceaccount:kube-system:", "system:kube-")):
            users.add(user.rpartition(":")[2])
            assert event.get("responseStatus", {}).get("code") != 403, event
    assert {"kube-controller-manager", "kube-scheduler", "node-controller"} <= users


def test_the_kubelet_asks_for_no_more_than_its_role_allows(apart: Apart) -> None:
    """The role of the documentation can be applied, and covers all that this kubelet has written."""
    apart.podling.kubectl("apply", "-f", str(ROLE))
    role, _ = yaml.safe_load_all(ROLE.read_text())
    allowed = {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    used = set()
    for line in apart.podling.instance.audit_log.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == f"system:node:{NODE}":
            about = event["objectRef"]
            resource = "/".join(filter(None, [about["resource"], about.get("subresource", "")]))
            used.add((event["verb"], about.get("apiGroup", ""), resource))
    assert used <= allowed
    assert ("create", "", "nodes") in used
