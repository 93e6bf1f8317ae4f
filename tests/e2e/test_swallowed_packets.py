"""A network that swallows packets, so that nobody is told that a connection is no more: commands say so in
bounded time, and leave the terminal as it was.

The clients are in a network of its own, whose nftables drop all that comes from a moment on. Their bounds are
seconds here; `test_the_bounds_are_a_minute` has what they are.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pexpect
import pytest

from netns import network
from podling.client import https, route

from .clusters import BUSYBOX, Cluster, cluster
from .relay import through_relay

__all__ = ["cluster"]

IMPATIENT = """
from podling.client import route
route.CONNECT_TIMEOUT = 5
route.PROBES |= {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 2000}
from podling.cli.main import program
program()
"""
TOLD = 'trap : INT; "$@"; echo code $?; stty -a'
SWALLOW = "table inet swallow { chain everything { type filter hook input priority 0; policy drop; }; }"
PROMPT = "/ # "
PATIENCE = 60


@dataclass
class Away:
    """A cluster as it is reached from another network."""

    cluster: Cluster
    thread: ThreadPoolExecutor

    def run(self, command: str, *arguments: str) -> pexpect.spawn[str]:
        """On a terminal, whose state is told at the end."""
        _, _, _, *words = self.cluster.podling(command, *arguments)
        shell = ["-c", TOLD, "sh", sys.executable, "-c", IMPATIENT, *words]

        def spawn() -> pexpect.spawn[str]:
            return pexpect.spawn("sh", shell, timeout=PATIENCE, encoding="utf-8")

        return self.thread.submit(spawn).result()

    def swallow(self) -> None:
        done = self.thread.submit(subprocess.run, ["nft", "-f", "-"], input=SWALLOW, text=True, check=True)
        done.result()


def listening() -> socket.socket:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return socket.create_server(("127.0.0.1", 0))


def ended(program: pexpect.spawn[str]) -> str:
    """What was shown since, once the command has ended and the terminal is as before."""
    program.expect(pexpect.EOF)
    program.close()
    shown = " ".join((program.before or "").split())
    assert " icanon " in shown and " echo " in shown, shown
    return shown


@pytest.mark.parametrize("cluster", ["podling"], indirect=True)
def test_all_say_so_and_leave_the_terminal_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    """Sessions, one in which nothing is typed; who waits for a container; who follows a log; and who comes
    when nothing is let through any more."""
    script = ["sh", "-c", "echo on; sleep 3600"]
    cluster.make_pod("swallowed", containers=[{"name": "app", "image": BUSYBOX, "command": script}])
    with network() as thread:
        of_network = thread.submit(listening).result()
        with through_relay(cluster, tmp_path, listening=of_network) as (far, _):
            away = Away(far, thread)
            sessions = [away.run("debug", "swallowed", "-m", BUSYBOX, "--new", "-c", one) for one in "ab"]
            waiting = away.run("debug", "swallowed", "-c", "none", "-m", "127.0.0.1:1/none:1", "--", "x")
            logs = away.run("logs", "-f", "swallowed", "-c", "app")
            for session in sessions:
                session.expect_exact(PROMPT)
            waiting.expect("(?i)pull")
            logs.expect_exact("on\r\n")
            away.swallow()
            late = away.run("why", "swallowed")
            sessions[0].send("echo nobody hears\r")
            for program in (*sessions, late):
                shown = ended(program)
                assert "does not take a connection" in shown and "code 1 " in shown, shown
            assert "code 1 " in ended(waiting)
            logs.expect_exact("trying again")
            logs.sendintr()
            assert "code 130 " in ended(logs)


def test_the_bounds_are_a_minute() -> None:
    """Of keepalive, of what is sent and not acknowledged, of connecting, and of an answer."""
    probes = route.PROBES
    assert probes["TCP_KEEPIDLE"] + probes["TCP_KEEPINTVL"] * probes["TCP_KEEPCNT"] <= 60
    assert probes["TCP_USER_TIMEOUT"] <= 60_000
    assert route.CONNECT_TIMEOUT <= 10 and https.DEADLINE <= 60
