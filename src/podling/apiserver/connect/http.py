"""The `proxy` subresource of nodes, pods and services: passes a request on to the target, and the answer
back.

The target follows, purely, from the name in the path and the object. The name may have a scheme and a port
(`https:web:8443`); otherwise they come from the object. Targets with loopback, link-local or multicast
addresses are refused, as in Kubernetes.
"""

from __future__ import annotations

import ipaddress
import posixpath
import random
from collections.abc import AsyncGenerator, Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from podling.apiserver.authn.authenticators import says_who
from podling.apiserver.connect.kubelets import Kubelets, http_connector, kubelet_address
from podling.apiserver.request.context import Find, RequestContext
from podling.apiserver.request.request import Request, RequestInfo, decoded
from podling.apiserver.request.response import TEXT, Response
from podling.model.errors import StatusError, bad_request, not_found
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.model.types.service import EndpointAddress, Endpoints, Service
from podling.process.tls import connecting_context
from podling.streaming.upgrade import Address
from podling.streaming.wire import Disconnected

AS_IT_IS = "$&+,/:;=@"
"""Characters that Go does not escape in a path, beside letters, digits and `-_.~`."""
DEFAULT_PORTS = {"http": 80, "https": 443}

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
"""Headers of a request that are for the API server and not passed on."""
NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class ProxyName(NamedTuple):
    """A name of a `proxy` path, split. Scheme and port are empty if it has none."""

    scheme: str
    name: str
    port: str


class Target(NamedTuple):
    """The address to connect to. `kubelet`: whether it is the node's kubelet, which is reached with mutual
    TLS."""

    scheme: str
    host: str
    port: int
    kubelet: bool = False


def parse_proxy_name(name: str, what: str) -> ProxyName:
    """Split `[scheme:]name[:port]`. `what` names the resource in errors. Raises StatusError 400."""
    parts = name.split(":")
    if len(parts) == 1 and parts[0]:
        return ProxyName("", parts[0], "")
    if len(parts) == 2 and parts[0]:
        return ProxyName("", parts[0], parts[1])
    if len(parts) == 3 and parts[1] and parts[0] in ("", "http", "https"):
        return ProxyName(*parts)
    raise bad_request(f'invalid {what} request "{name}"')


def path_below(path: str, info: RequestInfo) -> str:
    """The part of the path after `proxy`, as Kubernetes passes it on; empty if not even a slash follows.

    It is decoded, cleaned of `//`, `.` and `..`, and encoded again, so that the target cannot read it
    differently.
    """
    whole = decoded(path)
    if not info.rest:
        return "/" if whole.endswith(b"/") else ""
    rest = b"/".join(whole.strip(b"/").split(b"/")[-len(info.rest) :])
    below = posixpath.normpath(b"/" + rest.lstrip(b"/"))
    if whole.endswith(b"/") and below != b"/":
        below += b"/"
    return quote(below, safe=AS_IT_IS)


def node_target(asked: ProxyName, node: Node) -> Target:
    """The node's kubelet, unless another port is named. Raises StatusError."""
    host, port = kubelet_address(node)
    if asked.port in ("", str(port)):
        return Target("https", host, port, kubelet=True)
    return _reachable(asked.scheme, host, asked.port)


def pod_target(asked: ProxyName, pod: Pod) -> Target:
    """The pod's first declared port, unless one is named. Raises StatusError."""
    declared = (port.container_port for container in pod.spec.containers for port in container.ports)
    scheme = asked.scheme or "http"
    port = asked.port or str(next(declared, DEFAULT_PORTS[scheme]))
    return _reachable(scheme, pod.status.pod_ip, port)


def service_target(told: str, service: Service, find: Find) -> Target:
    """A random ready endpoint of the service that is a pod of its namespace: whoever may write endpoints
    could else reach what the server reaches. `told`: the name in the path. Raises StatusError 503 if there is
    none, 404 if there are no endpoints: a service without selector has none until somebody makes them."""
    asked, name = parse_proxy_name(told, "service"), service.metadata.name
    namespace, port = service.metadata.namespace, asked.port
    if port.isdigit():
        # The number of a port of the service, which is named by its endpoints.
        named = [declared.name for declared in service.spec.ports if declared.port == int(port)]
        if not named:
            message = f'no service port {port} found for service "{name}"'
            raise StatusError(503, "ServiceUnavailable", message)
        port = named[0]
    endpoints = find(Endpoints, namespace, name)
    if endpoints is None:
        raise not_found("services", name)
    choices = []
    for subset in endpoints.subsets:
        numbers = [found.port for found in subset.ports if found.name == port]
        choices += [(address, number) for number in numbers[:1] for address in subset.addresses]
    for address, number in random.sample(choices, len(choices)):
        if _is_of_pod(address, namespace, find):
            return _reachable(asked.scheme, address.ip, str(number))
    # As Kubernetes tells it: where there are others, of all that was asked for.
    of = told if endpoints.subsets else name
    raise StatusError(503, "ServiceUnavailable", f'no endpoints available for service "{of}"')


def _is_of_pod(address: EndpointAddress, namespace: str, find: Find) -> bool:
    of = address.target_ref
    pod = find(Pod, namespace, of.name) if of is not None and of.namespace == namespace else None
    return pod is not None and any(one.ip == address.ip for one in pod.status.pod_ips)


def _reachable(scheme: str, host: str, port: str) -> Target:
    """The target, if its address may be proxied to. Raises StatusError 400 for an address of this machine
    only, and for what is no port."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise bad_request("address not allowed") from None
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise bad_request("address not allowed")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise bad_request(f'invalid port "{port}"')
    return Target(scheme or "http", host, int(port))


class _Head(msgspec.Struct):
    status: int = 0
    content_type: str = TEXT
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class HttpProxy:
    """Proxies requests. The certificates of pods and services behind https are not verified, as in
    Kubernetes, since there is no authority to verify them with."""

    def __init__(self, find: Find, kubelets: Kubelets) -> None:
        self._find = find
        self._kubelets = kubelets
        self._unverified = connecting_context(verify=False)

    def target(self, context: RequestContext, obj: Any) -> tuple[Address, str]:
        """The address to connect to, and the path and query to request there. Raises StatusError."""
        found = self._target(context, obj)
        if found.kubelet:
            address = self._kubelets.at(found.host, found.port)
        else:
            tls = self._unverified if found.scheme == "https" else None
            address = Address(found.host, found.port, tls)
        below = path_below(context.request.path, context.info) or "/"
        query = context.request.query
        return address, f"{below}?{query}" if query else below

    async def relayed(self, context: RequestContext, obj: Any) -> Response:
        """Raises StatusError."""
        request = context.request
        address, target = self.target(context, obj)
        if not path_below(request.path, context.info) and request.method in ("GET", "HEAD"):
            # Without the slash relative links of a page would not work.
            location = f"{request.path}/?{request.query}" if request.query else f"{request.path}/"
            return Response(301, b"", TEXT, {"Location": location})
        try:
            return await passed_on(request, address, target, _whence(context))
        except (aiohttp.ClientError, OSError) as error:
            message = f"error trying to reach service: {error}"
            raise StatusError(503, "ServiceUnavailable", message) from error

    def _target(self, context: RequestContext, obj: Any) -> Target:
        info = context.info
        asked = parse_proxy_name(info.name, info.resource.removesuffix("s"))
        if info.resource == "nodes":
            return node_target(asked, obj)
        if info.resource == "pods":
            return pod_target(asked, obj)
        return service_target(info.name, obj, self._find)


def _whence(context: RequestContext) -> Iterable[tuple[str, str]]:
    """The `Host`, `X-Forwarded-For` and `X-Forwarded-Uri` headers that tell the target of the original
    request."""
    request, info = context.request, context.info
    place = f"namespaces/{info.namespace}/" if info.resource != "nodes" else ""
    front = f"/api/{info.api_version}/{place}{info.resource}/{info.name}/proxy"
    below = path_below(request.path, info) or "/"
    headers = {"X-Forwarded-Uri": quote(front, safe=AS_IT_IS) + below}
    if "Host" in request.headers:
        headers["Host"] = request.headers["Host"]
    return [*headers.items(), *whence(request)]


def whence(request: Request) -> list[tuple[str, str]]:
    """The `X-Forwarded-For` header, with those it came through before."""
    if not request.remote:
        return []
    before = request.headers.get("X-Forwarded-For")
    return [("X-Forwarded-For", f"{before}, {request.remote}" if before else request.remote)]


async def passed_on(
    request: Request, address: Address, target: str, told: Iterable[tuple[str, str]]
) -> Response:
    """The answer to a request at another address, whose body follows as it comes. Headers of the request that
    are not for the API server alone are passed on, after those that are `told`. Raises aiohttp.ClientError,
    OSError."""
    head = _Head()
    body = _relay(request, address, target, told, head)
    # Its first, empty piece comes with the head of the answer.
    await anext(body)
    return Response(head.status, body, head.content_type, head.headers)


async def _relay(
    request: Request, address: Address, target: str, told: Iterable[tuple[str, str]], head: _Head
) -> AsyncGenerator[bytes, None]:
    host = f"[{address.host}]" if ":" in address.host else address.host
    url = URL(f"{'https' if address.tls else 'http'}://{host}:{address.port}{target}", encoded=True)
    headers = CIMultiDict(told)
    for name, value in request.headers.items():
        if name.lower() not in OURS and not says_who(name):
            headers.add(name, value)
    body = request.pieces() if request.pieces is not None else request.body or None
    if request.pieces is not None and "Content-Length" in request.headers:
        headers["Content-Length"] = request.headers["Content-Length"]
    connector = http_connector(address)
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=NOT_ADDED
        ) as session,
        session.request(
            request.method,
            url,
            headers=headers,
            data=body,
            allow_redirects=False,
            server_hostname=address.server_name,
        ) as answer,
    ):
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
