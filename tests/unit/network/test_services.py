"""Which endpoints clients of a service are led to, by kube-proxy's rules."""

from __future__ import annotations

from typing import Any

from podling.model.types.discovery import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointSlice,
    ForNode,
    ForZone,
    SlicePort,
)
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import (
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
)
from podling.network.services import Behind, Frontend, NodeFacts, frontends, service_of

NODE = NodeFacts("here", "a")
HTTP = Frontend("IPv4", "tcp", 80, "10.96.0.9")


def service(**spec: Any) -> Service:
    given = {
        "type": "ClusterIP",
        "cluster_ip": "10.96.0.9",
        "cluster_ips": ["10.96.0.9"],
        "ports": [ServicePort(name="http", protocol="TCP", port=80, target_port=8080)],
        **spec,
    }
    return Service(metadata=ObjectMeta(namespace="ns", name="web"), spec=ServiceSpec(**given))


def endpoint(number: int, state: str = "ready", node: str = "there", **fields: Any) -> Endpoint:
    conditions = {
        "ready": EndpointConditions(ready=True, serving=True, terminating=False),
        "unknown": EndpointConditions(),
        "unready": EndpointConditions(ready=False, serving=False, terminating=False),
        "ending": EndpointConditions(ready=False, serving=True, terminating=True),
        "ended": EndpointConditions(ready=False, serving=False, terminating=True),
    }
    return Endpoint([f"10.64.0.{number}"], conditions[state], node_name=node, **fields)


def slices(*endpoints: Endpoint, port: str = "http", family: str = "IPv4") -> list[EndpointSlice]:
    meta = ObjectMeta(namespace="ns", labels={"kubernetes.io/service-name": "web"})
    ports = [SlicePort(name=port, protocol="TCP", port=8080)]
    return [EndpointSlice(metadata=meta, address_type=family, endpoints=list(endpoints), ports=ports)]


def chosen(*endpoints: Endpoint, **spec: Any) -> dict[Frontend, Behind]:
    return frontends(service(**spec), slices(*endpoints), NODE)


def numbers(backends: tuple[tuple[str, int], ...]) -> list[int]:
    return [int(address.rpartition(".")[2]) for address, _ in backends]


def test_ready_endpoints_else_those_that_serve_at_their_end() -> None:
    assert numbers(chosen(endpoint(2), endpoint(3, "unknown"), endpoint(4, "ending"))[HTTP].endpoints) == [
        2,
        3,
    ]
    assert numbers(
        chosen(endpoint(2, "unready"), endpoint(3, "ending"), endpoint(4, "ended"))[HTTP].endpoints
    ) == [3]
    refused = chosen(endpoint(2, "unready"), endpoint(4, "ended"))[HTTP]
    assert (refused.endpoints, refused.refusal) == ((), "reject")


def test_a_local_policy_keeps_to_the_node_and_drops_without_an_endpoint_there() -> None:
    inner = chosen(endpoint(2), endpoint(3, node="here"), internal_traffic_policy="Local")[HTTP]
    assert numbers(inner.endpoints) == [3]
    assert chosen(endpoint(2), internal_traffic_policy="Local")[HTTP].refusal == "drop"
    assert chosen(internal_traffic_policy="Local")[HTTP].refusal == "reject"
    spec = {"type": "NodePort", "external_traffic_policy": "Local"}
    port = ServicePort(name="http", protocol="TCP", port=80, node_port=30080)
    at_node = Frontend("IPv4", "tcp", 30080)
    outer = chosen(endpoint(2), endpoint(3, node="here"), ports=[port], **spec)
    assert (outer[at_node].way, numbers(outer[at_node].endpoints), numbers(outer[at_node].local)) == (
        "local",
        [2, 3],
        [3],
    )
    assert outer[HTTP].way == "cluster"
    away = chosen(endpoint(2), ports=[port], **spec)[at_node]
    assert (numbers(away.endpoints), away.refusal) == ([2], "drop")
    ending = chosen(endpoint(2), endpoint(3, "ending", "here"), ports=[port], **spec)[at_node]
    assert numbers(ending.local) == [3]


def test_hints_for_this_node_then_for_its_zone() -> None:
    def hinted(number: int, zone: str, node: str = "") -> Endpoint:
        return endpoint(number, hints=EndpointHints([ForZone(zone)], [ForNode(node)] if node else []))

    assert numbers(chosen(hinted(2, "a"), hinted(3, "b"))[HTTP].endpoints) == [2]
    assert numbers(chosen(hinted(2, "b"), hinted(3, "b"))[HTTP].endpoints) == [2, 3]
    assert numbers(chosen(hinted(2, "a"), endpoint(3))[HTTP].endpoints) == [2, 3]
    assert numbers(chosen(hinted(2, "a", "x"), hinted(3, "b", "here"))[HTTP].endpoints) == [3]


def test_external_addresses_and_who_may_use_them() -> None:
    spec = service(
        type="LoadBalancer",
        external_ips=["192.0.2.7", "2001:db8::7"],
        load_balancer_source_ranges=["198.51.100.0/24", "2001:db8::/32"],
    )
    proxied = LoadBalancerIngress(ip="192.0.2.9", ip_mode="Proxy")
    spec.status = ServiceStatus(LoadBalancerStatus([LoadBalancerIngress(ip="192.0.2.8"), proxied]))
    found = frontends(spec, slices(endpoint(2)), NODE)
    assert {frontend.address: behind.sources for frontend, behind in found.items()} == {
        "10.96.0.9": (),
        "192.0.2.7": (),
        "192.0.2.8": ("198.51.100.0/24",),
    }
    assert {behind.way for behind in found.values()} == {"cluster", "outside"}


def test_each_family_has_its_endpoints() -> None:
    both = service(cluster_ips=["10.96.0.9", "fd00::9"])
    found = frontends(both, slices(endpoint(2)), NODE)
    assert numbers(found[HTTP].endpoints) == [2]
    assert found[Frontend("IPv6", "tcp", 80, "fd00::9")].refusal == "reject"


def test_services_of_nobody_and_of_another_proxy() -> None:
    assert not chosen(endpoint(2), cluster_ip="None", cluster_ips=["None"])
    assert not chosen(endpoint(2), type="ExternalName", cluster_ip="", cluster_ips=[])
    of_other = service()
    of_other.metadata.labels = {"service.kubernetes.io/service-proxy-name": "other"}
    assert not frontends(of_other, slices(endpoint(2)), NODE)
    (one,) = slices()
    assert service_of(one) == ("ns", "web")
    one.metadata.labels["service.kubernetes.io/headless"] = ""
    assert service_of(one) is None


def test_ports_go_by_name_and_clients_stay() -> None:
    assert not frontends(service(), slices(endpoint(2), port="other"), NODE)[HTTP].endpoints
    assert chosen(endpoint(2), session_affinity="ClientIP")[HTTP].affinity == 10800
    assert chosen(endpoint(2, node="here"), endpoint(3))[HTTP].hairpin == ("10.64.0.2",)
