"""The kubelet's certificate, and the authority of its clients, replaced while it serves."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509

from podling.kubelet.server.server import server_tls
from podling.machine.pki import Authority, KeyPair

LOOPS = [asyncio.run, uvloop.run]


class Node:
    """A server's files, as somebody renews them."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self.own = KeyPair(directory / "tls.crt", directory / "tls.key")
        self.client_ca = directory / "client-ca.crt"
        self.trust(authority)
        self.show(authority, "first")
        self.tls = server_tls(self.own.certificate, self.own.key, self.client_ca)

    def show(self, authority: Authority, name: str) -> None:
        pair = authority.server(name, name, ["127.0.0.1"])
        shutil.copy(pair.certificate, self.own.certificate)
        shutil.copy(pair.key, self.own.key)

    def trust(self, authority: Authority) -> None:
        shutil.copy(authority.ca.certificate, self.client_ca)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki", datetime.now(UTC))


@pytest.fixture
def node(tmp_path: Path, authority: Authority) -> Node:
    return Node(tmp_path, authority)


@asynccontextmanager
async def served(node: Node) -> AsyncIterator[int]:
    """Says to each client the name in its certificate."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert")
        writer.write(repr(peer["subject"] if peer else None).encode())
        writer.close()

    server = await asyncio.start_server(say, sock=socket.create_server(("127.0.0.1", 0)), ssl=node.tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def shown(port: int, authority: Authority, client: Authority | None = None) -> tuple[str, str]:
    """The name in the server's certificate, and what it says; nothing when it does not believe the client."""
    tls = ssl.create_default_context(cafile=str(authority.ca.certificate))
    if client is not None:
        pair = client.client("ada", "ada")
        tls.load_cert_chain(pair.certificate, pair.key)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    said = b""
    # A client of TLS 1.3 is through with the handshake before the server says no.
    with suppress(OSError):
        said = await reader.read()
    writer.close()
    return x509.load_der_x509_certificate(found).subject.rfc4514_string(), said.decode()


@pytest.mark.parametrize("run", LOOPS)
def test_a_certificate_that_was_replaced_is_shown(run: Any, node: Node, authority: Authority) -> None:
    async def story() -> None:
        async with served(node) as port:
            assert (await shown(port, authority))[0] == "CN=first"
            node.show(authority, "second")
            assert (await shown(port, authority))[0] == "CN=second"
            node.own.key.write_text("half")
            assert (await shown(port, authority))[0] == "CN=second"

    run(story())


@pytest.mark.parametrize("bad", ["tls.crt", "tls.key", "client-ca.crt"])
@pytest.mark.parametrize("text", ["", "no certificate", None])
def test_files_that_cannot_be_are_named(node: Node, tmp_path: Path, bad: str, text: str | None) -> None:
    if text is None:
        (tmp_path / bad).unlink()
    else:
        (tmp_path / bad).write_text(text)
    with pytest.raises(OSError, match=bad):
        server_tls(node.own.certificate, node.own.key, node.client_ca)


@pytest.mark.parametrize("run", LOOPS)
def test_an_authority_of_clients_that_was_replaced_is_believed(
    run: Any, node: Node, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other", datetime.now(UTC))

    async def story() -> None:
        async with served(node) as port:
            assert "'ada'" in (await shown(port, authority, authority))[1]
            node.trust(other)
            assert "'ada'" in (await shown(port, authority, other))[1]
            assert (await shown(port, authority, authority))[1] == ""

    run(story())
