"""R-SYS-6: every service has an address of its own."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.admission import services
from podling.apiserver.admission.plugin import Attributes, Operation
from podling.apiserver.admission.services import ServiceAddresses
from podling.apiserver.request.request import User
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.rules.addresses import family
from podling.model.scheme import resource_of
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.service import Service
from unit.apiserver.admission.sent import Itself

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

SERVICES = "/api/v1/namespaces/default/services"
RANGE = ipaddress.ip_network("10.96.0.0/16")


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_addresses_are_given_once(api: Conversation) -> None:
    answers = await asyncio.gather(*(api.post(SERVICES, service(f"s{n}")) for n in range(50)))
    given = [answer.body["spec"]["clusterIP"] for answer in answers]
    assert len(set(given)) == 50
    assert all(ipaddress.ip_address(address) in RANGE for address in given)
    assert answers[0].body["spec"]["clusterIPs"] == [given[0]]


async def test_an_address_may_be_chosen(api: Conversation) -> None:
    assert (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).status == 201
    taken = await api.post(SERVICES, service("t", clusterIP="10.96.0.10"))
    assert (taken.status, taken.body["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs")
    assert "failed to allocate IP 10.96.0.10: provided IP is already allocated" in taken.message
    outside = await api.post(SERVICES, service("t", clusterIP="10.0.0.1"))
    assert "10.0.0.1: the provided network does not match the current range" in outside.message


RANGES, ADDRESSES = "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1/ipaddresses"
MISMATCH = "the provided network does not match the current range"


async def addresses(api: Conversation) -> list[str]:
    return [one["metadata"]["name"] for one in (await api.get(ADDRESSES)).body["items"]]


async def only(api: Conversation, *cidrs: str) -> None:
    """These ranges, and no other."""
    await api.delete(f"{RANGES}/kubernetes")
    for i, cidr in enumerate(cidrs):
        assert (
            await api.post(RANGES, {"metadata": {"name": f"r{i}"}, "spec": {"cidrs": [cidr]}})
        ).status == 201


async def test_each_address_is_an_object_as_long_as_its_service_has_it(api: Conversation) -> None:
    made = (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).body
    address = (await api.get(f"{ADDRESSES}/10.96.0.10")).body
    assert address["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert address["spec"] == {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}
    assert int(address["metadata"]["resourceVersion"]) + 1 == int(made["metadata"]["resourceVersion"])
    external = {"spec": {"type": "ExternalName", "externalName": "a.b", "clusterIP": "", "clusterIPs": None}}
    assert (await api.patch(f"{SERVICES}/s", external)).status == 200
    assert await addresses(api) == []
    again = await api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.11"}})
    assert (again.status, await addresses(api)) == (200, ["10.96.0.11"])
    await api.delete(f"{SERVICES}/s")
    assert await addresses(api) == []


async def test_a_service_that_is_refused_takes_no_address(api: Conversation) -> None:
    await api.post(SERVICES, service(clusterIP="10.96.0.10"))
    for body in (service(clusterIP="10.96.0.11"), service("t", ports=[{"port": 0}])):
        assert (await api.post(SERVICES, body)).status in (409, 422)
    await api.post(f"{SERVICES}?dryRun=All", service("t"))
    await api.patch(f"{SERVICES}/s?dryRun=All", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    await api.delete(f"{SERVICES}/s?dryRun=All")
    assert await addresses(api) == ["10.96.0.10"]


async def test_of_services_that_ask_for_an_address_at_once_one_gets_it(api: Conversation) -> None:
    asked = (api.post(SERVICES, service(f"s{n}", clusterIP="10.96.0.10")) for n in range(5))
    answers = sorted(await asyncio.gather(*asked), key=lambda answer: answer.status)
    assert [answer.status for answer in answers] == [201, 422, 422, 422, 422]
    assert "10.96.0.10: provided IP is already allocated" in answers[1].message


async def test_an_address_that_another_server_took_is_chosen_anew(
    api: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await only(api, "10.97.0.0/29")
    known = ServiceAddresses._is_taken
    parent = {"resource": "services", "namespace": "default", "name": "other"}
    for last in range(1, 6):
        theirs = {"metadata": {"name": f"10.97.0.{last}"}, "spec": {"parentRef": parent}}
        assert (await api.post(ADDRESSES, theirs)).status == 201
    unheard: list[str] = []

    def is_taken(giving: ServiceAddresses, address: str) -> bool:
        if unheard or address == "10.97.0.6":
            return not unheard or known(giving, address)
        unheard.append(address)
        return False

    monkeypatch.setattr(ServiceAddresses, "_is_taken", is_taken)
    made = await api.post(SERVICES, service())
    assert (made.status, made.body["spec"]["clusterIPs"]) == (201, ["10.97.0.6"]), made.body
    assert made.body["metadata"]["managedFields"][0]["operation"] == "Update"
    assert len(unheard) == 1
    assert "10.97.0.6" in await addresses(api)


async def test_a_deleted_service_that_stays_keeps_its_address(api: Conversation) -> None:
    held = service(clusterIP="10.96.0.10")
    held["metadata"]["finalizers"] = ["example.com/a"]
    await api.post(SERVICES, held)
    await api.delete(f"{SERVICES}/s")
    assert await addresses(api) == ["10.96.0.10"]
    await api.patch(f"{SERVICES}/s", {"metadata": {"finalizers": None}})
    assert await addresses(api) == []


async def test_an_address_that_somebody_holds_is_only_marked(api: Conversation) -> None:
    await api.post(SERVICES, service(clusterIP="10.96.0.10"))
    await api.patch(f"{ADDRESSES}/10.96.0.10", {"metadata": {"finalizers": ["example.com/a"]}})
    await api.delete(f"{SERVICES}/s")
    address = (await api.get(f"{ADDRESSES}/10.96.0.10")).body
    assert address["metadata"]["deletionTimestamp"]
    assert "already allocated" in (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).message


async def test_an_address_that_is_gone_is_not_missed(api: Conversation) -> None:
    await api.post(SERVICES, service(clusterIP="10.96.0.10"))
    await api.delete(f"{ADDRESSES}/10.96.0.10")
    assert (await api.delete(f"{SERVICES}/s")).status == 200


async def test_addresses_come_from_every_range_that_is_in_use(api: Conversation) -> None:
    await only(api, "10.1.0.0/30", "10.2.0.0/30", "fd00::/64", "10.3.0.0/31", "10.4.0.0/32")
    given = [(await api.post(SERVICES, service(f"s{n}"))).body["spec"]["clusterIP"] for n in range(4)]
    assert sorted(given) == ["10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"]
    full = await api.post(SERVICES, service())
    why = 'Internal error occurred: failed to allocate a serviceIP for Service "s": range is full'
    assert (full.status, full.message) == (500, why)
    await api.delete(f"{SERVICES}/s2")
    assert (await api.post(SERVICES, service())).body["spec"]["clusterIP"] == given[2]


@pytest.mark.parametrize("condition", [{"status": "False"}, {"status": "Unknown"}])
async def test_a_range_that_is_not_ready_gives_none(api: Conversation, condition: Any) -> None:
    ready = {"status": {"conditions": [{"type": "Ready", **condition}]}}
    assert (await api.patch(f"{RANGES}/kubernetes/status", ready)).status == 200
    assert MISMATCH in (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).message
    assert (await api.post(SERVICES, service())).message.endswith("range is full")
    dry = await api.post(f"{SERVICES}?dryRun=All", service())
    assert dry.message.endswith('Invalid value: [""]: failed to allocate IP: allocator not ready')


async def test_a_range_that_is_being_deleted_gives_none(api: Conversation) -> None:
    await api.patch(f"{RANGES}/kubernetes", {"metadata": {"finalizers": ["example.com/a"]}})
    await api.delete(f"{RANGES}/kubernetes")
    assert (await api.post(SERVICES, service())).message.endswith("range is full")


async def test_the_lower_addresses_are_left_to_people_as_long_as_it_goes(api: Conversation) -> None:
    await only(api, "10.1.0.0/27")
    given = [(await api.post(SERVICES, service(f"s{n}"))).body["spec"]["clusterIP"] for n in range(30)]
    numbers = [int(address.rpartition(".")[2]) for address in given]
    assert sorted(numbers[:14]) == list(range(17, 31))
    assert sorted(numbers[14:]) == list(range(1, 17))


async def test_an_older_podling_kept_no_addresses(api: Conversation) -> None:
    for n in range(3):
        await api.post(SERVICES, service(f"s{n}", clusterIP=f"10.96.0.{n + 10}"))
        await api.delete(f"{ADDRESSES}/10.96.0.{n + 10}")
    await api.post(SERVICES, service("headless", clusterIP="None"))
    await api.restart()
    assert await addresses(api) == ["10.96.0.10", "10.96.0.11", "10.96.0.12"]


async def test_an_address_stays(api: Conversation) -> None:
    made = (await api.post(SERVICES, service())).body
    replaced = await api.put(f"{SERVICES}/s", service(sessionAffinity="ClientIP"))
    assert replaced.body["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    refused = await api.patch(f"{SERVICES}/s", {"spec": {"clusterIP": "10.96.0.77"}})
    assert refused.message == (
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.77"]: may not change once set'
    )
    half = await api.put(f"{SERVICES}/s", service(clusterIP="10.96.0.77"))
    assert half.message == refused.message


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "a.b"}])
async def test_some_have_none(api: Conversation, spec: dict[str, Any]) -> None:
    made = (await api.post(SERVICES, service(**spec))).body
    assert made["spec"].get("clusterIP", "") == spec.get("clusterIP", "")


async def test_node_ports(api: Conversation) -> None:
    made = (await api.post(SERVICES, service(type="NodePort"))).body
    port = made["spec"]["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    kept = (await api.put(f"{SERVICES}/s", service(type="NodePort"))).body
    assert kept["spec"]["ports"][0]["nodePort"] == port
    taken = await api.post(SERVICES, service("t", type="NodePort", ports=[{"port": 1, "nodePort": port}]))
    assert (
        f"spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated" in taken.message
    )
    outside = await api.post(SERVICES, service("t", type="NodePort", ports=[{"port": 1, "nodePort": 80}]))
    assert "The range of valid ports is 30000-32767" in outside.message


async def test_a_full_range_of_node_ports_gives_none_and_keeps_no_address(
    api: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "NODE_PORTS", range(30000, 30003))
    given = [
        (await api.post(SERVICES, service(f"s{n}", type="NodePort"))).body["spec"]["ports"][0]["nodePort"]
        for n in range(3)
    ]
    assert sorted(given) == [30000, 30001, 30002]
    before = (await api.get(ADDRESSES)).body["items"]
    full = await api.post(SERVICES, service(type="NodePort"))
    why = "Internal error occurred: failed to allocate a nodePort: range is full"
    assert (full.status, full.message) == (500, why)
    assert (await api.get(ADDRESSES)).body["items"] == before
    assert (await api.post(SERVICES, service("plain"))).status == 201
    await api.delete(f"{SERVICES}/s1")
    assert (await api.post(SERVICES, service(type="NodePort"))).body["spec"]["ports"][0]["nodePort"] == given[
        1
    ]


async def test_a_number_of_the_nodes_is_shared_by_protocols_of_one_service_only(api: Conversation) -> None:
    both = [{"name": "u", "port": 53, "protocol": "UDP"}, {"name": "t", "port": 53, "nodePort": 30053}]
    made = (await api.post(SERVICES, service(type="NodePort", ports=both))).body
    assert [port["nodePort"] for port in made["spec"]["ports"]] == [30053, 30053]
    other = service("t", type="NodePort", ports=[{"port": 1, "protocol": "SCTP", "nodePort": 30053}])
    assert "provided port is already allocated" in (await api.post(SERVICES, other)).message
    again = [*made["spec"]["ports"], {"name": "w", "port": 54, "nodePort": 30053}]
    twice = await api.patch(f"{SERVICES}/s", {"spec": {"ports": again}})
    assert (twice.status, twice.message) == (500, "duplicate nodePort: {TCP 30053}")
    same = [{"name": "a", "port": 1, "nodePort": 30054}, {"name": "b", "port": 2, "nodePort": 30054}]
    new = await api.post(SERVICES, service("n", type="NodePort", ports=same))
    assert "spec.ports[1].nodePort: Invalid value: 30054: provided port is already allocated" in new.message


async def test_a_load_balancer_may_do_without_numbers_but_those_it_asks_for(api: Conversation) -> None:
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2, "nodePort": 30002}]
    spec: dict[str, Any]
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports}
    made = (await api.post(SERVICES, service(**spec))).body
    assert [port.get("nodePort", 0) for port in made["spec"]["ports"]] == [0, 30002]
    given = (await api.post(SERVICES, service("t", **{**spec, "ports": [{"port": 1}]}))).body
    assert "nodePort" not in given["spec"]["ports"][0]
    taken = await api.post(SERVICES, service("u", **spec))
    assert "spec.ports[1].nodePort: Invalid value: 30002: provided port is already allocated" in taken.message


LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}


async def test_a_local_load_balancer_is_asked_after_its_health_at_a_number_of_its_own(
    api: Conversation,
) -> None:
    made = (await api.post(SERVICES, service(**LOCAL))).body
    number = made["spec"]["healthCheckNodePort"]
    assert 30000 <= number <= 32767 and number != made["spec"]["ports"][0]["nodePort"]
    kept = (await api.put(f"{SERVICES}/s", service(**LOCAL))).body
    assert kept["spec"]["healthCheckNodePort"] == number
    moved = await api.patch(f"{SERVICES}/s", {"spec": {"healthCheckNodePort": 30777}})
    assert moved.message == 'Service "s" is invalid: spec.healthCheckNodePort: Forbidden: field is immutable'
    taken = await api.post(SERVICES, service("t", **LOCAL, healthCheckNodePort=number))
    why = f"failed to allocate requested HealthCheck NodePort {number}: provided port is already allocated"
    assert (taken.status, taken.message) == (500, f"Internal error occurred: {why}")
    as_port = service("t", type="NodePort", ports=[{"port": 1, "nodePort": number}])
    assert (await api.post(SERVICES, as_port)).status == 422
    gone = (await api.patch(f"{SERVICES}/s", {"spec": {"externalTrafficPolicy": "Cluster"}})).body
    assert "healthCheckNodePort" not in gone["spec"]
    assert (await api.post(SERVICES, as_port)).status == 201


async def test_a_service_that_becomes_one_with_an_address_gets_one(api: Conversation) -> None:
    await api.post(SERVICES, service(type="ExternalName", externalName="a.b", ports=[]))
    changed = await api.patch(f"{SERVICES}/s", {"spec": {"type": "NodePort", "ports": [{"port": 1}]}})
    spec = changed.body["spec"]
    assert ipaddress.ip_address(spec["clusterIP"]) in RANGE and spec["ports"][0]["nodePort"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    back = await api.patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName"}})
    assert back.status == 200
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & back.body["spec"].keys()
    assert "nodePort" not in back.body["spec"]["ports"][0]


async def test_families_a_cluster_of_one_has_not_are_refused(api: Conversation) -> None:
    refused = await api.post(SERVICES, service(ipFamilyPolicy="RequireDualStack"))
    assert refused.message == (
        'Service "s" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
        "this cluster is not configured for dual-stack services"
    )
    made = (await api.post(SERVICES, service(ipFamilyPolicy="PreferDualStack"))).body["spec"]
    assert (made["ipFamilies"], made["ipFamilyPolicy"]) == (["IPv4"], "PreferDualStack")


class Standing:
    """One range of both families, and the addresses that are taken."""

    def __init__(self, *taken: str) -> None:
        spec = {"cidrs": ["10.96.0.0/16", "fd00::/112"]}
        self._range = from_data({"metadata": {"name": "kubernetes"}, "spec": spec}, ServiceCIDR)
        self._taken = set(taken)

    def find(self, type: type[Any], namespace: str, name: str) -> Any:
        return IPAddress() if name in self._taken else None

    def all(self, type: type[Any], namespace: str = "") -> list[Any]:
        return [self._range] if type is ServiceCIDR else []


async def settled(new: Service, old: Service | None = None, *taken: str) -> list[str]:
    standing: Any = Standing(*taken)
    operation: Operation = "CREATE" if old is None else "UPDATE"
    attributes = Attributes(operation, resource_of(Service), "", "ns", "s", User("ann"), "services", Itself())
    await ServiceAddresses(standing, ("IPv4", "IPv6")).admit(attributes, new, old)
    return [family(address) for address in new.spec.cluster_ips]


async def test_of_both_families_each_service_gets_what_it_asks_for() -> None:
    def made(**spec: Any) -> Service:
        return from_data(service(**spec), Service)

    assert await settled(made()) == ["IPv4"]
    assert await settled(made(ipFamilies=["IPv6"])) == ["IPv6"]
    old = made(ipFamilyPolicy="RequireDualStack")
    assert await settled(old) == ["IPv4", "IPv6"]
    one = made(ipFamilyPolicy="SingleStack")
    assert await settled(one, old) == ["IPv4"]
    more = made(ipFamilyPolicy="PreferDualStack")
    assert await settled(more, one) == ["IPv4", "IPv6"]
    assert more.spec.cluster_ip == one.spec.cluster_ip == old.spec.cluster_ip
    asked = made(
        ipFamilyPolicy="RequireDualStack", clusterIP="10.96.0.7", clusterIPs=["10.96.0.7", "fd00::7"]
    )
    with pytest.raises(StatusError, match="failed to allocate IP fd00::7: provided IP is already allocated"):
        await settled(asked, None, "fd00::7")
