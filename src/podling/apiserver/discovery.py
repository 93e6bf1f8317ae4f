"""What is served here, for clients to find out: versions, groups, resources, in both forms Kubernetes has.

The older form is a tree of documents (`/api`, `/api/v1`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`); the
newer, aggregated one gives all of a tree in one answer, to clients that accept it. All of it follows from the
kinds and is made once; an ETag saves sending again what a client already has.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.context import RequestContext
from podling.apiserver.discovery_aggregated import GROUP, aggregate
from podling.apiserver.discovery_tree import tree
from podling.apiserver.errors import MethodNotSupported
from podling.apiserver.negotiation import negotiate
from podling.apiserver.registry.kind import Kind
from podling.apiserver.response import Response

KUBERNETES_VERSION = ("1", "36")
AGGREGATED_SHAPES = frozenset(("APIGroupDiscoveryList", GROUP, version) for version in ("v2", "v2beta1"))


class Document(NamedTuple):
    """One answer, and the name by which a client may say that it has it."""

    body: bytes
    etag: str


class Discovery:
    """Serves the discovery paths of `kinds` and `/version`."""

    def __init__(self, kinds: Sequence[Kind[Any]], podling_version: str) -> None:
        ordered = sorted(kinds, key=lambda kind: (kind.resource.group, kind.resource.version))
        versions = {
            key: list(members)
            for key, members in groupby(
                ordered, key=lambda kind: (kind.resource.group, kind.resource.version)
            )
        }
        self._documents = {path: _document(data) for path, data in tree(versions)}
        self._documents["/version"] = _document(version_info(podling_version))
        self._aggregated = {
            (path, version): _document(aggregate(versions, version, core=path == "/api"))
            for path in ("/api", "/apis")
            for version in ("v2", "v2beta1")
        }

    @property
    def paths(self) -> Collection[str]:
        return self._documents.keys()

    async def serve(self, context: RequestContext) -> Response | None:
        path = context.info.path.rstrip("/")
        document = self._documents.get(path)
        if document is None:
            return None
        if context.request.method != "GET":
            raise MethodNotSupported(("GET",))
        headers = context.request.headers
        shapes = AGGREGATED_SHAPES if path in ("/api", "/apis") else frozenset()
        context.wanted = wanted = negotiate(headers.get("Accept", ""), shapes)
        content_type = wanted.media_type
        if wanted.kind:
            document = self._aggregated[path, wanted.version]
            content_type += f";g={wanted.group};v={wanted.version};as={wanted.kind}"
        answer = {"ETag": document.etag, "Vary": "Accept"}
        if headers.get("If-None-Match") == document.etag:
            return Response(304, b"", content_type, answer)
        return Response(200, document.body, content_type, answer)


def version_info(podling_version: str) -> dict[str, str]:
    major, minor = KUBERNETES_VERSION
    system = platform.machine()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(system, system)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+podling-{podling_version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"linux/{architecture}",
    }


def _document(data: Any) -> Document:
    body = msgspec.json.encode(data)
    return Document(body, f'"{hashlib.sha256(body).hexdigest().upper()}"')
