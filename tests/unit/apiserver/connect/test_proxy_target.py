"""Whom a proxied request means."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.connect.http import (
    ProxyName,
    Target,
    node_target,
    parse_proxy_name,
    path_below,
    pod_target,
    service_target,
)
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import request_info
from podling.model.errors import StatusError
from podling.model.types.container import Container, ContainerPort
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import PodIP, PodStatus
from podling.model.types.references import ObjectReference
from podling.model.types.service import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Service,
    ServicePort,
    ServiceSpec,
)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("web", ProxyName("", "web", "")),
        ("web:80", ProxyName("", "web", "80")),
        ("web:http", ProxyName("", "web", "http")),
        ("https:web:8443", ProxyName("https", "web", "8443")),
        ("https:web:", ProxyName("https", "web", "")),
        (":web:80", ProxyName("", "web", "80")),
    ],
)
def test_a_name_is_taken_apart(name: str, asked: ProxyName) -> None:
    assert parse_proxy_name(name, "service") == asked


@pytest.mark.parametrize("name", ["", ":80", "ftp:web:21", "a:b:c:d", "https::80"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(StatusError, match=f'invalid pod request "{name}"'):
        parse_proxy_name(name, "pod")


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("/api/v1/nodes/n/proxy", ""),
        ("/api/v1/nodes/n/proxy/", "/"),
        ("/api/v1/nodes/n/proxy/stats/summary", "/stats/summary"),
        ("/api/v1/namespaces/ns/pods/p:80/proxy/a//b%2Fc/", "/a/b/c/"),
        ("/api/v1%2Fnamespaces%2fns/pods/p/%70roxy/a", "/a"),
        ("/api/v1/nodes/n/proxy%2Fa", "/a"),
        ("/api/v1/nodes/n/proxy//a", "/a"),
        ("/api/v1/nodes/n/proxy/a/./b/../c", "/a/c"),
        ("/api/v1/nodes/n/proxy/../..", "/"),
        ("/api/v1/nodes/n/proxy/%2e%2e/%2e%2e/x/", "/x/"),
        ("/api/v1/nodes/n/proxy/a%20b%3Fc%25d;e+f", "/a%20b%3Fc%25d;e+f"),
        ("/api/v1/nodes/n/proxy/%ff%00%c3%a9", "/%FF%00%C3%A9"),
    ],
)
def test_what_follows_is_passed_on_as_kubernetes_does(path: str, below: str) -> None:
    assert path_below(path, request_info("GET", path, {})) == below


def node(address: str = "10.0.0.1") -> Node:
    endpoint = NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=10250))
    addresses = [NodeAddress(type="InternalIP", address=address)]
    return Node(status=NodeStatus(addresses=addresses, daemon_endpoints=endpoint))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("n", Target("https", "10.0.0.1", 10250, kubelet=True)),
        ("n:10250", Target("https", "10.0.0.1", 10250, kubelet=True)),
        ("n:8080", Target("http", "10.0.0.1", 8080)),
        ("https:n:8443", Target("https", "10.0.0.1", 8443)),
    ],
)
def test_a_node(name: str, target: Target) -> None:
    assert node_target(parse_proxy_name(name, "node"), node()) == target


def pod(*ports: int, address: str = "10.88.0.5") -> Pod:
    declared = [ContainerPort(container_port=port) for port in ports]
    containers = [Container(name="sidecar"), Container(name="app", ports=declared)]
    return Pod(spec=PodSpec(containers=containers), status=PodStatus(pod_ip=address))


@pytest.mark.parametrize(
    ("name", "ports", "target"),
    [
        ("p", (8080, 9090), Target("http", "10.88.0.5", 8080)),
        ("p:9090", (8080, 9090), Target("http", "10.88.0.5", 9090)),
        ("p", (), Target("http", "10.88.0.5", 80)),
        ("https:p:", (), Target("https", "10.88.0.5", 443)),
    ],
)
def test_a_pod(name: str, ports: tuple[int, ...], target: Target) -> None:
    assert pod_target(parse_proxy_name(name, "pod"), pod(*ports)) == target


@pytest.mark.parametrize("address", ["", "127.0.0.1", "169.254.169.254", "::1", "0.0.0.0"])
def test_what_is_not_a_pods_own_address_is_not_asked(address: str) -> None:
    with pytest.raises(StatusError, match="address not allowed"):
        pod_target(parse_proxy_name("p", "pod"), pod(80, address=address))


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_pods_port_is_a_number(port: str) -> None:
    with pytest.raises(StatusError, match="invalid port"):
        pod_target(parse_proxy_name(f"p:{port}", "pod"), pod(80))


WEB = Service(
    metadata=ObjectMeta(name="web", namespace="ns"),
    spec=ServiceSpec(ports=[ServicePort(name="http", port=80), ServicePort(name="admin", port=9000)]),
)
IP = "10.88.0.5"
ADDRESS = [EndpointAddress(ip=IP, target_ref=ObjectReference(kind="Pod", namespace="ns", name="p"))]
BOTH = Endpoints(
    subsets=[
        EndpointSubset(
            addresses=ADDRESS,
            not_ready_addresses=[EndpointAddress(ip="10.88.0.6")],
            ports=[EndpointPort(name="http", port=8080), EndpointPort(name="admin", port=9001)],
        )
    ]
)
ONE = Endpoints(subsets=[EndpointSubset(addresses=ADDRESS, ports=[EndpointPort(port=8080)])])


def beside(endpoints: Endpoints | None, *addresses: str) -> Find:
    """What is found: these endpoints of a service, and a pod with these addresses."""
    pod = Pod(status=PodStatus(pod_ips=[PodIP(ip=one) for one in addresses]))
    found: dict[tuple[Any, str], Any] = {(Endpoints, "web"): endpoints, (Pod, "p"): pod}

    def find(type: type[Any], namespace: str, name: str) -> Any:
        return found.get((type, name)) if namespace == "ns" else None

    return find


@pytest.mark.parametrize(
    ("name", "endpoints", "target"),
    [
        ("web:http", BOTH, Target("http", "10.88.0.5", 8080)),
        ("web:admin", BOTH, Target("http", "10.88.0.5", 9001)),
        ("web:80", BOTH, Target("http", "10.88.0.5", 8080)),
        ("https:web:9000", BOTH, Target("https", "10.88.0.5", 9001)),
        ("web", ONE, Target("http", "10.88.0.5", 8080)),
    ],
)
def test_a_service_is_one_of_its_ready_endpoints(name: str, endpoints: Endpoints, target: Target) -> None:
    assert service_target(name, WEB, beside(endpoints, "10.88.0.4", IP)) == target


@pytest.mark.parametrize(
    ("name", "endpoints", "message"),
    [
        ("web:http", Endpoints(), 'no endpoints available for service "web"'),
        ("web:other", BOTH, 'no endpoints available for service "web:other"'),
        ("web:81", BOTH, 'no service port 81 found for service "web"'),
    ],
)
def test_a_service_that_has_none(name: str, endpoints: Endpoints, message: str) -> None:
    with pytest.raises(StatusError, match=message) as error:
        service_target(name, WEB, beside(endpoints, IP))
    assert error.value.code == 503


@pytest.mark.parametrize(
    ("of", "addresses"),
    [
        (None, [IP]),
        (ObjectReference(kind="Pod", namespace="other", name="p"), [IP]),
        (ObjectReference(kind="Pod", name="p"), [IP]),
        (ObjectReference(kind="Pod", namespace="ns", name="other"), [IP]),
        (ObjectReference(kind="Pod", namespace="ns", name="p"), ["10.88.0.6"]),
        (ObjectReference(kind="Pod", namespace="ns", name="p"), []),
    ],
)
def test_what_is_no_pod_of_the_namespace_is_not_asked(
    of: ObjectReference | None, addresses: list[str]
) -> None:
    """Else whoever may write endpoints reaches whatever the server does."""
    subset = EndpointSubset(
        addresses=[EndpointAddress(ip=IP, target_ref=of)], ports=[EndpointPort(name="http", port=8080)]
    )
    with pytest.raises(StatusError, match="no endpoints available"):
        service_target("web:http", WEB, beside(Endpoints(subsets=[subset]), *addresses))


def test_a_service_whose_endpoints_nobody_made() -> None:
    with pytest.raises(StatusError, match='services "web" not found') as error:
        service_target("web", WEB, beside(None))
    assert error.value.code == 404
