"""R-SYS-4: the roles and bindings that every cluster has, after each start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.request.request import User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE, BINDING = f"{RBAC}/clusterroles/system:discovery", f"{RBAC}/clusterrolebindings/system:discovery"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
OTHER = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
REF = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io"}


async def names(api: Conversation, plural: str) -> list[str]:
    return [one["metadata"]["name"] for one in (await api.get(f"{RBAC}/{plural}")).body["items"]]


async def test_every_binding_has_its_role(api: Conversation) -> None:
    await api.server.have_default_roles()
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    assert [len(await names(api, kind)) for kind in kinds] == [72, 56, 8, 8]
    for bindings, roles in (("clusterrolebindings", "clusterroles"), ("rolebindings", "roles")):
        found = (await api.get(f"{RBAC}/{bindings}")).body["items"]
        assert {one["roleRef"]["name"] for one in found} <= set(await names(api, roles))
    meta = (await api.get(ROLE)).body["metadata"]
    assert (meta["labels"], meta["annotations"]) == (
        {"kubernetes.io/bootstrapping": "rbac-defaults"},
        {AUTOUPDATE: "true"},
    )
    assert meta["managedFields"][0]["manager"] == "kube-apiserver"


async def test_a_start_writes_nothing_that_is_there(api: Conversation) -> None:
    await api.server.have_default_roles()
    before = api.storage.revision
    await api.server.have_default_roles()
    assert api.storage.revision == before


async def test_what_is_missing_comes_back_and_what_was_added_stays(api: Conversation) -> None:
    await api.server.have_default_roles()
    wanted = (await api.get(ROLE)).body["rules"]
    ann = {"kind": "User", "name": "ann", "apiGroup": REF["apiGroup"]}
    await api.patch(ROLE, {"rules": [OTHER], "metadata": {"labels": {"kubernetes.io/bootstrapping": "mine"}}})
    await api.patch(BINDING, {"subjects": [ann]})
    await api.delete(f"{RBAC}/clusterroles/view")
    await api.server.have_default_roles()
    role: Any = (await api.get(ROLE)).body
    assert role["rules"][0] == OTHER
    added = {url for rule in role["rules"][1:] for url in rule["nonResourceURLs"]}
    assert added == {url for rule in wanted for url in rule["nonResourceURLs"]}
    assert role["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "mine"}
    assert [one["name"] for one in (await api.get(BINDING)).body["subjects"]] == [
        "ann",
        "system:authenticated",
    ]
    assert "view" in await names(api, "clusterroles")


async def test_a_binding_of_another_role_is_made_again(api: Conversation) -> None:
    other = {"metadata": {"name": "system:discovery"}, "roleRef": {**REF, "name": "view"}, "subjects": []}
    assert (await api.post(f"{RBAC}/clusterrolebindings", other)).status == 201
    await api.server.have_default_roles()
    assert (await api.get(BINDING)).body["roleRef"]["name"] == "system:discovery"


async def test_what_says_so_is_left_alone(api: Conversation) -> None:
    kept = {"metadata": {"name": "system:discovery", "annotations": {AUTOUPDATE: "false"}}, "rules": []}
    assert (await api.post(f"{RBAC}/clusterroles", kept)).status == 201
    await api.server.have_default_roles()
    assert not (await api.get(ROLE)).body["rules"]


async def test_an_upgrade_is_told_once(api: Conversation, caplog: pytest.LogCaptureFixture) -> None:
    """What a podling had made before it enforced roles stays, and so does what its users wrote."""
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "cluster-admin"}, "rules": rules})
    with caplog.at_level(logging.WARNING):
        await api.restart()
        await api.server.have_default_roles()
        await api.restart()
        await api.server.have_default_roles()
    assert caplog.text.count("Roles and bindings are enforced from now on") == 1
    api.user = User("kubernetes-admin", ("system:masters", "system:authenticated"))
    assert (await api.get("/api/v1/secrets")).status == 200
    account = ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    api.user = User("system:serviceaccount:default:default", account)
    assert (await api.get("/openid/v1/jwks")).status == 200
    assert (await api.get("/api/v1/secrets")).status == 403


async def test_what_gave_all_nodes_too_much_is_told_as_long_as_it_stands(
    api: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    """Nodes of an earlier version have nothing else, so it is not taken away."""
    bindings = f"{RBAC}/clusterrolebindings"
    group = {"kind": "Group", "name": "system:nodes", "apiGroup": REF["apiGroup"]}
    for name, role in (("podling:node", "podling:node"), ("podling:node-proxier", "system:node-proxier")):
        made = {"metadata": {"name": name}, "roleRef": {**REF, "name": role}, "subjects": [group]}
        assert (await api.post(bindings, made)).status == 201
    with caplog.at_level(logging.WARNING):
        await api.server.have_default_roles()
        assert "kubectl delete clusterrolebindings podling:node podling:node-proxier" in caplog.text
        assert "podling:node" in await names(api, "clusterrolebindings")
        for name in ("podling:node", "podling:node-proxier"):
            await api.delete(f"{bindings}/{name}")
        caplog.clear()
        await api.server.have_default_roles()
    assert not caplog.text
