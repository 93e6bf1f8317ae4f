"""The operations of a kind, as OpenAPI v3: what may be asked below each of its paths, and what is answered.

Everything follows from the kind's verbs, subresources and types, and from the tables here. What all
operations of a path have in common is said once, of the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podling.apiserver.kinds.kind import Connect, Kind, Members, Posted
from podling.apiserver.patch.parse import MEDIA_TYPES
from podling.apiserver.paths.openapi import words
from podling.apiserver.paths.openapi.schemas import META, Schema, group_version_kind, reference, schema_name
from podling.model.types.meta import KubeObject

Operation = dict[str, Any]
Item = dict[str, Any]
Parameter = dict[str, Any]

METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
    "watch": "get",
    "watchlist": "get",
}
PROXIED = ("delete", "get", "head", "options", "patch", "post", "put")
ACTIONS = {"create": "post", "update": "put"}
"""The `x-kubernetes-action` of a verb, where it is not the verb itself."""
NAMED = {"get": "read", "update": "replace", "deletecollection": "delete", "watchlist": "watch"}
"""What the `operationId` calls a verb, where it is not the verb itself."""
COLLECTION_VERBS = ("list", "create", "deletecollection")

_LIST = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "shardSelector": "string",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITE = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_DELETE = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}
_COLLECTION = {name: type_ for name, type_ in _LIST.items() if name not in ("allowWatchBookmarks", "watch")}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "get": {},
    "list": _LIST,
    "create": _WRITE,
    "update": _WRITE,
    "patch": {**_WRITE, "force": "boolean"},
    "delete": _DELETE,
    "deletecollection": {**_COLLECTION, **_DELETE},
    "watch": _LIST,
    "watchlist": _LIST,
}
_STREAMS = {"stderr": "boolean", "stdin": "boolean", "stdout": "boolean", "tty": "boolean"}
_PROXY = {"path": "string"}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "PodAttachOptions": {"container": "string", **_STREAMS},
    "PodExecOptions": {"command": "string", "container": "string", **_STREAMS},
    "PodPortForwardOptions": {"ports": "integer"},
    "PodProxyOptions": _PROXY,
    "ServiceProxyOptions": _PROXY,
    "NodeProxyOptions": _PROXY,
    "Pod": {
        "container": "string",
        "follow": "boolean",
        "insecureSkipTLSVerifyBackend": "boolean",
        "limitBytes": "integer",
        "pretty": "string",
        "previous": "boolean",
        "sinceSeconds": "integer",
        "stream": "string",
        "tailLines": "integer",
        "timestamps": "boolean",
    },
}
"""The query of a connection, by the kind of its options; that of `log` is called `Pod`."""
CODES: Mapping[str, Mapping[str, str]] = {
    "create": {"200": "OK", "201": "Created", "202": "Accepted"},
    "update": {"200": "OK", "201": "Created"},
    "patch": {"200": "OK", "201": "Created"},
    "delete": {"200": "OK", "202": "Accepted"},
}
"""The status codes of a successful operation, where there are others than 200."""
UNAUTHORIZED: dict[str, Any] = {"401": {"description": "Unauthorized"}}
ANY = ("*/*",)
READ = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
WATCHED = (*READ, "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
STATUS, DELETE_OPTIONS = f"{META}.Status", f"{META}.DeleteOptions"
PATCH, WATCH_EVENT = f"{META}.Patch", f"{META}.WatchEvent"
RESOURCES = f"{META}.APIResourceList"


def paths_of(kind: Kind[Any]) -> dict[str, Item]:
    """The paths of a kind and of its subresources."""
    resource = kind.resource
    base = base_of(resource.api_version)
    everywhere = f"{base}/{resource.plural}"
    within = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
    collection = [verb for verb in kind.verbs if verb in COLLECTION_VERBS]
    single = [verb for verb in kind.verbs if verb in METHODS and verb not in (*COLLECTION_VERBS, "watch")]
    named = resource.kind
    paths = {within: _item(within, named, _operations(kind, collection, resource.type))}
    if single:
        paths[f"{within}/{{name}}"] = _item(
            f"{within}/{{name}}", named, _operations(kind, single, resource.type)
        )
    if resource.namespaced and "list" in kind.verbs:
        paths[everywhere] = _item(
            everywhere, named, _operations(kind, ["list"], resource.type, everywhere=True)
        )
    if "watch" in kind.verbs:
        paths |= _watches(kind, within.removeprefix(base), everywhere.removeprefix(base))
    for name, subresource in kind.subresources.items():
        path = f"{within}/{{name}}/{name}"
        if isinstance(subresource, Connect):
            paths |= _connections(kind, path, subresource)
            continue
        if isinstance(subresource, Members):
            path += "/{member}"
        body = subresource.body if isinstance(subresource, Posted) else resource.type
        paths[path] = _item(path, named, _operations(kind, subresource.verbs, body, name))
    return paths


def resources_path(api_version: str) -> dict[str, Item]:
    """The path that lists the resources of a group version."""
    tag = tag_of(api_version)
    operation: Operation = {
        "description": "Tell which resources there are.",
        "tags": [tag],
        "operationId": f"get{camel(tag)}APIResources",
        "responses": {"200": _answer("OK", READ, reference(RESOURCES)), **UNAUTHORIZED},
    }
    return {f"{base_of(api_version)}/": {"get": operation}}


def base_of(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def tag_of(api_version: str) -> str:
    """`core_v1`, `rbacAuthorization_v1`"""
    group, _, version = api_version.rpartition("/")
    first, *others = (group.removesuffix(".k8s.io") or "core").split(".")
    return f"{first}{''.join(_title(word) for word in others)}_{version}"


def camel(tag: str) -> str:
    return "".join(_title(part) for part in tag.split("_"))


def _title(word: str) -> str:
    return word[:1].upper() + word[1:]


def _identifier(kind: Kind[Any], verb: str, *after: str, mark: str = "", everywhere: bool = False) -> str:
    resource = kind.resource
    scope = "Namespaced" if resource.namespaced and not everywhere else ""
    end = "ForAllNamespaces" if resource.namespaced and everywhere else ""
    words = (camel(tag_of(resource.api_version)), mark, scope, resource.kind, *after, end)
    return NAMED.get(verb, verb) + "".join(words)


def _operations(
    kind: Kind[Any], verbs: Iterable[str], body: type[KubeObject], part: str = "", everywhere: bool = False
) -> dict[str, Operation]:
    """By their methods. `part` is the name of the subresource."""
    name = schema_name(body)
    operations: dict[str, Operation] = {}
    for verb in verbs:
        codes, answered = CODES.get(verb, {"200": "OK"}), reference(_answered(kind, verb, name))
        types = WATCHED if verb in ("list", "watch", "watchlist") else READ
        mark = "Collection" if verb == "deletecollection" else ""
        after = ("List",) if verb == "watchlist" else (_title(part),)
        operation: Operation = {
            "description": words.of_verb(verb, kind.resource.kind, part),
            "tags": [tag_of(kind.resource.api_version)],
            "operationId": _identifier(kind, verb, *after, mark=mark, everywhere=everywhere),
            "parameters": _query({**PARAMETERS[verb], "pretty": "string"}),
            "responses": {code: _answer(said, types, answered) for code, said in codes.items()}
            | UNAUTHORIZED,
            "x-kubernetes-action": ACTIONS.get(verb, verb),
            "x-kubernetes-group-version-kind": group_version_kind(body),
        }
        match verb:
            case "create" | "update":
                operation["requestBody"] = {"content": _content(ANY, reference(name)), "required": True}
            case "patch":
                operation["requestBody"] = {
                    "content": _content(MEDIA_TYPES, reference(PATCH)),
                    "required": True,
                }
            case "delete" | "deletecollection":
                operation["requestBody"] = {"content": _content(ANY, reference(DELETE_OPTIONS))}
        operations[METHODS[verb]] = operation
    return operations


def _watches(kind: Kind[Any], within: str, everywhere: str) -> dict[str, Item]:
    """The older paths of watches: of one object, of a namespace, and of all."""
    base, type_ = f"{base_of(kind.resource.api_version)}/watch", kind.resource.type
    paths = {
        f"{base}{within}/{{name}}": _operations(kind, ["watch"], type_),
        f"{base}{within}": _operations(kind, ["watchlist"], type_),
    }
    if kind.resource.namespaced:
        paths[f"{base}{everywhere}"] = _operations(kind, ["watchlist"], type_, everywhere=True)
    return {path: _item(path, kind.resource.kind, operations) for path, operations in paths.items()}


def _connections(kind: Kind[Any], path: str, connect: Connect) -> dict[str, Item]:
    """A connection, and where it has one the path behind it."""
    methods = PROXIED if connect.has_path else sorted({METHODS[verb] for verb in connect.verbs})
    paths = {}
    for place, end in ((path, ""), (f"{path}/{{path}}", "WithPath"))[: 1 + connect.has_path]:
        operations: dict[str, Operation] = {}
        for method in methods:
            answer = _answer("OK", (*READ, "text/plain") if connect.is_read else ANY, {"type": "string"})
            after = (_title(connect.name), end)
            identifier = (
                _identifier(kind, "get", *after)
                if connect.is_read
                else _identifier(kind, "connect", *after, mark=_title(method))
            )
            said = words.of_verb("get", kind.resource.kind, connect.name)
            operations[method] = {
                "description": said
                if connect.is_read
                else words.of_connection(method, connect.name, kind.resource.kind),
                "tags": [tag_of(kind.resource.api_version)],
                "operationId": identifier,
                "parameters": _query(OPTIONS[connect.options]),
                "responses": {"200": answer, **UNAUTHORIZED},
                "x-kubernetes-action": "get" if connect.is_read else "connect",
                "x-kubernetes-group-version-kind": {"group": "", "kind": connect.options, "version": "v1"},
            }
        paths[place] = _item(place, kind.resource.kind, operations)
    return paths


def _item(path: str, kind: str, operations: dict[str, Operation]) -> Item:
    """What every operation takes goes to the path, beside the names in it."""
    taken = [operation["parameters"] for operation in operations.values()]
    # The field manager is one thing to who applies, and another to all others.
    apart = {"fieldManager"} if len(operations) > 1 and "patch" in operations else set()
    common = [
        one for one in taken[0] if one["name"] not in apart and all(one in others for others in taken[1:])
    ]
    for operation in operations.values():
        operation["parameters"] = [one for one in operation["parameters"] if one not in common]
        if not operation["parameters"]:
            del operation["parameters"]
    string = {"type": "string", "uniqueItems": True}
    common += [
        {
            "name": name,
            "in": "path",
            "description": words.of_parameter(name, kind),
            "required": True,
            "schema": string,
        }
        for name in ("member", "name", "namespace", "path")
        if f"{{{name}}}" in path
    ]
    return {**operations, "parameters": sorted(common, key=lambda one: (one["name"], one["in"]))}


def _query(types: Mapping[str, str]) -> list[Parameter]:
    return [
        {
            "name": name,
            "in": "query",
            "description": words.of_parameter(name),
            "schema": {"type": type_, "uniqueItems": True},
        }
        for name, type_ in sorted(types.items())
    ]


def _answered(kind: Kind[Any], verb: str, name: str) -> str:
    """The schema of the answer to a verb whose body has the schema `name`."""
    match verb:
        case "list":
            return f"{name}List"
        case "watch" | "watchlist":
            return WATCH_EVENT
        case "delete" if kind.returns_deleted:
            return name
        case "delete" | "deletecollection":
            return STATUS
    return name


def _answer(said: str, media_types: Iterable[str], schema: Schema) -> dict[str, Any]:
    return {"description": said, "content": _content(media_types, schema)}


def _content(media_types: Iterable[str], schema: Schema) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type in media_types}
