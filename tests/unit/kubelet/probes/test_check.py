"""Asking once, of real servers on the loopback and of the runtime in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import grpc
import pytest
from aiohttp import web
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.kubelet.probes.check import Outcome, ProbeError, Target, check
from podling.model.types.container import (
    Container,
    ContainerPort,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    HTTPHeader,
    Probe,
    TCPSocketAction,
)
from ports import free_port

HOST = "127.0.0.1"
Ask = Callable[..., Awaitable[Outcome]]


class Served:
    """A server that answers each path as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[web.BaseRequest] = []
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        kind, _, value = request.path.strip("/").partition("/")
        match kind:
            case "status":
                return web.Response(status=int(value), text="body")
            case "hang":
                await asyncio.sleep(60)
            case "local":
                raise web.HTTPFound("/status/503")
            case "away":
                return web.Response(status=302, headers={"Location": "http://192.0.2.9/"}, text="go there")
            case "loop":
                raise web.HTTPFound("/loop")
        return web.Response(text="fine")


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    runner = web.ServerRunner(web.Server(served.answer), shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    served.port = runner.addresses[0][1]
    yield served
    await runner.cleanup()


async def ask(probe: Probe, container: Container | None = None, timeout: int = 5) -> Outcome:
    probe.timeout_seconds = timeout
    container = container or Container(name="c")
    return await check(HollowRuntime({}), probe, Target(container, "id", HOST), "kube-probe/1.36")


def http(port: int | str, path: str, **more: object) -> Probe:
    return Probe(http_get=HTTPGetAction(port=port, path=path, scheme="HTTP", **more))  # type: ignore[arg-type]


# fmt: off
ANSWERS = [
    ("/status/200",  True,  ""),
    ("/status/204",  True,  ""),
    ("/status/399",  True,  "Probe terminated redirects, Response body: body"),
    ("/status/400",  False, "HTTP probe failed with statuscode: 400"),
    ("/status/500",  False, "HTTP probe failed with statuscode: 500"),
    ("/local",       False, "HTTP probe failed with statuscode: 503"),
    ("/away",        True,  "Probe terminated redirects, Response body: go there"),
    ("/loop",        False, 'Get "http://{host}/loop": stopped after 10 redirects'),
]
# fmt: on


@pytest.mark.parametrize(("path", "success", "message"), ANSWERS)
async def test_http_answers(served: Served, path: str, success: bool, message: str) -> None:
    outcome = await ask(http(served.port, path))
    assert outcome == (success, message.format(host=f"{HOST}:{served.port}"))


async def test_http_asks_as_a_probe_does(served: Served) -> None:
    headers = [HTTPHeader("Host", "web.example"), HTTPHeader("X-One", "1"), HTTPHeader("Accept", "")]
    await ask(http(served.port, "ready?deep=1", http_headers=headers))
    request = served.asked[0]
    assert (request.path_qs, request.headers["Host"]) == ("/ready?deep=1", "web.example")
    assert request.headers["User-Agent"] == "kube-probe/1.36"
    assert request.headers["X-One"] == "1"
    assert "Accept" not in request.headers


async def test_http_finds_ports_by_name(served: Served) -> None:
    container = Container(name="c", ports=[ContainerPort(name="web", container_port=served.port)])
    assert (await ask(http("web", "/"), container)).success
    assert (await ask(http(str(served.port), "/"), container)).success
    with pytest.raises(ProbeError, match=r'strconv\.Atoi: parsing "admin": invalid syntax'):
        await ask(http("admin", "/"), container)


async def test_http_that_gets_no_answer(served: Served) -> None:
    slow = await ask(http(served.port, "/hang"), timeout=0)
    assert slow.message == (
        f'Get "http://{HOST}:{served.port}/hang": context deadline exceeded '
        "(Client.Timeout exceeded while awaiting headers)"
    )
    port = free_port()
    refused = await ask(http(port, "/"))
    assert refused == (
        False,
        f'Get "http://{HOST}:{port}/": dial tcp {HOST}:{port}: connect: connection refused',
    )


async def test_tcp(served: Served) -> None:
    assert await ask(Probe(tcp_socket=TCPSocketAction(port=served.port))) == (True, "")
    port = free_port()
    refused = await ask(Probe(tcp_socket=TCPSocketAction(port=port)))
    assert refused == (False, f"dial tcp {HOST}:{port}: connect: connection refused")


async def test_a_host_that_cannot_be(served: Served) -> None:
    host = f"{'a' * 70}.example"
    with pytest.raises(ProbeError, match="is no host"):
        await ask(Probe(tcp_socket=TCPSocketAction(port=80, host=host)))
    outcome = await ask(http(80, "/", host=host))
    assert not outcome.success


@pytest.mark.parametrize(
    ("service", "success", "message"),
    [
        ("good", True, ""),
        ("bad", False, 'service unhealthy (responded with "NOT_SERVING")'),
        (
            "none",
            False,
            "error: health rpc probe failed: rpc error: code = NotFound desc = no such service",
        ),
        ("slow", False, "timeout: health rpc did not complete within 1s"),
    ],
)
async def test_grpc(service: str, success: bool, message: str) -> None:
    async def answer(
        request: StringValue, context: grpc.aio.ServicerContext[StringValue, Int32Value]
    ) -> Int32Value:
        if request.value == "none":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        if request.value == "slow":
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED)
        return Int32Value(value=1 if request.value == "good" else 2)

    method = grpc.unary_unary_rpc_method_handler(answer, StringValue.FromString, Int32Value.SerializeToString)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": method}),)
    )
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    try:
        outcome = await ask(Probe(grpc=GRPCAction(port=port, service=service)), timeout=1)
    finally:
        await server.stop(0)
    assert outcome == (success, message)


async def test_grpc_of_what_does_not_speak_it(served: Served) -> None:
    """One that refuses connections is taken for one that may come, as one is that speaks HTTP/1."""
    for port in (free_port(), served.port):
        place = f'"{HOST}:{port}"'
        assert await ask(Probe(grpc=GRPCAction(port=port)), timeout=0) == (
            False,
            f"timeout: failed to connect service {place} within 0s: context deadline exceeded",
        )


async def test_grpc_of_what_sends_without_end() -> None:
    """A pod decides what it sends; the node reads no more of it than an answer may have."""
    part_of_a_gigabyte = b"\x00\x40\x00\x00\x00" + (1).to_bytes(4) + b"\0\x40" + bytes(16382)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        empty_settings = bytes(3) + b"\x04" + bytes(5)
        writer.write(empty_settings)
        await reader.readuntil(b"/grpc.health.v1.Health/Check")
        with suppress(ConnectionError):
            while True:
                writer.write(part_of_a_gigabyte)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(flood, HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        outcome = await ask(Probe(grpc=GRPCAction(port=port)), timeout=5)
    assert not outcome.success and outcome.message.endswith("it sends more than is wanted of it")


async def test_grpc_of_a_server_that_is_about_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    server, port = grpc.aio.server(), free_port()

    async def come(seconds: float) -> None:
        server.add_insecure_port(f"{HOST}:{port}")
        await server.start()

    monkeypatch.setattr(asyncio, "sleep", come)
    outcome = await ask(Probe(grpc=GRPCAction(port=port)), timeout=10)
    await server.stop(0)
    assert "does not implement the grpc health protocol" in outcome.message


COMMANDS = {
    ("ok",): ExecOutcome(stdout=b"all well"),
    ("bad",): ExecOutcome(2, stdout=b"out ", stderr=b"err"),
    ("slow", "one"): ExecOutcome(seconds=60),
}


async def running(runtime: HollowRuntime) -> str:
    await runtime.pull_image("app:1")
    metadata = pb.PodSandboxMetadata(name="p", namespace="ns")
    sandbox = pb.PodSandboxConfig(metadata=metadata)
    id_ = await runtime.run_pod_sandbox(sandbox)
    image = pb.ImageSpec(image="app:1")
    container = pb.ContainerConfig(metadata=pb.ContainerMetadata(name="c"), image=image)
    made = await runtime.create_container(id_, container, sandbox)
    await runtime.start_container(made)
    return made


async def test_exec() -> None:
    runtime = HollowRuntime({"app:1": HollowImage((Script(executes=COMMANDS),))})
    target = Target(Container(name="c"), await running(runtime), HOST)

    async def run(*command: str) -> Outcome:
        probe = Probe(exec=ExecAction(list(command)), timeout_seconds=1)
        return await check(runtime, probe, target, "")

    assert await run("ok") == (True, "")
    assert await run("bad") == (False, "out err")
    assert await run("slow", "one") == (False, 'command timed out: "slow one" timed out after 1s')
    with pytest.raises(ProbeError, match="rpc error: code = Unknown desc = "):
        await run("absent")
