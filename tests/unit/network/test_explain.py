"""What `podling services explain` says: where an address leads, by which rule, and why nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from podling.model.codec.json import from_data
from podling.model.types.discovery import EndpointSlice
from podling.model.types.service import Service
from podling.network.explain import Cluster, explain_address, explain_service, may_have, place_of
from podling.network.services import NodeFacts
from podling.network.table import IPV4, Shape

SHAPES = [Shape(IPV4, "test", "10.64.0.0/24", "10.96.0.0/16")]
ADDRESS, NODE = "10.96.0.5", "192.0.2.1"
KEY = "default", "web"


def service(name: str = "web", **spec: Any) -> Service:
    given = {
        "type": "NodePort",
        "clusterIP": ADDRESS,
        "clusterIPs": [ADDRESS],
        "selector": {"app": "web"},
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}],
        **spec,
    }
    return from_data({"metadata": {"name": name, "namespace": "default"}, "spec": given}, Service)


def slices(*endpoints: dict[str, Any], port: str = "http") -> list[EndpointSlice]:
    labels = {"kubernetes.io/service-name": "web"}
    data = {
        "metadata": {"name": "web-1", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": port, "protocol": "TCP", "port": 8080}],
    }
    return [from_data(data, EndpointSlice)]


def endpoint(number: int, *, ready: bool = True, node: str = "n1") -> dict[str, Any]:
    return {
        "addresses": [f"10.64.0.{number}"],
        "conditions": {"ready": ready},
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": f"web-{number}"},
    }


def cluster(one: Service, of_it: list[EndpointSlice]) -> Cluster:
    return Cluster([one], of_it, NodeFacts("n1"), [NODE])


def kernel(has: dict[tuple[str, str], str]) -> Any:
    return lambda shape, name, key: has.get((name, key), "")


def test_endpoints_and_rules() -> None:
    it = cluster(service(), slices(endpoint(2), endpoint(3, node="n2"), endpoint(4, ready=False)))
    vip, goal = f"{ADDRESS} . tcp . 80 : 2:0", "2:0 : goto cluster2"
    has = {("vips", f"{ADDRESS} . tcp . 80"): vip, ("goals", "2:0"): goal}
    assert explain_address(it, ADDRESS, 80, SHAPES, kernel(has)) == [
        "default/web:",
        f"  {ADDRESS}:80/TCP (http) leads to 2",
        "    10.64.0.2:8080 (pod web-2), here",
        "    10.64.0.3:8080 (pod web-3), on n2",
        "    not used, it is not ready: 10.64.0.4:8080 (pod web-4), here",
        f"    rule: vips {{ {vip} }} of table ip test, as it is in the kernel",
        f"    rule: goals {{ {goal} }} of table ip test, as it is in the kernel",
    ]
    by_name = explain_service(it, KEY, SHAPES, kernel({}))
    assert by_name[1] == f"  {ADDRESS}:80/TCP (http) leads to 2"
    assert by_name[-2:] == [
        f"    rule: {one} of table ip test, but the kernel has nothing"
        for one in ("nodeports { tcp . 30080 : 4002:0 }", "node-goals { 4002:0 : goto node-outside2 }")
    ]
    assert explain_address(it, NODE, 30080, SHAPES, kernel({}))[1:3] == [
        "  node port 30080/TCP (http) leads to 2",
        "    at 127.0.0.1 to 2, passed on by podling itself",
    ]


@pytest.mark.parametrize(
    ("spec", "of_it", "said"),
    [
        ({}, slices(), "no pod that has an address is selected by app=web"),
        ({"selector": {}}, [], "it selects no pods, and no slice has endpoints for it"),
        ({}, slices(endpoint(2), port="other"), "slice web-1 has no port named 'http'"),
        ({}, slices(endpoint(2, ready=False)), "not used, it is not ready: 10.64.0.2:8080 (pod web-2), here"),
        (
            {"internalTrafficPolicy": "Local"},
            slices(endpoint(2, node="n2")),
            "not used, it is on another node: 10.64.0.2:8080 (pod web-2), on n2",
        ),
    ],
)
def test_why_there_is_none(spec: dict[str, Any], of_it: list[EndpointSlice], said: str) -> None:
    shown = explain_address(cluster(service(**spec), of_it), ADDRESS, 80, SHAPES, kernel({}))
    assert f"    {said}" in shown
    assert "refuses clients" in shown[1] or "drops clients" in shown[1]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"clusterIP": "None", "clusterIPs": ["None"]}, "its name leads to its endpoints themselves"),
        ({"type": "ExternalName", "externalName": "a.test"}, "it is another name, a.test"),
    ],
)
def test_services_without_an_address(spec: dict[str, Any], said: str) -> None:
    (shown,) = explain_service(cluster(service(**spec), []), KEY, SHAPES, kernel({}))
    assert said in shown


def test_addresses_of_no_service() -> None:
    it = cluster(service(), [])
    for address, port, said in (
        (ADDRESS, 81, f"default/web has no port 81 at {ADDRESS}: connections are refused"),
        ("10.96.0.6", 80, "no service has 10.96.0.6: packets to it are dropped"),
        ("192.0.2.9", 80, "no service has 192.0.2.9, port 80: it is not led anywhere"),
    ):
        assert explain_address(it, address, port, SHAPES, kernel({})) == [said]
    assert explain_service(it, ("default", "x"), SHAPES, kernel({})) == ["there is no service default/x"]


def test_places_and_names() -> None:
    assert place_of("10.0.0.1:80") == ("10.0.0.1", 80)
    assert place_of("[fd00::1]:80") == ("fd00::1", 80)
    assert (place_of("web"), place_of("web:80")) == (None, None)


@pytest.mark.parametrize(
    ("address", "port", "may"),
    [
        (ADDRESS, 80, True),
        (ADDRESS, 81, True),
        (NODE, 30080, True),
        (NODE, 80, False),
        ("10.96.0.6", 80, False),
    ],
)
def test_only_services_that_may_have_an_address_are_asked_about(address: str, port: int, may: bool) -> None:
    """Of thousands, each of which may have a hundred endpoints."""
    assert may_have(service(), address, port, [NODE]) is may
