"""Real nftables, in a network namespace of a thread's own, takes every script of the table."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import pytest

from netns import apart
from podling.machine.network import note_services, set_up_service_route, tear_down_services
from podling.network import nft, policy_table
from podling.network.nft import LONGEST_ON_LOOP, Nft, NftError, Run, library, program
from podling.network.services import Behind, Frontend
from podling.network.table import IPV4, IPV6, ServiceTable, Shape, removal, turn_of

SHAPES = (
    Shape(IPV4, "podling-unit", "10.64.0.0/24", "10.96.0.0/16"),
    Shape(IPV6, "podling-unit", "fd00::/64", "fd01::/112"),
)

OTHERS = [Path(one) for one in os.environ.get("PODLING_NFT", "").split(os.pathsep) if one]
"""Directories with other releases' program `nft`: `scripts/nft.sh DIR` gets one."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="changing the network needs root")


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def other(directory: Path) -> Callable[[], Run]:
    """The program `nft` of this directory."""
    assert (directory / "nft").exists()

    def run(script: str) -> str:
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{directory}{os.pathsep}{before}"
        try:
            return program(script)
        finally:
            os.environ["PATH"] = before

    return lambda: run


WAYS = [
    pytest.param(library, id="library"),
    pytest.param(lambda: program, id="program"),
    *(pytest.param(other(one), id=one.name) for one in OTHERS),
]


def rules(listing: str) -> list[str]:
    """Without the places of endpoints in their maps."""
    return sorted(
        re.sub(r" \. \d+ : ", " : ", one.strip(" \t,}").removeprefix("elements = { "))
        for line in listing.splitlines()
        for one in line.split(", ")
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.family.name)
@pytest.mark.parametrize("way", WAYS)
def test_a_table_after_changes_is_the_one_made_afresh(shape: Shape, way: Callable[[], Run]) -> None:
    vip, pods = ("10.96.0.7", "10.64.0.") if shape.family is IPV4 else ("fd01::7", "fd00::")
    backends = [(f"{pods}{n}", 80 + n) for n in range(2, 6)]
    plain = Behind(("ns", "svc"), "", "cluster", tuple(backends[:3]), (), (backends[0][0],))
    kinds = [
        plain,
        msgspec.structs.replace(plain, endpoints=tuple(backends[1:])),
        msgspec.structs.replace(plain, endpoints=(), refusal="reject"),
        msgspec.structs.replace(plain, way="outside", affinity=60),
        msgspec.structs.replace(plain, way="local", local=(backends[0],), sources=(f"{pods}7",)),
        msgspec.structs.replace(plain, way="local", refusal="drop", affinity=30),
        msgspec.structs.replace(plain, way="local", local=(backends[1],), affinity=30),
    ]

    def compared() -> tuple[list[str], list[str], str]:
        run, table = way(), ServiceTable(shape)
        run(table.whole())
        for behind in [*kinds, None, plain, *reversed(kinds)]:
            inner = behind if behind is None or behind.way == "cluster" else None
            outer = behind and (msgspec.structs.replace(behind, way="outside") if inner else behind)
            for protocol in ("tcp", "udp", "sctp"):
                run(table.change({Frontend(shape.family.api, protocol, 80, vip): inner})[0])
                run(table.change({Frontend(shape.family.api, protocol, 30080): outer})[0])
        listing = f"list table {shape.family.name} {shape.table}\n"
        changed = run(listing)
        # Chains for other numbers of endpoints stay; all else is as if it had never been otherwise. What one
        # release has left, another reads and replaces.
        library()(table.whole())
        afresh = run(listing)
        run(removal(shape))
        run(policy_table.replacement(shape) + removal(shape))
        return rules(changed), rules(afresh), run("list tables\n")

    changed, afresh, left = apart(compared)
    assert set(afresh) <= set(changed)
    assert left == ""


EARLIER = """
table ip podling-unit {
  map vips { typeof ip daddr . meta l4proto . th dport : verdict; }
  map refused { typeof ip daddr . meta l4proto . th dport : verdict; }
  chain say-no { reject; }
  chain cluster1 { accept; }
  chain services { ip daddr . meta l4proto . th dport vmap @vips; }
  chain prerouting { type nat hook prerouting priority dstnat; jump services; }
}
add element ip podling-unit vips { 10.96.0.7 . tcp . 80 : goto cluster1 }
add element ip podling-unit refused { 10.96.0.8 . tcp . 80 : goto say-no }
"""
"""Maps of the same names had other types (docs/decisions/132)."""


@pytest.mark.parametrize("way", WAYS)
def test_the_table_of_an_earlier_podling_is_replaced(way: Callable[[], Run]) -> None:
    def replaced() -> tuple[str, str]:
        run, listing = way(), "list table ip podling-unit\n"
        run(ServiceTable(SHAPES[0]).whole())
        afresh = run(listing)
        run(f"{removal(SHAPES[0])}{EARLIER}")
        run(ServiceTable(SHAPES[0]).whole())
        return afresh, run(listing)

    afresh, after = apart(replaced)
    assert after == afresh


WATCHED = """
table ip watched {
  counter syns { }
  chain postrouting {
    type filter hook postrouting priority 200;
    tcp flags syn meta priority 0:5 counter name syns
    tcp flags syn meta priority != 0:5 meta priority != 0 drop
  }
}
"""


def test_no_packet_leaves_with_the_number_of_a_chain_as_its_priority() -> None:
    """Nor does one that is led nowhere lose its own."""
    vip, own = "10.96.0.7", "10.64.0.2"

    def connected() -> str:
        for command in ("link set lo up", f"address add {own}/24 dev lo", "route add 10.96.0.0/16 dev lo"):
            subprocess.run(["ip", *command.split()], check=True)
        run, table = library(), ServiceTable(SHAPES[0])
        run(WATCHED + table.whole())
        with socket.create_server((own, 8080)) as server:
            behind = Behind(("ns", "svc"), "", "cluster", (server.getsockname(),))
            run(table.change({Frontend("IPv4", "tcp", 80, vip): behind})[0])
            for place in ((vip, 80), (own, 8080)):
                with socket.socket() as client:
                    client.settimeout(20)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5)
                    client.connect(place)
                    server.accept()[0].close()
        return run("list counter ip watched syns\n")

    assert "packets 1 " in apart(connected)


def answer(listening: socket.socket, name: str) -> None:
    """Say a name to every client until the socket is shut down."""
    with suppress(OSError):
        while True:
            made, _ = listening.accept()
            with made:
                made.sendall(name.encode())


def said(place: tuple[str, int]) -> str:
    try:
        with socket.create_connection(place, timeout=20) as made:
            return made.recv(100).decode()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def test_services_of_two_podlings_do_not_meet(tmp_path: Path) -> None:
    """Each has a range, pods and a table of its own; who goes takes what is its own, and nothing else. A node
    port of both is the first one's, until that goes."""
    own, ranges = "10.200.0.1", {"a": "10.96.0.0/16", "b": "10.97.0.0/16"}
    places = {
        **{name: (f"10.9{at}.0.7", 80) for at, name in ((6, "a"), (7, "b"))},
        **{f"{name} without": (f"10.9{at}.0.8", 80) for at, name in ((6, "a"), (7, "b"))},
        **{f"node port of {name}": (own, 30080 + at) for at, name in ((6, "a"), (7, "b"))},
        "node port of both": (own, 30099),
    }

    def story() -> list[tuple[dict[str, str], str, str]]:
        for command in ("link set lo up", f"address add {own}/24 dev lo"):
            subprocess.run(["ip", *command.split()], check=True)
        run, told, afresh = library(), [], list[str]()
        with ExitStack() as stack:
            for at, (name, services) in enumerate(ranges.items()):
                pods, pod = f"10.{64 + at}.0.0/24", f"10.{64 + at}.0.2"
                subprocess.run(["ip", "address", "add", f"{pod}/32", "dev", "lo"], check=True)
                server = stack.enter_context(socket.create_server((pod, 8080)))
                stack.callback(server.shutdown, socket.SHUT_RDWR)
                threading.Thread(target=answer, args=(server, name), daemon=True).start()
                (tmp_path / name).mkdir()
                note_services(tmp_path / name, [services])
                asyncio.run(set_up_service_route(services, own))
                own_table = f"podling-{name}-services"
                turn = turn_of(own_table, run("list chains\n"))
                table = ServiceTable(Shape(IPV4, own_table, pods, services, turn))
                behind = Behind(("ns", "svc"), "", "cluster", ((pod, 8080),))
                none = msgspec.structs.replace(behind, endpoints=(), refusal="reject")
                outside = msgspec.structs.replace(behind, way="outside")
                (vip, _), (other, _), (_, port) = (
                    places[which] for which in (name, f"{name} without", f"node port of {name}")
                )
                wanted = {
                    Frontend("IPv4", "tcp", 80, vip): behind,
                    Frontend("IPv4", "tcp", 80, other): none,
                    Frontend("IPv4", "tcp", port): outside,
                    Frontend("IPv4", "tcp", places["node port of both"][1]): outside,
                }
                run(table.whole() + table.change(wanted)[0])
                assert turn_of(own_table, run("list chains\n")) == turn == at
                afresh.append(table.whole())
            # It keeps its turn when its table is made anew.
            run(afresh[0])
            for name in ("", *ranges):
                if name:
                    tables = [f"podling-{name}-services"]
                    asyncio.run(tear_down_services(tables, tmp_path / name))
                routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
                asked = {which: said(place) for which, place in places.items()}
                told.append((asked, run("list tables\n"), routes))
        return told

    both, without_a, without_both = apart(story)
    led = {f"{which}{name}": name for name in ranges for which in ("", "node port of ")}
    refused = {f"{name} without": "ECONNREFUSED" for name in ranges}
    assert both[0] == {**led, **refused, "node port of both": "a"}
    away = dict.fromkeys(("a", "a without"), "ENETUNREACH") | {"node port of a": "ECONNREFUSED"}
    away["node port of both"] = "b"
    assert without_a[0] == {**both[0], **away}
    assert without_a[1].split() == ["table", "ip", "podling-b-services"]
    assert "10.97.0.0/16" in without_a[2] and "10.96.0.0/16" not in without_a[2]
    assert without_both[1:] == ("", "")


def test_a_long_script_leaves_no_memory_behind() -> None:
    """The library would keep some 25 MB of this one."""
    elements = ", ".join(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(70_000))
    table = "add table ip one\nadd set ip one them { type ipv4_addr; }\n"
    script = f"{table}add element ip one them {{ {elements} }}\n"

    def more() -> tuple[int, str]:
        run = library()
        before = resident()
        run(script)
        return resident() - before, run("list tables\n")

    kept, left = apart(more)
    assert left == "table ip one\n"
    assert kept < 10 << 20


def test_a_refused_script_says_why_and_does_nothing() -> None:
    def refused() -> tuple[str, str]:
        run = library()
        with pytest.raises(NftError) as error:
            run("add table ip one\nadd rule ip none none accept\n")
        return str(error.value), run("list tables\n")

    message, left = apart(refused)
    assert "No such file or directory" in message
    assert left == ""


def test_short_work_is_done_on_the_loop_unless_the_kernel_keeps_it_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(nft, "library", lambda name: str)
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def taking(seconds: float) -> Callable[[Run], bool]:
        def work(run: Run) -> bool:
            nonlocal now
            now += seconds
            return threading.current_thread() is threading.main_thread()

        return work

    async def story() -> None:
        used, held = Nft(), threading.Event()
        # The library is loaded aside.
        assert not await used.run(taking(0), is_short=True)
        assert await used.run(taking(LONGEST_ON_LOOP), is_short=True)
        assert not await used.run(taking(0))
        assert await used.run(taking(LONGEST_ON_LOOP * 1.1), is_short=True)
        assert not await used.run(taking(0), is_short=True)
        assert await used.run(taking(0), is_short=True)
        # One at a time: what the thread has begun is done first.
        async with asyncio.TaskGroup() as tasks:
            before = tasks.create_task(used.run(lambda run: held.wait()))
            await asyncio.sleep(0)
            after = tasks.create_task(used.run(taking(0), is_short=True))
            await asyncio.sleep(0)
            held.set()
        assert (before.result(), after.result()) == (True, False)
        used.close()

    asyncio.run(story())


def test_without_the_library_the_program_does_it() -> None:
    async def used() -> Run:
        without = Nft("libnone.so.9")
        try:
            assert await without.run(lambda run: run, is_short=True) is program
            return await without.run(lambda run: run, is_short=True)
        finally:
            without.close()

    assert asyncio.run(used()) is program
