"""The types of what expressions may name besides the objects that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podling.apiserver.cel.inference import Known, functions
from podling.apiserver.cel.types import (
    DYN,
    LIST,
    MAP,
    STRING,
    Signature,
    Structures,
    Type,
    list_of,
    map_of,
    parsed_type,
    struct,
)

AUTHORIZATION = "kubernetes.authorization"
_KIND = {"group": "string", "version": "string", "kind": "string"}
_RESOURCE = {"group": "string", "version": "string", "resource": "string"}
_WRITTEN: Mapping[str, Mapping[str, str]] = {
    "GroupVersionKind": _KIND,
    "GroupVersionResource": _RESOURCE,
    "UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list<string>",
        "extra": "map<string, list<string>>",
    },
    "AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "SubjectAccessReviewSpec": {
        "resourceAttributes": "kubernetes.ResourceAttributes",
        "nonResourceAttributes": "kubernetes.NonResourceAttributes",
        "user": "string",
        "groups": "list<string>",
        "extra": "map<string, list<string>>",
        "uid": "string",
    },
    "ResourceAttributes": {
        "namespace": "string",
        "verb": "string",
        "group": "string",
        "version": "string",
        "resource": "string",
        "subresource": "string",
        "name": "string",
        "fieldSelector": "kubernetes.SelectorAttributes",
        "labelSelector": "kubernetes.SelectorAttributes",
    },
    "NonResourceAttributes": {"path": "string", "verb": "string"},
    "SelectorAttributes": {"rawSelector": "string", "requirements": "list<kubernetes.SelectorRequirement>"},
    "SelectorRequirement": {"key": "string", "operator": "string", "values": "list<string>"},
    "NamespaceMetadata": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "labels": "map<string, string>",
        "annotations": "map<string, string>",
        "UID": "string",
        "creationTimestamp": "timestamp",
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": "timestamp",
        "generation": "int",
        "resourceVersion": "string",
        "finalizers": "list<string>",
    },
    "NamespaceSpec": {"finalizers": "list<string>"},
    "NamespaceStatus": {"phase": "string"},
    "Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}
KUBERNETES: Mapping[str, Mapping[str, Type]] = {
    f"kubernetes.{name}": {field: parsed_type(written) for field, written in fields.items()}
    for name, fields in _WRITTEN.items()
}
"""The structures that every expression knows, with their fields."""
_PATCH = {**dict.fromkeys(("op", "path", "from"), STRING), "value": DYN}
VARIABLES = "kubernetes.variables"
_KEPT = frozenset(("bool", "int", "uint", "double", "string", "bytes", "null_type"))
_TIMES = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))
OWN = {
    "request": struct("kubernetes.AdmissionRequest"),
    "namespaceObject": struct("kubernetes.Namespace"),
    "authorizer": struct(f"{AUTHORIZATION}.Authorizer"),
    "variables": struct(VARIABLES),
}


_ABOUT = {
    "claims": map_of(STRING, DYN),
    "user": struct("kubernetes.UserInfo"),
    "request": struct("kubernetes.SubjectAccessReviewSpec"),
}


def untyped(
    variables: Mapping[str, Type] | None,
    *,
    params: bool = True,
    authorizer: bool = True,
    mutates: bool = False,
) -> Known:
    """What is known where objects and parameters may be anything. `variables`: None where there are none."""
    absent: set[str] = set()
    if variables is None:
        absent.add("variables")
    if not params:
        absent.add("params")
    if not authorizer:
        absent.update(("authorizer", "authorizer.requestResource"))
    names = {**OWN, **dict.fromkeys(("object", "oldObject", "params"), DYN)}
    names["authorizer.requestResource"] = struct(f"{AUTHORIZATION}.ResourceCheck")
    names = {name: type_ for name, type_ in names.items() if name not in absent}
    structures: list[Structures] = [VariableTypes(variables or {}), KubernetesTypes()]
    if not mutates:
        return Known(names, Several(structures), functions())
    more = {"jsonpatch.escapeKey": [Signature((STRING,), STRING)]}
    return Known(names, Several([*structures, MadeTypes()]), {**functions(), **more})


def known_about(what: str) -> Known:
    """Of the `claims` of a token, of the `user` made of them, or of a `request` that is authorized."""
    return Known({what: _ABOUT[what]}, KubernetesTypes(), functions())


def kept(type_: Type) -> Type:
    """What expressions know of a variable of a type: structures may be anything."""
    if type_.kind == LIST:
        return list_of(kept(type_.params[0]))
    if type_.kind == MAP:
        key, value = type_.params
        return map_of(key if key.kind in _KEPT else DYN, kept(value))
    return type_ if type_.kind in _KEPT or type_.kind in _TIMES else DYN


class Several:
    """Structures of several sources."""

    def __init__(self, every: Sequence[Structures]) -> None:
        self._every = every

    def has(self, name: str) -> bool:
        return any(one.has(name) for one in self._every)

    def field(self, name: str, field: str) -> Type | None:
        return next((one.field(name, field) for one in self._every if one.has(name)), None)


class VariableTypes:
    def __init__(self, known: Mapping[str, Type]) -> None:
        self._known = known

    def has(self, name: str) -> bool:
        return name == VARIABLES

    def field(self, name: str, field: str) -> Type | None:
        return self._known.get(field)


class KubernetesTypes:
    def has(self, name: str) -> bool:
        return name in KUBERNETES

    def field(self, name: str, field: str) -> Type | None:
        return KUBERNETES[name].get(field)


class MadeTypes:
    """Of what mutations make: patches, and objects, which have any field."""

    def has(self, name: str) -> bool:
        return name in ("Object", "JSONPatch") or name.startswith("Object.")

    def field(self, name: str, field: str) -> Type | None:
        return _PATCH.get(field) if name == "JSONPatch" else DYN
