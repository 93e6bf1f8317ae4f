"""R-SYS-2: Kubernetes' own kube-proxy programs the addresses that podling's API server gives to services.

API server, controllers and kube-proxy run in a network namespace of their own, so the rules of the machine
stay as they are. In place of pods, servers listen on addresses there; another one has a whole podling, whose
own service proxy is off.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from peer.server import running
from podling.machine.pki import Authority

from . import whole_pod
from .machines import Machine, wired

pytestmark = pytest.mark.interop("kube-proxy", "API server", "controllers")

NODE, ADDRESSES = "proxied", ("10.200.0.1", "10.200.0.2", "10.200.0.3")
LOOKS = 300
PODS = {"one": ADDRESSES[1], "two": ADDRESSES[2]}
RANGE = "10.96.0.0/16"
BACKEND = """
import http.server, sys
class Named(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[2].encode())
http.server.HTTPServer((sys.argv[1], 8080), Named).serve_forever()
"""
ASK = """
import sys, time, urllib.request
wanted = set(sys.argv[2].split(",")) - {""}
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for _ in range(600):
    said = set()
    for _ in range(20):
        try:
            said.add(opener.open(sys.argv[1], timeout=1).read().decode())
        except OSError:
            if wanted:
                break
    if said == wanted:
        sys.exit()
    time.sleep(0.05)
sys.exit(f"{sys.argv[1]} said {said}")
"""
"""Asks a URL until the answers are exactly these, none for a server that is not reached."""


class Apart(msgspec.Struct, frozen=True):
    """The namespace, by the process that holds it, and what runs there, with its logs in `directory`."""

    holder: int
    programs: Path
    directory: Path

    def within(self, *command: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holder}/ns/net", *command]

    def run(self, *command: str, input: str = "") -> str:
        done = subprocess.run(
            self.within(*command), input=input, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout

    def kubectl(self, *arguments: str, input: str = "") -> str:
        config = str(self.directory / "admin.conf")
        return self.run(str(self.programs / "kubectl"), "--kubeconfig", config, *arguments, input=input)

    def make(self, body: dict[str, Any]) -> Any:
        sent = json.dumps({"apiVersion": "v1", **body})
        return json.loads(self.kubectl("create", "-f", "-", "-o", "json", input=sent))

    def tell(self, what: str, status: dict[str, Any]) -> None:
        """Write the status, as a kubelet does."""
        patch = json.dumps({"status": status})
        self.kubectl("patch", what, "--subresource=status", "--type=merge", f"--patch={patch}")

    def until_it_serves(self) -> None:
        config = str(self.directory / "admin.conf")
        asked = self.within(str(self.programs / "kubectl"), "--kubeconfig", config, "get", "--raw=/readyz")
        for _ in range(LOOKS):
            if subprocess.run(asked, capture_output=True, timeout=30, check=False).returncode == 0:
                return
        pytest.fail(f"the API server does not serve\n{self.logs()}")

    def answers(self, url: str, *wanted: str) -> None:
        self.run(sys.executable, "-c", ASK, url, ",".join(wanted))

    def logs(self) -> str:
        return "\n".join(log.read_text()[-3000:] for log in sorted(self.directory.glob("*.log")))


@pytest.fixture(scope="module")
def apart(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("proxied")
    with ExitStack() as stack:
        # The namespace ends with the processes in it.
        holder = stack.enter_context(
            running(["unshare", "--net", "sleep", "infinity"], directory / "holder.log")
        )
        made = Apart(holder.pid, kubernetes_programs, directory)
        while (Path("/proc") / str(holder.pid) / "ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            pass  # It is about to be apart.
        for command in (
            ["link", "set", "lo", "up"],
            ["link", "add", "pods", "type", "veth", "peer", "name", "wire"],
            ["link", "set", "wire", "up"],
            ["link", "set", "pods", "up"],
            *(["address", "add", f"{address}/24", "dev", "pods"] for address in ADDRESSES),
            ["route", "add", "default", "dev", "pods"],
        ):
            made.run("ip", *command)

        def begin(name: str, *command: str) -> None:
            stack.enter_context(running(made.within(*command), directory / f"{name}.log"))

        for name, address in PODS.items():
            begin(name, sys.executable, "-c", BACKEND, address, name)
        podling, data = [sys.executable, "-m", "podling"], ["--data-dir", str(directory)]
        serving = ["--advertise-address", ADDRESSES[0], "--service-cluster-ip-range", RANGE]
        begin("apiserver", *podling, "apiserver", *data, *serving, "--audit-log", str(directory / "audit"))
        made.until_it_serves()
        begin(
            "controllers", *podling, "controllers", "--kubeconfig", str(directory / "controller-manager.conf")
        )
        made.make({"kind": "Node", "metadata": {"name": NODE}})
        made.tell(f"node/{NODE}", {"addresses": [{"type": "InternalIP", "address": ADDRESSES[0]}]})
        begin("kube-proxy", *kube_proxy(kubernetes_programs, directory, NODE))
        yield made


def kube_proxy(programs: Path, data: Path, node: str) -> list[str]:
    """The command, for the API server with its files in `data`."""
    own = Authority(data / "pki", datetime.now(UTC)).client("kube-proxy", "system:kube-proxy")
    config = yaml.safe_load((data / "admin.conf").read_text())
    config["users"][0]["user"] = {"client-certificate": str(own.certificate), "client-key": str(own.key)}
    (data / "kube-proxy.conf").write_text(yaml.safe_dump(config))
    flags = {
        "kubeconfig": data / "kube-proxy.conf",
        "hostname-override": node,
        "proxy-mode": "nftables",
        # Of the whole machine, whatever the namespace.
        "conntrack-max-per-core": 0,
        "conntrack-tcp-timeout-established": 0,
        "conntrack-tcp-timeout-close-wait": 0,
        # It tells of each request.
        "v": 8,
    }
    return [str(programs / "kube-proxy"), *(f"--{name}={value}" for name, value in flags.items())]


def pod(apart: Apart, name: str) -> None:
    """A pod that is ready, at the address where the server of this name listens."""
    container = {"name": "app", "image": "example.test/app"}
    spec = {"nodeName": NODE, "containers": [container]}
    apart.make({"kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec})
    address = PODS[name]
    conditions = [{"type": "Ready", "status": "True"}]
    ips = {"podIP": address, "podIPs": [{"ip": address}], "hostIP": ADDRESSES[0]}
    apart.tell(f"pod/{name}", {"phase": "Running", "conditions": conditions, **ips})


def test_a_cluster_ip_leads_to_the_pods_of_its_service(apart: Apart) -> None:
    apart.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    spec = {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    made = apart.make({"kind": "Service", "metadata": {"name": "web"}, "spec": spec})
    address, (port,) = made["spec"]["clusterIP"], made["spec"]["ports"]
    url, outside = f"http://{address}/", f"http://{ADDRESSES[0]}:{port['nodePort']}/"
    pod(apart, "one")
    apart.answers(url, "one")
    apart.answers(outside, "one")
    pod(apart, "two")
    apart.answers(url, "one", "two")
    apart.kubectl("delete", "pod", "one", "--force")
    apart.answers(url, "two")
    apart.kubectl("delete", "service", "web")
    apart.answers(url)
    apart.answers(outside)


def test_it_asks_as_its_release_does(apart: Apart) -> None:
    """The list as the beginning of the watch, all in protobuf."""
    asked = (apart.directory / "kube-proxy.log").read_text()
    watched = set(re.findall(r"https://\S+?(/api\S*)\?\S*sendInitialEvents=true", asked))
    assert watched == {
        "/api/v1/nodes",
        "/api/v1/services",
        "/apis/discovery.k8s.io/v1/endpointslices",
        "/apis/networking.k8s.io/v1/servicecidrs",
    }
    assert set(re.findall("Accept: (.*)", asked)) == {"application/vnd.kubernetes.protobuf, */*"}
    assert not re.findall(r'"Response" status="4.*', asked)


@pytest.fixture(scope="module")
def machine(
    kubernetes_programs: Path, image_archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("whole")
    with wired(directory) as wire:
        made = wire.machine("node")
        made.podling("up", "--detach", "--no-service-proxy", "--node-name", made.name)
        made.podling("images", "load", str(image_archives[whole_pod.BUSYBOX]))
        command = kube_proxy(kubernetes_programs, made.instance.data_dir, made.name)
        with running(made.within(*command), directory / "kube-proxy.log"):
            yield made


@pytest.mark.containerd
@pytest.mark.interop("kube-proxy", "scheduler", "kubelet")
def test_a_pod_with_everything_is_reached(machine: Machine, tmp_path: Path) -> None:
    """From when it is ready until it ends."""

    def kubectl(*arguments: str, input: str = "") -> str:
        return machine.kubectl(*arguments, input=input).stdout

    def answers(*wanted: str) -> None:
        machine.run(sys.executable, "-c", ASK, f"http://{address}/began", ",".join(wanted))

    whole = whole_pod.pod("whole", tmp_path)
    whole["metadata"]["labels"] = {"app": "whole"}
    serving = "httpd -p 8080 -h /shared; " + whole_pod.STAY.format("app")
    whole["spec"] = whole_pod.spec(tmp_path, app=serving)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "whole"}}
    service["spec"] = {"selector": {"app": "whole"}, "ports": [{"port": 80, "targetPort": 8080}]}
    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
    kubectl("create", "-f", "-", input=json.dumps(whole))
    address = kubectl("create", "-f", "-", "-o", "jsonpath={.spec.clusterIP}", input=json.dumps(service))
    answers()
    whole_pod.live(kubectl, "whole")
    answers("first\nsidecar\nsecond\napp\napp\n")
    whole_pod.end(kubectl, "whole", tmp_path)
    answers()
