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

from podling.apiserver.kinds.kind import Connect, Kind, Members, Posted
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

INDEX, PREFIX, V2 = "/openapi/v3", "/openapi/v3/", "/openapi/v2"
KEPT = timedelta(days=365)
UNVERSIONED = "unversioned"
"""What Kubernetes writes into the documents of version 3."""

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
        path = f"{within}/{{name}}/{name}{'/{member}' if isinstance(subresource, Members) else ''}"
        if isinstance(subresource, Connect):
            operation = {"responses": {"200": {"description": "OK"}}, "x-kubernetes-action": "connect"}
            paths[path] = {METHODS[verb]: operation for verb in subresource.verbs}
        else:
            body = subresource.body if isinstance(subresource, Posted) else resource.type
            paths[path] = _item(kind, list(subresource.verbs), body)
    for path, item in paths.items():
        placeholders = [name for name in ("member", "name", "namespace") if f"{{{name}}}" in path]
        schema = {"type": "string", "uniqueItems": True}
        item["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": schema} for name in placeholders
        ]
    return paths


def _item(kind: Kind[Any], verbs: list[str], body: type[KubeObject]) -> dict[str, Any]:
    name = schema_name(body)
    operations: dict[str, Operation] = {}
    for verb in verbs:
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
        operations[METHODS[verb]] = operation
    return operations


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
        path = context.info.path
        if path != V2 and path != INDEX and path.removeprefix(PREFIX) not in self._by_path:
            return None
        accept = context.request.headers.get("Accept", "")
        if path == V2 and gnostic.MEDIA_TYPE in accept:
            return self._answer(self._document(gnostic.CONTENT_TYPE), context, gnostic.CONTENT_TYPE)
        context.wanted = negotiate(accept)
        asked = context.query.get("hash", ("",))[0]
        if asked and path.startswith(PREFIX):
            # A URL with the current hash is immutable; one with another is redirected to the current.
            today = self._url(path.removeprefix(PREFIX))
            if not today.endswith(f"?hash={asked}"):
                return Response(301, b"", JSON, {"Location": today})
            response = self._answer(self._document(path), context)
            response.headers["Cache-Control"] = "public, immutable"
            response.headers["Expires"] = format_datetime(context.now + KEPT, usegmt=True)
            return response
        return self._answer(self._document(path), context)

    def _answer(self, body: bytes, context: RequestContext, content_type: str = JSON) -> Response:
        etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if context.request.headers.get("If-None-Match") == etag:
            return Response(304, b"", content_type, headers)
        return Response(200, body, content_type, headers)

    def _document(self, path: str) -> bytes:
        """The document of a path; that of version 2 in protobuf has its content type for a path."""
        if path in self._made:
            return self._made[path]
        if path == INDEX:
            made = {"paths": {group: {"serverRelativeURL": self._url(group)} for group in self._by_path}}
        elif path.startswith(PREFIX):
            made = self._describe(self._by_path[path.removeprefix(PREFIX)])
        else:
            made = to_v2(self._describe(self._kinds, self._version))
        encode = gnostic.encode_document if path == gnostic.CONTENT_TYPE else msgspec.json.encode
        self._made[path] = encode(made)
        return self._made[path]

    def _url(self, group: str) -> str:
        """The URL of a group's document, with a hash of its content, so that clients may cache it."""
        digest = hashlib.sha256(self._document(PREFIX + group)).hexdigest().upper()
        return f"{PREFIX}{group}?hash={digest}"

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
        stored = [kind.resource.type for kind in kinds if not isinstance(kind, Review)]
        # Bodies that are posted and never listed.
        bodies = [kind.resource.type for kind in kinds if isinstance(kind, Review)]
        subresources = [subresource for kind in kinds for subresource in kind.subresources.values()]
        bodies += [subresource.body for subresource in subresources if isinstance(subresource, Posted)]
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": version},
            "paths": dict(sorted(paths.items())),
            "components": {"schemas": schemas_of(stored, bodies)},
        }
