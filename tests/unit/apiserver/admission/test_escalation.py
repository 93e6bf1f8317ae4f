"""R-SYS-4: nobody gives away rights that they do not have; in Kubernetes' words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.request.request import User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
READS_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
DELETES_PODS = {"verbs": ["delete"], "apiGroups": [""], "resources": ["pods"]}
WRITES_ROLES = {
    "verbs": ["create", "update", "patch", "get"],
    "apiGroups": [GROUP],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
}
EVE = User("eve", ("devs",))
MISSING = 'user "eve" (groups=["devs"]) is attempting to grant RBAC permissions not currently held:\n'
DELETING = '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'


def bound(name: str, role: str, user: str = "eve") -> dict[str, Any]:
    ref = {"kind": "ClusterRole", "name": role, "apiGroup": GROUP}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": [{"kind": "User", "name": user}]}


async def begin(api: Conversation, *rules: dict[str, Any]) -> None:
    for name, body in (("writer", [WRITES_ROLES, READS_PODS, *rules]), ("deleter", [DELETES_PODS])):
        made = await api.post(ROLES, {"metadata": {"name": name}, "rules": body})
        assert made.status == 201
    assert (await api.post(BINDINGS, bound("writer", "writer"))).status == 201
    api.user = EVE


async def test_a_role_has_only_what_its_writer_has(api: Conversation) -> None:
    await begin(api)
    held = {"metadata": {"name": "held"}, "rules": [READS_PODS]}
    assert (await api.post(ROLES, held)).status == 201
    more = {"metadata": {"name": "more"}, "rules": [READS_PODS, DELETES_PODS]}
    said = f'clusterroles.{GROUP} "more" is forbidden: {MISSING}{DELETING}'
    for answer in (await api.post(ROLES, more), await api.put(f"{ROLES}/more", more)):
        assert (answer.status, answer.message) == (403, said)
    held["rules"] = more["rules"]
    for answer in (
        await api.put(f"{ROLES}/held", held),
        await api.patch(f"{ROLES}/held", {"rules": held["rules"]}),
    ):
        assert (answer.status, answer.message) == (403, said.replace("more", "held"))


async def test_who_holds_it_in_a_namespace_gives_it_away_there(api: Conversation) -> None:
    await begin(api)
    api.user = User("root", ("system:masters",))
    there = f"{RBAC}/namespaces/default/rolebindings"
    assert (await api.post(there, bound("deleter", "deleter"))).status == 201
    api.user = EVE
    role = {"metadata": {"name": "r"}, "rules": [DELETES_PODS]}
    assert (await api.post(f"{RBAC}/namespaces/default/roles", role)).status == 201
    assert (await api.post(f"{RBAC}/namespaces/other/roles", role)).status == 403
    assert (await api.post(ROLES, role)).status == 403
    assert (await api.post(there, bound("again", "deleter", "bob"))).status == 201
    assert (await api.post(BINDINGS, bound("again", "deleter", "bob"))).status == 403


async def test_who_may_escalate_is_not_asked(api: Conversation) -> None:
    may = {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["clusterroles"], "resourceNames": ["x"]}
    await begin(api, may)
    role = {"metadata": {"name": "x"}, "rules": [DELETES_PODS]}
    assert (await api.post(ROLES, role)).status == 403, "a new role has no name yet"
    assert (await api.put(f"{ROLES}/x", role)).status == 201


async def test_who_may_bind_a_role_is_not_asked(api: Conversation) -> None:
    may = {
        "verbs": ["bind"],
        "apiGroups": [GROUP],
        "resources": ["clusterroles"],
        "resourceNames": ["deleter", "gone"],
    }
    await begin(api, may)
    assert (await api.post(BINDINGS, bound("b", "deleter", "bob"))).status == 201
    assert (await api.post(BINDINGS, bound("c", "gone", "bob"))).status == 201
    answer = await api.post(BINDINGS, bound("d", "not-there", "bob"))
    assert (answer.status, answer.message) == (404, f'clusterrolebindings.{GROUP} "not-there" not found')


async def test_bound_is_only_what_one_holds(api: Conversation) -> None:
    await begin(api)
    said = f'clusterrolebindings.{GROUP} "b" is forbidden: {MISSING}{DELETING}'
    answer = await api.post(BINDINGS, bound("b", "deleter"))
    assert (answer.status, answer.message) == (403, said)
    assert (await api.post(BINDINGS, bound("b", "writer", "bob"))).status == 201


async def test_only_who_may_do_everything_aggregates(api: Conversation) -> None:
    await begin(api)
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    answer = await api.post(ROLES, {"metadata": {"name": "a"}, "aggregationRule": rule})
    assert answer.status == 403
    assert answer.message.endswith("must have cluster-admin privileges to use the aggregationRule")


async def test_an_owner_goes_without_asking(api: Conversation) -> None:
    await begin(api)
    held = {"metadata": {"finalizers": ["a/b"]}}
    assert (await api.patch(f"{ROLES}/deleter", held)).status == 200
    assert (await api.patch(f"{ROLES}/deleter", {"metadata": {"labels": {"a": "b"}}})).status == 403


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_what_is_reached_by_get_needs_create(api: Conversation, subresource: str) -> None:
    resource = f"pods/{subresource}"
    await begin(api, {"verbs": ["get"], "apiGroups": [""], "resources": [resource]})
    answer = await api.get(f"/api/v1/namespaces/default/pods/p/{subresource}")
    assert (answer.status, answer.message) == (403, 'pods "p" is forbidden: ')


async def test_one_object_can_be_waited_for(api: Conversation) -> None:
    rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}
    await begin(api, rule)
    configs = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D"
    assert (await api.get(f"{configs}a")).status == 200
    refused = await api.get(f"{configs}b")
    assert refused.status == 403 and refused.message.startswith('configmaps "b" is forbidden')
    assert (await api.get(f"{configs}a,=,")).status == 200
