"""What other servers have is told of beside what this one has, as long as they say it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podling.apiserver.aggregation import inquiry
from podling.apiserver.aggregation.inquiry import Said, fault_of
from podling.apiserver.aggregation.merging import age
from podling.apiserver.aggregation.passing import Aggregation
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery, items_of
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.model.codec.json import from_data
from podling.model.types.apiregistration import APIService
from podling.streaming.upgrade import Address

GROUP = "a.test"
NAME = ("", f"v1.{GROUP}")
RESOURCE = {"resource": "things", "scope": "Cluster", "singularResource": "thing", "verbs": ["get"]}
TOLD = {
    "items": [
        {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [RESOURCE]}]}
        for name in (GROUP, "b.test")
    ]
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Near(Aggregation):
    """Its one server says what it is told to; `asked` has the paths and the ETags."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, least: int = 100) -> None:
        objects: Any = None
        super().__init__(objects, None)
        self.discovery = Discovery(KINDS, "1")
        self.says: dict[str, Said] = {}
        self.asked: list[tuple[str, str]] = []
        self.least = least
        self.silent = ""
        monkeypatch.setattr(inquiry, "ask", self._ask)

    async def address(self, service: APIService) -> Address:
        return Address("192.0.2.1", 443)

    async def _ask(self, address: Address, url: Any, headers: dict[str, str], most: int = 1) -> Said:
        if most:
            self.asked.append((url.path, headers.get("If-None-Match", "")))
        if url.path == self.silent:
            raise TimeoutError
        return self.says.get(url.path, Said(404, "", b""))

    def have(self, status: str = "True") -> APIService:
        spec = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": self.least,
            "service": {"namespace": "n", "name": "s"},
        }
        condition = {"type": "Available", "status": status}
        found = {"metadata": {"name": NAME[1]}, "spec": spec, "status": {"conditions": [condition]}}
        service = from_data(found, APIService)
        self.changed(NAME, service, APIService)
        return service

    def told(self) -> Any:
        assert self.discovery is not None
        items = json.loads(self.discovery._aggregated["/apis"].body)["items"]
        return {one["metadata"]["name"]: one["versions"] for one in items}


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Near:
    near = Near(monkeypatch)
    near.says[f"/apis/{GROUP}/v1"] = Said(200, "application/json", b'{"resources":[]}')
    near.says["/apis"] = Said(200, AGGREGATED, json.dumps(TOLD).encode(), '"e"')
    return near


STALE = [{"version": "v1", "freshness": "Stale"}]
FRESH = [{"version": "v1", "resources": [RESOURCE], "freshness": "Current"}]


async def test_it_is_told_what_a_server_says_while_it_is_available(near: Near) -> None:
    service = near.have()
    assert near.told()[GROUP] == STALE
    assert await fault_of(near, service) == ""
    assert near.told()[GROUP] == FRESH
    assert "b.test" not in near.told()
    near.have("False")
    assert near.told()[GROUP] == STALE
    near.have()
    assert near.told()[GROUP] == FRESH
    near.says.clear()
    assert await fault_of(near, service)
    assert near.told()[GROUP] == STALE


async def test_who_does_not_describe_itself_is_told_of_all_the_same(near: Near) -> None:
    service = near.have()
    near.silent = "/openapi/v3"
    await fault_of(near, service)
    assert near.told()[GROUP] == FRESH
    near.silent = "/apis"
    await fault_of(near, service)
    assert near.told()[GROUP] == STALE


async def test_a_server_says_only_what_has_changed(near: Near) -> None:
    service = near.have()
    await fault_of(near, service)
    near.says["/apis"] = Said(304, "", b"")
    await fault_of(near, service)
    assert [one for one in near.asked if one[0] == "/apis"] == [("/apis", ""), ("/apis", '"e"')]
    assert near.told()[GROUP] == FRESH


@pytest.mark.parametrize(
    "said", [Said(500, "", b""), Said(200, AGGREGATED, b"-"), Said(200, AGGREGATED, b'{"items":3}')]
)
async def test_what_is_no_discovery_is_not_told(near: Near, said: Said) -> None:
    service = near.have()
    near.says["/apis"] = said
    near.says[f"/apis/{GROUP}/v1"] = Said(200, "", b"-")
    assert await fault_of(near, service) == ""
    assert near.told()[GROUP] == STALE


async def test_the_older_form_is_understood(near: Near) -> None:
    del near.says["/apis"]
    of_scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    scale = {"name": "things/scale", **of_scale, "verbs": ["get"]}
    thing = {"name": "things", "singularName": "thing", "kind": "Thing", "namespaced": True, "verbs": ["get"]}
    listed = json.dumps({"resources": [scale, thing]}).encode()
    near.says[f"/apis/{GROUP}/v1"] = Said(200, "application/json", listed)
    await fault_of(near, near.have())
    [version] = near.told()[GROUP]
    [told] = version["resources"]
    assert (told["resource"], told["scope"], told["singularResource"]) == ("things", "Namespaced", "thing")
    assert told["responseKind"] == {"group": "", "version": "", "kind": "Thing"}
    [below] = told["subresources"]
    assert below["responseKind"] == of_scale


@pytest.mark.parametrize(
    ("said", "url"),
    [
        (b'{"paths":{"apis/a.test/v1":{"serverRelativeURL":"/x?hash=1"},"version":{}}}', "/x?hash=1"),
        (b'{"paths":{"version":{"serverRelativeURL":"/x"}}}', ""),
        (b'{"paths":[]}', ""),
    ],
)
async def test_it_is_known_where_a_server_describes_itself(near: Near, said: bytes, url: str) -> None:
    openapi = near.openapi = OpenAPI(KINDS, "1")
    near.says["/openapi/v3"] = Said(200, "application/json", said)
    await fault_of(near, near.have())
    assert openapi.elsewhere == ({f"apis/{GROUP}/v1": url} if url else {})
    assert (near.passes(f"/openapi/v3/apis/{GROUP}/v1") is not None) == bool(url)
    assert near.passes("/openapi/v3/apis/apps/v1") is None
    near.have("False")
    assert not openapi.elsewhere


async def test_all_is_as_before_when_it_is_gone(near: Near) -> None:
    discovery = near.discovery
    assert discovery is not None
    before = dict(discovery._documents), sorted(discovery.paths)
    near.have()
    assert {f"/apis/{GROUP}", f"/apis/{GROUP}/v1"} == {*discovery.paths} - {*before[1]}
    near.changed(NAME, None, APIService)
    assert (discovery._documents, sorted(discovery.paths)) == before
    assert list(near.told()) == [one["metadata"]["name"] for one in items_of(discovery.versions, core=False)]


@pytest.mark.parametrize(("least", "place"), [(20000, 1), (17790, 2), (1, -1)])
def test_groups_are_in_the_order_of_their_priorities(
    monkeypatch: pytest.MonkeyPatch, least: int, place: int
) -> None:
    near = Near(monkeypatch, least)
    near.have()
    names = list(near.told())
    assert names.index(GROUP) == place % len(names)


def test_versions_are_in_the_order_of_their_age() -> None:
    ordered = ["v10", "v2", "v1", "v3beta1", "v1beta2", "v1beta1", "v12alpha1", "a", "v01", "v1gamma1"]
    assert sorted(set(ordered), key=age) == ordered
