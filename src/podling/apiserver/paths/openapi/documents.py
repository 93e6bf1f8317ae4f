"""The paths below `/openapi`: a v3 document for each group version, their index, and one v2
document of all.

A document has the operations of the kinds (`operations.py`) and the schemas of their types. kubectl reads
from it whether the server supports `fieldValidation` and dry-run. Documents are made at the first request and
then kept, since most clusters are never asked for some of them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from podling.apiserver.kinds.kind import Kind, Posted
from podling.apiserver.paths.discovery import version_info
from podling.apiserver.paths.openapi import gnostic
from podling.apiserver.paths.openapi.discovery import ToldPath, told
from podling.apiserver.paths.openapi.operations import paths_of, resources_path
from podling.apiserver.paths.openapi.schemas import schemas_of
from podling.apiserver.paths.openapi.version2 import to_v2
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import first_of
from podling.apiserver.request.response import JSON, TEXT, Layout, Response
from podling.process.waits import apart

if TYPE_CHECKING:
    from podling.apiserver.paths.openapi.joining import Description

INDEX, PREFIX, V2 = "/openapi/v3", "/openapi/v3/", "/openapi/v2"
KEPT = timedelta(days=365)
SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}


class OpenAPI:
    """Serves the descriptions of `kinds`."""

    def __init__(self, kinds: Sequence[Kind[Any]], version: str) -> None:
        self._kinds = kinds
        self._version = "{major}.{minor}".format(**version_info(version))
        self._made: dict[str, bytes] = {}
        self._making = asyncio.Lock()
        self.elsewhere: Mapping[str, str] = {}
        """Where other servers describe groups that they have: as in the index, by the paths in it."""
        self._others: Sequence[Description] = ()

    def join(self, others: Sequence[Description]) -> None:
        """Have the document of version 2 tell of what other servers say in it."""
        if others != self._others:
            self._others = others
            for path in (V2, gnostic.CONTENT_TYPE):
                self._made.pop(path, None)

    @property
    def paths(self) -> Collection[str]:
        return [V2, INDEX, *(PREFIX + group for group in self._by_path)]

    async def serve(self, context: RequestContext) -> Response | None:
        path = context.info.path
        if path not in (V2, INDEX) and path.removeprefix(PREFIX) not in {*self._by_path, *self._told}:
            return Response(404, b"", "") if path.startswith(PREFIX) else None
        if path != INDEX:
            offered = (JSON, gnostic.MEDIA_TYPE, gnostic.CONTENT_TYPE) if path == V2 else (JSON,)
            media_type = first_of(context.request.headers.get("Accept", ""), offered)
            if not media_type:
                return Response(406, b"", "", {"Vary": "Accept"})
            if media_type != JSON:
                return self._answer(await self._ready(gnostic.CONTENT_TYPE), context, gnostic.CONTENT_TYPE)
        body = await self._ready(path)
        if path == INDEX and self.elsewhere:
            listed = msgspec.json.decode(body)["paths"]
            listed |= {name: {"serverRelativeURL": url} for name, url in self.elsewhere.items()}
            body = msgspec.json.encode({"paths": dict(sorted(listed.items()))})
        if path == INDEX:
            # Kubernetes leaves it to its HTTP library to say what that is.
            return Response(200, body, TEXT)
        asked = context.query.get("hash", ("",))[0]
        if asked and path.startswith(PREFIX):
            # A URL with the current hash is immutable; one with another is redirected to the current.
            today = self._url(path.removeprefix(PREFIX))
            if not today.endswith(f"?hash={asked}"):
                return Response(301, b"", JSON, {"Location": today})
            response = self._answer(body, context)
            response.headers["Cache-Control"] = "public, immutable"
            response.headers["Expires"] = format_datetime(context.now + KEPT, usegmt=True)
            return response
        return self._answer(body, context)

    async def _ready(self, path: str) -> bytes:
        """As `_document`, made in a thread: it takes up to a second, and the loop has others to serve."""
        if (made := self._made.get(path)) is not None:
            return made
        async with self._making:
            return await apart(self._document, path)

    def _answer(self, body: bytes, context: RequestContext, content_type: str = JSON) -> Response:
        etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": etag, "Vary": "Accept"}
        if context.request.headers.get("If-None-Match") == etag:
            return Response(304, b"", content_type, headers)
        return Response(200, body, content_type, headers, Layout.DOCUMENT)

    def _document(self, path: str) -> bytes:
        """The document of a path; that of version 2 in protobuf has its content type for a path."""
        if path in self._made:
            return self._made[path]
        others = self._others
        if path == INDEX:
            groups = sorted({*self._by_path, *self._told})
            made = {"paths": {group: {"serverRelativeURL": self._url(group)} for group in groups}}
        elif path.removeprefix(PREFIX) in self._told:
            made = self._tell([path.removeprefix(PREFIX)])
        elif path.startswith(PREFIX):
            made = self._describe(self._by_path[path.removeprefix(PREFIX)])
        else:
            made = self._describe(self._kinds)
            more = self._tell(self._told)
            made["paths"] = dict(sorted({**made["paths"], **more["paths"]}.items()))
            made["components"]["schemas"] |= more["components"]["schemas"]
            made = to_v2(made)
            if others:
                from podling.apiserver.paths.openapi.joining import joined

                made = joined(made, others)
        encoded = gnostic.encode_document(made) if path == gnostic.CONTENT_TYPE else msgspec.json.encode(made)
        # Other servers may have said something else meanwhile.
        if others is self._others:
            self._made[path] = encoded
        return encoded

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

    @cached_property
    def _told(self) -> dict[str, ToldPath]:
        return told(kind.resource.api_version for kind in self._kinds)

    def _tell(self, names: Iterable[str]) -> dict[str, Any]:
        paths = {f"/{name}/": self._told[name].item() for name in names}
        schemas = {key: schema for name in names for key, schema in self._told[name].schemas().items()}
        return self._framed(paths, {"schemas": schemas} if schemas else {})

    def _framed(self, paths: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self._version},
            "paths": paths,
            "components": {**components, "securitySchemes": SECURITY},
        }

    def _describe(self, kinds: Sequence[Kind[Any]]) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for kind in kinds:
            paths |= resources_path(kind.resource.api_version) | paths_of(kind)
        stored = [kind.resource.type for kind in kinds if "list" in kind.verbs]
        # Bodies that are posted and never listed.
        bodies = [kind.resource.type for kind in kinds if "list" not in kind.verbs]
        subresources = [subresource for kind in kinds for subresource in kind.subresources.values()]
        bodies += [subresource.body for subresource in subresources if isinstance(subresource, Posted)]
        return self._framed(dict(sorted(paths.items())), {"schemas": schemas_of(stored, bodies)})
