"""What streams cost: a command beside the raw CRI call, a debug one-shot, many sessions, a gigabyte.

`python bench/streams.py [ROUNDS]` starts a podling of its own in a temporary directory and ends it. The round
trip goes over a TLS connection of its own each time, as kubectl's does, or over one that a client has open
already; the runtime's own streaming exec, asked directly, and the floor, `ExecSync`, take turns with them on
the same container. The gigabyte and the one-shot are a real kubectl's, start of kubectl included.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit

import uvloop
from msgspec.structs import replace
from pods import Watcher, memory_mb, podling, ready
from table import Measurement, report

from podling.client import kubeconfig
from podling.client.client import Client
from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.build import ImageConfig, Symlink, build_image
from podling.kubelet.server import streams
from podling.machine import node_runtime
from podling.machine.instance import Instance
from podling.model.codec import json
from podling.model.types.pod import Pod
from podling.streaming.driver import Factory
from podling.streaming.session import Session
from podling.streaming.upgrade import Address, request_head, upgrade
from podling.streaming.websocket.channels import SUBPROTOCOLS, ChannelWire

IMAGE = "podling.local/bench-streams:1"
APPLETS = ("sh", "sleep", "true", "cat", "head", "sha256sum")
PORT = 16998
PROTOCOL = "v5.channel.k8s.io"
SESSIONS = 200
BULK = 1 << 30
BLOCK = bytes(range(256)) * 4096
EXEC = "/api/v1/namespaces/default/pods/app/exec"
SETTLED = 0.05
"""Seconds after which a runtime has cleared away what it ran, and the next command has it for itself."""


class Remote:
    """Commands in the pod, each over a connection of its own."""

    def __init__(self, address: Address) -> None:
        self._address = address

    @classmethod
    def of(cls, access: kubeconfig.Access) -> Self:
        server = urlsplit(access.server)
        tls = ssl.create_default_context(cadata=access.certificate_authority.decode())
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(access.client_certificate + b"\n" + access.client_key)
            pem.flush()
            tls.load_cert_chain(pem.name)
        return cls(Address(str(server.hostname), server.port or 443, tls))

    async def connected(self) -> Remote:
        """One whose only connection stands."""
        transport = await self._address.connect(asyncio.Protocol)

        async def take(client: Factory) -> asyncio.Transport:
            protocol = client()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            return transport

        return Remote(replace(self._address, within=take))

    async def start(self, *command: str, stdin: bool = False) -> Session:
        query = [("stdout", "true"), ("stdin", str(stdin).lower()), *(("command", word) for word in command)]
        headers = [
            ("Host", self._address.host),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
            ("Sec-WebSocket-Protocol", PROTOCOL),
        ]
        upgraded = await upgrade(self._address, request_head("GET", f"{EXEC}?{urlencode(query)}", headers))
        session = Session(ChannelWire(SUBPROTOCOLS[PROTOCOL], client=True))
        upgraded.hand_to(session)
        return session

    async def run(self, *command: str) -> float:
        """The milliseconds until its status is known."""
        began = time.perf_counter()
        session = await self.start(*command)
        said = await session.open({"streamtype": "error"}).read()
        took = (time.perf_counter() - began) * 1000
        assert b"Success" in said, said
        await session.finish()
        return took


class Runtime:
    """The same command, asked of the runtime itself."""

    def __init__(self, runtime: GrpcRuntime, container: str) -> None:
        self._runtime = runtime
        self._container = container

    async def run(self) -> float:
        began = time.perf_counter()
        await self._runtime.exec_sync(self._container, ["true"], 10)
        return (time.perf_counter() - began) * 1000

    async def stream(self) -> float:
        began = time.perf_counter()
        asked = pb.ExecRequest(container_id=self._container, cmd=["true"], stdout=True)
        session = await streams.connect(await self._runtime.exec(asked), streams.COMMAND_PROTOCOL)
        error, _ = session.open_all({"streamtype": "error"}, {"streamtype": "stdout"})
        assert b"Success" in await error.read()
        took = (time.perf_counter() - began) * 1000
        session.drop()
        return took


async def round_trips(remote: Remote, runtime: Runtime, pid: int, rounds: int) -> list[Measurement]:
    """All in turns, so that they meet the same neighbours."""
    floor: list[float] = []
    direct, fresh, warm = Turns(pid), Turns(pid), Turns(pid)
    for _ in range(rounds):
        ready = await remote.connected()
        await asyncio.sleep(SETTLED)
        floor.append(await runtime.run())
        await direct.take(runtime.stream)
        await fresh.take(partial(remote.run, "true"))
        await warm.take(partial(ready.run, "true"))
    return [
        Measurement("exec `true`, beside ExecSync", "ms", fresh.took, floor, "≤ 1.3 x", fresh.cpu),
        Measurement("the same, connected already", "ms", warm.took, floor, "", warm.cpu),
        Measurement("the runtime's streaming exec alone", "ms", direct.took, floor, "", direct.cpu),
    ]


class Turns:
    """What each turn took, in milliseconds, and of the server's processor, in microseconds."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.took: list[float] = []
        self.cpu: list[float] = []

    async def take(self, turn: Callable[[], Awaitable[float]]) -> None:
        await asyncio.sleep(SETTLED)
        before = processor_us(self._pid)
        self.took.append(await turn())
        await asyncio.sleep(SETTLED)
        self.cpu.append(processor_us(self._pid) - before)


def processor_us(pid: int) -> float:
    """What its threads have had of processors."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1000


async def crowd(remote: Remote, pid: int) -> list[Measurement]:
    """All open at once, each with a `cat` that answers."""
    before, began = memory_mb(pid), time.perf_counter()

    async def one() -> Session:
        session = await remote.start("cat", stdin=True)
        await session.open({"streamtype": "stdin"}).write(b"ping")
        assert await session.open({"streamtype": "stdout"}).read() == b"ping"
        return session

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(SESSIONS)]
    seconds, grown = time.perf_counter() - began, memory_mb(pid) - before
    for task in tasks:
        task.result().drop()
    return [
        Measurement(f"{SESSIONS} exec sessions at once: opened", "/s", [SESSIONS / seconds]),
        Measurement("memory of each of them", "kB", [grown * 1024 / SESSIONS]),
    ]


class Kubectl:
    def __init__(self, instance: Instance) -> None:
        self._command = [shutil.which("kubectl") or "kubectl", "--kubeconfig", str(instance.kubeconfig)]

    def seconds(self, *arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run([*self._command, *arguments], check=True, capture_output=True)
        return time.perf_counter() - began

    def upload(self) -> float:
        """MB/s into a `sha256sum`, whose answer must be right."""
        command = [*self._command, "exec", "-i", "app", "-c", "app", "--", "sha256sum"]
        digest, began = hashlib.sha256(), time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            assert running.stdin is not None and running.stdout is not None
            for _ in range(BULK // len(BLOCK)):
                running.stdin.write(BLOCK)
                digest.update(BLOCK)
            running.stdin.close()
            assert running.stdout.read().split()[0].decode() == digest.hexdigest()
        return BULK / 1e6 / (time.perf_counter() - began)

    def download(self) -> float:
        """MB/s of zeros."""
        command = [*self._command, "exec", "app", "-c", "app", "--", "head", "-c", str(BULK), "/dev/zero"]
        digest, began = hashlib.sha256(), time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            while data := running.stdout.read(1 << 20):
                digest.update(data)
        took = time.perf_counter() - began
        wanted = hashlib.sha256()
        for _ in range(BULK >> 20):
            wanted.update(bytes(1 << 20))
        assert digest.digest() == wanted.digest()
        return BULK / 1e6 / took


async def with_api(instance: Instance, pid: int, rounds: int) -> list[Measurement]:
    access = kubeconfig.read(instance.kubeconfig)
    client, runtime = Client(access.transport()), GrpcRuntime(str(node_runtime.settings(instance).socket))
    watcher = Watcher(client)
    version = (await client.list(Pod, "default")).resource_version
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watcher.run(version))
        await client.create(json.from_data(POD, Pod))
        await watcher.until("app", ready)
        watching.cancel()
    container = (await runtime.list_containers())[0].id
    remote = Remote.of(access)
    await remote.run("true")
    rows = await round_trips(remote, Runtime(runtime, container), pid, rounds * 5)
    rows += await crowd(remote, pid)
    await runtime.close()
    await client.close()
    return rows


POD = {
    "metadata": {"name": "app", "namespace": "default"},
    "spec": {"containers": [{"name": "app", "image": IMAGE, "command": ["sleep", "100000"]}]},
}


def image() -> bytes:
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    links = {f"bin/{name}": Symlink("busybox") for name in APPLETS}
    return build_image(IMAGE, {"bin/busybox": busybox, **links}, ImageConfig(env=["PATH=/bin"]))


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        directory = Path(name)
        archive, data = directory / "bench.tar", directory / "data"
        archive.write_bytes(image())
        instance = Instance.at(data)
        try:
            podling("up", "--detach", "--port", str(PORT), directory=data)
            podling("images", "load", str(archive), directory=data)
            pid = instance.running()
            assert pid is not None
            rows = uvloop.run(with_api(instance, pid, rounds))
            kubectl = Kubectl(instance)
            debug = ["debug", "-q", "-i", "app", f"--image={IMAGE}", "--profile=general", "--", "true"]
            shots = [kubectl.seconds(*debug) * 1000 for _ in range(rounds + 1)][1:]
            version = [kubectl.seconds("get", "pod", "app") * 1000 for _ in range(rounds)]
            rows += [
                Measurement("kubectl debug -i, one shot", "ms", shots, goal="≤ 500 ms"),
                Measurement("kubectl get pod, for comparison", "ms", version),
            ]
            before = memory_mb(pid)
            rows += [
                Measurement("1 GiB in: kubectl exec -i … sha256sum", "MB/s", [kubectl.upload()]),
                Measurement("1 GiB out: kubectl exec … head /dev/zero", "MB/s", [kubectl.download()]),
                Measurement("memory grown by them", "MB", [max(memory_mb(pid) - before, 0.0)]),
            ]
        finally:
            podling("down", directory=data)
    report("streams", rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
