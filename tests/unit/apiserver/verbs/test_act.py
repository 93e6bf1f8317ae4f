"""R-SYS-1: subresources that act on a pod: binding and eviction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
P = f"{PODS}/p"
BINDING = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}


@pytest.fixture
async def pod(api: Conversation) -> Any:
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    return (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).body


async def test_binding_gives_the_pod_its_node(api: Conversation, pod: Any) -> None:
    answer = await api.post(f"{P}/binding", BINDING)
    assert answer.status == 201 and answer.body["status"] == "Success"
    bound = (await api.get(P)).body
    assert bound["spec"]["nodeName"] == "n"
    conditions = {c["type"]: c["status"] for c in bound["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"
    assert bound["metadata"]["generation"] == 1


async def test_a_pod_is_bound_once(api: Conversation, pod: Any) -> None:
    await api.post(f"{P}/binding", BINDING)
    again = await api.post(f"{P}/binding", BINDING)
    assert again.status == 409 and "already assigned to node" in again.message


async def test_eviction_deletes(api: Conversation, pod: Any) -> None:
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}}
    assert (await api.post(f"{P}/eviction", body)).status == 201
    assert (await api.get(P)).status == 404


@pytest.mark.parametrize(("action", "kind"), [("binding", "Binding"), ("eviction", "Eviction")])
@pytest.mark.parametrize("name", ["p", "none"])
async def test_what_is_done_to_a_pod_names_it(
    api: Conversation, pod: Any, action: str, kind: str, name: str
) -> None:
    rest = {"target": BINDING["target"]} if action == "binding" else {}
    metadata: dict[str, str]
    for metadata in ({}, {"name": ""}, {"name": "q"}, {"generateName": "p"}):
        answer = await api.post(f"{PODS}/{name}/{action}", {**rest, "metadata": metadata})
        assert (answer.status, answer.message) == (400, f"name in URL does not match name in {kind} object")
    elsewhere = {**rest, "metadata": {"name": name, "namespace": "elsewhere"}}
    answer = await api.post(f"{PODS}/{name}/{action}", elsewhere)
    assert answer.status == 400 and "does not match the namespace sent on the request" in answer.message
    assert "nodeName" not in (await api.get(P)).body["spec"]


async def test_refusals(api: Conversation, pod: Any) -> None:
    assert (await api.get(f"{P}/binding")).status == 405
    assert (await api.post(f"{PODS}/q/binding", {**BINDING, "metadata": {"name": "q"}})).status == 404
    assert (await api.post(f"{P}/binding", {**BINDING, "metadata": {"name": "q"}})).status == 400
    assert (await api.post(f"{P}/novel", {})).status == 404
