"""The paths under `/openapi`: one v3 document a group version, an index of them, and one v2 document of all.

Made when they are first asked for, then kept: most clusters never hear of some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any

import msgspec

from podling.apiserver.context import RequestContext
from podling.apiserver.discovery import version_info
from podling.apiserver.negotiation import negotiate
from podling.apiserver.openapi import gnostic
from podling.apiserver.openapi.paths import paths_of
from podling.apiserver.openapi.schemas import schemas_of
from podling.apiserver.openapi.version2 import to_v2
from podling.apiserver.registry.kind import Kind, Posted
from podling.apiserver.registry.review import Review
from podling.apiserver.response import JSON, Response
from podling.model.meta import KubeObject

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
        """What is asked for by its hash never changes; who asks by another hash is sent to today's."""
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
        """Where a group's document is, with a hash of it, so that clients may keep it."""
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
    """What is posted and never listed."""
    reviews = [kind.resource.type for kind in kinds if isinstance(kind, Review)]
    subresources = [subresource for kind in kinds for subresource in kind.subresources.values()]
    return reviews + [subresource.body for subresource in subresources if isinstance(subresource, Posted)]
