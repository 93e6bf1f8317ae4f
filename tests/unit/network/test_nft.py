"""Real nftables, in a network namespace of a thread's own, takes every script of the table."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from netns import apart
from podling.network import nft, policy_table
from podling.network.nft import LONGEST_ON_LOOP, Nft, NftError, Run, library, program
from podling.network.services import Behind, Frontend
from podling.network.table import IPV4, IPV6, ServiceTable, Shape, removal

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
        re.sub(r" \. \d+ : ", " : ", line.strip(" \t,").removeprefix("elements = { "))
        for line in listing.splitlines()
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
