"""R-SYS-6: every service has an address of its own."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any

import pytest

SERVICES = "/api/v1/namespaces/default/services"
RANGE = ipaddress.ip_network("10.96.0.0/16")


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_addresses_are_given_once(api: Any) -> None:
    answers = await asyncio.gather(*(api.post(SERVICES, service(f"s{n}")) for n in range(50)))
    given = [answer.body["spec"]["clusterIP"] for answer in answers]
    assert len(set(given)) == 50
    assert all(ipaddress.ip_address(address) in RANGE for address in given)
    assert answers[0].body["spec"]["clusterIPs"] == [given[0]]


async def test_an_address_may_be_chosen(api: Any) -> None:
    assert (await api.post(SERVICES, service(clusterIP="10.96.0.10"))).status == 201
    taken = await api.post(SERVICES, service("t", clusterIP="10.96.0.10"))
    assert (taken.status, taken.body["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs")
    assert "failed to allocate IP 10.96.0.10: provided IP is already allocated" in taken.message
    outside = await api.post(SERVICES, service("t", clusterIP="10.0.0.1"))
    assert "the provided IP (10.0.0.1) is not in the valid range" in outside.message


async def test_an_address_stays(api: Any) -> None:
    made = (await api.post(SERVICES, service())).body
    replaced = await api.put(f"{SERVICES}/s", service(sessionAffinity="ClientIP"))
    assert replaced.body["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    refused = await api.put(f"{SERVICES}/s", service(clusterIP="10.96.0.77"))
    assert "may not change once set" in refused.message


@pytest.mark.parametrize("spec", [{"clusterIP": "None"}, {"type": "ExternalName", "externalName": "a.b"}])
async def test_some_have_none(api: Any, spec: dict[str, Any]) -> None:
    made = (await api.post(SERVICES, service(**spec))).body
    assert made["spec"].get("clusterIP", "") == spec.get("clusterIP", "")


async def test_node_ports(api: Any) -> None:
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
