"""Names of other zones are asked of other servers: those of the machine's resolv.conf or others that were
given, or of a stub domain.

    ask ─▶ in the cache? ─▶ asked already? wait with who asked ─▶ a task asks one server after the other

While no server answers, what the cache has is repeated for up to an hour. A question of our own that comes
back says that a server asks us: it is left out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from podling.dns.answers import Answer
from podling.dns.cache import AnswerCache, Asked, Found, read_reply
from podling.dns.responder import Unanswered
from podling.dns.server import PORT, Reply
from podling.dns.wire import (
    CD,
    FORMERR,
    IN,
    NOTIMP,
    RA,
    RD,
    REFUSED,
    SERVFAIL,
    TC,
    TXT,
    Malformed,
    encode,
    header,
    is_below,
    join,
    opt,
)
from podling.model.rules.addresses import address_and_port

MOST_WAITING = 1000
"""Clients that wait for other servers at a time; others are told SERVFAIL."""
PATIENCE, LONGEST = 1.0, 4.0
"""Seconds for a server to answer, and for all of them."""
ROUNDS = 2
MISSED = 2
"""Questions in a row after which a server is said to be away: one datagram may be lost."""
FAILED_FOR = 10.0
"""Seconds for which a server that has not answered is asked after the others."""
RESOLVED = Path("/run/systemd/resolve/resolv.conf")
"""Of systemd-resolved, which puts itself, at an address of this machine, before the servers it uses."""
RESOLVED_ADDRESS = "127.0.0.53"

log = logging.getLogger(__name__)


class Upstream:
    """A server that is asked, and how it does."""

    def __init__(self, address: str, port: int = PORT) -> None:
        self.address, self.port = address, port
        self.failed = float("-inf")
        """When it last did not answer, by the loop's time."""
        self.missed = 0
        """Questions in a row that it has not answered."""
        self.loops = False
        self.is_probed = False
        self.asked = 0

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class ForwardOptions(msgspec.Struct, frozen=True):
    """`servers` are asked for all names but those of `stubs`: domain → servers; without any, those that
    `resolv_conf` has. `own` are addresses of cluster DNS, which are no servers to ask. With `autopath`, the
    search paths of pods are walked for them."""

    resolv_conf: Path = Path("/etc/resolv.conf")
    servers: Sequence[str] = ()
    stubs: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    autopath: bool = False
    own: Collection[str] = ()


class Forwarder:
    """`ask` is for a `Server`, once it is `use`d with options. Its tasks are of `tasks`."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._now = asyncio.get_running_loop().time
        self.cache = AnswerCache()
        self.rejects = 0
        self._options: ForwardOptions | None = None
        self._waiting: dict[Asked, list[tuple[Unanswered, Reply]]] = {}
        self._count = 0
        self._probes: dict[bytes, Upstream] = {}
        self._version: tuple[int, int] | None = None
        self._servers: list[Upstream] = []
        self._stubs: list[tuple[bytes, list[Upstream]]] = []

    @property
    def is_used(self) -> bool:
        return self._options is not None

    def use(self, options: ForwardOptions) -> None:
        """From now on. What other servers have said is forgotten; who waits for them is told it."""
        if options == self._options:
            return
        self._options = options
        self.cache.clear()
        self._waiting = {}
        self._version = None
        self._servers = [Upstream(*address_and_port(one, PORT)) for one in options.servers]
        self._stubs = sorted(
            (
                (encode(domain.lower()), [Upstream(*address_and_port(one, PORT)) for one in servers])
                for domain, servers in options.stubs.items()
            ),
            key=lambda stub: -len(stub[0]),
        )

    def ask(self, asked: Unanswered, client: str, reply: Reply) -> None:
        if self._options is None:
            # A domain's names are not for any servers but its own, and those are not known yet.
            reply(_failed(SERVFAIL))
            return
        query, begun = asked.query, asked.begun
        name = begun.target if begun else query.name
        if (looping := self._probes.pop(name, None)) is not None:
            log.error("%s asks cluster DNS what cluster DNS asks it, and is not asked any more", looping)
            looping.loops = True
            reply(_failed(SERVFAIL))
            return
        what = Asked(name, query.type, query.do, bool(query.flags & CD))
        kept = self.cache.get(what, self._now())
        if kept is not None:
            reply(_answer(asked, what, *kept))
            return
        servers = self._for(name, self._options)
        if not servers:
            reply(_failed(REFUSED))
            return
        if self._count >= MOST_WAITING:
            self.rejects += 1
            reply(_failed(SERVFAIL))
            return
        are_away = all(self._now() - server.failed < FAILED_FOR for server in servers)
        old = self.cache.get(what, self._now(), stale=True) if are_away else None
        if old is not None:
            reply(_answer(asked, what, *old))
        if what not in self._waiting:
            self._waiting[what] = []
            self._tasks.create_task(self._find(what, servers, self._waiting))
        if old is None:
            self._count += 1
            self._waiting[what].append((asked, reply))

    def servers(self) -> Iterator[Upstream]:
        yield from self._servers
        for _, servers in self._stubs:
            yield from servers

    async def _find(
        self,
        what: Asked,
        servers: Sequence[Upstream],
        of_what: dict[Asked, list[tuple[Unanswered, Reply]]],
    ) -> None:
        found = None
        try:
            async with asyncio.timeout(LONGEST):
                found = await self._ask_each(what, servers)
        except TimeoutError:
            pass
        finally:
            waiting = of_what.pop(what)
            self._count -= len(waiting)
        kept = None
        if found is not None:
            if of_what is self._waiting:
                self.cache.put(what, found, self._now())
            kept = found, 0.0
        else:
            kept = self.cache.get(what, self._now(), stale=True)
        for asked, reply in waiting:
            reply(_failed(SERVFAIL) if kept is None else _answer(asked, what, *kept))

    async def _ask_each(self, what: Asked, servers: Sequence[Upstream]) -> Found | None:
        """The first good answer, else the first that says why there is none, else None."""
        refused: Found | None = None
        for _ in range(ROUNDS):
            for server in sorted(servers, key=lambda one: self._now() - one.failed < FAILED_FOR):
                if server.loops:
                    continue
                if not server.is_probed:
                    server.is_probed = True
                    self._tasks.create_task(self._probe(server))
                try:
                    async with asyncio.timeout(PATIENCE):
                        found = await exchange(server, what)
                except (OSError, TimeoutError, EOFError, Malformed) as error:
                    server.failed = self._now()
                    server.missed += 1
                    if server.missed == MISSED:
                        why = str(error) or f"nothing came for {PATIENCE:g} s"
                        log.warning("%s, which is asked for other names, does not answer: %s", server, why)
                    continue
                if server.missed >= MISSED:
                    log.info("%s answers again", server)
                server.missed, server.failed = 0, float("-inf")
                if found.rcode not in (SERVFAIL, REFUSED, NOTIMP, FORMERR):
                    return found
                refused = refused or found
            if refused is not None:
                break
        return refused

    async def _probe(self, server: Upstream) -> None:
        """Ask a server for a name that nobody else knows: whoever asks us for it was asked by it."""
        name = join([secrets.token_hex(8).encode(), secrets.token_hex(8).encode()])
        self._probes[name] = server
        # What it answers does not matter.
        with suppress(OSError, TimeoutError, EOFError, Malformed):
            async with asyncio.timeout(LONGEST):
                await exchange(server, Asked(name, TXT, do=False, cd=False))
        self._probes.pop(name, None)

    def _for(self, name: bytes, options: ForwardOptions) -> list[Upstream]:
        for domain, servers in self._stubs:
            if is_below(name, domain):
                return servers
        if not options.servers:
            self._read_servers(options)
        return [server for server in self._servers if not server.loops]

    def _read_servers(self, options: ForwardOptions) -> None:
        """Those of resolv.conf, if it has changed."""
        try:
            status = os.stat(options.resolv_conf)
            version = status.st_mtime_ns, status.st_ino
        except OSError:
            version = None
        if version != self._version or version is None:
            self._version = version
            known = {server.address: server for server in self._servers}
            self._servers = [
                known.get(address) or Upstream(address)
                for address in nameservers(options.resolv_conf)
                if address not in options.own
            ]


def nameservers(file: Path, resolved: Path = RESOLVED) -> list[str]:
    """The servers of a resolv.conf(5); those behind systemd-resolved where it is the only one."""
    try:
        lines = [line.split() for line in file.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    found = [words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"]
    if found == [RESOLVED_ADDRESS] and file != resolved:
        return nameservers(resolved, resolved) or found
    return found


def searches(file: Path) -> list[str]:
    """The domains of the last `search` line of a resolv.conf(5)."""
    try:
        lines = [line.split() for line in file.read_text(errors="replace").splitlines()]
    except OSError:
        return []
    return next((words[1:] for words in reversed(lines) if words[:1] == ["search"]), [])


async def exchange(server: Upstream, what: Asked) -> Found:
    """Ask one server, by a datagram from a port of its own, then by a stream if the answer is longer. Raises
    OSError, EOFError, Malformed; never ends if nothing comes."""
    server.asked += 1
    loop = asyncio.get_running_loop()
    id_ = secrets.token_bytes(2)
    flags = RD | (CD if what.cd else 0)
    question = what.name + what.type.to_bytes(2, "big") + IN.to_bytes(2, "big")
    packet = header(id_, flags, 1, 0, 0, 1) + question + opt(do=what.do)
    family = socket.AF_INET6 if ":" in server.address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.connect((server.address, server.port))
        sock.send(packet)
        found = None
        while found is None:
            message = await loop.sock_recv(sock, 4096)
            try:
                found = read_reply(message, id_, what)
            except Malformed:
                # Not the answer to what was asked: that may still come.
                continue
    if not found.flags & TC:
        return found
    reader, writer = await asyncio.open_connection(server.address, server.port)
    try:
        writer.write(len(packet).to_bytes(2, "big") + packet)
        length = int.from_bytes(await reader.readexactly(2), "big")
        return read_reply(await reader.readexactly(length), id_, what)
    finally:
        writer.close()


def _failed(rcode: int) -> Answer:
    return Answer(rcode=rcode, flags=RA)


def _answer(asked: Unanswered, what: Asked, found: Found, age: float) -> Answer:
    return found.continued(asked.begun.records, age) if asked.begun else found.answer(what, age)
