"""R-SYS-2: what services promise of each packet: over IPv4 and IPv6, of SCTP, and from outside, whose clients
keep their addresses where the policy says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from peer.server import running

from .alone import HAS_IPV6, OUTSIDE, OWN, PODS, VERSIONS, of_version

if TYPE_CHECKING:
    from e2e.alone import Alone

CLIENT = PODS["client"]
SCTP = """
import socket, struct, sys
TABLE = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)
def chunk(source, destination, tag, kind, own):
    packet = struct.pack(">HHII", source, destination, tag, 0)
    packet += struct.pack(">BBHIIHHI", kind, 0, 20, own, 65536, 1, 1, 7)
    crc = 0xFFFFFFFF
    for byte in packet:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return packet[:8] + struct.pack("<I", crc ^ 0xFFFFFFFF) + packet[12:]
def receive():
    while True:
        packet, place = link.recvfrom(2048)
        if ":" not in place[0]:
            packet = packet[(packet[0] & 15) * 4:]
        if len(packet) >= 32:
            source, destination, tag = struct.unpack(">HHI", packet[:8])
            yield place[0], source, destination, tag, packet[12], int.from_bytes(packet[16:20], "big")
role, address = sys.argv[1], sys.argv[2]
link = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_RAW, 132)
if role == "serve":
    link.bind((address, 0))
    for client, source, destination, tag, kind, own in receive():
        if kind == 1 and destination == 8080:
            link.sendto(chunk(8080, source, own, 2, int(sys.argv[3])), (client, 0))
else:
    link.settimeout(0.2)
    for _ in range(100):
        link.sendto(chunk(40000, 80, 0, 1, 4711), (address, 0))
        try:
            answer = next(receive())
        except (TimeoutError, ConnectionRefusedError):
            continue
        if answer == (address, 80, 40000, 4711, 2, int(sys.argv[3])):
            sys.exit()
    sys.exit(f"{answer} is not from {sys.argv[3]}")
"""
"""The first two packets of an association, from raw sockets: kernels without SCTP pass it on all the same.
`serve` answers with its number as its tag; else one is asked until that number answers."""
HEALTH = """
import http.client, json, sys, time
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        link = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=5)
        link.request("GET", "/")
        answer = link.getresponse()
        said = f"{answer.status} {json.dumps(json.loads(answer.read()), sort_keys=True)}"
    except OSError as error:
        said = str(error)
    if said == sys.argv[3]:
        sys.exit()
    time.sleep(0.05)
sys.exit(said)
"""
"""Asks until the answer is this."""


@pytest.fixture(scope="module")
def proxied(alone: Alone) -> Iterator[Alone]:
    """The proxy of a machine whose address others know: one with a default route."""
    alone.run("ip", "route", "add", "default", "dev", "own")
    with running(alone.proxy(), alone.directory / "network.log"):
        yield alone
    alone.run("ip", "route", "delete", "default")


@pytest.mark.parametrize("version", VERSIONS)
def test_each_family_of_a_service(proxied: Alone, version: int) -> None:
    """A pod keeps its address and may be its own endpoint, datagrams follow the endpoints, clients stay with
    theirs, and what nobody serves is refused."""
    name, family = f"family-{version}", f"IPv{version}"
    address = proxied.service(name, ipFamilies=[family])
    client, gateway = of_version(CLIENT, version), of_version("10.64.9.1", version)
    proxied.says("refused", address=address)
    proxied.lead(name, "one", version=version)
    for kind in ("tcp", "udp"):
        said = f"one {client}" if kind == "tcp" else "one"
        proxied.says(said, address=address, kind=kind)
    proxied.says(f"one {gateway}", address=address, where="")
    proxied.says("refused", address=address, port=81)
    proxied.lead(name, "client", "two", version=version)
    proxied.says(f"client {gateway}", f"two {client}", address=address)
    proxied.service(name, ipFamilies=[family], sessionAffinity="ClientIP")
    proxied.lead(name, "one", version=version)
    proxied.says(f"one {client}", address=address)
    proxied.lead(name, "one", "two", version=version)
    proxied.says(f"one {client}", address=address)
    proxied.lead(name, "two", version=version)
    proxied.says("two", address=address, kind="udp")
    proxied.lead(name, version=version)
    proxied.says("refused", address=address)


@pytest.mark.skipif(not HAS_IPV6, reason="the kernel has no IPv6")
def test_a_service_of_both_families_leads_to_the_endpoints_of_each(proxied: Alone) -> None:
    ports = [{"name": "tcp", "port": 80, "nodePort": 30090}]
    proxied.service("both", ipFamilyPolicy="RequireDualStack", type="NodePort", ports=ports)
    config = str(proxied.directory / "admin.conf")
    spec = json.loads(proxied.run("kubectl", "--kubeconfig", config, "get", "service", "both", "-o", "json"))[
        "spec"
    ]
    assert spec["ipFamilies"] == ["IPv4", "IPv6"]
    for version, pod in ((4, "one"), (6, "two")):
        proxied.lead("both", pod, version=version)
    for version, pod, address in zip((4, 6), ("one", "two"), spec["clusterIPs"], strict=True):
        proxied.says(f"{pod} {of_version(CLIENT, version)}", address=address)
        own = of_version(OWN, version)
        proxied.says(f"{pod} {of_version('10.64.9.1', version)}", address=own, port=30090, where="outside")


@pytest.mark.parametrize("version", VERSIONS)
def test_sctp_is_led_to_endpoints_and_back(proxied: Alone, version: int) -> None:
    """Also from the port from which another endpoint was asked before."""
    name = f"sctp-{version}"
    ports = [{"name": "sctp", "protocol": "SCTP", "port": 80}]
    address = proxied.service(name, ipFamilies=[f"IPv{version}"], ports=ports)
    python = (sys.executable, "-c", SCTP)
    with ExitStack() as stack:
        for number, pod in ((1, "one"), (2, "two")):
            own = of_version(PODS[pod], version)
            serving = proxied.within(pod, *python, "serve", own, str(number))
            stack.enter_context(running(serving, proxied.directory / f"sctp-{pod}-{version}.log"))
        for number, pod in ((1, "one"), (2, "two")):
            proxied.lead(name, pod, version=version)
            proxied.run(*python, "ask", address, str(number), where="client")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_balancers_clients_keep_their_addresses_under_local(proxied: Alone, version: int) -> None:
    """And are dropped where the service has no endpoint; its health check says so."""
    name, address = f"kept-{version}", of_version("10.200.0.80", version)
    ports = [{"name": "tcp", "port": 80, "nodePort": 30100 + version}]
    check = 30110 + version
    spec = {"type": "LoadBalancer", "ports": ports, "ipFamilies": [f"IPv{version}"]}
    outside, own = of_version(OUTSIDE, version), of_version(OWN, version)
    proxied.service(name, **spec)
    proxied.balanced(name, address)
    proxied.lead(name, "one", version=version)
    proxied.says(f"one {of_version('10.64.9.1', version)}", address=address, where="outside")
    local = {"externalTrafficPolicy": "Local", "healthCheckNodePort": check}
    proxied.service(name, **spec, **local)
    for place, port in ((address, 80), (own, 30100 + version)):
        proxied.says(f"one {outside}", address=place, port=port, where="outside")
    # A pod is led to any endpoint.
    proxied.lead(name, "one", version=version, node="elsewhere")
    proxied.says(f"one {of_version(CLIENT, version)}", address=address)
    for place, port in ((address, 80), (own, 30100 + version)):
        proxied.says("silence", address=place, port=port, where="outside")
    proxied.lead(name, "one", "two", version=version)
    health = (sys.executable, "-c", HEALTH, OWN, str(check))
    told = {"service": {"namespace": "default", "name": name}, "serviceProxyHealthy": True}
    for pods in (("one", "two"), ()):
        proxied.lead(name, *pods, version=version)
        wanted = f"{200 if pods else 503} {json.dumps({**told, 'localEndpoints': len(pods)}, sort_keys=True)}"
        proxied.run(*health, wanted, where="outside")
