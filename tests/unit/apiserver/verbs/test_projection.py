"""R-SYS-1: an object is scaled by what shows a part of it, whichever way that is patched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{DEPLOYMENTS}/d/scale"
LABELS = {"a": "b"}
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
SCALED = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}


@pytest.fixture
async def deployment(api: Conversation) -> Any:
    return (await api.post(DEPLOYMENTS, DEPLOYMENT)).body


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("merge-patch", {"spec": {"replicas": 3}}),
        ("strategic-merge-patch", {"spec": {"replicas": 3}}),
        ("json-patch", [{"op": "replace", "path": "/spec/replicas", "value": 3}]),
    ],
)
async def test_each_type(api: Conversation, deployment: Any, kind: str, body: Any) -> None:
    assert (await api.patch(SCALE, body, kind)).body["spec"] == {"replicas": 3}
    assert (await api.get(f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 3


async def test_an_applied_scale_is_its_managers(api: Conversation, deployment: Any) -> None:
    as_yaml = {"Content_Type": "application/apply-patch+yaml"}
    refused = await api.say("PATCH", f"{SCALE}?fieldManager=m", SCALED, **as_yaml)
    assert refused.status == 409
    answer = await api.say("PATCH", f"{SCALE}?fieldManager=m&force=true", SCALED, **as_yaml)
    assert answer.body["spec"] == {"replicas": 3}
    managers = (await api.get(f"{DEPLOYMENTS}/d")).body["metadata"]["managedFields"]
    mine = next(entry for entry in managers if entry["manager"] == "m")
    assert (mine["operation"], mine["subresource"]) == ("Apply", "scale")
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}}}


async def test_unknown_fields_are_told_or_refused(api: Conversation, deployment: Any) -> None:
    patch = {"spec": {"replicas": 2, "unknown": 1}}
    assert (await api.patch(f"{SCALE}?fieldValidation=Strict", patch, "merge-patch")).status == 422
    assert (await api.patch(f"{SCALE}?force=true", patch, "merge-patch")).status == 422
    answer = await api.patch(SCALE, patch, "merge-patch")
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.unknown\\""'
