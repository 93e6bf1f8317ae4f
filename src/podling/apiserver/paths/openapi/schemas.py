"""OpenAPI v3 schemas of the API types, derived from the types and their merge metadata.

Names are those of Kubernetes' Go packages, which clients know (`io.k8s.api.core.v1.Pod`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

import msgspec

from podling.apiserver.paths.openapi.facts import DEFAULTS, NO_DEFAULT, OPTIONAL, REQUIRED, UNIONS
from podling.apiserver.rules.container.container import STOP_SIGNALS
from podling.model import errors
from podling.model.codec.fields import FieldInfo, Shape, fields_of
from podling.model.descriptions import describe_field, describe_type
from podling.model.enums import ENUMS
from podling.model.errors import Status
from podling.model.quantity import Quantity
from podling.model.types import (
    admissionregistration,
    apiextensions,
    apiregistration,
    apps,
    authentication,
    authorization,
    autoscaling,
    batch,
    certificates,
    coordination,
    discovery,
    flowcontrol,
    meta,
    metrics,
    networking,
    node_k8s_io,
    policy,
    rbac,
    resource,
    scheduling,
    storage,
)
from podling.model.types.apiextensions import JSONSchemaProps
from podling.model.types.core import (
    BoundObjectReference,
    EventsEvent,
    EventsSeries,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
)
from podling.model.types.discovery import SlicePort
from podling.model.types.meta import DeleteOptions, KubeObject
from podling.model.types.pod import Eviction

Schema = dict[str, Any]

REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
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
    RAW: {"description": "Any object, kept as it was sent.", "type": "object"},
}

_TEXT, _TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
ANSWERS: Mapping[str, Schema] = {
    f"{META}.APIResource": {
        "description": "A resource of a group version, and what may be done with it.",
        "type": "object",
        "required": ["name", "singularName", "namespaced", "kind", "verbs"],
        "properties": {
            "categories": {
                **_TEXTS,
                "description": "Groups of resources it is part of, such as all.",
                "x-kubernetes-list-type": "atomic",
            },
            "group": {**_TEXT, "description": "The group of its kind; empty if it is that of the list."},
            "kind": {**_TEXT, "default": "", "description": "What its objects are called, in CamelCase."},
            "name": {**_TEXT, "default": "", "description": "As it stands in paths: in the plural."},
            "namespaced": {
                "type": "boolean",
                "default": False,
                "description": "Whether its objects are in namespaces.",
            },
            "shortNames": {
                **_TEXTS,
                "description": "What may be typed for the name.",
                "x-kubernetes-list-type": "atomic",
            },
            "singularName": {**_TEXT, "default": "", "description": "Its name for a single object."},
            "storageVersionHash": {**_TEXT, "description": "Changes with the version it is stored in."},
            "verbs": {**_TEXTS, "description": "What may be done, such as get, list and watch."},
            "version": {**_TEXT, "description": "The version of its kind; empty if it is that of the list."},
        },
    },
    f"{META}.APIResourceList": {
        "description": "The resources of a group version.",
        "type": "object",
        "required": ["groupVersion", "resources"],
        "properties": {
            "apiVersion": {**_TEXT, "description": "The version of this list's own type: v1."},
            "groupVersion": {**_TEXT, "default": "", "description": "Whose resources they are."},
            "kind": {**_TEXT, "description": "The name of this list's own type."},
            "resources": {
                "description": "The resources, and those below them.",
                "type": "array",
                "items": {"$ref": f"{REF}{META}.APIResource"},
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "APIResourceList", "version": "v1"}],
    },
    f"{META}.Patch": {"description": "A change in one of the forms of a patch.", "type": "object"},
    f"{META}.WatchEvent": {
        "description": "What happened to an object that is watched.",
        "type": "object",
        "required": ["type", "object"],
        "properties": {
            "object": {
                "allOf": [{"$ref": REF + RAW}],
                "description": "The object as it is now or, deleted, was; a Status when something is wrong.",
            },
            "type": {
                **_TEXT,
                "default": "",
                "description": "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.",
            },
        },
    },
}
"""What is answered or sent and is no object of a kind."""

SCHEMA_VALUES: Mapping[str, Schema] = {
    f"{EXTENSIONS}.JSON": {"description": "Any JSON value."},
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": {"description": "One schema, or a list of them."},
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": {"description": "A schema, or whether anything is allowed."},
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": {"description": "A schema, or a list of names."},
}
"""What the fields of a schema for custom resources may hold."""

_TIMES = {"date-time": TIME, "micro-time": MICRO_TIME}
_PACKAGES = {
    meta.__name__: META,
    errors.__name__: META,
    coordination.__name__: "io.k8s.api.coordination.v1",
    authentication.__name__: "io.k8s.api.authentication.v1",
    authorization.__name__: "io.k8s.api.authorization.v1",
    policy.__name__: "io.k8s.api.policy.v1",
    discovery.__name__: "io.k8s.api.discovery.v1",
    scheduling.__name__: "io.k8s.api.scheduling.v1",
    rbac.__name__: "io.k8s.api.rbac.v1",
    node_k8s_io.__name__: "io.k8s.api.node.v1",
    apps.__name__: "io.k8s.api.apps.v1",
    batch.__name__: "io.k8s.api.batch.v1",
    autoscaling.__name__: "io.k8s.api.autoscaling.v2",
    networking.__name__: "io.k8s.api.networking.v1",
    storage.__name__: "io.k8s.api.storage.v1",
    certificates.__name__: "io.k8s.api.certificates.v1",
    flowcontrol.__name__: "io.k8s.api.flowcontrol.v1",
    admissionregistration.__name__: "io.k8s.api.admissionregistration.v1",
    apiextensions.__name__: EXTENSIONS,
    apiregistration.__name__: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    resource.__name__: "io.k8s.api.resource.v1",
    metrics.__name__: "io.k8s.metrics.pkg.apis.metrics.v1beta1",
}
_VALUES: Mapping[Any, Schema] = {
    int | str: {"$ref": REF + INT_OR_STRING},
    Quantity: {"$ref": REF + QUANTITY},
    msgspec.Raw: {"$ref": REF + FIELDS_V1},
    Any: {"$ref": REF + RAW},
    JSONSchemaProps | list[JSONSchemaProps]: {"$ref": f"{REF}{EXTENSIONS}.JSONSchemaPropsOrArray"},
    JSONSchemaProps | bool: {"$ref": f"{REF}{EXTENSIONS}.JSONSchemaPropsOrBool"},
    JSONSchemaProps | list[str]: {"$ref": f"{REF}{EXTENSIONS}.JSONSchemaPropsOrStringArray"},
    bool: {"type": "boolean"},
    float: {"type": "number", "format": "double"},
    int | float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    str: {"type": "string"},
}
_EMPTY: Mapping[Any, Any] = {str: "", int: 0, bool: False}
_CORE = "io.k8s.api.core.v1"
_TOKEN_TYPES = (
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
    BoundObjectReference,
)
_OF_TYPE: Mapping[type, str] = {
    **{type_: f"io.k8s.api.authentication.v1.{type_.__name__}" for type_ in _TOKEN_TYPES},
    EventsEvent: "io.k8s.api.events.v1.Event",
    Eviction: "io.k8s.api.policy.v1.Eviction",
    EventsSeries: "io.k8s.api.events.v1.EventSeries",
    authorization.FieldSelectorRequirement: f"{META}.FieldSelectorRequirement",
    SlicePort: "io.k8s.api.discovery.v1.EndpointPort",
    **{
        getattr(autoscaling, f"{name}V1"): f"io.k8s.api.autoscaling.v1.{name}"
        for name in (
            "CrossVersionObjectReference",
            "HorizontalPodAutoscaler",
            "HorizontalPodAutoscalerSpec",
            "HorizontalPodAutoscalerStatus",
        )
    },
    autoscaling.Scale: "io.k8s.api.autoscaling.v1.Scale",
    autoscaling.ScaleSpec: "io.k8s.api.autoscaling.v1.ScaleSpec",
    autoscaling.ScaleStatus: "io.k8s.api.autoscaling.v1.ScaleStatus",
    storage.CSITokenRequest: "io.k8s.api.storage.v1.TokenRequest",
    storage.TopologySelectorTerm: f"{_CORE}.TopologySelectorTerm",
    storage.TopologySelectorLabelRequirement: f"{_CORE}.TopologySelectorLabelRequirement",
    flowcontrol.FlowSubject: "io.k8s.api.flowcontrol.v1.Subject",
    resource.ResourceClaimObject: "io.k8s.api.resource.v1.ResourceClaim",
    admissionregistration.WebhookServiceReference: "io.k8s.api.admissionregistration.v1.ServiceReference",
    apiextensions.ConversionServiceReference: f"{EXTENSIONS}.ServiceReference",
    apiextensions.ConversionClientConfig: f"{EXTENSIONS}.WebhookClientConfig",
    apiregistration.APIServiceReference: (
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference"
    ),
}


def schema_name(type_: type[msgspec.Struct]) -> str:
    return _OF_TYPE.get(type_) or f"{_PACKAGES.get(type_.__module__, _CORE)}.{type_.__name__}"


def reference(name: str) -> Schema:
    return {"$ref": REF + name}


def schemas_of(stored: list[type[KubeObject]], bodies: list[type[KubeObject]]) -> dict[str, Schema]:
    """The schemas, by name, of stored objects, their lists, posted bodies, and all types they refer to."""
    found = {**SCALARS, **ANSWERS}
    waiting: list[type[msgspec.Struct]] = [
        *stored,
        *bodies,
        meta.ListMeta,
        DeleteOptions,
        Status,
    ]
    while waiting:
        type_ = waiting.pop()
        name = schema_name(type_)
        if name not in found:
            found[name] = _struct(type_)
            waiting.extend(parts_of(type_))
    if schema_name(JSONSchemaProps) in found:
        found |= SCHEMA_VALUES
    for root in stored:
        found[f"{schema_name(root)}List"] = _list(root)
    # Every group version has options and events of its own, which are all the same type.
    versions = sorted({"v1", *(root.API_VERSION for root in stored)}, key=lambda one: one.rpartition("/"))
    for name in ("DeleteOptions", "WatchEvent"):
        found[f"{META}.{name}"] = {
            **found[f"{META}.{name}"],
            "x-kubernetes-group-version-kind": [
                {"group": group, "kind": name, "version": version}
                for group, _, version in (one.rpartition("/") for one in versions)
            ],
        }
    return dict(sorted(found.items()))


def group_version_kind(type_: type[KubeObject], suffix: str = "") -> Schema:
    group, _, version = type_.API_VERSION.rpartition("/")
    return {"group": group, "kind": type_.KIND + suffix, "version": version}


def _struct(type_: type[msgspec.Struct]) -> Schema:
    infos = fields_of(type_)
    schema: Schema = {"type": "object"}
    if description := describe_type(type_.__name__):
        schema["description"] = description
    defaults = _defaults(type_)
    schema["properties"] = {
        wire: {**_property(type_, info), **defaults.get(wire, {})} for wire, info in sorted(infos.items())
    }
    # Scalars that are always written are required, with the exceptions of `facts.py`.
    required = []
    for field in msgspec.structs.fields(type_):
        name = (type_.__name__, field.encode_name)
        if name in REQUIRED or (field.default_factory in _EMPTY and name not in OPTIONAL):
            required.append(field.encode_name)
    if required:
        schema["required"] = sorted(required)
    if getattr(type_, "ATOMIC", False):
        schema["x-kubernetes-map-type"] = "atomic"
    if union := UNIONS.get(type_.__name__):
        schema["x-kubernetes-unions"] = [union]
    if issubclass(type_, KubeObject) and type_.KIND:
        schema["x-kubernetes-group-version-kind"] = [group_version_kind(type_)]
    elif type_ is Status:
        schema["x-kubernetes-group-version-kind"] = [{"group": "", "kind": "Status", "version": "v1"}]
    return schema


def _list(root: type[KubeObject]) -> Schema:
    properties = {
        "apiVersion": {"type": "string", "description": describe_field("List", "apiVersion")},
        "items": {
            "type": "array",
            "items": reference(schema_name(root)),
            "description": describe_field("List", "items"),
        },
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
    schema = _value(info.shape, info.format)
    if "$ref" in schema:
        # Beside a reference nothing else is read.
        schema = {"allOf": [schema]}
    if description := describe_field(owner.__name__, info.wire):
        schema = {"description": description, **schema}
    is_list = info.shape.holds is list
    values = ENUMS.get((owner.__name__, info.wire), ())
    if info.wire == "stopSignal":
        values = tuple(sorted(STOP_SIGNALS["linux"]))
    if values:
        (schema["items"] if is_list else schema)["enum"] = list(values)
    merge, list_type = info.merge, info.merge.list_type or (is_list and "atomic")
    extensions = {
        "list-map-keys": list(merge.list_map_keys),
        "list-type": list_type,
        "map-type": merge.map_type,
        "patch-merge-key": merge.key,
        "patch-strategy": ",".join(merge.strategies),
    }
    return schema | {f"x-kubernetes-{name}": value for name, value in extensions.items() if value}


def _value(shape: Shape, form: str) -> Schema:
    """`form` is the format of a scalar, or of the scalars held."""
    if shape.item:
        held = _value(shape.item, form)
        if shape.holds is list:
            return {"type": "array", "items": held}
        return {"type": "object", "additionalProperties": held}
    if shape.struct:
        return reference(schema_name(shape.struct))
    if shape.type is int:
        return {"type": "integer", "format": form or "int32"}
    if shape.type is Any and form == "json":
        return reference(f"{EXTENSIONS}.JSON")
    if shape.type is str and form in _TIMES:
        return reference(_TIMES[form])
    return dict(_VALUES[shape.type])


def _defaults(type_: type[msgspec.Struct]) -> dict[str, Schema]:
    """The published defaults: empty for structs that are always written and for scalars."""
    infos = fields_of(type_)
    found: dict[str, Schema] = {}
    for field in msgspec.structs.fields(type_):
        wire, name = field.encode_name, (type_.__name__, field.encode_name)
        if infos[wire].shape.struct:
            can_be_absent = field.default is None or field.default_factory is NoneType
            value: Any = None if can_be_absent else {}
        elif infos[wire].format in _TIMES or name in NO_DEFAULT or infos[wire].type not in _EMPTY:
            value = None
        else:
            value = DEFAULTS.get(name, _EMPTY.get(field.default_factory))
        if value is not None:
            found[wire] = {"default": value}
    return found


def parts_of(type_: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """The types of its fields that are structs, also inside of lists and maps."""
    return [part for info in fields_of(type_).values() if (part := info.shape.part)]
