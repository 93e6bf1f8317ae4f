"""`proxy`: a request passed on to a node, a pod or a service, and its answer passed back as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from podling.apiserver.authn.impersonation import is_about_impersonation
from podling.apiserver.context import RequestContext
from podling.apiserver.kubelets import Kubelets, http_connector, unverified
from podling.apiserver.proxy_target import (
    AS_IT_IS,
    Target,
    asked_of,
    node_target,
    path_below,
    pod_target,
    service_target,
)
from podling.apiserver.response import TEXT, Response
from podling.model.errors import StatusError
from podling.model.service import Endpoints
from podling.streaming.errors import Disconnected
from podling.streaming.upgrade import Address

FindEndpoints = Callable[[str, str], Endpoints]
"""Those of the service of that namespace and name. Raises StatusError."""

OF_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OURS = (OF_CONNECTION - {"content-type"}) | {"authorization", "expect", "x-forwarded-for", "x-forwarded-uri"}
"""What a request carries for us and nobody else."""
NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class _Head(msgspec.Struct):
    status: int = 0
    content_type: str = TEXT
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class HttpProxy:
    """Whoever is behind https and no kubelet shows a certificate nobody can judge."""

    def __init__(self, find_endpoints: FindEndpoints, kubelets: Kubelets) -> None:
        self._find_endpoints = find_endpoints
        self._kubelets = kubelets
        self._unverified = unverified()

    def target(self, context: RequestContext, obj: Any) -> tuple[Address, str]:
        """Whom, and what of it, with the query. Raises StatusError."""
        found = self._target(context, obj)
        below = path_below(context.request.path, context.info) or "/"
        query = context.request.query
        return self._address(found), f"{below}?{query}" if query else below

    def _address(self, target: Target) -> Address:
        if target.kubelet:
            return self._kubelets.at(target.host, target.port)
        return Address(target.host, target.port, self._unverified if target.scheme == "https" else None)

    async def relayed(self, context: RequestContext, obj: Any) -> Response:
        """Raises StatusError."""
        request = context.request
        if not path_below(request.path, context.info) and request.method in ("GET", "HEAD"):
            return _moved(request.path, request.query)
        address, target = self.target(context, obj)
        head = _Head()
        body = _relay(context, address, target, head)
        # Its first, empty piece comes with the head of the answer.
        await anext(body)
        return Response(head.status, body, head.content_type, head.headers)

    def _target(self, context: RequestContext, obj: Any) -> Target:
        info = context.info
        asked = asked_of(info.name, info.resource.removesuffix("s"))
        if info.resource == "nodes":
            return node_target(asked, obj)
        if info.resource == "pods":
            return pod_target(asked, obj)
        return service_target(asked, obj, self._endpoints(info.namespace, asked.name))

    def _endpoints(self, namespace: str, name: str) -> Endpoints:
        """None, of a service that selects nothing."""
        try:
            return self._find_endpoints(namespace, name)
        except StatusError as error:
            if error.code != 404:
                raise
            return Endpoints()


def _moved(path: str, query: str) -> Response:
    """Relative links of a page only work below a directory."""
    location = f"{path}/?{query}" if query else f"{path}/"
    return Response(301, b"", TEXT, {"Location": location})


def _whence(context: RequestContext) -> dict[str, str]:
    """Who asked, for whom, and by which path."""
    request, info = context.request, context.info
    place = f"namespaces/{info.namespace}/" if info.resource != "nodes" else ""
    front = f"/api/{info.api_version}/{place}{info.resource}/{info.name}/proxy"
    below = path_below(request.path, info) or "/"
    headers = {"X-Forwarded-Uri": quote(front, safe=AS_IT_IS) + below}
    if "Host" in request.headers:
        headers["Host"] = request.headers["Host"]
    if request.remote:
        before = request.headers.get("X-Forwarded-For")
        headers["X-Forwarded-For"] = f"{before}, {request.remote}" if before else request.remote
    return headers


def _is_ours(header: str) -> bool:
    return header.lower() in OURS or is_about_impersonation(header)


async def _relay(
    context: RequestContext, address: Address, target: str, head: _Head
) -> AsyncGenerator[bytes, None]:
    request = context.request
    host = f"[{address.host}]" if ":" in address.host else address.host
    url = URL(f"{'https' if address.tls else 'http'}://{host}:{address.port}{target}", encoded=True)
    headers = {name: value for name, value in request.headers.items() if not _is_ours(name)}
    headers |= _whence(context)
    connector = http_connector(address)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=NOT_ADDED
    ) as session:
        try:
            answer = await session.request(
                request.method, url, headers=headers, data=request.body or None, allow_redirects=False
            )
        except (aiohttp.ClientError, OSError) as error:
            message = f"error trying to reach service: {error}"
            raise StatusError(503, "ServiceUnavailable", message) from error
        async with answer:
            head.status = answer.status
            head.content_type = answer.headers.get("Content-Type", TEXT)
            head.headers.update(
                (name, value) for name, value in answer.headers.items() if name.lower() not in OF_CONNECTION
            )
            yield b""
            try:
                async for piece in answer.content.iter_any():
                    yield piece
            except aiohttp.ClientError as error:
                raise Disconnected(str(error)) from error
