"""`podling network` alone in a network namespace, over IPv4 and IPv6, with an API server beside it. In place
of pods, servers listen on addresses of other namespaces, each at the end of a link of its own, as pods have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from peer.server import running
from podling.client import kubeconfig

NODE, OWN = "alone", "10.200.0.1"
PODS = {"one": "10.64.9.2", "two": "10.64.9.3", "client": "10.64.9.4"}
ENDPOINTS = {**PODS, "node": OWN}
"""The last is a pod in the node's own network."""
OUTSIDE = "192.0.2.7"
"""Of somebody who is no pod, in the namespace `outside`."""
RANGES = ("10.96.0.0/16", "fd00:96::/112")
GATEWAYS = {"10.64.9.1": "10.64.9.0/24", "fd00::10.64.9.1": "fd00::10.64.9.0/120"}
"""Of the pods of each family, with their subnet."""
LOOKS = 300
SERVER = """
import socket, sys, threading
address, name = sys.argv[1], sys.argv[2].encode()
family = socket.AF_INET6 if ":" in address else socket.AF_INET
stream = socket.create_server((address, 8080), family=family, backlog=512)
datagrams = socket.socket(family, socket.SOCK_DGRAM)
datagrams.bind((address, 8080))
def answer():
    while True:
        _, client = datagrams.recvfrom(100)
        datagrams.sendto(name, client)
threading.Thread(target=answer, daemon=True).start()
echoing = socket.create_server((address, 8081), family=family)
def echo():
    while True:
        made, _ = echoing.accept()
        while data := made.recv(100):
            made.sendall(data)
threading.Thread(target=echo, daemon=True).start()
while True:
    made, client = stream.accept()
    made.sendall(name + b" " + client[0].encode())
    made.close()
"""
ASK = """
import json, socket, sys, time
from concurrent.futures import ThreadPoolExecutor
kind, address, port, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
datagrams = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
datagrams.settimeout(0.3)
datagrams.connect((address, port))
def once(number):
    try:
        if kind == "udp":
            datagrams.send(b"?")
            return datagrams.recv(100).decode()
        with socket.create_connection((address, port), timeout=2) as made:
            return made.recv(100).decode()
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silence"
end = time.monotonic() + 20
# At once, since silence is heard after two seconds; datagrams take turns with their socket.
with ThreadPoolExecutor(1 if kind == "udp" else 12) as threads:
    while time.monotonic() < end:
        # The kernel limits how often it refuses datagrams.
        said = set(threads.map(once, range(1 if wanted == ["refused"] else 12)))
        if said == set(wanted):
            sys.exit()
        time.sleep(0.05)
sys.exit(f"{said}, not {wanted}")
"""
"""Asks by one socket of UDP, or by a connection each time, until the answers are exactly these."""
HAS_IPV6 = Path("/proc/sys/net/ipv6").exists()
VERSIONS = [4, pytest.param(6, marks=pytest.mark.skipif(not HAS_IPV6, reason="the kernel has no IPv6"))]


def of_version(address: str, version: int) -> str:
    """An address of IPv4, or that of IPv6 which ends in it."""
    return address if version == 4 else str(ip_address(f"fd00::{address}"))


class Alone(msgspec.Struct, frozen=True):
    holders: dict[str, int]
    """The namespaces' processes: of the node (empty name) and of each pod."""
    directory: Path

    def within(self, where: str, *command: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.holders[where]}/ns/net", *command]

    def run(self, *command: str, where: str = "", input: str = "") -> str:
        done = subprocess.run(
            self.within(where, *command), input=input, capture_output=True, text=True, timeout=60, check=False
        )
        logs = "\n".join(log.read_text()[-2000:] for log in self.directory.glob("*.log"))
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{logs}"
        return done.stdout

    def apply(
        self,
        kind: str,
        name: str,
        version: str = "v1",
        labels: Mapping[str, str] = MappingProxyType({}),
        **fields: Any,
    ) -> Any:
        body = {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name, "labels": dict(labels)},
            **fields,
        }
        config = str(self.directory / "admin.conf")
        return json.loads(
            self.run(
                "kubectl", "--kubeconfig", config, "apply", "-f", "-", "-o", "json", input=json.dumps(body)
            )
        )

    def lead(
        self,
        service: str,
        *pods: str,
        zones: Mapping[str, str] = MappingProxyType({}),
        version: int = 4,
        node: str = NODE,
        port: int = 8080,
    ) -> None:
        """Have these be the service's endpoints of an IP version, each for a zone, if one is given. At port
        8081 they echo."""
        endpoints = [
            {
                "addresses": [of_version(ENDPOINTS[pod], version)],
                "nodeName": node,
                "conditions": {"ready": True},
                **({"hints": {"forZones": [{"name": zones[pod]}]}} if pod in zones else {}),
            }
            for pod in pods
        ]
        ports = [
            {"name": protocol, "protocol": protocol.upper(), "port": port}
            for protocol in ("tcp", "udp", "sctp")
        ]
        self.apply(
            "EndpointSlice",
            service if version == 4 else f"{service}-6",
            "discovery.k8s.io/v1",
            {"kubernetes.io/service-name": service},
            addressType=f"IPv{version}",
            endpoints=endpoints,
            ports=ports,
        )

    def have_pods(self) -> None:
        """Have a pod of each name, as if a kubelet had told its address."""
        config = str(self.directory / "admin.conf")
        self.apply("ServiceAccount", "default")
        for name, address in PODS.items():
            spec = {"nodeName": NODE, "containers": [{"name": "app", "image": "app:1"}]}
            self.apply("Pod", name, spec=spec)
            status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
            patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
            self.run("kubectl", "--kubeconfig", config, "patch", "pod", name, *patch)

    def service(self, name: str, **spec: Any) -> str:
        """Its cluster IP."""
        ports = [{"name": protocol, "protocol": protocol.upper(), "port": 80} for protocol in ("tcp", "udp")]
        address: str = self.apply("Service", name, spec={"ports": ports, **spec})["spec"]["clusterIP"]
        return address

    def balanced(self, name: str, address: str) -> None:
        """Have a balancer's address lead to a service."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}}
        config = str(self.directory / "admin.conf")
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status))
        self.run("kubectl", "--kubeconfig", config, "patch", "service", name, *patch)

    def says(
        self, *wanted: str, address: str, port: int = 80, kind: str = "tcp", where: str = "client"
    ) -> None:
        self.run(sys.executable, "-c", ASK, kind, address, str(port), json.dumps(wanted), where=where)

    def proxy(self) -> list[str]:
        subnets = ",".join(GATEWAYS.values())
        options = (
            "--node-name",
            NODE,
            "--cluster-cidr",
            subnets,
            "--service-cluster-ip-range",
            ",".join(RANGES),
        )
        return self.within(
            "", sys.executable, "-m", "podling", "network", "--data-dir", str(self.directory), *options
        )


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("alone")
    with ExitStack() as stack:
        holders = {}
        for where in ("", *PODS, "outside"):
            holder = stack.enter_context(
                running(["unshare", "--net", "sleep", "infinity"], directory / f"holder{where}.log")
            )
            while (Path("/proc") / str(holder.pid) / "ns/net").readlink() == Path(
                "/proc/self/ns/net"
            ).readlink():
                pass  # It is about to be apart.
            holders[where] = holder.pid
        made = Alone(holders, directory)

        def begin(name: str, *command: str, where: str = "") -> None:
            stack.enter_context(running(made.within(where, *command), directory / f"{name}.log"))

        made.run("ip", "link", "set", "lo", "up")
        made.run("ip", "link", "add", "own", "type", "veth", "peer", "name", "wire")
        made.run("ip", "link", "set", "wire", "up")
        made.run("ip", "link", "set", "own", "up")
        made.run("ip", "address", "add", f"{OWN}/24", "dev", "own")
        made.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        versions = (4, 6) if HAS_IPV6 else (4,)
        if HAS_IPV6:
            made.run("ip", "address", "add", f"{of_version(OWN, 6)}/120", "dev", "own", "nodad")
            made.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        for place, address in {**PODS, "outside": OUTSIDE}.items():
            ends = ("peer", "name", "eth0", "netns", str(holders[place]))
            made.run("ip", "link", "add", place, "type", "veth", *ends)
            made.run("ip", "link", "set", place, "up")
            made.run("ip", "link", "set", "lo", "up", where=place)
            made.run("ip", "link", "set", "eth0", "up", where=place)
            for version, gateway in zip(versions, GATEWAYS, strict=False):
                ip, whole, own = ("ip", f"-{version}"), {4: 32, 6: 128}[version], of_version(address, version)
                at_once = ("nodad",) if version == 6 else ()
                made.run(*ip, "address", "add", f"{gateway}/{whole}", "dev", place, *at_once)
                made.run(*ip, "route", "add", own, "dev", place)
                made.run(*ip, "address", "add", f"{own}/{whole}", "dev", "eth0", *at_once, where=place)
                made.run(*ip, "route", "add", gateway, "dev", "eth0", where=place)
                made.run(*ip, "route", "add", "default", "via", gateway, where=place)
                if place in PODS:
                    begin(f"server-{place}-{version}", sys.executable, "-c", SERVER, own, place, where=place)
        for version in versions:
            own = of_version(OWN, version)
            begin(f"server-node-{version}", sys.executable, "-c", SERVER, own, "node")
        data = ["--data-dir", str(directory), "--advertise-address", OWN]
        data += ["--service-cluster-ip-range", ",".join(RANGES)]
        begin("apiserver", sys.executable, "-m", "podling", "apiserver", *data)
        asked = made.within(
            "", "kubectl", "--kubeconfig", str(directory / "admin.conf"), "get", "--raw=/readyz"
        )
        for _ in range(LOOKS):
            if subprocess.run(asked, capture_output=True, timeout=30, check=False).returncode == 0:
                break
        assert kubeconfig.read(directory / "kube-proxy.conf").server
        made.apply("Node", NODE)
        made.apply("ServiceCIDR", "kubernetes", "networking.k8s.io/v1", spec={"cidrs": RANGES})
        yield made
        made.run(sys.executable, "-m", "podling", "down", "--data-dir", str(directory))
        assert "podling" not in made.run("nft", "list", "tables")
        assert RANGES[0] not in made.run("ip", "route")
        assert RANGES[1] not in made.run("ip", "-6", "route")


@pytest.fixture(scope="module")
def proxied(alone: Alone) -> Iterator[Alone]:
    with running(alone.proxy(), alone.directory / "network.log"):
        yield alone
