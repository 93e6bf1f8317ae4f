"""R-SYS-1: what is asked for and never stored: the parts of the cluster, and bindings by their older path."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.observe import components
from podling.apiserver.observe.components import Components, component
from podling.storage.memory import MemoryStorage
from ports import free_port

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PARTS, PODS = "/api/v1/componentstatuses", "/api/v1/namespaces/default/pods"
BINDINGS = "/api/v1/namespaces/default/bindings"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def told(parts: Components, name: str) -> tuple[str, str]:
    health = (await component(name, parts[name])).conditions[0]
    return health.status, health.message


async def test_what_runs_in_this_process_is_as_healthy_as_it_is() -> None:
    storage = MemoryStorage()
    parts = components.components(storage, is_whole=True)
    assert {name: await told(parts, name) for name in parts} == {
        "controller-manager": ("True", "ok"),
        "scheduler": ("True", "ok"),
        "etcd-0": ("True", "ok"),
    }


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nok", "True", "ok"),
        (b"HTTP/1.1 500 Internal Server Error\r\nA: b\r\n\r\nill", "False", "ill"),
        (b"", "False", "0 bytes read on a total of undefined expected bytes"),
        (b"nonsense\r\n\r\n", "False", "not enough values to unpack (expected at least 2, got 1)"),
    ],
)
async def test_what_a_part_answers(
    answer: bytes, status: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, components.HOST)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setattr(components, "PORTS", {"scheduler": port})
    monkeypatch.setattr(components, "connecting_context", lambda verify: None)
    async with server:
        said = await told(components.components(MemoryStorage(), is_whole=False), "scheduler")
    assert said[0] == status and said[1].endswith(message), said


async def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(components, "PORTS", {"scheduler": port})
    said = await told(components.components(MemoryStorage(), is_whole=False), "scheduler")
    url = f"https://127.0.0.1:{port}/healthz"
    assert said == ("False", f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused')


async def test_parts_are_got_and_listed_and_not_watched(api: Conversation) -> None:
    one = await api.get(f"{PARTS}/etcd-0")
    health = {"type": "Healthy", "status": "True", "message": "ok"}
    assert one.body["conditions"] == [health] and one.body["metadata"] == {"name": "etcd-0"}
    assert "deprecated" in one.headers["Warning"]
    listed = await api.get(f"{PARTS}?fieldSelector=metadata.name%3Detcd-0")
    assert listed.body["items"] == [{"metadata": {"name": "etcd-0"}, "conditions": [health]}]
    table = await api.get(f"{PARTS}/etcd-0", **TABLE)
    assert table.body["rows"][0]["cells"] == ["etcd-0", "Healthy", "ok", ""]
    missing = await api.get(f"{PARTS}/no")
    assert missing.message == 'componentstatus "no" not found'
    assert (await api.get(f"{PARTS}?watch=1")).status == 405


def binding(name: str, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": "n"}}


async def test_a_binding_names_its_pod_itself(api: Conversation) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert (await api.post(BINDINGS, binding(""))).message == "Name parameter required."
    assert (await api.post(BINDINGS, binding("a/b"))).status == 400
    assert (await api.post(BINDINGS, binding("no"))).status == 404
    bound = await api.post(BINDINGS, binding("p", uid="another", labels={"a": "b"}))
    assert (bound.status, bound.body["status"]) == (201, "Success")
    pod = (await api.get(f"{PODS}/p")).body
    assert (pod["spec"]["nodeName"], pod["metadata"]["labels"]) == ("n", {"a": "b"})
    assert (await api.post(BINDINGS, binding("p"))).status == 409
    assert (await api.get(BINDINGS)).status == 405
    assert (await api.get("/api/v1/bindings")).status == 404
