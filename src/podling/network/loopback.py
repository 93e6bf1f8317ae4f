"""Node ports at 127.0.0.1 and ::1, for clients of this machine: TCP and UDP, passed on by this process.

nftables could lead from loopback to a pod only with `route_localnet`, by which neighbours of the machine
reach what listens at its loopback as soon as somebody flushes the rules that keep them out, and over IPv6 not
at all (docs/decisions/114). So there is a listener for each node port that has endpoints; without endpoints
nobody listens, and the kernel refuses.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import msgspec

from podling.network.listeners import Listeners
from podling.network.services import Backend, Behind, Frontend
from podling.process.port_holders import holder
from podling.streaming.driver import keep_alive
from podling.streaming.splice import Splice

LOOPBACK = {"IPv4": "127.0.0.1", "IPv6": "::1"}
SOCKETS = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
BACKLOG = 128
ACCEPT_AGAIN_SECONDS = 1.0
MOST = 1_000
"""Connections at a time, and as many clients that send datagrams."""
CONNECT_SECONDS = 30.0
IDLE_SECONDS = 60.0
"""Without a datagram, until a client is forgotten."""
A_TURN = 32
"""Datagrams that one socket reads before others have their turn."""
LONGEST_DATAGRAM = 65_535
RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: what is closed tells the other end by a reset that nobody was there."""

log = logging.getLogger(__name__)


class LoopbackPorts:
    """Give it with `put` what node ports lead to, and `run()` it. Frontends of other families, protocols and
    addresses are left out."""

    def __init__(self, families: Iterable[str]) -> None:
        self._families = frozenset(families)
        self._leading: dict[Frontend, _Leading] = {}
        self._listeners = Listeners[Frontend](self._listen, _cannot_listen)
        self._tasks = asyncio.TaskGroup()
        self._connections = 0
        self._clients: dict[tuple[Frontend, Any], _Client] = {}
        """Those that send datagrams, that which has been silent longest first."""

    def put(self, frontend: Frontend, behind: Behind | None) -> None:
        if frontend.address or frontend.family not in self._families or frontend.protocol not in KINDS:
            return
        is_wanted = behind is not None and bool(behind.endpoints)
        if behind is not None and is_wanted:
            leading = self._leading.setdefault(frontend, _Leading())
            leading.endpoints, leading.affinity = behind.endpoints, behind.affinity
        else:
            self._leading.pop(frontend, None)
        if frontend.protocol == "udp":
            for place, client in [*self._clients.items()]:
                if place[0] == frontend and (not behind or client.backend not in behind.endpoints):
                    self._forget(place)
        self._listeners.want(frontend, is_wanted=is_wanted)

    async def run(self) -> None:
        try:
            async with self._tasks:
                await self._listeners.run()
        finally:
            for place in [*self._clients]:
                self._forget(place)

    async def _listen(self, frontend: Frontend) -> AsyncExitStack:
        """Raises OSError."""
        loop, made = asyncio.get_running_loop(), AsyncExitStack()
        own = socket.socket(SOCKETS[frontend.family], KINDS[frontend.protocol])
        try:
            own.setblocking(False)
            if frontend.protocol == "tcp":
                # Connections that have ended do not keep the port.
                own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind((LOOPBACK[frontend.family], frontend.port))
            if frontend.protocol == "tcp":
                own.listen(BACKLOG)
        except OSError:
            own.close()
            raise
        made.callback(own.close)
        self._read(frontend, own)
        made.callback(loop.remove_reader, own)
        return made

    def _read(self, frontend: Frontend, own: socket.socket) -> None:
        if own.fileno() >= 0:
            receive = self._accept if frontend.protocol == "tcp" else self._receive
            asyncio.get_running_loop().add_reader(own, receive, frontend, own)

    def _accept(self, frontend: Frontend, own: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted, _ = own.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            # There are no more descriptors, and clients that wait would wake the loop all the time.
            log.warning("node port %d at loopback lets clients wait: %s", frontend.port, error)
            loop.remove_reader(own)
            loop.call_later(ACCEPT_AGAIN_SECONDS, self._read, frontend, own)
            return
        leading = self._leading.get(frontend)
        if leading is None or self._connections >= MOST:
            _reset(accepted)
            return
        accepted.setblocking(False)
        self._connections += 1
        joining = self._tasks.create_task(self._join(accepted, leading.choose()))
        joining.add_done_callback(partial(self._ended, accepted))

    def _ended(self, accepted: socket.socket, joining: asyncio.Task[None]) -> None:
        self._connections -= 1
        accepted.close()

    async def _join(self, accepted: socket.socket, backend: Backend) -> None:
        client, endpoint = Splice.pair(is_half_open=True)
        loop = asyncio.get_running_loop()
        try:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await loop.create_connection(lambda: endpoint, *backend)
            except OSError as error:
                log.debug("a client at loopback was not led to %s: %s", backend, error)
                _reset(accepted)
                return
            keep_alive(accepted)
            await loop.connect_accepted_socket(lambda: client, accepted)
            if endpoint.lost:
                client.close()
            await client.done()
        finally:
            client.drop()
            endpoint.drop()

    def _receive(self, frontend: Frontend, own: socket.socket) -> None:
        for _ in range(A_TURN):
            try:
                data, address = own.recvfrom(LONGEST_DATAGRAM)
            except OSError:
                return
            client = self._client(frontend, own, address)
            if client is not None:
                # What a socket does not take now is lost, as datagrams may be.
                with suppress(OSError):
                    client.link.send(data)

    def _client(self, frontend: Frontend, own: socket.socket, address: Any) -> _Client | None:
        """The link of a client to its endpoint, made if there is none."""
        place, now = (frontend, address), time.monotonic()
        client, leading = self._clients.pop(place, None), self._leading.get(frontend)
        if client is None:
            while self._clients and (
                len(self._clients) >= MOST or next(iter(self._clients.values())).used + IDLE_SECONDS < now
            ):
                self._forget(next(iter(self._clients)))
            if leading is None:
                return None
            link, backend = socket.socket(SOCKETS[frontend.family], socket.SOCK_DGRAM), leading.choose()
            try:
                link.setblocking(False)
                link.connect(backend)
            except OSError:
                link.close()
                return None
            client = _Client(link, backend)
            asyncio.get_running_loop().add_reader(link, self._answer, place, own, link)
        client.used = now
        self._clients[place] = client
        return client

    def _answer(self, place: tuple[Frontend, Any], own: socket.socket, link: socket.socket) -> None:
        for _ in range(A_TURN):
            try:
                data = link.recv(LONGEST_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                # The endpoint refuses: the next datagram is for any.
                self._forget(place)
                return
            with suppress(OSError):
                own.sendto(data, place[1])

    def _forget(self, place: tuple[Frontend, Any]) -> None:
        client = self._clients.pop(place)
        asyncio.get_running_loop().remove_reader(client.link)
        client.link.close()


class _Leading(msgspec.Struct):
    """Where a frontend leads. All its clients are this machine: under affinity they stay together."""

    endpoints: tuple[Backend, ...] = ()
    affinity: int = 0
    last: Backend | None = None
    until: float = 0.0

    def choose(self) -> Backend:
        now = time.monotonic()
        if not self.affinity or self.last not in self.endpoints or self.until < now:
            self.last = random.choice(self.endpoints)
        self.until = now + self.affinity
        return self.last


class _Client(msgspec.Struct):
    link: socket.socket
    backend: Backend
    used: float = 0.0


def _reset(accepted: socket.socket) -> None:
    with accepted:
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


async def _cannot_listen(frontend: Frontend, error: OSError) -> None:
    place = f"{LOOPBACK[frontend.family]}, {frontend.protocol.upper()} port {frontend.port}"
    if error.errno == errno.EADDRINUSE:
        # There may be thousands of processes to look through.
        who = await asyncio.to_thread(holder, frontend.protocol, frontend.port)
        log.warning("%s has %s: its clients are not led to the service", who, place)
    else:
        log.warning("the node port at %s is not open: %s", place, error)
