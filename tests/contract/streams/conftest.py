"""A kubelet's server over a real containerd, and clients that speak every stream protocol to it."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import EventKind, Runtime
from podling.kubelet.pod.host import Pages
from podling.kubelet.server.server import KubeletServer, Peer, server_tls
from podling.machine.pki import Authority
from podling.model.time import SystemClock
from podling.model.types.container import Container
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    PodStatus,
)
from podling.streaming.session import Session, Stream
from podling.streaming.spdy.connection import SpdyWire
from podling.streaming.upgrade import Address, request_head, upgrade
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire
from podling.streaming.websocket.tunnel import SUBPROTOCOL as TUNNEL
from podling.streaming.websocket.tunnel import TunnelWire
from podling.streaming.wire import Wire

if TYPE_CHECKING:
    from conftest import RealContainerd, UntilDone


@dataclass
class Host:
    """The kubelet as its server sees it: one pod, its containers by name."""

    runtime: Runtime
    sandbox: str
    shown: Pod
    containers: dict[str, str] = field(default_factory=dict)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    stopping: dict[str, asyncio.Event] = field(default_factory=dict)
    exit_codes: dict[str, int] = field(default_factory=dict)

    def pods(self) -> Sequence[Pod]:
        return [self.shown]

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self.shown if (namespace, name) == ("default", "pod") else None

    @property
    def pages(self) -> Pages:
        return {}

    def running_container(self, pod: Pod, name: str) -> str | None:
        return self.containers.get(name)

    def newest_container(self, pod: Pod, name: str) -> str | None:
        return self.containers.get(name)

    def ready_sandbox(self, pod: Pod) -> str | None:
        return self.sandbox

    async def container_ended(self, container_id: str) -> None:
        await self.ended.setdefault(container_id, asyncio.Event()).wait()

    def exit_code(self, container_id: str) -> int | None:
        return self.exit_codes.get(container_id)

    async def container_stopping(self, container_id: str) -> None:
        await self.stopping.setdefault(container_id, asyncio.Event()).wait()

    async def sandbox_ended(self, sandbox_id: str) -> None:
        await self.container_ended(sandbox_id)

    def stop_begins(self, container_id: str) -> None:
        self.stopping.setdefault(container_id, asyncio.Event()).set()

    async def follow_events(self) -> None:
        async for event in self.runtime.events():
            if event.kind is EventKind.EXITED:
                self.exit_codes[event.container_id] = event.exit_code
                self.ended.setdefault(event.container_id, asyncio.Event()).set()
                self.stop_begins(event.container_id)

    def show(self, name: str, container_id: str) -> None:
        self.containers[name] = container_id
        self.shown.spec.containers.append(Container(name=name))
        running = ContainerState(running=ContainerStateRunning())
        self.shown.status.container_statuses.append(
            ContainerStatus(name=name, state=running, container_id=f"containerd://{container_id}")
        )


class Remote:
    """A client's end of one exec, attach or port-forward."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.streams: dict[str, Stream] = {}

    def open(self, *types: str) -> Remote:
        for name in types:
            self.streams[name] = self.session.open({"streamtype": name})
        return self

    def __getitem__(self, name: str) -> Stream:
        return self.streams[name]

    async def all(self, name: str) -> bytes:
        heard = bytearray()
        while data := await self[name].read():
            heard += data
        return bytes(heard)

    async def until(self, name: str, wanted: bytes) -> bytes:
        heard = b""
        while wanted not in heard:
            data = await self[name].read()
            assert data, heard
            heard += data
        return heard


@dataclass
class Node:
    """`make` starts a container; `connect` and `command` speak to the kubelet's server."""

    host: Host
    address: Address
    config: pb.PodSandboxConfig
    busybox: str

    async def make(self, name: str, *command: str, **fields: Any) -> str:
        config = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=name),
            image=pb.ImageSpec(image=self.busybox),
            command=command,
            log_path=f"{name}.log",
            **fields,
        )
        container_id = await self.host.runtime.create_container(self.host.sandbox, config, self.config)
        await self.host.runtime.start_container(container_id)
        self.host.show(name, container_id)
        return container_id

    async def connect(self, protocol: str, path: str, query: list[tuple[str, str]]) -> Session:
        """`protocol` is a SPDY stream protocol as `spdy:NAME`, or a WebSocket subprotocol."""
        wire, headers = _client(protocol)
        if path.startswith("/portForward") and isinstance(wire, ChannelWire):
            # With one port, channel 0 (here stdin) is its data, and 1 (stdout) what went wrong.
            wire = ChannelWire(SUBPROTOCOLS[protocol], client=True, readable={0, 1})
        target = f"{path}?{urlencode(query)}"
        head = request_head("POST" if protocol.startswith("spdy:") else "GET", target, headers)
        upgraded = await upgrade(self.address, head)
        session = Session(wire)
        upgraded.hand_to(session)
        return session

    async def ask(self, target: str, headers: Mapping[str, str]) -> None:
        """A GET that is to be refused. Raises Refused."""
        told = [("Host", "kubelet"), ("Content-Length", "0"), *headers.items()]
        (await upgrade(self.address, request_head("GET", target, told))).drop()

    @asynccontextmanager
    async def command(
        self,
        protocol: str,
        verb: str,
        container: str,
        *command: str,
        stdin: bool = False,
        tty: bool = False,
        replay: bool = False,
        exit_code: bool = False,
        patience: float = 30,
    ) -> AsyncIterator[Remote]:
        query = [("output", "1"), ("error", "1"), *(("command", word) for word in command)]
        query += [("input", "1")] * stdin + [("tty", "1")] * tty + [("replay", "1")] * replay
        query += [("replay", "1"), ("exitCode", "1")] * exit_code
        session = await self.connect(protocol, f"/{verb}/default/pod/{container}", query)
        types = ["error", *(["stdin"] * stdin), "stdout", *(["resize"] if tty else ["stderr"])]
        try:
            async with asyncio.timeout(patience):
                yield Remote(session).open(*types)
        finally:
            session.drop()


def _client(protocol: str) -> tuple[Wire, list[tuple[str, str]]]:
    common = [("Host", "kubelet"), ("Connection", "Upgrade"), ("Content-Length", "0")]
    if protocol.startswith("spdy:"):
        version = protocol.removeprefix("spdy:")
        headers = [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", version)]
        return SpdyWire(client=True), common + headers
    headers = [
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(bytes(16)).decode()),
        ("Sec-WebSocket-Protocol", protocol),
    ]
    if protocol == TUNNEL:
        return TunnelWire(client=True), common + headers
    return ChannelWire(SUBPROTOCOLS[protocol], client=True), common + headers


@dataclass(frozen=True)
class Certificates:
    server: ssl.SSLContext
    client: ssl.SSLContext


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = Authority(tmp_path_factory.mktemp("pki"), datetime.now(UTC))
    server = authority.server("kubelet", "system:node:here", ["127.0.0.1"])
    client = authority.client("apiserver", "kube-apiserver", ["system:masters"])
    trusting = ssl.create_default_context(cafile=str(authority.ca.certificate))
    trusting.load_cert_chain(client.certificate, client.key)
    return Certificates(server_tls(server.certificate, server.key, authority.ca.certificate), trusting)


async def masters_only(user: str, groups: tuple[str, ...], verb: str, asked: Sequence[str]) -> bool:
    return "system:masters" in groups


@pytest.fixture(params=["network", "process"])
def seam(request: pytest.FixtureRequest) -> str:
    """Every test comes to the kubelet's server over the network, and from within its process."""
    seam: str = request.param
    return seam


@pytest.fixture
async def node(
    seam: str,
    containerd: RealContainerd,
    containerd_runtime: Runtime,
    tmp_path: Path,
    certificates: Certificates,
    until_done: UntilDone,
) -> AsyncIterator[Node]:
    config = pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(name="pod", uid=str(tmp_path), namespace="default"),
        log_directory=str(tmp_path / "logs"),
        linux=pb.LinuxPodSandboxConfig(cgroup_parent=containerd.cgroup_parent),
    )
    sandbox = await containerd_runtime.run_pod_sandbox(config)
    pod = Pod(
        metadata=ObjectMeta(name="pod", namespace="default", uid="u"), spec=PodSpec(), status=PodStatus()
    )
    host = Host(containerd_runtime, sandbox, pod)
    server = KubeletServer(host, SystemClock(), masters_only)
    try:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(host.follow_events())
            async with _address(server, seam, certificates) as address:
                yield Node(host, address, config, containerd.busybox)
            following.cancel()
    finally:
        await until_done(lambda: containerd_runtime.stop_pod_sandbox(sandbox))
        await until_done(lambda: containerd_runtime.remove_pod_sandbox(sandbox))


@asynccontextmanager
async def _address(server: KubeletServer, seam: str, certificates: Certificates) -> AsyncIterator[Address]:
    if seam == "process":
        async with server.joined(Peer("kube-apiserver", ("system:masters",))) as connect:
            yield Address("127.0.0.1", 0, within=connect)
        return
    async with server.listening(socket.create_server(("", 0)), certificates.server) as port:
        yield Address("127.0.0.1", port, certificates.client)


@pytest.fixture
async def leaves_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """File descriptors and tasks at the end are those of the beginning, in this process of client and server.
    What a test has patched holds until then.
    """
    tasks, files = asyncio.all_tasks(), open_files()
    yield
    if left := asyncio.all_tasks() - tasks - {asyncio.current_task()}:
        _, left = await asyncio.wait(left, timeout=10)
    assert not left
    for _ in range(5):
        # A transport that was dropped closes its socket in the next rounds of the loop.
        await asyncio.sleep(0)
    assert not open_files() - files


def open_files() -> Counter[str]:
    """What is open, a socket as `socket`: its number says nothing."""
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found[str(entry.readlink()).partition(":")[0]] += 1
    return found
