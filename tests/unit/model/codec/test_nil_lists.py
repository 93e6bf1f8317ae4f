"""R-SYS-1: lists that Go writes as `null`."""

from __future__ import annotations

from podling.model.codec import json
from podling.model.codec.json import with_nulls, without_nulls
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import ContainerImage, Node, NodeStatus
from podling.model.types.rbac import ClusterRole, PolicyRule


def test_an_empty_list_that_is_always_written_is_null() -> None:
    role = ClusterRole(metadata=ObjectMeta(name="r", annotations={"said": '"rules":[]'}))
    data = with_nulls(json.encode(role), ClusterRole)
    assert data.endswith(b',"rules":null}') and b'\\"rules\\":[]' in data
    assert json.decode(data, ClusterRole) == role
    assert without_nulls(data, ClusterRole) == json.encode(role)


def test_also_below() -> None:
    node = Node(status=NodeStatus(images=[ContainerImage(size_bytes=1), ContainerImage(names=["a"])]))
    data = with_nulls(json.encode(node), Node)
    assert b'"names":null' in data and b'"names":["a"]' in data
    assert json.decode(data, Node) == node


def test_what_is_not_empty_stays() -> None:
    role = ClusterRole(rules=[PolicyRule(verbs=["get"])])
    assert with_nulls(json.encode(role), ClusterRole) == json.encode(role)
