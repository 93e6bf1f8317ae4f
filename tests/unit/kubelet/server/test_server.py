"""The kubelet's server: who may ask, and every no in the kubelet's own words."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from client_certificates import CN, Attribute, Shape, read_signer, write
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.interface import Runtime
from podling.kubelet.pod.host import Pages
from podling.kubelet.server.server import KubeletServer, Peer, server_tls, subresources
from podling.machine.pki import Authority
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.time import SystemClock
from podling.model.types.container import Container
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import ContainerState, ContainerStateWaiting, ContainerStatus, PodStatus
from podling.streaming.driver import Driver
from podling.streaming.upgrade import Address, Refused, request_head, upgrade

UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
NO_UPGRADE = "unable to upgrade: missing upgrade headers in request"
PORTS = {**UPGRADE, "X-Stream-Protocol-Version": "portforward.k8s.io"}


class Host:
    """One pod, whose container waits."""

    runtime: Runtime = HollowRuntime({})
    pages: Pages = {}

    def __init__(self) -> None:
        waiting = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
        self._pod = Pod(
            metadata=ObjectMeta(name="pod", namespace="default", uid="u1"),
            spec=PodSpec(containers=[Container(name="c")]),
            status=PodStatus(container_statuses=[ContainerStatus(name="c", state=waiting)]),
        )

    def pods(self) -> Sequence[Pod]:
        return [self._pod]

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pod if (namespace, name) == ("default", "pod") else None

    def running_container(self, pod: Pod, name: str) -> str | None:
        return "known-to-nobody" if name == "lost" else None

    def newest_container(self, pod: Pod, name: str) -> str | None:
        return None

    def ready_sandbox(self, pod: Pod) -> str | None:
        return None

    async def container_ended(self, container_id: str) -> None: ...

    def exit_code(self, container_id: str) -> int | None: ...

    async def container_stopping(self, container_id: str) -> None: ...

    async def sandbox_ended(self, sandbox_id: str) -> None: ...


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), datetime.now(UTC))


def tls_of(authority: Authority, user: str | None, *groups: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca.certificate))
    if user is not None:
        pair = authority.client(user, user, groups)
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def masters_only(user: str, groups: tuple[str, ...], verb: str, asked: Sequence[str]) -> bool:
    if "unknown" in groups:
        raise OSError("the API server is away")
    return "system:masters" in groups or (user == "admin" and "system:authenticated" in groups)


async def administrator_by_token(token: str) -> Peer | None:
    if token == "unasked":
        raise StatusError(503, "ServiceUnavailable", "nobody is there")
    return {"good": Peer("admin", ("system:masters",)), "eve": Peer("eve", ("system:nodes",))}.get(token)


@pytest.fixture
def host() -> Host:
    return Host()


Ask = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def ask(authority: Authority, host: Host) -> AsyncIterator[Ask]:
    """Asks the server as an administrator, or as someone else: (status, text)."""
    pair = authority.server("kubelet", "system:node:n", ["127.0.0.1"])
    server = KubeletServer(host, SystemClock(), masters_only, administrator_by_token)
    tls = server_tls(pair.certificate, pair.key, authority.ca.certificate)
    administrator = tls_of(authority, "admin", "system:masters")
    async with (
        server.listening(socket.create_server(("127.0.0.1", 0)), tls) as port,
        aiohttp.ClientSession() as session,
    ):

        async def asked(
            path: str, method: str = "GET", tls: ssl.SSLContext = administrator, **headers: str
        ) -> tuple[int, str]:
            url = f"https://127.0.0.1:{port}{path}"
            async with session.request(method, url, ssl=tls, headers=headers) as response:
                return response.status, await response.text()

        yield asked


async def test_it_is_healthy_and_lists_its_pods(ask: Ask) -> None:
    assert await ask("/healthz") == (200, "ok")
    status, text = await ask("/pods")
    listed = json.loads(text)
    assert (status, listed["kind"], listed["items"][0]["metadata"]["name"]) == (200, "PodList", "pod")


async def test_amounts_are_listed_as_kubernetes_writes_them(ask: Ask, host: Host) -> None:
    (container,) = host.pods()[0].spec.containers
    container.resources.limits = {"cpu": Quantity("1500m")}
    status, text = await ask("/pods")
    assert status == 200
    (listed,) = json.loads(text)["items"]
    assert listed["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1500m"}}


async def test_a_client_without_a_certificate_is_not_answered(ask: Ask, authority: Authority) -> None:
    assert await ask("/pods", tls=tls_of(authority, None)) == (401, "Unauthorized")


NAMED = [(("eve", "admin"), 200), (("admin", "eve"), 403), (("",), 401)]


@pytest.mark.parametrize(("names", "status"), NAMED)
async def test_the_last_name_of_a_certificate_counts(
    ask: Ask, authority: Authority, tmp_path: Path, names: tuple[str, ...], status: int
) -> None:
    subject = [[Attribute(CN, name)] for name in names]
    write(Shape(subject), [read_signer(authority.ca.certificate, authority.ca.key)], tmp_path / "client")
    tls = tls_of(authority, None)
    tls.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    assert (await ask("/pods", tls=tls))[0] == status


@pytest.mark.parametrize("days", [(-2, -1), (1, 2)])
async def test_a_certificate_out_of_its_time_is_nobody_s(
    ask: Ask, authority: Authority, tmp_path: Path, days: tuple[int, int]
) -> None:
    shape = Shape([[Attribute(CN, "admin")]], days=days)
    write(shape, [read_signer(authority.ca.certificate, authority.ca.key)], tmp_path / "client")
    tls = tls_of(authority, None)
    tls.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    assert await ask("/pods", tls=tls) == (401, "Unauthorized")
    assert (await ask("/pods", tls=tls, Authorization="Bearer good"))[0] == 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer good", 200),
        ("bearer good", 200),
        ("Bearer eve", 403),
        ("Bearer bad", 401),
        ("Bearer unasked", 401),
        ("Bearer ", 401),
        ("Basic good", 401),
    ],
)
async def test_a_client_with_a_token_is_its_owner(
    ask: Ask, authority: Authority, header: str, status: int
) -> None:
    assert (await ask("/pods", tls=tls_of(authority, None), Authorization=header))[0] == status


async def test_when_nobody_can_say_nobody_is_let_in(ask: Ask, authority: Authority) -> None:
    why = "Authorization error (user=someone, verb=get, resource=nodes, subresource(s)=[pods proxy])"
    assert await ask("/pods", tls=tls_of(authority, "someone", "unknown")) == (500, why)


async def test_a_client_that_is_no_master_is_forbidden(ask: Ask, authority: Authority) -> None:
    why = "Forbidden (user=eve, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert await ask("/pods", tls=tls_of(authority, "eve", "system:nodes")) == (403, why)


@pytest.mark.parametrize(
    ("peer", "path", "answer"),
    [
        (Peer("apiserver", ("system:masters",)), "/healthz", (200, b"ok")),
        (
            Peer("eve", ("system:nodes",)),
            "/pods",
            (403, b"Forbidden (user=eve, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"),
        ),
    ],
)
async def test_whom_this_process_connects_is_who_it_says(
    peer: Peer, path: str, answer: tuple[int, bytes]
) -> None:
    server = KubeletServer(Host(), SystemClock(), masters_only)
    async with server.joined(peer) as connect:
        # An upgrade that is refused: the answer of a server, whatever it is.
        head = request_head("GET", path, [("Host", "kubelet")])
        with pytest.raises(Refused) as refused:
            await upgrade(Address("", 0, within=connect), head)
        assert (refused.value.status, refused.value.body) == answer


async def test_connections_of_this_process_end_with_the_server() -> None:
    server, client = KubeletServer(Host(), SystemClock(), masters_only), Driver()
    async with server.joined(Peer("apiserver", ("system:masters",))) as connect:
        await connect(lambda: client)
        assert client.usable
    async with asyncio.timeout(5):
        await client.wait_lost()


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/stats/summary", ("stats",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/healthz", ("healthz", "proxy")),
        ("/checkpoint/ns/pod/c", ("checkpoint",)),
        ("/statusz", ("statusz",)),
        ("/flagz", ("configz",)),
        ("/runningpods/", ("pods", "proxy")),
        ("/exec/ns/pod/c", ("proxy",)),
    ],
)
def test_what_a_path_is_about(path: str, asked: tuple[str, ...]) -> None:
    assert subresources(path) == asked


async def test_a_client_of_another_authority_gets_no_connection(
    ask: Ask, tmp_path: Path, authority: Authority
) -> None:
    other = Authority(tmp_path, datetime.now(UTC)).client("eve", "eve", ["system:masters"])
    tls = tls_of(authority, None)
    tls.load_cert_chain(other.certificate, other.key)
    with pytest.raises(aiohttp.ClientError):
        await ask("/pods", tls=tls)


async def test_nobody_pays_for_tickets_to_come_back_with(authority: Authority) -> None:
    pair = authority.server("kubelet", "system:node:n", ["127.0.0.1"])
    server = KubeletServer(Host(), SystemClock(), masters_only)
    tls = server_tls(pair.certificate, pair.key, authority.ca.certificate)
    async with server.listening(socket.create_server(("127.0.0.1", 0)), tls) as port:
        session = await said_and_session(port, tls_of(authority, "admin", "system:masters"))
    assert not session.has_ticket


async def said_and_session(port: int, tls: ssl.SSLContext) -> ssl.SSLSession:
    """The TLS session of a connection that has brought an answer, and with it whatever came before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: kubelet\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"ok")
    writer.close()
    assert connection.session is not None
    return connection.session


@pytest.mark.parametrize(
    ("path", "headers", "answer"),
    [
        ("/containerLogs/default/none/c", {}, (404, 'pod "none" does not exist\n')),
        ("/containerLogs/default/pod/x", {}, (404, 'container "x" not found in pod "pod"\n')),
        (
            "/containerLogs/default/pod/c",
            {},
            (400, 'container "c" in pod "pod" is waiting to start: ContainerCreating'),
        ),
        ("/exec/default/none/c?output=1", UPGRADE, (404, "pod does not exist")),
        ("/exec/default/pod/other-uid/c?output=1", UPGRADE, (404, "pod does not exist")),
        ("/exec/default/pod/c?output=1", UPGRADE, (500, 'container not found ("c")')),
        ("/attach/default/pod/u1/c?output=1", UPGRADE, (500, 'container not found ("c")')),
        ("/exec/default/pod/c", UPGRADE, (400, "you must specify at least 1 of stdin, stdout, stderr")),
        (
            "/exec/default/pod/c?output=1",
            {},
            (400, "unable to upgrade: missing upgrade headers in request\n"),
        ),
        ("/portForward/default/pod", PORTS, (500, 'pod not found ("pod_default")')),
        ("/portForward/default/none", PORTS, (404, "pod does not exist")),
    ],
)
async def test_every_no(ask: Ask, path: str, headers: dict[str, str], answer: tuple[int, str]) -> None:
    assert await ask(path, "GET" if not headers else "POST", **headers) == answer


async def test_what_the_runtime_refuses_is_said(ask: Ask) -> None:
    status, text = await ask("/exec/default/pod/lost?output=1", "POST", **UPGRADE)
    assert status >= 400
    assert text
