"""R-SYS-2: network policies let through, packet by packet, what their specification does: every kind of peer
and port, in both directions, over TCP, UDP and SCTP, between pods, from outside, from the node, and by a
service's address, over IPv4 and over IPv6.

Pods are network namespaces, each at the end of a link of its own to a namespace that is the node.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podling.model.codec import json as wire
from podling.model.types.networking import NetworkPolicy
from podling.network.policy import PodFacts, PolicyPlan
from podling.network.policy_table import replacement, script
from podling.network.table import IPV4, IPV6, Shape
from policy_oracle import OraclePod, World

SHAPES = {4: Shape(IPV4, "test"), 6: Shape(IPV6, "test")}
WEB = (("web", "tcp", 80), ("web", "udp", 80), ("late", "tcp", 81))
PODS = [
    OraclePod("one", "server", "10.64.9.2", {"app": "server"}, WEB),
    OraclePod("one", "client", "10.64.9.3", {"app": "client", "tier": "x"}, (("web", "tcp", 81),)),
    OraclePod("two", "client", "10.64.9.4", {"app": "client"}),
    OraclePod("two", "other", "10.64.9.5", {"app": "other"}, (("web", "tcp", 80),)),
]
NAMESPACES = {"one": {"team": "a"}, "two": {"team": "b"}}
OUTSIDE, NODE, GATEWAY = "192.0.2.7", "192.0.2.1", "10.64.9.1"
SERVICE, NODE_PORT = "10.96.0.10", 30080
ASKED = (("tcp", 80), ("tcp", 81), ("udp", 80), ("sctp", 9000))
AGENT = """
import json, select, socket, sys, threading, time
KINDS = {"tcp": (socket.SOCK_STREAM, 6), "udp": (socket.SOCK_DGRAM, 17), "sctp": (socket.SOCK_STREAM, 132)}
def echo(made):
    while piece := made.recv(100):
        made.sendall(piece)
def answer(server):
    while True:
        made, client = server.accept()
        threading.Thread(target=echo, args=(made,), daemon=True).start()
def answer_datagrams(server):
    while True:
        piece, client = server.recvfrom(100)
        server.sendto(piece, client)
def probe(asked):
    made = {}
    for index, (kind, address, port, wanted) in enumerate(asked):
        one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, *KINDS[kind])
        one.setblocking(False)
        code = one.connect_ex((address, port))
        if kind == "udp":
            one.send(b"?")
        made[one] = index
    left, answered = dict(made), set()
    wanted = {index for index, one in enumerate(asked) if one[3]}
    end = time.monotonic() + 5
    while left and time.monotonic() < end:
        streams = [one for one in left if one.type == socket.SOCK_STREAM]
        datagrams = [one for one in left if one.type != socket.SOCK_STREAM]
        # Once all has come that should, what should not has a little longer.
        some = select.select(datagrams, streams, [], 0.05 if wanted <= answered else 0.5)
        if not some[0] and not some[1] and wanted <= answered:
            break
        for one in (*some[0], *some[1]):
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                answered.add(left[one])
            del left[one]
    for one in made:
        one.close()
    return sorted(answered)
def say(made):
    made.settimeout(0.3)
    try:
        made.sendall(b"?")
        return made.recv(100) != b""
    except TimeoutError:
        return False
kept = None
for line in sys.stdin:
    said = json.loads(line)
    result = None
    if "serve" in said:
        for kind, port in said["serve"]:
            # It answers over IPv4, too.
            server = socket.socket(socket.AF_INET6, *KINDS[kind])
            server.bind(("::", port))
            if kind != "udp":
                server.listen(100)
            target = answer_datagrams if kind == "udp" else answer
            threading.Thread(target=target, args=(server,), daemon=True).start()
    elif "probe" in said:
        result = probe(said["probe"])
    elif "open" in said:
        kept = socket.create_connection(said["open"], timeout=5)
    else:
        result = say(kept)
    print(json.dumps(result), flush=True)
"""
"""In each namespace: serves, and asks what it is told to."""


def can_sctp() -> bool:
    import socket

    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).close()
    except OSError:
        return False
    return True


def over(version: int, text: str) -> str:
    """With the addresses and subnets of IPv4 in that version: of IPv6, those that end in the same bits."""

    def other(found: re.Match[str]) -> str:
        address = ip_address(int(ip_address(found[1])) + int(ip_address("fd00::")))
        return f"{address}/{int(found[2]) + 96}" if found[2] else f"{address}"

    return re.sub(r"(\d+\.\d+\.\d+\.\d+)(?:/(\d+))?", other, text) if version == 6 else text


class Place:
    """A namespace, and the process in it."""

    def __init__(self, name: str, address: str, stack: ExitStack) -> None:
        self.name, self.address = name, address
        self.process = stack.enter_context(
            subprocess.Popen(
                ["unshare", "--net", sys.executable, "-c", AGENT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(self.process.kill)
        # It answers once it is apart.
        self.tell(serve=[])

    def tell(self, **said: Any) -> Any:
        self.send(**said)
        return self.told()

    def send(self, **said: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()

    def told(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def run(self, *command: str, input: str = "") -> None:
        within = ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", *command]
        done = subprocess.run(within, input=input, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, done.stderr


class Cluster(msgspec.Struct):
    node: Place
    places: dict[str, Place]
    world: World
    plan: PolicyPlan
    asked: Sequence[tuple[str, int]]
    version: int
    pods: Sequence[OraclePod]

    def of(self, text: str) -> str:
        return over(self.version, text)

    def have(self, *specs: Any) -> None:
        """Have these policies of the namespace `one`, and no others, in the kernel."""
        for number in range(max(len(specs), len(self.world.policies))):
            key = "one", f"policy-{number}"
            self.world.policies.pop(key, None)
            policy = None
            if number < len(specs):
                body = {"metadata": {"namespace": "one", "name": key[1]}, "spec": specs[number]}
                text = self.of(json.dumps(body))
                policy, body = wire.decode(text.encode(), NetworkPolicy), json.loads(text)
                self.world.policies[key] = body
            self.plan.put_policy(key, policy)
        if text := script(self.plan.change(), SHAPES[self.version]):
            self.node.run("nft", "-f", "-", input=text)

    def check(self) -> None:
        """From everywhere to all pods."""
        probed = []
        for place in self.places.values():
            wanted = [
                (kind, pod.address, port, place is self.node or self.allows(place.address, pod, kind, port))
                for pod in self.pods
                for kind, port in self.asked
            ]
            place.send(probe=wanted)
            probed.append((place, wanted))
        wrong = []
        for place, wanted in probed:
            answered = place.told()
            wrong += [
                f"{place.name} → {kind} {address}:{port}: {'let through' if not right else 'dropped'}"
                for index, (kind, address, port, right) in enumerate(wanted)
                if right != (index in answered)
            ]
        assert not wrong

    def allows(self, source: str, pod: OraclePod, kind: str, port: int) -> bool:
        return self.world.allows(source, pod.address, kind, port)


@pytest.fixture(scope="module", params=[4, 6])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    version: int = request.param
    if version == 6 and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("the kernel has no IPv6")
    pods = [msgspec.structs.replace(pod, address=over(version, pod.address)) for pod in PODS]
    whole = {4: 32, 6: 128}[version]
    ip = ("ip", f"-{version}")
    with ExitStack() as stack:
        node = Place("node", over(version, NODE), stack)
        node.run("ip", "link", "set", "lo", "up")
        node.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        places = {"node": node}
        asked = [one for one in ASKED if one[0] != "sctp" or can_sctp()]
        for name, address in (
            *((f"{pod.namespace}-{pod.name}", pod.address) for pod in pods),
            ("outside", over(version, OUTSIDE)),
        ):
            place = places[name] = Place(name, address, stack)
            gateway = over(version, NODE if name == "outside" else GATEWAY)
            ends = ("peer", "name", "eth0", "netns", str(place.process.pid))
            node.run("ip", "link", "add", name[:15], "type", "veth", *ends)
            node.run("ip", "link", "set", name[:15], "up")
            at_once = ("nodad",) if version == 6 else ()
            node.run(*ip, "address", "add", f"{gateway}/{whole}", "dev", name[:15], *at_once)
            node.run(*ip, "route", "add", address, "dev", name[:15])
            place.run("ip", "link", "set", "lo", "up")
            place.run("ip", "link", "set", "eth0", "up")
            place.run(*ip, "address", "add", f"{address}/{whole}", "dev", "eth0", *at_once)
            place.run(*ip, "route", "add", gateway, "dev", "eth0")
            place.run(*ip, "route", "add", "default", "via", gateway)
            place.tell(serve=asked)
        family = SHAPES[version].family.name
        leads = f"dnat to {pods[0].address}:80" if version == 4 else f"dnat to [{pods[0].address}]:80"
        services = (
            f"table {family} services {{\nchain prerouting {{ type nat hook prerouting priority dstnat;\n"
            f"{family} daddr {over(version, SERVICE)} tcp dport 8080 {leads}\n"
            f"{family} daddr {over(version, NODE)} tcp dport {NODE_PORT} {leads}; }}\n"
            "chain postrouting { type nat hook postrouting priority srcnat; ct status dnat masquerade; }\n}\n"
        )
        node.run("nft", "-f", "-", input=replacement(SHAPES[version]) + services)
        world, plan = (
            World({**NAMESPACES}, {(pod.namespace, pod.name): pod for pod in pods}, {}),
            PolicyPlan(version),
        )
        for namespace, labels in NAMESPACES.items():
            plan.put_namespace(namespace, labels)
        for pod in pods:
            facts = PodFacts((pod.namespace, pod.name), pod.labels, (pod.address,), pod.ports, is_local=True)
            plan.put_pod(facts.key, facts)
        yield Cluster(node, places, world, plan, asked, version, pods)


CLIENTS = {"podSelector": {"matchLabels": {"app": "client"}}}
PEERS: dict[str, Any] = {
    "all": None,
    "pods": [CLIENTS],
    "pods by expression": [
        {"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["client"]}]}}
    ],
    "namespaces": [{"namespaceSelector": {"matchLabels": {"team": "b"}}}],
    "every namespace": [{"namespaceSelector": {}}],
    "pods of namespaces": [{"namespaceSelector": {"matchLabels": {"team": "b"}}, **CLIENTS}],
    "either": [CLIENTS, {"namespaceSelector": {"matchLabels": {"team": "b"}}}],
    "subnet": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
    "subnet but": [{"ipBlock": {"cidr": "10.64.9.0/24", "except": ["10.64.9.4/32"]}}],
    "subnets that touch": [
        {"ipBlock": {"cidr": "10.64.9.0/30", "except": ["10.64.9.2/32"]}},
        {"ipBlock": {"cidr": "10.64.9.4/32"}},
    ],
    "subnet or pods": [{"ipBlock": {"cidr": "192.0.2.0/24"}}, CLIENTS],
}
PORTS: dict[str, Any] = {
    "all": None,
    "one": [{"port": 80}],
    "range": [{"port": 70, "endPort": 80}, {"protocol": "UDP", "port": 1, "endPort": 65535}],
    "named": [{"port": "web"}],
    "named, and a number": [{"port": "web"}, {"protocol": "SCTP", "port": 9000}, {"port": 81}],
    "a protocol": [{"protocol": "UDP"}, {"protocol": "SCTP"}],
}


@pytest.mark.parametrize("direction", ["ingress", "egress"])
@pytest.mark.parametrize("peers", PEERS)
def test_rules(cluster: Cluster, direction: str, peers: str) -> None:
    """Every kind of peer with every kind of port."""
    selector = {"matchLabels": {"app": "server" if direction == "ingress" else "client"}}
    for ports in PORTS.values():
        rule: dict[str, Any] = {} if ports is None else {"ports": ports}
        if (wanted := PEERS[peers]) is not None:
            rule["from" if direction == "ingress" else "to"] = wanted
        cluster.have({"podSelector": selector, direction: [rule], "policyTypes": [direction.capitalize()]})
        cluster.check()


def test_nothing_and_several(cluster: Cluster) -> None:
    """Default deny in each direction and both; what any policy allows is allowed; and none again."""
    for types in (["Ingress"], ["Egress"], ["Ingress", "Egress"]):
        cluster.have({"podSelector": {}, "policyTypes": types})
        cluster.check()
    deny = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    server = {"matchLabels": {"app": "server"}}
    some = {"podSelector": server, "ingress": [{"from": [CLIENTS], "ports": [{"port": 80}]}]}
    more = {
        "podSelector": server,
        "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 81}]}],
    }
    out = {"podSelector": {}, "egress": [{"to": [{"podSelector": server}]}], "policyTypes": ["Egress"]}
    for specs in ((deny, some), (deny, some, more), (deny, some, more, out), (some, out), ()):
        cluster.have(*specs)
        cluster.check()


def test_a_service_leads_to_the_pod_that_is_judged_and_its_client_is_the_real_one(cluster: Cluster) -> None:
    """Though its address is another when the packet has left the node."""
    server, outside = {"matchLabels": {"app": "server"}}, cluster.places["outside"]
    in_namespace, there = cluster.places["one-client"], cluster.places["two-client"]
    for peer, who in (
        (CLIENTS, {in_namespace}),
        ({"ipBlock": {"cidr": f"{OUTSIDE}/32"}}, {outside}),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, {there}),
    ):
        cluster.have({"podSelector": server, "ingress": [{"from": [peer], "ports": [{"port": 80}]}]})
        for place in (in_namespace, there):
            asked = [("tcp", cluster.of(SERVICE), 8080, place in who)]
            assert place.tell(probe=asked) == [0] * (place in who)
        assert outside.tell(probe=[("tcp", cluster.of(NODE), NODE_PORT, outside in who)]) == [0] * (
            outside in who
        )
    # The pod behind it is whom a client may reach, not the service's address.
    client = {"podSelector": {"matchLabels": {"app": "client"}}, "policyTypes": ["Egress"]}
    for block, answered in ((f"{SERVICE}/32", []), (f"{PODS[0].address}/32", [0])):
        cluster.have({**client, "egress": [{"to": [{"ipBlock": {"cidr": block}}]}]})
        assert in_namespace.tell(probe=[("tcp", cluster.of(SERVICE), 8080, bool(answered))]) == answered


def test_a_pod_reaches_itself_by_a_service(cluster: Cluster) -> None:
    cluster.have({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
    assert cluster.places["one-server"].tell(probe=[("tcp", cluster.of(SERVICE), 8080, True)]) == [0]


def test_a_change_holds_for_connections_that_are_there(cluster: Cluster) -> None:
    client, server = cluster.places["one-client"], cluster.pods[0]
    rule = {"from": [CLIENTS]}
    allowed = {"podSelector": {"matchLabels": server.labels}, "ingress": [rule]}
    cluster.have(allowed)
    client.tell(open=(server.address, 80))
    assert client.tell()
    cluster.have({**allowed, "ingress": []})
    assert not client.tell()
    cluster.have(allowed)
    assert client.tell()
    # Answers need no rule of their own.
    cluster.have(allowed, {"podSelector": {"matchLabels": server.labels}, "policyTypes": ["Egress"]})
    assert client.tell()
