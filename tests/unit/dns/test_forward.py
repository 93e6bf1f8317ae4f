"""Other servers that answer, are away, lie, refuse, send too much, or ask back; and what is kept of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from podling.dns import forward
from podling.dns.answers import Answer
from podling.dns.cache import LONGEST, MOST, MOST_BYTES, STALE, STALE_TTL, AnswerCache, Asked, Found
from podling.dns.forward import MOST_WAITING, Forwarder, ForwardOptions, Upstream, nameservers, searches
from podling.dns.responder import Responder, Unanswered
from podling.dns.wire import LONGEST_MESSAGE, Record, encode
from ports import both_of_one_port
from unit.dns.cluster import usual

HOST = "127.0.0.1"
NAME = "www.example.com."

Script = Callable[[dns.message.Message], list[bytes]]


def answered(query: dns.message.Message, *addresses: str, ttl: int = 60) -> list[bytes]:
    reply = dns.message.make_response(query, recursion_available=True)
    if addresses:
        reply.answer.append(dns.rrset.from_text(query.question[0].name, ttl, "IN", "A", *addresses))
    return [reply.to_wire(max_size=LONGEST_MESSAGE)]


def denied(
    query: dns.message.Message, rcode: dns.rcode.Rcode = dns.rcode.NXDOMAIN, *, soa: bool = True
) -> list[bytes]:
    reply = dns.message.make_response(query, recursion_available=True)
    reply.set_rcode(dns.rcode.Rcode(rcode))
    if soa:
        reply.authority.append(dns.rrset.from_text("com.", 900, "IN", "SOA", "ns. host. 1 2 3 4 20"))
    return [reply.to_wire()]


class Server:
    """A DNS server that replies what its script says, and remembers who asked for what."""

    def __init__(self, script: Script, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)
        self.address, self.port = sock.getsockname()
        self.script = script
        self.stream: Script = script
        self.asked: list[str] = []

    def datagram(self) -> None:
        message, sender = self.sock.recvfrom(4096)
        query = dns.message.from_wire(message)
        if len(query.question[0].name.labels) == 3 and len(query.question[0].name.labels[0]) == 16:
            # It looks for a loop.
            return
        self.asked.append(query.question[0].name.to_text())
        for reply in self.script(query):
            self.sock.sendto(reply, sender)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        message = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        for reply in self.stream(dns.message.from_wire(message)):
            writer.write(len(reply).to_bytes(2, "big") + reply)
        writer.close()


class World:
    """A forwarder with servers for all names, and who asks it."""

    def __init__(self, forwarder: Forwarder, servers: list[Server]) -> None:
        self.forwarder, self.servers = forwarder, servers
        self.responder = Responder(usual().zone)

    async def ask(self, name: str = NAME, type_: str = "A") -> dns.message.Message:
        query = dns.message.make_query(name, type_)
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        with pytest.raises(Unanswered) as asked:
            self.responder.reply(query.to_wire())
        self.forwarder.ask(asked.value, HOST, done.set_result)
        answer = await done
        reply = dns.message.from_wire(answer.reply(asked.value.query, LONGEST_MESSAGE))
        assert query.is_response(reply)
        return reply

    async def addresses(self, name: str = NAME) -> list[str]:
        return [str(item) for rrset in (await self.ask(name)).answer for item in rrset]


@asynccontextmanager
async def world(*scripts: Script, stubs: dict[str, list[int]] | None = None) -> AsyncIterator[World]:
    """`stubs`: the domain of which of the servers."""
    loop = asyncio.get_running_loop()
    servers, listening = [], []
    for at, script in enumerate(scripts, 1):
        tcp, udp = both_of_one_port(f"127.0.0.{at}")
        servers.append(server := Server(script, udp))
        loop.add_reader(server.sock, server.datagram)
        listening.append(await asyncio.start_server(server.talk, sock=tcp))
    named = {
        domain: [f"{servers[at].address}:{servers[at].port}" for at in which]
        for domain, which in (stubs or {}).items()
    }
    try:
        with pytest.MonkeyPatch.context() as patch, NamedTemporaryFile("w") as resolv_conf:
            for server in servers:
                print("nameserver", server.address, file=resolv_conf, flush=True)
            ports = {server.address: server.port for server in servers}
            patch.setattr(forward, "Upstream", lambda at, port=0: Upstream(at, port or ports[at]))
            async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
                forwarder = Forwarder(tasks)
                forwarder.use(ForwardOptions(Path(resolv_conf.name), stubs=named))
                others = asyncio.all_tasks()
                yield World(forwarder, servers)
                # Who looks for a loop waits for what never comes.
                for task in asyncio.all_tasks() - others:
                    task.cancel()
    finally:
        for server, one in zip(servers, listening, strict=True):
            loop.remove_reader(server.sock)
            server.sock.close()
            one.close()
            await one.wait_closed()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(forward, "PATIENCE", 8.0)
    monkeypatch.setattr(forward, "LONGEST", 20.0)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    """For those whose servers are away."""
    monkeypatch.setattr(forward, "PATIENCE", 0.3)
    monkeypatch.setattr(forward, "LONGEST", 1.0)


async def test_an_answer_is_asked_for_once_and_kept() -> None:
    async with world(lambda query: answered(query, "192.0.2.1")) as one:
        for name in (NAME, NAME.upper(), NAME):
            reply = await one.ask(name)
            assert reply.question[0].name.to_text() == name
            assert str(reply.answer[0][0]) == "192.0.2.1"
            assert not reply.flags & dns.flags.AA and reply.flags & dns.flags.RA
        assert one.servers[0].asked == [NAME]


async def test_who_asks_the_same_at_a_time_waits_for_the_same() -> None:
    async with world(lambda query: answered(query, "192.0.2.1")) as one:
        replies = await asyncio.gather(*(one.addresses() for _ in range(50)))
        assert replies == [["192.0.2.1"]] * 50
        assert one.servers[0].asked == [NAME]


async def test_what_is_not_there_is_kept_as_long_as_its_zone_says() -> None:
    async with world(denied) as one:
        for _ in range(2):
            assert (await one.ask()).rcode() == dns.rcode.NXDOMAIN
        assert one.servers[0].asked == [NAME]
    async with world(lambda query: denied(query, soa=False)) as one:
        for _ in range(2):
            assert (await one.ask()).rcode() == dns.rcode.NXDOMAIN
        assert one.servers[0].asked == [NAME] * 2


async def test_the_next_server_is_asked_if_one_is_away_or_refuses(soon: None) -> None:
    for first in (lambda query: [], lambda query: denied(query, dns.rcode.SERVFAIL)):
        async with world(first, lambda query: answered(query, "192.0.2.2")) as one:
            assert await one.addresses() == ["192.0.2.2"]
            assert await one.addresses("other.example.com.") == ["192.0.2.2"]


async def test_a_server_that_was_away_is_asked_after_the_others(soon: None) -> None:
    async with world(lambda query: [], lambda query: answered(query, "192.0.2.2")) as one:
        await one.addresses()
        await one.addresses("other.example.com.")
        assert one.servers[0].asked == [NAME]


async def test_a_server_that_is_away_is_told_of_once(soon: None, caplog: pytest.LogCaptureFixture) -> None:
    """And once more when it answers again; a single question that it misses is not worth a word."""
    caplog.set_level("INFO", "podling.dns.forward")
    missed = iter(range(6))

    def away(query: dns.message.Message) -> list[bytes]:
        return [] if next(missed, None) is not None else answered(query, "192.0.2.1")

    async with world(away) as one:
        for number in range(3):
            assert (await one.ask(f"n{number}.example.com.")).rcode() == dns.rcode.SERVFAIL
            (said,) = caplog.messages
        assert await one.addresses() == ["192.0.2.1"]
        name = str(next(one.forwarder.servers()))
        assert said == f"{name}, which is asked for other names, does not answer: nothing came for 0.3 s"
        assert caplog.messages[1:] == [f"{name} answers again"]
    caplog.clear()
    missed = iter(range(1))
    async with world(away) as one:
        assert await one.addresses() == ["192.0.2.1"]
        assert not caplog.messages


async def test_lies_are_not_listened_to() -> None:
    """Another id, another name, another type, a query, and bytes that are no message; then the answer."""

    def lies(query: dns.message.Message) -> list[bytes]:
        (right,) = answered(query, "192.0.2.1")
        (other,) = answered(dns.message.make_query("evil.com.", "A", id=query.id), "192.0.2.66")
        (wrong_type,) = answered(dns.message.make_query(NAME, "AAAA", id=query.id))
        (wrong,) = answered(query, "192.0.2.66")
        other_id = bytes([wrong[0] ^ 1]) + wrong[1:]
        return [
            other_id,
            other,
            wrong_type,
            query.to_wire(),
            right[:-3],
            b"\0",
            right,
        ]

    async with world(lies) as one:
        assert await one.addresses() == ["192.0.2.1"]


async def test_a_long_answer_is_asked_for_by_a_stream() -> None:
    addresses = [f"10.0.{at // 250}.{at % 250}" for at in range(500)]

    def cut(query: dns.message.Message) -> list[bytes]:
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.TC
        return [reply.to_wire()]

    async with world(cut) as one:
        one.servers[0].stream = lambda query: answered(query, *addresses)
        assert len(await one.addresses()) == 500


async def test_while_servers_are_away_what_was_known_is_said(soon: None) -> None:
    async with world(lambda query: answered(query, "192.0.2.1", ttl=1)) as one:
        assert await one.addresses() == ["192.0.2.1"]
        one.servers[0].script = lambda query: []
        passed = one.forwarder._now
        one.forwarder._now = lambda: passed() + 100
        reply = await one.ask()
        assert (str(reply.answer[0][0]), reply.answer[0].ttl) == ("192.0.2.1", STALE_TTL)
        # Now it is known that they are away: nobody waits any more.
        async with asyncio.timeout(0.1):
            assert await one.addresses() == ["192.0.2.1"]
        assert (await one.ask("never.example.com.")).rcode() == dns.rcode.SERVFAIL


async def test_a_stub_domain_has_servers_of_its_own() -> None:
    async with world(
        lambda query: answered(query, "192.0.2.1"),
        lambda query: answered(query, "192.0.2.2"),
        stubs={"corp.example.com": [1]},
    ) as one:
        assert await one.addresses("a.corp.example.com.") == ["192.0.2.2"]
        assert await one.addresses("corp.example.com.") == ["192.0.2.2"]
        assert one.servers[0].asked == []


async def test_an_external_name_is_followed_outside() -> None:
    async with world(lambda query: answered(query, "192.0.2.1")) as one:
        reply = await one.ask("out.default.svc.cluster.local.")
        assert [str(rrset) for rrset in reply.answer] == [
            "out.default.svc.cluster.local. 5 IN CNAME example.com.",
            "example.com. 60 IN A 192.0.2.1",
        ]
    async with world(denied) as one:
        reply = await one.ask("out.default.svc.cluster.local.")
        assert (reply.rcode(), len(reply.answer)) == (dns.rcode.NOERROR, 1)


async def test_a_server_that_asks_us_is_left_out(soon: None) -> None:
    """Its query comes back as one of ours: nothing goes round in circles."""
    async with world(lambda query: []) as one:
        server = one.servers[0]
        back: asyncio.Queue[dns.message.Message] = asyncio.Queue()

        def datagram() -> None:
            back.put_nowait(dns.message.from_wire(server.sock.recv(4096)))

        asyncio.get_running_loop().remove_reader(server.sock)
        asyncio.get_running_loop().add_reader(server.sock, datagram)
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(one.ask())
            for _ in range(2):
                name = (await back.get()).question[0].name.to_text()
                if name != NAME:
                    assert (await one.ask(name, "TXT")).rcode() == dns.rcode.SERVFAIL
        assert first.result().rcode() == dns.rcode.SERVFAIL
        assert (await one.ask("next.example.com.")).rcode() == dns.rcode.REFUSED


async def test_only_so_many_wait(soon: None) -> None:
    async with world(lambda query: []) as one:
        told: list[Answer] = []
        for number in range(MOST_WAITING + 10):
            with pytest.raises(Unanswered) as asked:
                one.responder.reply(dns.message.make_query(f"n{number}.example.com.", "A").to_wire())
            one.forwarder.ask(asked.value, HOST, told.append)
        assert [answer.rcode for answer in told] == [dns.rcode.SERVFAIL] * 10


async def test_without_servers_nothing_is_asked() -> None:
    async with world() as one:
        assert (await one.ask()).rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        (
            "nameserver 192.0.2.1\n# nameserver 192.0.2.9\nsearch a\nnameserver  fd00::1 \n",
            ["192.0.2.1", "fd00::1"],
        ),
        ("nameserver 127.0.0.53\n", ["192.0.2.3"]),
        ("nameserver\n", []),
    ],
)
def test_the_servers_are_those_of_the_machine(tmp_path: Path, text: str, servers: list[str]) -> None:
    (tmp_path / "resolved").write_text("nameserver 192.0.2.3\n")
    (tmp_path / "resolv.conf").write_text(text)
    assert nameservers(tmp_path / "resolv.conf", tmp_path / "resolved") == servers
    assert nameservers(tmp_path / "none") == []


def test_the_search_path_of_the_machine_is_its_last(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("search a.test\nnameserver 192.0.2.1\nsearch b.test  c.test\n")
    assert searches(file) == ["b.test", "c.test"]
    file.write_text("nameserver 192.0.2.1\n")
    assert searches(file) == searches(tmp_path / "none") == []


def found(size: int = 100, ttl: int = 60) -> Found:
    return Found(0x8180, (Record(encode("a"), 1, 1, ttl, b"\1\2\3\4"),), (), (), size)


def asked(number: int) -> Asked:
    return Asked(encode(f"n{number}.test"), 1, do=False, cd=False)


def test_the_cache_is_bounded_in_answers_bytes_and_time() -> None:
    cache = AnswerCache()
    for number in range(MOST + 5):
        cache.put(asked(number), found(), 0.0)
    assert len(cache) == MOST
    assert cache.get(asked(0), 0.0) is None and cache.get(asked(10), 0.0) is not None
    for number in range(1000):
        cache.put(asked(number), found(60_000), 0.0)
    assert len(cache) * 60_000 <= MOST_BYTES
    last = asked(999)
    assert cache.get(last, LONGEST - 1) is not None
    assert cache.get(last, LONGEST) is None
    assert cache.get(last, LONGEST + STALE - 1, stale=True) is not None
    assert cache.get(last, LONGEST + STALE, stale=True) is None
    cache.put(asked(MOST + 9), found(ttl=0), 0.0)
    assert cache.get(asked(MOST + 9), 0.0, stale=True) is None
