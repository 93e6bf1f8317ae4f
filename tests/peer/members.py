"""An etcd of three members on loopback."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

from peer import control_plane
from peer.server import running
from ports import free_port

Process = subprocess.Popen[bytes]


class Members:
    """Three members of an etcd, each of which may be ended and started again. `flags` are added to theirs."""

    def __init__(self, program: Path, directory: Path, ends: ExitStack, **flags: object) -> None:
        self._program, self._directory, self._ends, self._flags = program, directory, ends, flags
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
            **self._flags,
        }
        command = [str(self._program), *(f"--{flag}={value}" for flag, value in flags.items())]
        self._running[number] = stack = self._ends.enter_context(ExitStack())
        return stack.enter_context(running(command, self._directory / f"{name}.log"))

    def end(self, number: int) -> None:
        """By KILL."""
        self._running.pop(number).close()
