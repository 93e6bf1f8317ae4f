"""podling over an etcd of three members: it goes on without one of them, refuses writes without two, says
why, and goes on by itself when one of them is back.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from peer import control_plane
from peer.server import Server, running, until_ready
from ports import free_port

Process = subprocess.Popen[bytes]
MAPS = "/api/v1/namespaces/default/configmaps"


class Members:
    """Three members of an etcd, each of which may be ended and started again."""

    def __init__(self, program: Path, directory: Path, ends: ExitStack) -> None:
        self._program, self._directory, self._ends = program, directory, ends
        self.urls, self._peers = (
            [f"http://{control_plane.HOST}:{free_port()}" for _ in range(3)] for _ in range(2)
        )
        self._running: dict[int, ExitStack] = {}

    def start(self, number: int) -> Process:
        name = f"m{number}"
        flags = {
            "name": name,
            "data-dir": self._directory / name,
            "listen-client-urls": self.urls[number],
            "advertise-client-urls": self.urls[number],
            "listen-peer-urls": self._peers[number],
            "initial-advertise-peer-urls": self._peers[number],
            "initial-cluster": ",".join(f"m{one}={url}" for one, url in enumerate(self._peers)),
            "unsafe-no-fsync": "true",
            "log-level": "error",
        }
        command = [str(self._program), *(f"--{flag}={value}" for flag, value in flags.items())]
        self._running[number] = stack = self._ends.enter_context(ExitStack())
        return stack.enter_context(running(command, self._directory / f"{name}.log"))

    def end(self, number: int) -> None:
        self._running.pop(number).close()


def make(server: Server, name: str) -> tuple[int, str]:
    said = server.ask("POST", MAPS, {"metadata": {"name": name}})
    return said.code, str(said.body)


def test_a_cluster_that_loses_its_quorum(kubernetes_programs: Path, tmp_path: Path) -> None:
    with ExitStack() as ends:
        members = Members(kubernetes_programs / "etcd", tmp_path, ends)
        for number in range(3):
            members.start(number)
        flags = ["--etcd-servers", ",".join(members.urls)]
        podling = ends.enter_context(control_plane.podling(tmp_path, *flags))
        assert make(podling, "whole")[0] == 201

        members.end(0)
        assert make(podling, "two-of-three")[0] == 201

        members.end(1)
        code, said = make(podling, "one-of-three")
        assert (code, "etcd" in said) == (500, True), said
        ready = podling.ask("GET", "/readyz")
        assert (ready.code, "[-]etcd failed" in str(ready.body)) == (500, True), ready.body

        until_ready(podling, members.start(1), tmp_path / "apiserver.log")
        assert make(podling, "again")[0] == 201
        names = {one["metadata"]["name"] for one in podling.ask("GET", MAPS).body["items"]}
        assert {"whole", "two-of-three", "again"} <= names
