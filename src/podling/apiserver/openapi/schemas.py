"""Schemas of the API types, as OpenAPI v3 has them, read from the types and their merge metadata.

Names are those of Kubernetes' Go packages, which clients know (`io.k8s.api.core.v1.Pod`).
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from podling.model import (
    authentication,
    authorization,
    disruption_budget,
    endpoint_slice,
    fields,
    lease,
    meta,
    options,
    priority_class,
    rbac,
    runtime_class,
    status,
)
from podling.model.descriptions import describe_field, describe_type
from podling.model.enums import ENUMS
from podling.model.event import EventsEvent
from podling.model.fields import FieldInfo, fields_of, is_struct, item_type
from podling.model.meta import KubeObject
from podling.model.pod import Eviction
from podling.model.quantity import Quantity

Schema = dict[str, Any]

REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME, MICRO_TIME, FIELDS_V1 = f"{META}.Time", f"{META}.MicroTime", f"{META}.FieldsV1"

SCALARS: Mapping[str, Schema] = {
    QUANTITY: {
        "description": "An exact number with a suffix, such as 500m or 1Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    INT_OR_STRING: {
        "description": "A number, or the name of one.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    TIME: {"description": "A time in whole seconds, RFC 3339.", "type": "string", "format": "date-time"},
    MICRO_TIME: {"description": "A time in microseconds, RFC 3339.", "type": "string", "format": "date-time"},
    FIELDS_V1: {"description": "A set of fields, as a tree of their names.", "type": "object"},
}

_TIMES = {"date-time": TIME, "micro-time": MICRO_TIME}
_PACKAGES = {
    meta.__name__: META,
    options.__name__: META,
    status.__name__: META,
    lease.__name__: "io.k8s.api.coordination.v1",
    authentication.__name__: "io.k8s.api.authentication.v1",
    authorization.__name__: "io.k8s.api.authorization.v1",
    disruption_budget.__name__: "io.k8s.api.policy.v1",
    endpoint_slice.__name__: "io.k8s.api.discovery.v1",
    priority_class.__name__: "io.k8s.api.scheduling.v1",
    rbac.__name__: "io.k8s.api.rbac.v1",
    runtime_class.__name__: "io.k8s.api.node.v1",
}
_CORE = "io.k8s.api.core.v1"
_OF_TYPE: Mapping[type, str] = {
    EventsEvent: "io.k8s.api.events.v1.Event",
    Eviction: "io.k8s.api.policy.v1.Eviction",
    endpoint_slice.SlicePort: "io.k8s.api.discovery.v1.EndpointPort",
}
_REQUIRED_LISTS = frozenset(
    {
        ("PodSpec", "containers"),
        ("NodeSelector", "nodeSelectorTerms"),
        ("ContainerExtendedResourceRequest", "requestMappings"),
        ("PreferredSchedulingTerm", "preference"),
        ("WeightedPodAffinityTerm", "podAffinityTerm"),
        ("Event", "involvedObject"),
        ("Binding", "target"),
        ("LimitRangeSpec", "limits"),
        ("PolicyRule", "verbs"),
        ("RoleBinding", "roleRef"),
        ("ClusterRoleBinding", "roleRef"),
        ("Endpoint", "addresses"),
        ("EndpointSlice", "endpoints"),
        ("ResourceRule", "verbs"),
        ("NonResourceRule", "verbs"),
    }
)
_OPTIONAL = frozenset(
    {("ListMeta", "resourceVersion"), ("Event", "reportingComponent"), ("Event", "reportingInstance")}
)


def schema_name(type_: type[msgspec.Struct]) -> str:
    return _OF_TYPE.get(type_) or f"{_PACKAGES.get(type_.__module__, _CORE)}.{type_.__name__}"


def reference(name: str) -> Schema:
    return {"$ref": REF + name}


def schemas_of(stored: list[type[KubeObject]], bodies: list[type[KubeObject]]) -> dict[str, Schema]:
    """The schemas of what is stored, of its lists, of what is posted, and of all they refer to, by name."""
    found = dict(SCALARS)
    waiting: list[type[msgspec.Struct]] = [
        *stored,
        *bodies,
        meta.ListMeta,
        options.DeleteOptions,
        status.Status,
    ]
    while waiting:
        type_ = waiting.pop()
        name = schema_name(type_)
        if name not in found:
            found[name] = _struct(type_)
            waiting.extend(_parts(type_))
    for root in stored:
        found[f"{schema_name(root)}List"] = _list(root)
    return dict(sorted(found.items()))


def group_version_kind(type_: type[KubeObject], suffix: str = "") -> Schema:
    group, _, version = type_.API_VERSION.rpartition("/")
    return {"group": group, "kind": type_.KIND + suffix, "version": version}


def _struct(type_: type[msgspec.Struct]) -> Schema:
    infos = fields_of(type_)
    schema: Schema = {"type": "object"}
    if description := describe_type(type_.__name__):
        schema["description"] = description
    schema["properties"] = {wire: _property(type_, info) for wire, info in sorted(infos.items())}
    if required := sorted(_required(type_)):
        schema["required"] = required
    if getattr(type_, "ATOMIC", False):
        schema["x-kubernetes-map-type"] = "atomic"
    if issubclass(type_, KubeObject) and type_.KIND:
        schema["x-kubernetes-group-version-kind"] = [group_version_kind(type_)]
    return schema


def _list(root: type[KubeObject]) -> Schema:
    item = {"allOf": [reference(schema_name(root))], "default": {}}
    properties = {
        "apiVersion": {"type": "string", "description": describe_field("List", "apiVersion")},
        "items": {"type": "array", "items": item, "description": describe_field("List", "items")},
        "kind": {"type": "string", "description": describe_field("List", "kind")},
        "metadata": {
            "allOf": [reference(f"{META}.ListMeta")],
            "default": {},
            "description": describe_field("List", "metadata"),
        },
    }
    return {
        "type": "object",
        "description": f"A list of {root.KIND} objects.",
        "properties": properties,
        "required": ["items"],
        "x-kubernetes-group-version-kind": [group_version_kind(root, "List")],
    }


def _property(owner: type[msgspec.Struct], info: FieldInfo) -> Schema:
    schema = _value(info.type, info.format)
    if "$ref" in schema:
        # Beside a reference nothing else is read.
        schema = {"allOf": [schema]}
    if description := describe_field(owner.__name__, info.wire):
        schema = {"description": description, **schema}
    if values := ENUMS.get((owner.__name__, info.wire)):
        schema["enum"] = list(values)
    return {**schema, **_extensions(info.merge, is_list=typing.get_origin(info.type) is list)}


def _extensions(merge: fields.Merge, *, is_list: bool) -> Schema:
    found: Schema = {}
    if merge.list_map_keys:
        found["x-kubernetes-list-map-keys"] = list(merge.list_map_keys)
    if is_list:
        found["x-kubernetes-list-type"] = merge.list_type or "atomic"
    if merge.map_type:
        found["x-kubernetes-map-type"] = merge.map_type
    if merge.key:
        found["x-kubernetes-patch-merge-key"] = merge.key
    if merge.strategies:
        found["x-kubernetes-patch-strategy"] = ",".join(merge.strategies)
    return found


def _value(annotation: Any, form: str) -> Schema:
    """`form` is the format of a scalar, or of the scalars held."""
    origin = typing.get_origin(annotation)
    if origin is list:
        return {"type": "array", "items": _value(item_type(annotation), form)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _value(item_type(annotation), form)}
    if origin in (types.UnionType, typing.Union):
        return reference(INT_OR_STRING)
    if annotation is Quantity:
        return reference(QUANTITY)
    if annotation is msgspec.Raw:
        return reference(FIELDS_V1)
    if is_struct(annotation):
        return {"allOf": [reference(schema_name(annotation))], "default": {}}
    return _scalar(annotation, form)


def _scalar(annotation: Any, form: str) -> Schema:
    if annotation is bool:
        return {"type": "boolean"}
    if annotation is int:
        return {"type": "integer", "format": form or "int32"}
    if annotation is float:
        return {"type": "number", "format": "double"}
    if annotation is bytes:
        return {"type": "string", "format": "byte"}
    if form in _TIMES:
        return reference(_TIMES[form])
    return {"type": "string"}


def _required(type_: type[msgspec.Struct]) -> Iterator[str]:
    """Scalars that are always written have no meaning when they are missing, but for a few."""
    for field in msgspec.structs.fields(type_):
        name = (type_.__name__, field.encode_name)
        always = field.default_factory in (str, int, bool) and name not in _OPTIONAL
        if always or name in _REQUIRED_LISTS:
            yield field.encode_name


def _parts(type_: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for info in fields_of(type_).values():
        annotation = info.type
        while typing.get_origin(annotation) in (list, dict):
            annotation = item_type(annotation)
        if is_struct(annotation):
            yield annotation
