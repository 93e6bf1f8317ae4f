"""From the API server to a kubelet, over the network and within one process: logs passed on, upgrades
spliced, every failure as Kubernetes tells it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from podling.apiserver.connect.kubelet import KubeletProxy
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.http.server import tls_context
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, parse_query, request_info
from podling.apiserver.request.response import Response
from podling.machine.pki import Authority
from podling.model.errors import StatusError
from podling.model.types.container import Container
from podling.model.types.meta import ObjectMeta
from podling.model.types.node import DaemonEndpoint, Node, NodeAddress, NodeDaemonEndpoints, NodeStatus
from podling.model.types.pod import Pod, PodSpec
from podling.streaming.driver import Factory, connect_within
from podling.streaming.session import Session
from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.takeover import taken_over
from podling.streaming.upgrade import Address, Refused, request_head, upgrade
from podling.streaming.wire import Disconnected

POD = Pod(
    metadata=ObjectMeta(name="p", namespace="ns"),
    spec=PodSpec(node_name="n", containers=[Container(name="c")]),
)
UPGRADE = [
    ("Host", "x"),
    ("Connection", "Upgrade"),
    ("Upgrade", "SPDY/3.1"),
    ("X-Stream-Protocol-Version", "v4"),
]
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), datetime.now(UTC))


class Kubelet:
    """Answers as the test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked = ""
        self.headers: Any = {}
        self.handler: Handler = self._nothing
        self.server = web.Server(self.serve, handler_cancellation=True)
        self.port = 1
        self.encrypted = False

    async def _nothing(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500, text="nothing to say")

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked, self.headers = request.raw_path, request.headers
        assert request.transport is not None
        self.encrypted = request.transport.get_extra_info("sslcontext") is not None
        return await self.handler(request)

    async def connect(self, client: Factory) -> asyncio.Transport:
        return await connect_within(self.server, client)

    def node(self, name: str) -> Node:
        endpoint = NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=self.port))
        address = NodeAddress(type="InternalIP", address="127.0.0.1")
        return Node(status=NodeStatus(addresses=[address], daemon_endpoints=endpoint))

    def find(self, type: type[Any], namespace: str, name: str) -> Any:
        return self.node(name) if type is Node else None


@pytest.fixture
async def kubelet(authority: Authority) -> AsyncIterator[Kubelet]:
    pair = authority.server("kubelet", "system:node:n", ["127.0.0.1"])
    tls = tls_context(pair.certificate, pair.key, authority.ca.certificate)
    kubelet = Kubelet()
    listener = await asyncio.get_running_loop().create_server(kubelet.server, "127.0.0.1", 0, ssl=tls)
    kubelet.port = listener.sockets[0].getsockname()[1]
    yield kubelet
    listener.close()
    await kubelet.server.shutdown(1)
    assert kubelet.server.connections == []


@pytest.fixture
def kubelets(authority: Authority) -> Kubelets:
    pair = authority.client("apiserver", "kube-apiserver", ["system:masters"])
    tls = ssl.create_default_context(cafile=str(authority.ca.certificate))
    tls.load_cert_chain(pair.certificate, pair.key)
    return Kubelets(lambda: tls)


@pytest.fixture(params=["network", "within"])
def proxy(request: pytest.FixtureRequest, kubelet: Kubelet, kubelets: Kubelets) -> Iterator[KubeletProxy]:
    with ExitStack() as joined:
        if request.param == "within":
            joined.enter_context(kubelets.join("127.0.0.1", kubelet.port, kubelet.connect))
        yield KubeletProxy(kubelet.find, kubelets)


def asked(subresource: str, query: str = "", **headers: str) -> RequestContext:
    path = f"/api/v1/namespaces/ns/pods/p/{subresource}"
    parsed = parse_query(query)
    request = Request("GET", path, query, headers)
    return RequestContext(request, "audit", datetime.now(UTC), parsed, request_info("GET", path, parsed))


async def body_of(response: Response) -> bytes:
    assert isinstance(response.body, AsyncGenerator)
    async with aclosing(response.body) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_a_log_is_passed_on(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    async def log(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="one\ntwo\n")

    kubelet.handler = log
    response = await proxy(asked("log", "tailLines=2"), POD)
    assert (response.status, response.content_type) == (200, "text/plain")
    assert await body_of(response) == b"one\ntwo\n"
    assert kubelet.asked == "/containerLogs/ns/p/c?tailLines=2"


async def test_a_kubelet_of_this_process_is_reached_directly_while_it_serves(
    kubelet: Kubelet, kubelets: Kubelets
) -> None:
    async def log(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="here")

    kubelet.handler = log
    proxy = KubeletProxy(kubelet.find, kubelets)
    encrypted = []
    with kubelets.join("127.0.0.1", kubelet.port, kubelet.connect):
        for context, obj in ((asked("log"), POD), (proxied("nodes", "n/proxy/x"), kubelet.node("n"))):
            assert await body_of(await proxy(context, obj)) == b"here"
            encrypted.append(kubelet.encrypted)
    assert await body_of(await proxy(asked("log"), POD)) == b"here"
    assert [*encrypted, kubelet.encrypted] == [False, False, True]


async def test_a_node_at_another_address_is_no_kubelet_of_this_process(
    kubelet: Kubelet, kubelets: Kubelets
) -> None:
    proxy = KubeletProxy(kubelet.find, kubelets)
    elsewhere = kubelets.join("127.0.0.2", kubelet.port, kubelet.connect)
    with elsewhere, pytest.raises(StatusError, match="nothing to say"):
        await proxy(asked("log"), POD)
    assert kubelet.encrypted


@pytest.mark.parametrize(
    ("status", "text", "reason", "message"),
    [
        (400, "container is waiting", "BadRequest", "container is waiting"),
        (500, "broken", "InternalError", "Internal error occurred: broken"),
        (404, "gone", "NotFound", "the server could not find the requested resource ( pods/log p)"),
    ],
)
async def test_a_refused_log_is_a_status(
    kubelet: Kubelet, proxy: KubeletProxy, status: int, text: str, reason: str, message: str
) -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    kubelet.handler = refuse
    with pytest.raises(StatusError) as error:
        await proxy(asked("log"), POD)
    assert (error.value.code, error.value.reason, error.value.message) == (status, reason, message)


async def test_a_follower_that_leaves_leaves_the_kubelet(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    left = asyncio.Event()

    async def follow(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.set()
        return response

    kubelet.handler = follow
    response = await proxy(asked("log", "follow=true"), POD)
    assert isinstance(response.body, AsyncGenerator)
    async with aclosing(response.body) as pieces:
        assert await anext(pieces) == b"first\n"
    async with asyncio.timeout(5):
        await left.wait()


@pytest.mark.parametrize("what", ["log", "proxy"])
async def test_what_a_kubelet_that_is_lost_had_still_to_say_is_missed(
    kubelet: Kubelet, proxy: KubeletProxy, what: str
) -> None:
    async def break_off(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        assert request.transport is not None
        request.transport.close()
        return response

    kubelet.handler = break_off
    if what == "log":
        response = await proxy(asked("log", "follow=true"), POD)
    else:
        response = await proxy(proxied("nodes", "n/proxy/logs/"), kubelet.node("n"))
    with pytest.raises(Disconnected):
        await body_of(response)


async def test_a_pod_on_no_node_has_an_empty_log_and_nothing_to_exec_in(proxy: KubeletProxy) -> None:
    nowhere = Pod(
        metadata=ObjectMeta(name="p", namespace="ns"), spec=PodSpec(containers=[Container(name="c")])
    )
    response = await proxy(asked("log"), nowhere)
    assert (response.status, response.body) == (204, b"")
    with pytest.raises(StatusError, match="pod p does not have a host assigned"):
        await proxy(asked("exec", "stdout=1"), nowhere)


def proxied(
    resource: str, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> RequestContext:
    target = f"/api/v1/{resource}/{path}"
    target, _, query = target.partition("?")
    request = Request(method, target, query, headers, body)
    parsed = parse_query(query)
    return RequestContext(request, "audit", datetime.now(UTC), parsed, request_info(method, target, parsed))


async def test_what_is_asked_of_a_node_is_asked_of_its_kubelet(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        text = f"{request.method} {(await request.read()).decode()}"
        return web.Response(status=418, text=text, headers={"X-Said": "so", "Content-Type": "a/b"})

    kubelet.handler = answer
    node = kubelet.node("n")
    context = proxied("nodes", "n/proxy/a%2Fb/?x=1", "PUT", b"body", Authorization="Bearer x", X_Mine="y")
    context.request.headers = {**context.request.headers, "Impersonate-User": "bob", "Impersonate-Group": "g"}
    response = await proxy(context, node)
    assert (response.status, response.headers["X-Said"]) == (418, "so")
    assert response.content_type == "a/b; charset=utf-8"
    assert await body_of(response) == b"PUT body"
    assert kubelet.asked == "/a/b/?x=1"
    assert kubelet.headers["X_Mine"] == "y"
    assert kubelet.headers["X-Forwarded-Uri"] == "/api/v1/nodes/n/proxy/a/b/"
    assert not [name for name in kubelet.headers if name.startswith(("Authorization", "Impersonate"))]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def test_who_is_behind_a_proxy_learns_who_asks(
    kubelet: Kubelet, proxy: KubeletProxy, method: str
) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(headers={"X-Method": request.method})

    kubelet.handler = answer
    context = proxied("nodes", "n/proxy/a", method, Host="podling:6443")
    context.request.remote = "10.0.0.9"
    context.request.headers = {**context.request.headers, "X-Forwarded-For": "10.0.0.8"}
    response = await proxy(context, kubelet.node("n"))
    assert response.headers["X-Method"] == method and await body_of(response) == b""
    assert kubelet.headers["Host"] == "podling:6443"
    assert kubelet.headers["X-Forwarded-For"] == "10.0.0.8, 10.0.0.9"


async def test_a_proxied_directory_ends_in_a_slash(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    response = await proxy(proxied("nodes", "n/proxy?x=1"), kubelet.node("n"))
    assert (response.status, response.headers["Location"]) == (301, "/api/v1/nodes/n/proxy/?x=1")


async def test_nobody_to_pass_it_on_to_is_said(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    kubelet.port = 1
    with pytest.raises(StatusError, match=r"error trying to reach service: .*127.0.0.1:1") as error:
        await proxy(proxied("nodes", "n/proxy/metrics"), kubelet.node("n"))
    assert (error.value.code, error.value.reason) == (503, "ServiceUnavailable")


async def test_a_kubelet_that_is_gone_is_said(kubelet: Kubelet, proxy: KubeletProxy) -> None:
    kubelet.port = 1
    with pytest.raises(StatusError, match=r"Get .*127.0.0.1:1"):
        await proxy(asked("log"), POD)


async def test_exec_without_an_upgrade_is_a_bad_request(proxy: KubeletProxy) -> None:
    with pytest.raises(StatusError, match="Upgrade request required"):
        await proxy(asked("exec", "stdout=1"), POD)


@pytest.fixture
async def front(proxy: KubeletProxy) -> AsyncIterator[Address]:
    """An HTTP server that answers every request with the proxy's upgrade for an exec."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        response = await proxy(asked("exec", "command=ls&stdout=1", Upgrade="SPDY/3.1"), POD)
        assert not isinstance(response.body, bytes | AsyncGenerator)
        return await response.body.run(request)

    server = web.Server(serve, handler_cancellation=True)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    yield Address(*listener.sockets[0].getsockname())
    listener.close()
    await server.shutdown(1)
    assert server.connections == []


HEAD = request_head("POST", "/", UPGRADE)


async def test_an_upgrade_is_spliced(kubelet: Kubelet, front: Address) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        session = Session(SpdyWire(client=False))
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4"}
        async with taken_over(request, headers, session) as response:
            stream = await session.accept()
            assert stream is not None
            while data := await stream.read():
                await stream.write(data)
            await session.finish()
        return response

    kubelet.handler = echo
    upgraded = await upgrade(front, HEAD)
    assert upgraded.headers["X-Stream-Protocol-Version"] == "v4"
    session = Session(SpdyWire(client=True))
    upgraded.hand_to(session)
    stream, sent, heard = session.open({}), bytes(range(256)) * 8192, b""

    async def say() -> None:
        await stream.write(sent)
        stream.end()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(say())
        while data := await stream.read():
            heard += data
    assert heard == sent
    assert kubelet.asked == "/exec/ns/p/c?output=1&command=ls"
    assert "Authorization" not in kubelet.headers
    await session.wait_lost()


async def test_a_kubelets_no_is_the_clients_answer(kubelet: Kubelet, front: Address) -> None:
    with pytest.raises(Refused) as refused:
        await upgrade(front, HEAD)
    assert (refused.value.status, refused.value.body) == (500, b"nothing to say")


async def test_a_kubelet_that_cannot_be_dialled_is_a_status(kubelet: Kubelet, front: Address) -> None:
    kubelet.port = 1
    with pytest.raises(Refused) as refused:
        await upgrade(front, HEAD)
    assert refused.value.status == 500
    assert b'"message":"error dialing backend: ' in refused.value.body
    assert refused.value.body.endswith(b"}\n")


@pytest.mark.parametrize("who", ["client", "kubelet"])
async def test_when_one_end_is_lost_so_is_the_other(kubelet: Kubelet, front: Address, who: str) -> None:
    ends: list[Session] = []
    joined = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        ends.append(Session(SpdyWire(client=False)))
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        async with taken_over(request, headers, ends[0]) as response:
            joined.set()
            await ends[0].wait_lost()
        return response

    kubelet.handler = wait
    upgraded = await upgrade(front, HEAD)
    session = Session(SpdyWire(client=True))
    upgraded.hand_to(session)
    await joined.wait()
    (session if who == "client" else ends[0]).drop()
    async with asyncio.timeout(5):
        await session.wait_lost()
        await ends[0].wait_lost()
