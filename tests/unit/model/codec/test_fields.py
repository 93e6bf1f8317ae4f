"""Merge metadata: what strategic merge patch, server-side apply and OpenAPI read from the types."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podling.model.codec.fields import fields_of, shape_of
from podling.model.scheme import RESOURCES
from podling.model.types.container import Container, ContainerPort, HTTPGetAction
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.node import NodeSpec, NodeStatus
from podling.model.types.pod import Pod, PodSecurityContext, PodSpec
from podling.model.types.pod_status import PodStatus
from podling.model.types.policy import PodDisruptionBudgetSpec
from podling.model.types.service import ServiceSpec

MERGED = [
    # owner, field, patch strategies, merge key, list type, map keys
    (PodSpec, "containers", ("merge",), "name", "map", ("name",)),
    (PodSpec, "volumes", ("merge", "retainKeys"), "name", "map", ("name",)),
    (PodSpec, "tolerations", (), "", "", ()),
    (PodSpec, "imagePullSecrets", ("merge",), "name", "map", ("name",)),
    (PodSpec, "hostAliases", ("merge",), "ip", "map", ("ip",)),
    (
        PodSpec,
        "topologySpreadConstraints",
        ("merge",),
        "topologyKey",
        "map",
        ("topologyKey", "whenUnsatisfiable"),
    ),
    (PodStatus, "hostIPs", ("merge",), "ip", "atomic", ()),
    (PodStatus, "podIPs", ("merge",), "ip", "map", ("ip",)),
    (PodStatus, "conditions", ("merge",), "type", "map", ("type",)),
    (Container, "ports", ("merge",), "containerPort", "map", ("containerPort", "protocol")),
    (Container, "env", ("merge",), "name", "map", ("name",)),
    (Container, "volumeMounts", ("merge",), "mountPath", "map", ("mountPath",)),
    (Container, "command", (), "", "", ()),
    (ObjectMeta, "ownerReferences", ("merge",), "uid", "map", ("uid",)),
    (ObjectMeta, "finalizers", ("merge",), "", "set", ()),
    (NodeSpec, "podCIDRs", ("merge",), "", "set", ()),
    (NodeSpec, "taints", (), "", "", ()),
    (NodeStatus, "addresses", ("merge",), "type", "map", ("type",)),
    (ServiceSpec, "ports", ("merge",), "port", "map", ("port", "protocol")),
]


@pytest.mark.parametrize(("owner", "field", "strategies", "key", "list_type", "map_keys"), MERGED)
def test_how_a_field_merges(
    owner: type[msgspec.Struct],
    field: str,
    strategies: tuple[str, ...],
    key: str,
    list_type: str,
    map_keys: tuple[str, ...],
) -> None:
    merge = fields_of(owner)[field].merge
    assert (merge.strategies, merge.key, merge.list_type, merge.list_map_keys) == (
        strategies,
        key,
        list_type,
        map_keys,
    )


def test_maps_and_structs_that_apply_replaces_whole() -> None:
    assert fields_of(PodSpec)["nodeSelector"].merge.map_type == "atomic"
    assert LabelSelector.ATOMIC
    assert not PodSpec.ATOMIC


def test_types_are_told_without_optional_and_annotation() -> None:
    fields = fields_of(PodSpec)
    assert fields["containers"].type == list[Container]
    assert shape_of(list[Container]).item == shape_of(Container)
    assert fields["securityContext"].type is PodSecurityContext
    assert fields["priority"].type is int
    assert fields["nodeSelector"].shape.item == shape_of(str)
    assert fields_of(HTTPGetAction)["port"].type == int | str
    assert fields["securityContext"].shape.struct is PodSecurityContext
    assert fields["containers"].shape.struct is None
    assert fields["containers"].shape.part is Container


def test_formats() -> None:
    assert fields_of(ContainerPort)["containerPort"].format == "int32"
    assert fields_of(PodSecurityContext)["supplementalGroups"].format == "int64"
    assert fields_of(ObjectMeta)["creationTimestamp"].format == "date-time"
    assert fields_of(ObjectMeta)["name"].format == ""


def test_fields_are_in_wire_order() -> None:
    assert list(fields_of(Pod)) == ["kind", "apiVersion", "metadata", "spec", "status"]


def _structs(type_: Any, seen: set[type]) -> set[type]:
    struct = shape_of(type_).part
    if struct and struct not in seen:
        seen.add(struct)
        for field in fields_of(struct).values():
            _structs(field.type, seen)
    return seen


def test_every_merge_key_is_a_field_of_the_items() -> None:
    reached: set[type] = set()
    for resource in RESOURCES:
        _structs(resource.type, reached)
    keyed = [field for owner in reached for field in fields_of(owner).values() if field.merge.key]
    assert len(keyed) > 20
    for field in keyed:
        assert field.shape.part
        assert {field.merge.key, *field.merge.list_map_keys} <= set(fields_of(field.shape.part))


def test_every_integer_says_its_size() -> None:
    reached: set[type] = set()
    for resource in RESOURCES:
        _structs(resource.type, reached)
    for owner in reached:
        for field in fields_of(owner).values():
            if field.type in (int, list[int], int | str):
                assert field.format in ("int32", "int64"), f"{owner.__name__}.{field.wire}"


def test_an_optional_number_or_name_is_still_one() -> None:
    assert fields_of(PodDisruptionBudgetSpec)["minAvailable"].type == int | str
