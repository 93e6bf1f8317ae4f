"""R-EPH-9: what is asked and answered is counted, under Kubernetes' names, for `/metrics`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Body, Response
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

Sample = tuple[str, dict[str, str], float]


async def samples(api: Conversation) -> list[Sample]:
    answer = await api.get("/metrics")
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    return list(_samples(answer.body.decode()))


def _samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def value(found: list[Sample], name: str, **labels: str) -> float:
    return sum(v for n, has, v in found if n == name and labels.items() <= has.items())


async def test_a_use_of_ephemeral_containers_is_counted(api: Conversation) -> None:
    await api.post(PODS, POD)
    added = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    assert (await api.patch(f"{PODS}/a/ephemeralcontainers", added, "strategic-merge-patch")).status == 200
    found = await samples(api)
    labels = {"resource": "pods", "subresource": "ephemeralcontainers"}
    assert value(found, "apiserver_request_total", **labels) == 1
    (series,) = [
        has for n, has, _ in found if n == "apiserver_request_total" and labels.items() <= has.items()
    ]
    assert series == {
        "verb": "PATCH",
        "group": "",
        "version": "v1",
        **labels,
        "scope": "resource",
        "dry_run": "",
        "component": "apiserver",
        "code": "200",
    }


@pytest.mark.parametrize(
    ("method", "target", "labels"),
    [
        ("GET", f"{PODS}/a", {"verb": "GET", "scope": "resource", "code": "404"}),
        ("GET", PODS, {"verb": "LIST", "scope": "namespace", "code": "200"}),
        ("GET", "/api/v1/pods", {"verb": "LIST", "scope": "cluster", "code": "200"}),
        ("GET", f"{PODS}?watch=1", {"verb": "WATCH", "scope": "namespace", "code": "200"}),
        ("POST", f"{PODS}?dryRun=All", {"verb": "POST", "dry_run": "All", "code": "400"}),
        ("DELETE", PODS, {"verb": "DELETECOLLECTION", "scope": "namespace", "code": "200"}),
        ("GET", f"{PODS}/a/exec", {"verb": "CONNECT", "subresource": "exec", "code": "404"}),
    ],
)
async def test_verbs_and_scopes(api: Conversation, method: str, target: str, labels: dict[str, str]) -> None:
    response = await api.raw(method, target)
    if isinstance(response.body, AsyncGenerator):
        await response.body.aclose()
    found = await samples(api)
    assert value(found, "apiserver_request_total", resource="pods", **labels) == 1


async def test_server_side_apply_is_a_verb_of_its_own(api: Conversation) -> None:
    await api.raw("PATCH", f"{PODS}/a", b"{}", Content_Type="application/apply-patch+yaml")
    assert value(await samples(api), "apiserver_request_total", verb="APPLY") == 1


async def test_what_is_not_served_gets_no_label_of_its_own(api: Conversation) -> None:
    """Strangers must not be able to fill the memory with names."""
    await api.raw("GET", "/api/v1/nonsense")
    await api.raw("BREW", "/coffee")
    found = await samples(api)
    assert not any("nonsense" in has.values() for _, has, _ in found)
    assert value(found, "apiserver_request_total", verb="GET", resource="", code="404") == 1
    assert value(found, "apiserver_request_total", verb="other") == 1


async def test_durations(api: Conversation) -> None:
    await api.get(PODS)
    found = await samples(api)
    named = {"resource": "pods", "verb": "LIST"}
    assert value(found, "apiserver_request_duration_seconds_count", **named) == 1
    assert value(found, "apiserver_request_duration_seconds_bucket", le="+Inf", **named) == 1
    assert 0 < value(found, "apiserver_request_duration_seconds_sum", **named) < 60
    assert value(found, "apiserver_request_duration_seconds_count", verb="WATCH") == 0


async def test_requests_in_flight_are_seen_and_forgotten(api: Conversation) -> None:
    found = await samples(api)
    assert value(found, "apiserver_current_inflight_requests", request_kind="readOnly") == 1
    assert value(found, "apiserver_current_inflight_requests", request_kind="mutating") == 0


async def test_a_client_that_leaves_is_not_in_flight_for_ever(
    api: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never() -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(api.storage, "probe", never)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(api.get("/livez"))
        await asked.wait()
        assert value(await samples(api), "apiserver_current_inflight_requests") == 2
        asking.cancel()
    found = await samples(api)
    assert value(found, "apiserver_current_inflight_requests") == 1
    assert value(found, "apiserver_request_total", code="499") == 1


async def test_watches_and_their_events(api: Conversation) -> None:
    async with await api.watch(f"{PODS}?watch=1") as watched:
        await api.post(PODS, POD)
        await watched.names(1)
        found = await samples(api)
        assert value(found, "apiserver_longrunning_requests", verb="WATCH", resource="pods") == 1
        assert value(found, "apiserver_watch_events_total", resource="pods", version="v1") == 1
    found = await samples(api)
    assert value(found, "apiserver_longrunning_requests", resource="pods") == 0
    assert value(found, "apiserver_watch_events_total", resource="pods") == 1


class Waits:
    """A connection that lasts until it is let go."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        await self.end.wait()
        return web.StreamResponse()


async def line() -> AsyncGenerator[bytes, None]:
    yield b"line"


async def connected(api: Conversation, subresource: str, body: Body) -> Body:
    """To a pod of a server that connects whoever asks to `body`."""

    async def connect(context: RequestContext, pod: Pod) -> Response:
        return Response(101, body)

    api.connector = connect
    await api.restart()
    await api.post(PODS, POD)
    return (await api.raw("GET", f"{PODS}/a/{subresource}")).body


async def test_connections_are_open_until_they_end(api: Conversation) -> None:
    waits = Waits()
    body = await connected(api, "exec", waits)
    assert not isinstance(body, bytes | AsyncGenerator)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(body.run(make_mocked_request("GET", "/")))
        await asyncio.sleep(0)
        found = await samples(api)
        assert value(found, "apiserver_longrunning_requests", verb="CONNECT", subresource="exec") == 1
        waits.end.set()
    assert value(await samples(api), "apiserver_longrunning_requests", verb="CONNECT") == 0


async def test_logs_are_open_until_they_are_closed(api: Conversation) -> None:
    body = await connected(api, "log", line())
    assert isinstance(body, AsyncGenerator)
    assert await anext(body) == b"line"
    assert value(await samples(api), "apiserver_longrunning_requests", subresource="log") == 1
    await body.aclose()
    assert value(await samples(api), "apiserver_longrunning_requests", subresource="log") == 0


async def test_objects_and_the_process(api: Conversation) -> None:
    await api.post(PODS, POD)
    found = await samples(api)
    assert value(found, "apiserver_storage_objects", resource="pods") == 1
    assert value(found, "apiserver_storage_objects", resource="leases.coordination.k8s.io") == 0
    assert value(found, "apiserver_resource_objects", group="", resource="pods") == 1
    assert value(found, "apiserver_resource_objects", group="coordination.k8s.io", resource="leases") == 0
    assert value(found, "process_resident_memory_bytes") > 1e6


async def test_metrics_need_an_identity(api: Conversation) -> None:
    api.user = None
    assert (await api.get("/metrics")).status == 403


async def test_others_add_theirs(api: Conversation) -> None:
    api.server.metrics.add(lambda: [GaugeMetricFamily("podling_test", "A test.", 7)])
    assert value(await samples(api), "podling_test") == 7
