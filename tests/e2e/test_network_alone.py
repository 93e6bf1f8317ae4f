"""R-SYS-2: `podling network` alone leads to the endpoints of services, with real packets: UDP after a change,
session affinity, refusals, external addresses, and a restart.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peer.server import running

if TYPE_CHECKING:
    from e2e.alone import Alone

from .alone import NODE, OWN, PODS, RANGES, VERSIONS, of_version

ENFORCE = """
import asyncio, pathlib, sys
from podling.assemble.policies import enforce
from podling.client import kubeconfig
from podling.client.client import Client
from podling.machine.instance import Instance
async def main():
    data = pathlib.Path(sys.argv[1])
    client = Client(kubeconfig.read(data / "admin.conf").transport())
    await enforce(client, Instance.at(data), sys.argv[2])
asyncio.run(main())
"""
"""Network policies without podling's service proxy."""
REFUSED = """
import errno, json, socket, sys
def outcome(kind, address, port):
    one = socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    one.settimeout(0.7)
    try:
        one.connect((address, port))
        if kind == "udp":
            one.send(b"?")
            one.recv(100)
    except TimeoutError:
        return "silence"
    except OSError as error:
        return errno.errorcode[error.errno]
    return "answered"
print(json.dumps([outcome(*place) for place in json.loads(sys.argv[1])]))
"""
"""What becomes of a client at each place."""
LOAD = """
import asyncio, collections, json, sys, time
address, a_second = sys.argv[1], int(sys.argv[2])
said = collections.Counter()
async def once():
    try:
        reader, writer = await asyncio.open_connection(address, 80)
        said[(await reader.read()).decode().partition(" ")[0]] += 1
        writer.close()
    except OSError as error:
        said[f"failed: {error}"] += 1
async def main():
    began, asked = time.monotonic(), []
    told = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not told.done():
        await asyncio.sleep(max(began + len(asked) / a_second - time.monotonic(), 0))
        asked.append(asyncio.ensure_future(once()))
    await asyncio.gather(*asked)
    print(json.dumps([len(asked), said]))
asyncio.run(main())
"""
"""Makes so many connections a second until it is told to stop, and counts what was said."""


ECHOED = """
import socket, sys, time
end = time.monotonic() + 20
while time.monotonic() < end:
    with socket.create_connection((sys.argv[1], 80)) as made:
        made.sendall(b"?")
        if made.recv(100) == b"?":
            sys.exit()
sys.exit("it does not echo")
"""
LASTING = """
import socket, sys
with socket.create_connection((sys.argv[1], 80)) as made:
    for line in sys.stdin:
        made.sendall(line.encode())
        print(made.recv(100).decode(), end="", flush=True)
"""
"""What is read is sent by one connection, and what comes back is printed."""


@contextmanager
def loaded(alone: Alone, address: str, a_second: int, *pods: str) -> Iterator[None]:
    """Connections are made all the while, each of which one of these pods answers."""
    command = alone.within("client", sys.executable, "-c", LOAD, address, str(a_second))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        yield
        asked, said = json.loads(load.communicate(timeout=60)[0])
    assert sum(said.values()) == asked
    assert set(said) == set(pods)


def test_datagrams_of_one_socket_follow_the_endpoints(proxied: Alone) -> None:
    """Though connection tracking remembers where they went."""
    address = proxied.service("datagrams")
    proxied.says("refused", address=address, kind="udp")
    proxied.lead("datagrams", "one")
    proxied.says("one", address=address, kind="udp")
    proxied.lead("datagrams", "two")
    proxied.says("two", address=address, kind="udp")
    proxied.lead("datagrams")
    proxied.says("refused", address=address)


def test_pods_keep_their_address_and_may_be_their_own_endpoint(proxied: Alone) -> None:
    address = proxied.service("plain")
    proxied.lead("plain", "one", "two")
    proxied.says(f"one {PODS['client']}", f"two {PODS['client']}", address=address)
    proxied.says("one 10.64.9.1", "two 10.64.9.1", address=address, where="")
    proxied.lead("plain", "client")
    proxied.says("client 10.64.9.1", address=address)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_machine_without_a_default_route_leads_and_refuses(proxied: Alone, version: int) -> None:
    """Also what its own processes send. The services' addresses of IPv6 are routed to loopback."""
    assert proxied.run("ip", f"-{version}", "route", "show", "default") == ""
    name = f"quiet-{version}"
    address = proxied.service(name, ipFamilies=[f"IPv{version}"])
    clients = {where: of_version(PODS.get(where, "10.64.9.1"), version) for where in ("client", "")}
    for where in clients:
        proxied.says("refused", address=address, where=where)
    proxied.lead(name, "one", version=version)
    for where, client in clients.items():
        proxied.says(f"one {client}", address=address, where=where)
    if version == 6:
        assert "local" in proxied.run("ip", "-6", "route", "show", "table", "all", "exact", RANGES[1])


def test_a_client_stays_with_its_endpoint(proxied: Alone) -> None:
    address = proxied.service("sticky", sessionAffinity="ClientIP")
    proxied.lead("sticky", "one")
    proxied.says(f"one {PODS['client']}", address=address)
    proxied.lead("sticky", "one", "two")
    proxied.says(f"one {PODS['client']}", address=address)
    proxied.lead("sticky", "two")
    proxied.says(f"two {PODS['client']}", address=address)


def test_external_addresses_and_node_ports(proxied: Alone) -> None:
    ports = [{"name": "tcp", "port": 80, "nodePort": 30080}]
    spec = {"type": "NodePort", "externalIPs": ["10.200.0.77"], "ports": ports}
    proxied.service("outer", **spec)
    proxied.lead("outer", "one")
    proxied.says("one 10.64.9.1", address="10.200.0.77")
    proxied.says("one 10.64.9.1", address=OWN, port=30080)
    proxied.service("outer", **spec, externalTrafficPolicy="Local")
    proxied.says(f"one {PODS['client']}", address="10.200.0.77")
    proxied.lead("outer")
    proxied.says("refused", address=OWN, port=30080)


@pytest.mark.parametrize("version", VERSIONS)
def test_node_ports_at_loopback(proxied: Alone, version: int) -> None:
    """For clients of the node, over TCP and UDP, to pods and to what is in the node's own network; also where
    clients from outside are led to this node's endpoints alone. Nobody else reaches loopback by it."""
    loopback, name, port = {4: "127.0.0.1", 6: "::1"}[version], f"inside-{version}", 30090 + version
    ports = [
        {"name": kind, "protocol": kind.upper(), "port": 80, "nodePort": port} for kind in ("tcp", "udp")
    ]
    spec = {"type": "NodePort", "ports": ports, "ipFamilies": [f"IPv{version}"]}
    proxied.service(name, **spec)
    proxied.says("refused", address=loopback, port=port, where="")
    gateway, own = of_version("10.64.9.1", version), of_version(OWN, version)
    proxied.lead(name, "one", "node", version=version)
    proxied.says(f"one {gateway}", f"node {own}", address=loopback, port=port, where="")
    for pod in ("one", "node"):
        proxied.lead(name, pod, version=version)
        proxied.says(pod, address=loopback, port=port, where="", kind="udp")
    proxied.service(name, **spec, externalTrafficPolicy="Local")
    proxied.lead(name, "one", version=version, node="elsewhere")
    proxied.says(f"one {gateway}", address=loopback, port=port, where="")
    proxied.says("refused", address=loopback, port=port, where="outside")
    proxied.lead(name, version=version)
    proxied.says("refused", address=loopback, port=port, where="")
    settings = proxied.run("sysctl", "-a", "--pattern", "route_localnet").splitlines()
    assert settings and all(one.endswith(" = 0") for one in settings)


def test_no_connection_fails_while_endpoints_are_replaced(proxied: Alone) -> None:
    """500 a second, while each of two endpoints is replaced, three times in all."""
    address = proxied.service("busy")
    proxied.lead("busy", "one", "two")
    proxied.says(f"one {PODS['client']}", f"two {PODS['client']}", address=address)
    with loaded(proxied, address, 500, "one", "two", "client"):
        for pods in (("two",), ("two", "client"), ("client",), ("client", "one"), ("one",), ("one", "two")):
            proxied.lead("busy", *pods)


def test_source_ranges_let_clients_in(proxied: Alone) -> None:
    spec = {"type": "LoadBalancer", "loadBalancerSourceRanges": [f"{PODS['client']}/32"]}
    proxied.service("ranged", **spec)
    proxied.lead("ranged", "one")
    proxied.balanced("ranged", "10.200.0.78")
    proxied.says("one 10.64.9.1", address="10.200.0.78")
    proxied.says("silence", address="10.200.0.78", where="two")


def test_hints_keep_clients_in_their_zone(proxied: Alone) -> None:
    config = str(proxied.directory / "admin.conf")
    label = ("label", "node", NODE, "topology.kubernetes.io/zone=here")
    proxied.run("kubectl", "--kubeconfig", config, *label)
    address = proxied.service("zoned")
    proxied.lead("zoned", "one", "two", zones={"one": "here", "two": "there"})
    proxied.says(f"one {PODS['client']}", address=address)
    proxied.lead("zoned", "one", "two", zones={"one": "here"})
    proxied.says(f"one {PODS['client']}", f"two {PODS['client']}", address=address)
    proxied.run("kubectl", "--kubeconfig", config, *label[:3], f"{label[3].partition('=')[0]}-")


def test_what_is_explained_is_what_the_kernel_has(proxied: Alone) -> None:
    address = proxied.service("told")
    proxied.lead("told", "one", "two")
    proxied.says(f"one {PODS['client']}", f"two {PODS['client']}", address=address)
    places = ("--data-dir", str(proxied.directory), "--kubeconfig", str(proxied.directory / "admin.conf"))
    command = (sys.executable, "-m", "podling", "services", "explain", *places, "--node-name", NODE)
    for what in (f"{address}:80", "told"):
        shown = proxied.run(*command, what)
        assert f"{address}:80/TCP (tcp) leads to 2" in shown
        rule = f"vips {{ {address} . tcp . 80 : 2:0 }}"
        assert any(rule in line and "as it is in the kernel" in line for line in shown.splitlines())
    assert "connections are refused" in proxied.run(*command, f"{address}:81")


def test_the_proxy_may_end_and_come_back(alone: Alone) -> None:
    """What it has set up goes on without it, and the next one takes over."""
    with running(alone.proxy(), alone.directory / "first.log"):
        address = alone.service("kept")
        alone.lead("kept", "one")
        alone.says(f"one {PODS['client']}", address=address)
    alone.says(f"one {PODS['client']}", address=address)
    alone.lead("kept", "two")
    with running(alone.proxy(), alone.directory / "second.log"):
        alone.says(f"two {PODS['client']}", address=address)


def test_a_connection_lives_through_a_restart_of_the_proxy(alone: Alone) -> None:
    """Also one to an endpoint that is no longer the service's: whoever ends it, it is not the proxy."""
    with running(alone.proxy(), alone.directory / "lasting-1.log"):
        address = alone.service("lasting")
        alone.lead("lasting", "one")
        alone.says(f"one {PODS['client']}", address=address)
        alone.lead("lasting", "one", port=8081)
        alone.run(sys.executable, "-c", ECHOED, address, where="client")
        command = alone.within("client", sys.executable, "-c", LASTING, address)
        lasting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def still(said: str) -> None:
        assert lasting.stdin and lasting.stdout
        lasting.stdin.write(f"{said}\n")
        lasting.stdin.flush()
        assert lasting.stdout.readline() == f"{said}\n"

    with lasting:
        still("while nobody is there")
        with running(alone.proxy(), alone.directory / "lasting-2.log"):
            alone.lead("lasting", "two")
            alone.says(f"two {PODS['client']}", address=address)
            still("with the next one")
        assert lasting.stdin
        lasting.stdin.close()
        assert lasting.wait(20) == 0


def test_no_connection_fails_while_the_proxy_is_away_and_comes_back(alone: Alone) -> None:
    """Killed, and then replacing its table with all that has changed meanwhile."""
    with running(alone.proxy(), alone.directory / "before.log"):
        address = alone.service("steady")
        alone.lead("steady", "one")
        alone.says(f"one {PODS['client']}", address=address)
    with loaded(alone, address, 100, "one", "two"):
        alone.lead("steady", "one", "two")
        with running(alone.proxy(), alone.directory / "after.log"):
            alone.says(f"one {PODS['client']}", f"two {PODS['client']}", address=address)


def test_network_policies_hold_if_asked_for(alone: Alone) -> None:
    """With a kubeconfig that may read them; one that may not is refused at once."""
    # The other proxy may be there still, with its ports.
    silent = ("--healthz-bind-address=", "--metrics-bind-address=")
    command = [*alone.proxy(), "--network-policies", *silent]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert "network policies cannot be enforced: networkpolicies.networking.k8s.io is forbidden" in (
        refused.stderr
    )
    assert "Traceback" not in refused.stderr
    config = str(alone.directory / "admin.conf")
    with running([*command, "--kubeconfig", config], alone.directory / "policies.log"):
        alone.have_pods()
        alone.says(f"one {PODS['client']}", address=PODS["one"], port=8080)
        alone.apply("NetworkPolicy", "deny", "networking.k8s.io/v1", spec={"podSelector": {}})
        alone.says("silence", address=PODS["one"], port=8080)
        alone.says("one 10.64.9.1", address=PODS["one"], port=8080, where="")
        address = alone.service("limited")
        alone.lead("limited", "two")
        alone.says("silence", address=address)
        explain = (sys.executable, "-m", "podling", "policies", "explain", "client", "two", "8080")
        places = ("--data-dir", str(alone.directory), "--kubeconfig", config, "--node-name", NODE)
        shown = alone.run(*explain, *places)
        assert "of default/two is refused: its packets are dropped" in shown
        assert f"kernel: ingress of {PODS['two']}: jump in-" in shown
        packets = re.search(r"so far: 0 of egress, (\d+) of ingress", shown)
        assert packets and int(packets[1]) > 0
        own: Any = {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}
        alone.apply("NetworkPolicy", "own", "networking.k8s.io/v1", spec=own)
        alone.says(f"two {PODS['client']}", address=address)
        assert "ingress of default/two is let through by own" in alone.run(*explain, *places)
    # They hold while nobody is there.
    alone.says(f"one {PODS['client']}", address=PODS["one"], port=8080)
    assert "policies" in alone.run("nft", "list", "tables")
    alone.run("kubectl", "--kubeconfig", config, "delete", "networkpolicy", "--all")


@pytest.mark.interop("kube-proxy", "API server")
def test_clients_are_refused_as_by_kube_proxy(alone: Alone, kubernetes_programs: Path) -> None:
    """With the same errors, at once or never, but that a process of the node hears at once that a cluster IP
    has no endpoints: services without endpoints, ports that nobody has, addresses of
    no service, and node ports without endpoints at loopback; from a pod and from the node."""
    own = {"status": {"addresses": [{"type": "InternalIP", "address": OWN}]}}
    config = ("--kubeconfig", str(alone.directory / "admin.conf"))
    patch = ("patch", "node", NODE, "--subresource=status", "--type=merge", "-p", json.dumps(own))
    alone.run("kubectl", *config, *patch)
    ports = [
        {"name": "tcp", "port": 80, "nodePort": 30180},
        {"name": "udp", "protocol": "UDP", "port": 80, "nodePort": 30180},
    ]
    outer = {"type": "NodePort", "externalIPs": ["10.200.0.79"], "ports": ports}
    empty = alone.service("empty", **outer)
    of_empty = {"kubernetes.io/service-name": "empty"}
    alone.apply("EndpointSlice", "empty", "discovery.k8s.io/v1", of_empty, addressType="IPv4", endpoints=[])
    led = alone.service("led", type="NodePort", ports=[{"name": "tcp", "port": 80, "nodePort": 30181}])
    alone.lead("led", "one")
    inner = alone.service("inner", internalTrafficPolicy="Local")
    elsewhere: Any = {"addresses": ["192.0.2.250"], "nodeName": "other", "conditions": {"ready": True}}
    both = [{"name": one, "protocol": one.upper(), "port": 80} for one in ("tcp", "udp")]
    slices: Any = {"addressType": "IPv4", "endpoints": [elsewhere], "ports": both}
    alone.apply(
        "EndpointSlice", "inner", "discovery.k8s.io/v1", {"kubernetes.io/service-name": "inner"}, **slices
    )
    places = [
        *((kind, empty, 80) for kind in ("tcp", "udp")),
        *((kind, "10.200.0.79", 80) for kind in ("tcp", "udp")),
        *((kind, OWN, 30180) for kind in ("tcp", "udp")),
        *((kind, led, 81) for kind in ("tcp", "udp")),
        *((kind, inner, 80) for kind in ("tcp", "udp")),
        ("tcp", led, 80),
        ("tcp", OWN, 30181),
        ("tcp", "127.0.0.1", 30180),
        ("tcp", "10.96.200.200", 80),
    ]

    def found() -> dict[str, dict[tuple[str, str, int], str]]:
        alone.says("one " + (PODS["client"]), address=led)
        told = {}
        for where in ("client", ""):
            said = alone.run(sys.executable, "-c", REFUSED, json.dumps(places), where=where)
            told[where] = dict(zip(places, json.loads(said), strict=True))
        return told

    # The kernel limits how often it refuses by ICMP.
    alone.run("sysctl", "-qw", "net.ipv4.icmp_ratelimit=0")
    with running(alone.proxy(), alone.directory / "refusing.log"):
        ours = found()
    alone.run("nft", "flush", "ruleset")
    flags = (
        *(f"--kubeconfig={alone.directory / 'kube-proxy.conf'}", f"--hostname-override={NODE}"),
        *("--proxy-mode=nftables", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
        *("--conntrack-tcp-timeout-close-wait=0", "--healthz-bind-address=", "--metrics-bind-address="),
        "--cluster-cidr=10.64.9.0/24",
    )
    proxy = alone.within("", str(kubernetes_programs / "kube-proxy"), *flags)
    with running(proxy, alone.directory / "kube-proxy-refusing.log"):
        theirs = found()
    unlike = [
        f"{where or 'node'} → {place}: {said}, kube-proxy {theirs[where][place]}"
        for where, of in ours.items()
        for place, said in of.items()
        if said != theirs[where][place] and (where or (said, place[0]) != ("ECONNREFUSED", "tcp"))
    ]
    assert not unlike, f"{unlike} {places}"


@pytest.mark.interop("kube-proxy", "API server")
def test_network_policies_hold_beside_kube_proxy(alone: Alone, kubernetes_programs: Path) -> None:
    """It leads from a service's address to a pod, and the pod is judged."""
    alone.run("nft", "flush", "ruleset")
    flags = (
        *(f"--kubeconfig={alone.directory / 'kube-proxy.conf'}", f"--hostname-override={NODE}"),
        *("--proxy-mode=nftables", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
        *("--conntrack-tcp-timeout-close-wait=0", "--healthz-bind-address=", "--metrics-bind-address="),
    )
    proxy = alone.within("", str(kubernetes_programs / "kube-proxy"), *flags)
    enforcing = alone.within("", sys.executable, "-c", ENFORCE, str(alone.directory), NODE)
    log = alone.directory / "beside.log"
    with running(proxy, alone.directory / "kube-proxy.log"), running(enforcing, log):
        alone.have_pods()
        address = alone.service("beside")
        alone.lead("beside", "one")
        alone.says(f"one {PODS['client']}", address=address)
        alone.apply("NetworkPolicy", "deny", "networking.k8s.io/v1", spec={"podSelector": {}})
        alone.says("silence", address=address)
        own: Any = {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}
        alone.apply("NetworkPolicy", "deny", "networking.k8s.io/v1", spec=own)
        alone.says(f"one {PODS['client']}", address=address)
