"""NodeRestriction: what a node may write of what its authorizer lets it; whoever acts as it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.admission.node_restriction import forbidden_labels
from podling.apiserver.request.request import User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
N1 = User("system:node:n1", ("system:nodes", "system:authenticated"))


@pytest.fixture
async def nodes(api: Conversation) -> Conversation:
    """Two nodes with a pod each."""
    for i in (1, 2):
        await api.post(NODES, {"metadata": {"name": f"n{i}"}})
        spec: dict[str, Any] = {"nodeName": f"n{i}", "containers": [{"name": "c", "image": "i"}]}
        spec["volumes"] = [{"name": "v", "secret": {"secretName": f"s{i}"}}]
        assert (await api.post(PODS, {"metadata": {"name": f"p{i}"}, "spec": spec})).status == 201
        await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": f"s{i}"}})
    return api


async def test_a_node_writes_its_own_node_and_pods(nodes: Conversation) -> None:
    nodes.user = N1
    told = {"status": {"message": "m"}}
    assert (await nodes.patch(f"{PODS}/p1/status", told)).status == 200
    assert (
        "for pods with spec.nodeName set to itself" in (await nodes.patch(f"{PODS}/p2/status", told)).message
    )
    assert (await nodes.patch(f"{NODES}/n1", {"metadata": {"labels": {"a": "b"}}})).status == 200
    said = await nodes.patch(f"{NODES}/n2", {"metadata": {"labels": {"a": "b"}}})
    assert (said.status, said.body["details"]["name"]) == (403, "n2")
    said = await nodes.patch(f"{NODES}/n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
    assert said.message == 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints'


async def test_who_acts_as_a_node_gets_what_the_node_gets(nodes: Conversation) -> None:
    as_n1 = {"Impersonate_User": N1.name, "Impersonate_Group": "system:nodes"}
    secrets = "/api/v1/namespaces/default/secrets"
    assert (await nodes.get(f"{secrets}/s1", **as_n1)).status == 200
    said = await nodes.get(f"{secrets}/s2", **as_n1)
    assert said.message.endswith(": no relationship found between node 'n1' and this object")
    assert (await nodes.delete(f"{PODS}/p2", **as_n1)).status == 403
    assert (await nodes.get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1", **as_n1)).status == 200
    assert (await nodes.get(PODS, **as_n1)).status == 403
    assert (await nodes.get(f"{secrets}?fieldSelector=metadata.name%3Ds1", **as_n1)).status == 200


async def test_a_token_is_for_an_audience_of_the_pod(nodes: Conversation) -> None:
    await nodes.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    uid = (await nodes.get(f"{PODS}/p1")).body["metadata"]["uid"]
    nodes.user = N1
    target = "/api/v1/namespaces/default/serviceaccounts/default/token"
    ref = {"kind": "Pod", "apiVersion": "v1", "name": "p1", "uid": uid}
    said = await nodes.post(target, {"spec": {"audiences": ["vault"], "boundObjectRef": ref}})
    assert said.message == (
        'serviceaccounts "default" is forbidden: audience "vault" not found in pod spec volume, '
        "system:node:n1 is not authorized to request tokens for this audience"
    )


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("plain", True),
        ("example.com/a", True),
        ("kubernetes.io/hostname", True),
        ("node.kubernetes.io/a", True),
        ("a.kubelet.kubernetes.io/b", True),
        ("kubernetes.io/a", False),
        ("node-role.kubernetes.io/master", False),
        ("node-restriction.kubernetes.io/a", False),
        ("a.node-restriction.kubernetes.io/b", False),
        ("x.k8s.io/a", False),
    ],
)
def test_which_labels_a_node_sets_changes_and_takes_away(label: str, allowed: bool) -> None:
    for new, old in (({label: "a"}, {}), ({label: "a"}, {label: "b"}), ({}, {label: "a"})):
        assert forbidden_labels(new, old) == ("" if allowed else label)
    assert forbidden_labels({label: "a"}, {label: "a"}) == ""
