"""What a request takes of the API server's processor time, beside the server of an earlier commit.

`python bench/since.py COMMIT [SECONDS]` checks the commit out into a temporary directory and asks both
servers in turns, in batches of a few milliseconds over 16 connections each, so that what else the machine
does comes to both alike. Both run on the Python and the libraries of this checkout, on the first processor,
and the client on the second.
"""

from __future__ import annotations

import os
import random
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from server import CONFIGS, PODS, TOKEN, pod
from table import Measurement, report

HERE = Path(__file__).parent.parent
CONNECTIONS, SECONDS = 16, 20


class Question(NamedTuple):
    name: str
    sent: bytes
    times: int
    """How often each connection asks in a batch."""


def question(name: str, method: str, path: str, body: bytes, times: int) -> Question:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {TOKEN}\r\nContent-Length: {len(body)}"
    return Question(name, f"{head}\r\n\r\n".encode() + body, times)


QUESTIONS = (
    question("GET a pod", "GET", f"{PODS}/one", b"", 20),
    question("create a pod", "POST", PODS, pod({"generateName": "made-"}), 3),
    question("create a config map", "POST", CONFIGS, b'{"metadata":{"generateName":"made-"}}', 4),
)


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, commit], cwd=HERE, check=True)
        try:
            subprocess.run([sys.executable, "hatch_build.py"], cwd=tree, check=True)
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=HERE, check=True)


class Server:
    """One of both, with its connections. To be closed."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._tasks = Path(f"/proc/{process.pid}/task")
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        reached = (socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS))
        self._connections = [tls.wrap_socket(one) for one in reached]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def used(self) -> int:
        """Nanoseconds of processor time, of all threads."""
        return sum(int((task / "schedstat").read_text().split()[0]) for task in self._tasks.iterdir())

    def asked(self, what: Question) -> float:
        """Microseconds of processor time a request."""
        before = self.used()
        for _ in range(what.times):
            for connection in self._connections:
                connection.sendall(what.sent)
            for connection in self._connections:
                check_answer(connection)
        return (self.used() - before) / what.times / CONNECTIONS / 1000


def check_answer(connection: ssl.SSLSocket) -> None:
    """Read one answer, which must be of success."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(65536)
    head, _, body = read.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    assert status.split()[1] in ("200", "201"), read
    length = next(int(line.split(":")[1]) for line in headers if line.lower().startswith("content-length"))
    while len(body) < length:
        body += connection.recv(65536)


@contextmanager
def served(tree: Path) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as directory:
        program = str(tree / "bench/server.py")
        command = ["taskset", "-c", "0", sys.executable, program, "podling", directory]
        path = {**os.environ, "PYTHONPATH": str(tree / "src")}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path) as process:
            assert process.stdout is not None
            try:
                server = Server(process, int(process.stdout.readline()))
                yield server
                server.close()
            finally:
                process.terminate()


def main(commit: str, seconds: float) -> None:
    os.sched_setaffinity(0, {1})
    results = []
    with ExitStack() as stack:
        then = stack.enter_context(served(stack.enter_context(checked_out(commit))))
        now = stack.enter_context(served(HERE))
        for what in QUESTIONS:
            for server in (then, now):
                server.asked(what._replace(times=what.times * 10))
            took: dict[Server, list[float]] = {then: [], now: []}
            ends = monotonic() + seconds
            while monotonic() < ends:
                for server in random.sample((then, now), 2):
                    took[server].append(server.asked(what))
            results.append(Measurement(what.name, "µs", took[now], took[then], "≤ 1.05 x then"))
    report("since", results, beside=commit)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
