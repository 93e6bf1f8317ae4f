"""Exec and attach over every protocol, with a real containerd at the other end."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.kubelet.logs.reading import log_changes
from podling.kubelet.server import relay
from podling.streaming import driver
from podling.streaming.upgrade import Refused

if TYPE_CHECKING:
    from conftest import UntilDone
    from contract.streams.conftest import Node, Remote

pytestmark = pytest.mark.containerd

STATUS = ("spdy:v4.channel.k8s.io", "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io")
TEXT = ("spdy:v3.channel.k8s.io", "spdy:v2.channel.k8s.io", "spdy:channel.k8s.io", "channel.k8s.io")
HALF_CLOSE = ("spdy:v4.channel.k8s.io", "v5.channel.k8s.io")
SLEEP = ("sleep", "1000")

every_status_protocol = pytest.mark.parametrize("protocol", STATUS)
every_text_protocol = pytest.mark.parametrize("protocol", TEXT)
every_half_closing_protocol = pytest.mark.parametrize("protocol", HALF_CLOSE)


@every_status_protocol
async def test_exec_gives_both_outputs_and_the_exit_code(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "sh", "-c", "echo out; echo err >&2; exit 3") as remote:
        assert await remote.all("stdout") == b"out\n"
        assert await remote.all("stderr") == b"err\n"
        status = json.loads(await remote.all("error"))
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@every_status_protocol
async def test_success_is_a_status_too(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "true") as remote:
        assert json.loads(await remote.all("error")) == {"metadata": {}, "status": "Success"}


@every_text_protocol
async def test_protocols_before_v4_say_failure_in_words_and_success_in_none(
    node: Node, protocol: str
) -> None:
    await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "sh", "-c", "exit 3") as remote:
        assert b"exit code 3" in await remote.all("error")
    async with node.command(protocol, "exec", "c", "echo", "fine") as remote:
        assert await remote.all("stdout") == b"fine\n"
        assert await remote.all("error") == b""


@every_half_closing_protocol
async def test_the_end_of_stdin_ends_what_reads_it(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "cat", stdin=True) as remote:
        await remote["stdin"].write(b"through")
        remote["stdin"].end()
        assert await remote.all("stdout") == b"through"
        assert json.loads(await remote.all("error"))["status"] == "Success"


@every_status_protocol
async def test_a_terminal_has_a_size_that_can_change(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "sh", stdin=True, tty=True) as remote:
        await remote["resize"].write(b'{"Width":133,"Height":41}\n')
        await remote["stdin"].write(b"until stty size | grep '41 133'; do sleep 0.01; done; exit\n")
        await remote.until("stdout", b"\r\n41 133\r\n")
        assert json.loads(await remote.all("error"))["status"] == "Success"


@every_half_closing_protocol
async def test_megabytes_pass_both_ways_unchanged(node: Node, protocol: str) -> None:
    await node.make("c", *SLEEP)
    sent = bytes(range(256)) * 4096 * 8

    async def say(remote: Remote) -> None:
        for at in range(0, len(sent), 32768):
            await remote["stdin"].write(sent[at : at + 32768])
        remote["stdin"].end()

    async with (
        node.command(protocol, "exec", "c", "cat", stdin=True) as remote,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(say(remote))
        heard = await remote.all("stdout")
    assert hashlib.sha256(heard).digest() == hashlib.sha256(sent).digest()


@every_status_protocol
async def test_a_lost_client_leaves_the_shell_it_attached_to_alive(node: Node, protocol: str) -> None:
    """R-EPH-6: no end of input is sent, and the next client finds the same shell."""
    await node.make("shell", "sh", stdin=True, tty=True)
    async with node.command(protocol, "attach", "shell", stdin=True, tty=True) as remote:
        await remote["stdin"].write(b"kept=remembered\n")
        await remote.until("stdout", b"kept=remembered")
    async with node.command(protocol, "attach", "shell", stdin=True, tty=True) as remote:
        await remote["stdin"].write(b"echo is:$kept\n")
        await remote.until("stdout", b"is:remembered")


@every_half_closing_protocol
async def test_a_client_that_ends_its_stdin_does_not_end_the_containers(node: Node, protocol: str) -> None:
    """R-EPH-6: only `stdinOnce` lets a client's end of input through."""
    await node.make("cat", "cat", stdin=True)
    async with node.command(protocol, "attach", "cat", stdin=True) as remote:
        await remote["stdin"].write(b"one\n")
        await remote.until("stdout", b"one\n")
        remote["stdin"].end()
    async with node.command(protocol, "attach", "cat", stdin=True) as remote:
        await remote["stdin"].write(b"two\n")
        await remote.until("stdout", b"two\n")


@every_half_closing_protocol
async def test_stdin_once_ends_with_the_first_client(node: Node, protocol: str) -> None:
    container = await node.make("cat", "cat", stdin=True, stdin_once=True)
    async with node.command(protocol, "attach", "cat", stdin=True) as remote:
        await remote["stdin"].write(b"only\n")
        remote["stdin"].end()
        assert await remote.all("stdout") == b"only\n"
    async with asyncio.timeout(10):
        await node.host.container_ended(container)


async def test_several_clients_share_a_terminal_and_one_may_leave(node: Node) -> None:
    """R-EPH-6."""
    await node.make("shell", "sh", stdin=True, tty=True)
    spdy, websocket = HALF_CLOSE
    async with node.command(spdy, "attach", "shell", stdin=True, tty=True) as stays:
        async with node.command(websocket, "attach", "shell", stdin=True, tty=True) as leaves:
            await leaves["stdin"].write(b"echo both | tr a-z A-Z\n")
            await leaves.until("stdout", b"BOTH")
            await stays.until("stdout", b"BOTH")
        await stays["stdin"].write(b"echo still | tr a-z A-Z\n")
        await stays.until("stdout", b"STILL")


@every_half_closing_protocol
async def test_a_client_that_reads_late_misses_nothing(
    node: Node, seam: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command ended long ago, and the runtime has closed the connection. What it printed just fits in the
    buffers on the way: more than the server takes, less than would hold up the command."""
    printed = {"network": 6_000_000, "process": 700_000}[seam]
    monkeypatch.setattr(driver, "HELD", 0)
    monkeypatch.setattr(driver, "GRACE", 0)
    await node.make("c", *SLEEP)
    script = f"echo up; head -c {printed} /dev/zero; touch /done"
    async with node.command(protocol, "exec", "c", "sh", "-c", script) as remote:
        heard = await remote.until("stdout", b"up\n")
        remote.session.hold_peer()
        wait = "until [ -e /done ]; do sleep 0.1; done; sleep 1"
        async with node.command(protocol, "exec", "c", "sh", "-c", wait) as other:
            await other.all("error")
        remote.session.release_peer()
        heard += await remote.all("stdout")
        assert json.loads(await remote.all("error"))["status"] == "Success"
    assert len(heard) == printed + len(b"up\n")


@every_half_closing_protocol
async def test_a_client_that_never_reads_stops_the_container_and_costs_no_memory(
    node: Node, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.make("c", *SLEEP)
    loop_held = asyncio.Event()
    async with node.command(protocol, "exec", "c", "sh", "-c", "yes | head -c 50000000") as remote:
        hold = remote.session.hold_peer

        def held() -> None:
            hold()
            loop_held.set()

        monkeypatch.setattr(remote.session, "hold_peer", held)
        await loop_held.wait()
        assert remote.session._unread < 1_000_000
        assert len(await remote.all("stdout")) == 50_000_000


@every_status_protocol
async def test_a_container_killed_during_exec_ends_the_client_with_a_status(
    node: Node, protocol: str
) -> None:
    container = await node.make("c", *SLEEP)
    async with node.command(protocol, "exec", "c", "sh", "-c", "echo in; sleep 1000") as remote:
        await remote.until("stdout", b"in\n")
        await node.host.runtime.stop_container(container, 0)
        assert json.loads(await remote.all("error"))["status"] == "Failure"


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_client_that_does_not_read_does_not_keep_a_container_from_being_stopped(
    node: Node, until_done: UntilDone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tty: bool
) -> None:
    """containerd 1.6 stops no container whose attached output nobody takes."""
    monkeypatch.setattr(relay, "STALLED", 0.1)
    spam = "exec yes $(head -c 4000 /dev/zero | tr '\\0' x)"
    container = await node.make("c", "sh", "-c", spam, tty=tty)
    async with node.command(HALF_CLOSE[0], "attach", "c", tty=tty) as idle:
        await idle.until("stdout", b"x")
        idle.session.hold_peer()
        await until_quiet(tmp_path / "logs" / "c.log")
        async with asyncio.timeout(20):
            await until_done(lambda: node.host.runtime.stop_container(container, 0))
            await until_done(lambda: node.host.runtime.remove_container(container))


async def test_a_client_that_does_not_read_lets_a_command_take_its_leave(
    node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is let go when the container's stop begins, so that what waits for it does not use up the grace."""
    monkeypatch.setattr(relay, "STALLED", 0.1)
    script = "trap 'echo bye; exit 7' TERM; while true; do head -c 100000 /dev/zero | tr '\\0' x; done"
    container = await node.make("c", "sh", "-c", script)
    async with node.command(HALF_CLOSE[0], "attach", "c") as idle:
        await idle.until("stdout", b"x")
        idle.session.hold_peer()
        await until_quiet(tmp_path / "logs" / "c.log")
        node.host.stop_begins(container)
        async with asyncio.timeout(20):
            await node.host.runtime.stop_container(container, 600)
    assert (await node.host.runtime.container_status(container)).exit_code == 7
    assert (tmp_path / "logs" / "c.log").read_bytes().endswith(b"bye\n")


async def test_a_client_that_reads_hears_all_from_a_container_that_is_stopped(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It speaks for longer than a client may read nothing. That is long enough for any machine here: client
    and server share a loop, so what holds one holds the other."""
    monkeypatch.setattr(relay, "STALLED", 1.0)
    leaving = "for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 250000 /dev/zero; sleep 0.1; done; exit"
    script = f"trap '{leaving}' TERM; echo up; while true; do sleep 0.01; done"
    container = await node.make("c", "sh", "-c", f"read go; {script}", stdin=True)
    async with node.command(HALF_CLOSE[0], "attach", "c", stdin=True) as remote:
        await remote["stdin"].write(b"go\n")
        heard = await remote.until("stdout", b"up\n")
        node.host.stop_begins(container)
        async with asyncio.TaskGroup() as group:
            group.create_task(node.host.runtime.stop_container(container, 600))
            heard += await remote.all("stdout")
    assert len(heard) == 3_000_003


async def until_quiet(log: Path) -> None:
    """Returns once the container is held up: what it says is logged as it is read."""
    with log_changes(log) as changes, suppress(TimeoutError):
        while True:
            changes.changed.clear()
            async with asyncio.timeout(0.5):
                await changes.changed.wait()


@pytest.mark.parametrize("protocol", ["spdy:v4.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_container_that_is_not_there_is_said_before_the_upgrade(node: Node, protocol: str) -> None:
    with pytest.raises(Refused) as refused:
        async with node.command(protocol, "exec", "missing", "true"):
            pass
    assert (refused.value.status, refused.value.body) == (500, b'container not found ("missing")')


async def test_a_v5_client_is_told_on_the_error_stream_as_kubernetes_api_server_tells_it(node: Node) -> None:
    async with node.command("v5.channel.k8s.io", "exec", "missing", "true") as remote:
        status = json.loads(await remote.all("error"))
    why = 'Internal error occurred: unable to upgrade connection: container not found ("missing")'
    assert (status["reason"], status["message"]) == ("InternalError", why)


async def test_200_sessions_at_once(node: Node) -> None:
    """All are open before any is spoken in."""
    await node.make("c", *SLEEP)
    everybody = asyncio.Barrier(200)
    silent = set(range(200))

    async def one(number: int) -> None:
        protocol = HALF_CLOSE[number % 2]
        async with node.command(protocol, "exec", "c", "cat", stdin=True, patience=120) as remote:
            await remote["stdin"].write(b"up\n")
            await remote.until("stdout", b"up\n")
            silent.discard(number)
            await everybody.wait()
            await remote["stdin"].write(b"%d\n" % number)
            remote["stdin"].end()
            assert await remote.all("stdout") == b"%d\n" % number
            assert json.loads(await remote.all("error"))["status"] == "Success"

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(one(number))
    except* TimeoutError as errors:
        errors.add_note(f"nothing was heard of {sorted(silent)}; even numbers speak SPDY")
        raise


async def test_many_execs_at_once(node: Node) -> None:
    await node.make("c", *SLEEP)

    async def one(number: int) -> None:
        async with node.command(HALF_CLOSE[number % 2], "exec", "c", "echo", str(number)) as remote:
            assert await remote.all("stdout") == b"%d\n" % number

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(one(number))
