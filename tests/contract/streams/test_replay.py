"""An attach that shows what was printed before it, with a real containerd at the other end (R-CLI-3)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from podling.kubelet.server import replay, streams
from podling.model.types.container import EphemeralContainer
from podling.streaming.session import Session

if TYPE_CHECKING:
    from conftest import UntilDone
    from contract.streams.conftest import Node

pytestmark = [
    pytest.mark.containerd,
    # What is shown again is settled behind the kubelet's server, whichever way it was come to.
    pytest.mark.parametrize("seam", ["network"]),
]

PROTOCOLS = ("spdy:v4.channel.k8s.io", "v5.channel.k8s.io")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


async def make(node: Node, name: str, script: str, **fields: Any) -> str:
    """An ephemeral container that runs `script`."""
    container_id = await node.make(name, "sh", "-c", script, **fields)
    once = fields.get("stdin_once", False)
    node.host.shown.spec.ephemeral_containers.append(EphemeralContainer(name=name, stdin_once=once))
    return container_id


@every_protocol
async def test_the_first_attach_shows_everything_from_the_start(node: Node, protocol: str) -> None:
    await make(node, "debug", "echo before; read line; echo heard $line >&2; echo last", stdin=True)
    async with node.command(protocol, "attach", "debug", stdin=True) as remote:
        await remote.until("stdout", b"before\n")
        await remote["stdin"].write(b"it\n")
        assert await remote.all("stdout") == b"last\n"
        assert await remote.all("stderr") == b"heard it\n"
        assert json.loads(await remote.all("error"))["status"] == "Success"


@every_protocol
async def test_a_client_that_has_no_more_to_say_still_hears_all(node: Node, protocol: str) -> None:
    """kubectl ends its stdin at once when commands are piped into it."""
    await make(node, "debug", "exec sh", stdin=True)
    async with node.command(protocol, "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"echo first; sleep 0.3; echo last; exit\n")
        remote["stdin"].end()
        assert await remote.all("stdout") == b"first\nlast\n"


async def test_a_client_that_has_no_more_to_say_is_let_go_when_the_container_is_silent(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EPH-6: the shell lives on."""
    monkeypatch.setattr(replay, "SILENCE", 0.1)
    container_id = await make(node, "debug", "exec sh", stdin=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"echo one\n")
        remote["stdin"].end()
        assert await remote.all("stdout") == b"one\n"
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"echo two\n")
        assert await remote.until("stdout", b"two\n") == b"two\n"
    assert not node.host.ended.get(container_id, asyncio.Event()).is_set()


@every_protocol
async def test_a_terminal_is_live_after_what_it_showed_before(node: Node, protocol: str) -> None:
    await make(node, "debug", "echo hello; exec sh", stdin=True, tty=True)
    async with node.command(protocol, "attach", "debug", stdin=True, tty=True) as remote:
        await remote.until("stdout", b"hello\r\n")
        await remote["stdin"].write(b"echo $((40+2))\n")
        await remote.until("stdout", b"\r\n42\r\n")


async def test_a_question_without_a_line_end_is_shown(node: Node) -> None:
    await make(node, "debug", "read a; echo got $a; printf 'more? '; read b; echo $a$b", stdin=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"x\n")
        assert await remote.until("stdout", b"more? ") == b"got x\nmore? "
        await remote["stdin"].write(b"y\n")
        assert await remote.all("stdout") == b"xy\n"


async def test_a_later_attach_asks_for_what_came_before_or_joins_what_is_going_on(node: Node) -> None:
    await make(node, "debug", "echo before; while read line; do echo $line; done", stdin=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote.until("stdout", b"before\n")
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"live\n")
        assert await remote.until("stdout", b"live\n") == b"live\n"
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True, replay=True) as remote:
        assert await remote.until("stdout", b"live\n") == b"before\nlive\n"


async def test_stdin_once_still_ends_with_its_first_client(node: Node) -> None:
    await make(node, "debug", "cat; echo over", stdin=True, stdin_once=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        await remote["stdin"].write(b"only\n")
        remote["stdin"].end()
        assert await remote.all("stdout") == b"only\nover\n"


async def test_megabytes_are_neither_cut_nor_doubled(node: Node) -> None:
    """The container waits at the end: of one that ends with its pipe full, containerd 1.6 loses the rest."""
    await make(node, "debug", "seq 300000; echo end; read line", stdin=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as remote:
        heard = await remote.until("stdout", b"\nend\n")
    assert heard == b"".join(b"%d\n" % number for number in range(1, 300001)) + b"end\n"


async def test_a_client_that_does_not_read_holds_up_nobody(node: Node, until_done: UntilDone) -> None:
    """R-EPH-6: the container goes on, can be stopped, and is shown whole to one that reads."""
    # As many bytes as fill every buffer, in few lines: each is worked on by containerd and by the kubelet.
    much = f"yes {'y' * 1023} | head -n 2700"
    script = f"echo begin; {much} 1>&2; {much}; echo end; read line"
    container_id = await make(node, "debug", script, stdin=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True) as idle:
        idle.session.hold_peer()
        async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True, replay=True) as reader:
            reader["stderr"].ignore()
            await reader.until("stdout", b"\nend\n")
        await until_done(lambda: node.host.runtime.stop_container(container_id, 1))


async def test_a_terminal_that_does_not_read_for_a_while_misses_nothing(node: Node) -> None:
    await make(node, "debug", "stty -echo; echo begin; read line; seq 200000; exec sh", stdin=True, tty=True)
    async with node.command(PROTOCOLS[0], "attach", "debug", stdin=True, tty=True) as slow:
        heard = await slow.until("stdout", b"begin\r\n")
        slow.session.hold_peer()
        await slow["stdin"].write(b"go\n")
        async with node.command(PROTOCOLS[0], "attach", "debug", tty=True, replay=True) as reader:
            await reader.until("stdout", b"\r\n200000\r\n")
        slow.session.release_peer()
        heard += await slow.until("stdout", b"\r\n200000\r\n")
    numbers = b"".join(b"%d\r\n" % number for number in range(1, 200001))
    assert heard.startswith(b"begin\r\n" + numbers)


every_status_protocol = pytest.mark.parametrize("protocol", [*PROTOCOLS, "v4.base64.channel.k8s.io"])


@every_status_protocol
@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
async def test_a_container_that_has_ended_is_shown_whole_with_its_exit_code(
    node: Node, protocol: str, tty: bool
) -> None:
    container_id = await make(node, "debug", "echo out; echo err >&2; exit 3", stdin=True, tty=tty)
    await node.host.container_ended(container_id)
    async with node.command(protocol, "attach", "debug", stdin=True, tty=tty, exit_code=True) as remote:
        await remote["stdin"].write(b"too late\n")
        shown = await remote.all("stdout") + (b"" if tty else await remote.all("stderr"))
        assert shown == (b"out\r\nerr\r\n" if tty else b"out\nerr\n")
        status = json.loads(await remote.all("error"))
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@every_status_protocol
async def test_a_container_that_ends_while_it_is_attached_to_tells_its_exit_code(
    node: Node, protocol: str
) -> None:
    await make(node, "debug", "echo before; read code; exit $code", stdin=True)
    async with node.command(protocol, "attach", "debug", stdin=True, exit_code=True) as remote:
        await remote.until("stdout", b"before\n")
        await remote["stdin"].write(b"7\n")
        assert json.loads(await remote.all("error"))["details"]["causes"][0]["message"] == "7"


async def test_words_and_no_words_for_clients_of_old(node: Node) -> None:
    for code, said in ((0, b""), (3, b"command terminated with non-zero exit code: exit status 3")):
        container_id = await make(node, f"debug{code}", f"exit {code}")
        await node.host.container_ended(container_id)
        async with node.command("channel.k8s.io", "attach", f"debug{code}", exit_code=True) as remote:
            assert await remote.all("error") == said


async def test_whoever_ends_at_any_moment_is_shown_whole(node: Node) -> None:
    """Also between the question whether it runs and the attach."""
    for run in range(20):
        await make(node, f"debug{run}", f"echo first; sleep 0.0{run % 10}; echo last; exit 4")
        async with node.command(PROTOCOLS[run % 2], "attach", f"debug{run}", exit_code=True) as remote:
            assert await remote.all("stdout") == b"first\nlast\n"
            assert json.loads(await remote.all("error"))["details"]["causes"][0]["message"] == "4"


@every_protocol
async def test_a_lost_runtime_is_told_though_the_log_goes_on(
    node: Node, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client types would go nowhere."""
    reached: list[Session] = []
    connect = streams.connect

    async def remembered(url: str, protocol: str) -> Session:
        reached.append(await connect(url, protocol))
        return reached[-1]

    monkeypatch.setattr(streams, "connect", remembered)
    await make(node, "debug", "echo up; exec sh", stdin=True)
    async with node.command(protocol, "attach", "debug", stdin=True) as remote:
        # Once it is attached: containerd does not get over losing a connection sooner.
        await remote["stdin"].write(b"echo joined\n")
        await remote.until("stdout", b"joined\n")
        reached[0].drop()
        status = json.loads(await remote.all("error"))
    assert status["message"] == "Internal error occurred: the container runtime ended the stream"
