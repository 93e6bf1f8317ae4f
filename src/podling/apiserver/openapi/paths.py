"""Operations of the kinds, as OpenAPI v3 has them: enough for a client to know what may be sent where.

kubectl reads from here whether the server validates fields (`fieldValidation`) and knows dry-run.
"""

from __future__ import annotations

from typing import Any

from podling.apiserver.negotiation import JSON
from podling.apiserver.openapi.schemas import group_version_kind, reference, schema_name
from podling.apiserver.patch.parse import MEDIA_TYPES
from podling.apiserver.registry.kind import Connect, Kind, Members, Posted, Subresource
from podling.model.meta import KubeObject

Operation = dict[str, Any]

METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
ACTIONS = {"create": "post", "update": "put"}
"""What an operation is called in x-kubernetes-action, where that is not the verb."""
COLLECTION_VERBS = ("list", "create", "deletecollection")

_LIST_PARAMETERS = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE_PARAMETERS = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE_PARAMETERS = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
PARAMETERS: dict[str, dict[str, str]] = {
    "get": {},
    "list": _LIST_PARAMETERS,
    "create": _WRITE_PARAMETERS,
    "update": _WRITE_PARAMETERS,
    "patch": {**_WRITE_PARAMETERS, "force": "boolean"},
    "delete": _DELETE_PARAMETERS,
    "deletecollection": {**_LIST_PARAMETERS, **_DELETE_PARAMETERS},
}
CODES = {"create": ("201",), "update": ("200", "201"), "patch": ("200", "201")}
"""Of what succeeded, where that is not only 200. A client's faults are many, and not listed."""
ANY = ("*/*",)
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def paths_of(kind: Kind[Any]) -> dict[str, Any]:
    """The paths of a kind and of its subresources."""
    resource = kind.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    everywhere = f"{base}/{resource.plural}"
    within = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    collection = [verb for verb in kind.verbs if verb in COLLECTION_VERBS]
    single = [verb for verb in kind.verbs if verb in METHODS and verb not in COLLECTION_VERBS]
    paths = {within: _item(kind, collection, resource.type)}
    if single:
        paths[f"{within}/{{name}}"] = _item(kind, single, resource.type)
    if resource.namespaced and "list" in kind.verbs:
        paths[everywhere] = _item(kind, ["list"], resource.type)
    for name, subresource in kind.subresources.items():
        below = "/{member}" if isinstance(subresource, Members) else ""
        paths[f"{within}/{{name}}/{name}{below}"] = _subresource(kind, subresource)
    for path, item in paths.items():
        placeholders = [name for name in ("member", "name", "namespace") if f"{{{name}}}" in path]
        item["parameters"] = [_path_parameter(name) for name in placeholders]
    return paths


def _subresource(kind: Kind[Any], subresource: Subresource) -> dict[str, Any]:
    if isinstance(subresource, Connect):
        operation = {"responses": {"200": {"description": "OK"}}, "x-kubernetes-action": "connect"}
        return {METHODS[verb]: operation for verb in subresource.verbs}
    body = subresource.body if isinstance(subresource, Posted) else kind.resource.type
    return _item(kind, list(subresource.verbs), body)


def _item(kind: Kind[Any], verbs: list[str], body: type[KubeObject]) -> dict[str, Any]:
    return {METHODS[verb]: _operation(kind, verb, body) for verb in verbs}


def _operation(kind: Kind[Any], verb: str, body: type[KubeObject]) -> Operation:
    name = schema_name(body)
    answer = {"description": "OK", "content": _content((JSON,), reference(_answer(kind, verb, name)))}
    operation: Operation = {
        "tags": ["core_v1" if not kind.resource.group else kind.resource.group.partition(".")[0]],
        "parameters": [
            {"name": key, "in": "query", "schema": {"type": type_, "uniqueItems": True}}
            for key, type_ in PARAMETERS[verb].items()
        ],
        "responses": dict.fromkeys(CODES.get(verb, ("200",)), answer),
        "x-kubernetes-action": ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": group_version_kind(body),
    }
    match verb:
        case "create" | "update":
            operation["requestBody"] = {"content": _content(ANY, reference(name)), "required": True}
        case "patch":
            operation["requestBody"] = {
                "content": _content(MEDIA_TYPES, {"type": "object"}),
                "required": True,
            }
        case "delete" | "deletecollection":
            operation["requestBody"] = {"content": _content(ANY, reference(DELETE_OPTIONS))}
    return operation


def _answer(kind: Kind[Any], verb: str, name: str) -> str:
    """The schema of the answer of a verb to a body of the schema `name`."""
    match verb:
        case "list":
            return f"{name}List"
        case "delete" if kind.returns_deleted:
            return name
        case "delete" | "deletecollection":
            return STATUS
    return name


def _content(media_types: tuple[str, ...], schema: dict[str, Any]) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type in media_types}


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
