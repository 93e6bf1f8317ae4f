"""Two podlings on an etcd of three members; members, servers and the links between them can fail."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from peer import control_plane
from peer.link import Link
from peer.members import Members
from peer.server import Server
from podling.client import kubeconfig
from podling.client.https import HttpsTransport
from ports import free_port

PATIENCE = 3.0
"""Seconds after which a client takes a request for lost."""
HURT, SETTLED = 0.6, 60.0
"""Seconds that a fault lasts, and in which all must answer again."""
DELAY = 0.2
"""Seconds that a slow link takes each way."""
FAULTS = ("kill", "pause", "quorum", "cut", "cut-one", "deaf", "pause-server", "kill-server", "slow")


class PodlingServer:
    """One podling with a link to each member."""

    def __init__(self, directory: Path, links: list[Link]) -> None:
        self.directory, self.links = directory, links
        self.port = free_port()
        self._running = ExitStack()
        self.server: Server
        self.process: subprocess.Popen[bytes]

    def start(self) -> None:
        urls = ",".join(link.url for link in self.links)
        context = control_plane.podling_process(self.directory, self.port, "--etcd-servers", urls)
        self.server, self.process = self._running.enter_context(context)

    def kill(self) -> None:
        self._running.close()

    def transport(self) -> HttpsTransport:
        return kubeconfig.read(self.directory / "admin.conf").transport()


class Cluster:
    def __init__(self, members: Members, processes: dict[int, subprocess.Popen[bytes]]) -> None:
        self.members, self.processes = members, processes
        self.servers: list[PodlingServer] = []

    async def settled(self) -> None:
        """Returns once every server is ready."""
        async with asyncio.timeout(SETTLED):
            for one in self.servers:
                transport = one.transport()
                while True:
                    with suppress(OSError, TimeoutError):
                        async with asyncio.timeout(PATIENCE):
                            if (await transport.request("GET", "/readyz", {}, None))[0] == 200:
                                break
                    await asyncio.sleep(0.1)
                await transport.close()


@asynccontextmanager
async def cluster(programs: Path, directory: Path) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        ends = stack.enter_context(ExitStack())
        # Members notice a loss sooner than in a second.
        members = Members(
            programs / "etcd", directory, ends, **{"heartbeat-interval": 50, "election-timeout": 400}
        )
        made = Cluster(members, {number: members.start(number) for number in range(3)})
        for number in range(2):
            (own := directory / f"podling-{number}").mkdir()
            ports = [urlsplit(url).port or 0 for url in members.urls]
            links = [await stack.enter_async_context(Link(port).open()) for port in ports]
            one = PodlingServer(own, links)
            stack.callback(one.kill)
            made.servers.append(one)
            await asyncio.to_thread(one.start)
        yield made


async def hurt(cluster: Cluster, chance: random.Random) -> str:
    """Do one fault, and make it good. Returns what it was."""
    number = chance.randrange(3)
    server = chance.choice(cluster.servers)
    members, processes = cluster.members, cluster.processes
    fault = chance.choice(FAULTS)
    match fault:
        case "kill":
            members.end(number)
            await asyncio.sleep(HURT)
            processes[number] = members.start(number)
        case "pause":
            processes[number].send_signal(signal.SIGSTOP)
            await asyncio.sleep(HURT)
            processes[number].send_signal(signal.SIGCONT)
        case "quorum":
            two = [n for n in range(3) if n != number]
            for one in two:
                members.end(one)
            await asyncio.sleep(2 * HURT)
            for one in two:
                processes[one] = members.start(one)
        case "cut" | "cut-one" | "deaf":
            links = [server.links[number]] if fault == "cut-one" else server.links
            for link in links:
                if fault == "deaf":
                    link.deaf = True
                else:
                    link.cut()
            await asyncio.sleep(HURT)
            for link in links:
                # What went astray would come no more: the connection ends, as a network's does.
                link.cut()
                link.mend()
        case "slow":
            for link in server.links:
                link.delay = DELAY
            await asyncio.sleep(HURT)
            for link in server.links:
                link.mend()
        case "pause-server":
            server.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(HURT)
            server.process.send_signal(signal.SIGCONT)
        case "kill-server":
            server.kill()
            await asyncio.to_thread(server.start)
    return fault
