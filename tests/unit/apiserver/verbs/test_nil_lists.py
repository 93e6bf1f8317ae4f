"""R-SYS-1: stored objects say `null` where Go would, however they are read, and go on as if it were `[]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def managed(obj: Any) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


async def test_a_role_without_rules(api: Conversation) -> None:
    made = await api.post(f"{ROLES}?fieldManager=maker", {"metadata": {"name": "r"}, "rules": []})
    assert (made.status, made.body["rules"]) == (201, None)
    assert (await api.get(f"{ROLES}/r")).body == made.body
    assert [item["rules"] for item in (await api.get(ROLES)).body["items"]] == [None]
    async with await api.watch(f"{ROLES}?watch=true") as watch:
        assert (await watch.next())["object"] == made.body
    again = await api.put(f"{ROLES}/r?fieldManager=other", made.body)
    assert again.body["metadata"]["resourceVersion"] == made.body["metadata"]["resourceVersion"]


async def test_who_changes_something_else_does_not_manage_it(api: Conversation) -> None:
    await api.post(f"{ROLES}?fieldManager=maker", {"metadata": {"name": "r", "labels": {"c": "d"}}})
    label = {"metadata": {"labels": {"a": "b"}}}
    patched = (await api.patch(f"{ROLES}/r?fieldManager=other", label)).body
    assert patched["rules"] is None
    assert managed(patched)["other"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    patched = (await api.patch(f"{ROLES}/r", {"rules": [rule]}, "strategic-merge-patch")).body
    assert patched["rules"] == [rule]
    emptied = (await api.patch(f"{ROLES}/r", [{"op": "remove", "path": "/rules/0"}], "json-patch")).body
    assert emptied["rules"] is None


async def test_a_slice_of_nothing(api: Conversation) -> None:
    made = await api.post(SLICES, {"metadata": {"name": "s"}, "addressType": "IPv4"})
    assert (made.body["endpoints"], made.body["ports"]) == (None, None)
    table = await api.get(f"{SLICES}/s", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.body["rows"][0]["cells"][:4] == ["s", "IPv4", "<unset>", "<unset>"]
    await api.restart()
    assert (await api.get(f"{SLICES}/s")).body == made.body


async def test_what_is_answered_and_not_kept_has_its_empty_lists(api: Conversation) -> None:
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = await api.post(reviews, {"spec": {"namespace": "default"}})
    assert isinstance(answer.body["status"]["resourceRules"], list)
    assert isinstance(answer.body["status"]["nonResourceRules"], list)
