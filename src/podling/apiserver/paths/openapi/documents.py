"""The paths below `/openapi`: a v3 document for each group version, their index, and one v2
document of all.

A document has the operations of the kinds and the schemas of their types. kubectl reads from it whether the
server supports `fieldValidation` and dry-run. Documents are made at the first request and then kept, since
most clusters are never asked for some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any

import msgspec

from podling.apiserver.kinds.kind import Connect, Kind, Members, Posted, Subresource
from podling.apiserver.kinds.reviews import Review
from podling.apiserver.patch.parse import MEDIA_TYPES
from podling.apiserver.paths.discovery import version_info
from podling.apiserver.paths.openapi import gnostic
from podling.apiserver.paths.openapi.schemas import group_version_kind, reference, schema_name, schemas_of
from podling.apiserver.paths.openapi.version2 import to_v2
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import negotiate
from podling.apiserver.request.response import JSON, Response
from podling.model.types.meta import KubeObject

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
"""The `x-kubernetes-action` of a verb, where it is not the verb itself."""
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
"""The status codes of a successful operation, where there are others than 200. Errors are not listed."""
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
    """The schema of the answer to a verb whose body has the schema `name`."""
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


INDEX, PREFIX, V2 = "/openapi/v3", "/openapi/v3/", "/openapi/v2"

KEPT = timedelta(days=365)

UNVERSIONED = "unversioned"
"""What Kubernetes writes into the documents of version 3."""


class OpenAPI:
    """Serves the descriptions of `kinds`."""

    def __init__(self, kinds: Sequence[Kind[Any]], version: str) -> None:
        self._kinds = kinds
        self._version = version_info(version)["gitVersion"]
        self._made: dict[str, bytes] = {}

    @property
    def paths(self) -> Collection[str]:
        return [V2, INDEX, *(PREFIX + group for group in self._by_path)]

    async def serve(self, context: RequestContext) -> Response | None:
        path = context.info.path.rstrip("/")
        if path != V2 and path != INDEX and path.removeprefix(PREFIX) not in self._by_path:
            return None
        accept = context.request.headers.get("Accept", "")
        if path == V2 and gnostic.MEDIA_TYPE in accept:
            return self._answer(self._protobuf, context, gnostic.CONTENT_TYPE)
        context.wanted = negotiate(accept)
        asked = context.query.get("hash", ("",))[0]
        if asked and path.startswith(PREFIX):
            return self._answer_for_good(path.removeprefix(PREFIX), asked, context)
        return self._answer(self._document(path), context)

    def _answer_for_good(self, group: str, digest: str, context: RequestContext) -> Response:
        """Answer with the document. A URL with its current hash is immutable; one with another hash is
        redirected to the current URL."""
        today = self._url(group)
        if not today.endswith(f"?hash={digest}"):
            return Response(301, b"", JSON, {"Location": today})
        response = self._answer(self._document(PREFIX + group), context)
        response.headers["Cache-Control"] = "public, immutable"
        response.headers["Expires"] = format_datetime(context.now + KEPT, usegmt=True)
        return response

    def _answer(self, body: bytes, context: RequestContext, content_type: str = JSON) -> Response:
        etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if context.request.headers.get("If-None-Match") == etag:
            return Response(304, b"", content_type, headers)
        return Response(200, body, content_type, headers)

    def _document(self, path: str) -> bytes:
        if path not in self._made:
            self._made[path] = msgspec.json.encode(self._make(path))
        return self._made[path]

    def _make(self, path: str) -> dict[str, Any]:
        if path == V2:
            return to_v2(self._describe(self._kinds, self._version))
        if path == INDEX:
            return {"paths": {group: {"serverRelativeURL": self._url(group)} for group in self._by_path}}
        return self._describe(self._by_path[path.removeprefix(PREFIX)])

    def _url(self, group: str) -> str:
        """The URL of a group's document, with a hash of its content, so that clients may cache it."""
        digest = hashlib.sha256(self._document(PREFIX + group)).hexdigest().upper()
        return f"{PREFIX}{group}?hash={digest}"

    @cached_property
    def _protobuf(self) -> bytes:
        return gnostic.encode_document(to_v2(self._describe(self._kinds, self._version)))

    @cached_property
    def _by_path(self) -> dict[str, list[Kind[Any]]]:
        groups: dict[str, list[Kind[Any]]] = {}
        for kind in self._kinds:
            resource = kind.resource
            path = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
            groups.setdefault(path, []).append(kind)
        return groups

    def _describe(self, kinds: Sequence[Kind[Any]], version: str = UNVERSIONED) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for kind in kinds:
            paths.update(paths_of(kind))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": version},
            "paths": dict(sorted(paths.items())),
            "components": {"schemas": schemas_of(_stored(kinds), _bodies(kinds))},
        }


def _stored(kinds: Sequence[Kind[Any]]) -> list[type[KubeObject]]:
    return [kind.resource.type for kind in kinds if not isinstance(kind, Review)]


def _bodies(kinds: Sequence[Kind[Any]]) -> list[type[KubeObject]]:
    """The types of bodies that are posted and never listed."""
    reviews = [kind.resource.type for kind in kinds if isinstance(kind, Review)]
    subresources = [subresource for kind in kinds for subresource in kind.subresources.values()]
    return reviews + [subresource.body for subresource in subresources if isinstance(subresource, Posted)]
