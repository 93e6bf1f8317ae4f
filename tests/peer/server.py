"""A running API server and how it is asked; it does not matter whose it is."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import yaml

from peer import counted
from podling.model.codec.yaml import CLoader

USER_AGENT = "peer/1"
READY_WITHIN = 600
"""Looks, a tenth of a second apart."""


class Answer(NamedTuple):
    """`body` is data when it was JSON or YAML, None when there was none, else text. Several events of a watch
    are in a list, `events`."""

    code: int
    headers: Mapping[str, str]
    body: Any


class Server(msgspec.Struct, frozen=True):
    """An API server on loopback. The kubeconfig is an administrator's, of group `system:masters`; `tls` shows
    his certificate and trusts `ca`. `token` is his too, where the server takes one."""

    name: str
    host: str
    port: int
    ca: Path
    kubeconfig: Path
    tls: ssl.SSLContext
    token: str = ""

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """`body` is data, or bytes as they are; `Content_Type="…"` is a header. Raises OSError."""
        with self.asking() as asking:
            return asking.ask(method, target, body, **headers)

    def post_all(self, target: str, bodies: Sequence[bytes], at_once: int = 64) -> list[bytes]:
        """What it answers to each with 201, over one connection on which so many are under way: little work
        for who asks. A token, where there is one, is less for who answers: Kubernetes verifies a certificate
        at each request. Raises OSError, AssertionError."""
        head = f"POST {target} HTTP/1.1\r\nHost: {self.host}\r\nUser-Agent: {USER_AGENT}\r\n"
        tls = self.tls
        if self.token:
            tls = ssl.create_default_context(cafile=str(self.ca))
            head += f"Authorization: Bearer {self.token}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: "
        found: list[bytes] = []
        with (
            socket.create_connection((self.host, self.port), timeout=30) as plain,
            tls.wrap_socket(plain, server_hostname=self.host) as connection,
            connection.makefile("rb") as answers,
        ):
            for at in range(0, len(bodies), at_once):
                part = bodies[at : at + at_once]
                connection.sendall(
                    b"".join(b"%b%d\r\n\r\n%b" % (head.encode(), len(one), one) for one in part)
                )
                found += [_created(answers) for _ in part]
        return found

    @contextmanager
    def asking(self) -> Iterator[Asking]:
        """One connection for several requests."""
        connection = HTTPSConnection(self.host, self.port, timeout=30, context=self.tls)
        try:
            yield Asking(connection, self.name)
        finally:
            connection.close()


class Asking(msgspec.Struct, frozen=True):
    connection: HTTPSConnection
    server: str

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        data = (
            body
            if isinstance(body, bytes) or body is None
            else json.dumps(body, separators=(",", ":")).encode()
        )
        counted.sent(self.server, method, target)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json", "User-Agent": USER_AGENT, **named}
        self.connection.request(method, target, data, sent)
        said = self.connection.getresponse()
        read = _read(said.read(), said.headers.get_content_type())
        heads = {name: ", ".join(said.headers.get_all(name, ())) for name in said.headers}
        return Answer(said.status, heads, read)

    def watch(self, target: str) -> Iterator[Any]:
        """The object of each event, until the caller has heard enough."""
        try:
            self.connection.request("GET", f"{target}&timeoutSeconds=60")
            said = self.connection.getresponse()
            while line := said.readline():
                yield json.loads(line)["object"]
        finally:
            # It is opened again with the next request.
            self.connection.close()


def _created(answers: BinaryIO) -> bytes:
    status, length = answers.readline(), 0
    assert b" 201 " in status, status
    while line := answers.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return answers.read(length)


def _read(body: bytes, content_type: str) -> Any:
    if not body:
        return None
    if content_type == "application/yaml":
        return yaml.load(body, CLoader)
    if content_type != "application/json":
        return body.decode(errors="replace")
    # The events of a watch are one a line. Bookmarks come as it suits a server, each minute or so and once
    # another object was written, but for the one after what was there at first.
    told = [
        line
        for line in body.splitlines()
        if not line.startswith(b'{"type":"BOOKMARK"') or b'"k8s.io/initial-events-end"' in line
    ]
    if not told:
        return None
    try:
        return json.loads(b"\n".join(told))
    except json.JSONDecodeError:
        return {"events": [json.loads(line) for line in told]}


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program for as long as the block runs, ended by KILL, also when this process is."""
    with log.open("wb") as said:
        tied = ["setpriv", "--pdeathsig", "KILL", *command]
        process = subprocess.Popen(tied, stdout=said, stderr=said, cwd=log.parent, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until_ready(server: Server, process: subprocess.Popen[bytes], log: Path, path: str = "/readyz") -> None:
    """Returns when the server calls itself ready at `path`. Raises RuntimeError with its log if it does
    not."""
    for _ in range(READY_WITHIN):
        try:
            if server.ask("GET", path).code == 200:
                return
        except OSError:
            pass  # It does not listen yet.
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"{server.name} did not start:\n{log.read_text()[-4000:]}")


def until_listening(host: str, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the program accepts connections: a client that comes too early waits a second before it
    tries again. Raises RuntimeError with its log if it ends before."""
    while True:
        try:
            return socket.create_connection((host, port), timeout=30).close()
        except ConnectionRefusedError:
            pass
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text()[-4000:]}")


def write_kubeconfig(server: Server) -> None:
    """Where the server says it is, for kubectl and whatever else reads one."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "peer", "cluster": {"server": server.url, "certificate-authority": str(server.ca)}}
        ],
        "users": [{"name": "admin", "user": {"token": server.token}}],
        "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "admin"}}],
        "current-context": "peer",
    }
    server.kubeconfig.write_text(yaml.safe_dump(config))
