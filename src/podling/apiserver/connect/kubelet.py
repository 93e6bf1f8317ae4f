"""Logs and streams of pods: passes an authorized request on to the kubelet of the pod's node. `proxy`
requests go to `http.py`.

Logs are one plain GET, whose body is passed on as it arrives. For exec, attach and port-forward the handshake
is repeated to the kubelet, and after its 101 bytes are copied both ways without being parsed. If the kubelet
answers with anything but 101, that is the client's answer, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from podling.apiserver.connect.http import HttpProxy
from podling.apiserver.connect.kubelets import Kubelets, http_connector, kubelet_address, kubelet_target
from podling.apiserver.connect.web_socket import LogSocket
from podling.apiserver.request.context import Find, RequestContext
from podling.apiserver.request.request import wants_web_socket
from podling.apiserver.request.response import JSON, NO_CONTENT, TEXT, Response
from podling.model.errors import StatusError, bad_request, internal, not_found
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.streaming.splice import Splice
from podling.streaming.takeover import taken_over
from podling.streaming.upgrade import Address, Refused, Upgraded, request_head, upgrade
from podling.streaming.wire import Disconnected, ProtocolError

MAX_ERROR = 64 * 1024
_FORWARDED = (
    "Upgrade",
    "Connection",
    "X-Stream-Protocol-Version",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions",
)
_OURS = frozenset({"date", "server", "content-length", "content-type"})


class KubeletProxy:
    """The API server's connector."""

    def __init__(self, find: Find, kubelets: Kubelets) -> None:
        self._find = find
        self._http = HttpProxy(find, kubelets)
        self._kubelets = kubelets

    async def __call__(self, context: RequestContext, obj: Any) -> Response:
        upgrades = bool(context.request.headers.get("Upgrade"))
        if context.info.subresource == "proxy":
            if not upgrades:
                return await self._http.relayed(context, obj)
            return Response(101, KubeletUpgrade(*self._http.target(context, obj)))
        pod: Pod = obj
        subresource = context.info.subresource
        target = kubelet_target(pod, subresource, context.query)
        if not pod.spec.node_name and subresource == "log":
            return Response(NO_CONTENT)
        if not pod.spec.node_name:
            raise bad_request(f"pod {pod.metadata.name} does not have a host assigned")
        node = self._find(Node, "", pod.spec.node_name)
        if node is None:
            # Under the kind of what was asked for, as Kubernetes tells it.
            raise not_found("pods", pod.spec.node_name)
        address = self._kubelets.at(*kubelet_address(node))
        if subresource == "log":
            body = _log(address, target, pod.metadata.name)
            # Its first, empty piece comes with the kubelet's consent: refusals are still answered as errors.
            await anext(body)
            if wants_web_socket(context.request.headers):
                return Response(101, LogSocket(body))
            return Response(200, body, content_type="text/plain")
        if not upgrades:
            raise bad_request("Upgrade request required")
        return Response(101, KubeletUpgrade(address, target))


async def _log(address: Address, target: str, pod: str) -> AsyncGenerator[bytes, None]:
    url = f"https://{_authority(address)}{target}"
    timeout = aiohttp.ClientTimeout(total=None)
    connector = http_connector(address)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        try:
            response = await session.get(URL(url, encoded=True))
        except (aiohttp.ClientError, OSError) as error:
            raise StatusError(500, "", f'Get "{url}": {error}') from error
        async with response:
            if response.status != 200:
                raise log_refusal(response.status, await response.content.read(MAX_ERROR), pod)
            yield b""
            try:
                async for piece in response.content.iter_any():
                    yield piece
            except aiohttp.ClientError as error:
                raise Disconnected(str(error)) from error


def log_refusal(status: int, body: bytes, pod: str) -> StatusError:
    """The kubelet's plain text as a Status, as Kubernetes' GenericHttpResponseChecker makes it."""
    text = body.decode(errors="replace")
    if status == 400:
        return bad_request(text)
    if status == 500:
        return internal(text)
    reasons = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}
    message = {
        401: "the server has asked for the client to provide credentials",
        403: text or "access denied",
        404: "the server could not find the requested resource",
    }.get(status, f"the server responded with the status code {status} but did not return more information")
    return StatusError(
        status, reasons.get(status, ""), f"{message} ( pods/log {pod})", name=pod, kind="pods/log"
    )


class KubeletUpgrade:
    """An answer that takes over the client's connection and joins it with one to the kubelet."""

    def __init__(self, address: Address, target: str) -> None:
        self._address = address
        self._target = target

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            headers = [("Host", _authority(self._address)), ("Content-Length", "0")]
            headers += [(name, value) for name in _FORWARDED for value in request.headers.getall(name, [])]
            kubelet = await upgrade(self._address, request_head(request.method, self._target, headers))
        except Refused as refused:
            content_type = refused.headers.get("Content-Type", TEXT)
            return web.Response(
                status=refused.status, body=refused.body, headers={"Content-Type": content_type}
            )
        except (OSError, ProtocolError) as error:
            # With a line's end, as all that is answered in JSON.
            said = (
                msgspec.json.encode(StatusError(500, "", f"error dialing backend: {error}").status()) + b"\n"
            )
            return web.Response(status=500, body=said, headers={"Content-Type": JSON})
        return await joined(request, kubelet)


async def joined(request: web.BaseRequest, theirs: Upgraded) -> web.StreamResponse:
    """The client's connection, joined with one that has agreed to the upgrade; returns when both are over."""
    agreed = {name: value for name, value in theirs.headers.items() if name.lower() not in _OURS}
    client_end, their_end = Splice.pair()
    try:
        async with taken_over(request, agreed, client_end) as response:
            theirs.hand_to(their_end)
            await client_end.done()
    except Disconnected:
        return web.Response(status=500)
    finally:
        theirs.drop()
    return response


def _authority(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}"
