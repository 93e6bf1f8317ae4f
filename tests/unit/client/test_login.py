"""Credentials that change while a client lives, at a server over TLS."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.client import kubeconfig
from podling.client.https import HttpsTransport
from podling.machine.pki import Authority

if TYPE_CHECKING:
    from unit.client.conftest import Doorman


@asynccontextmanager
async def transport(file: Path) -> AsyncIterator[HttpsTransport]:
    made = kubeconfig.read(file).transport()
    try:
        yield made
    finally:
        await made.close()


async def ask(made: HttpsTransport) -> int:
    return (await made.request("GET", "/api", {}, None))[0]


def replace(file: Path, text: str) -> None:
    partial = file.with_name("new")
    partial.write_text(text)
    partial.replace(file)


async def test_a_token_file_is_read_again_when_it_was_replaced(doorman: Doorman) -> None:
    file = doorman.directory / "token"
    file.write_text("first\n")
    async with transport(doorman.kubeconfig({"tokenFile": "token"})) as made:
        await ask(made)
        replace(file, "second\n")
        await ask(made)
        replace(file, "")
        await ask(made)
    assert doorman.who == [("", "Bearer first"), ("", "Bearer second"), ("", "Bearer second")]


async def test_a_refused_token_is_not_shown_again(doorman: Doorman) -> None:
    """What is in the file is what there is: the 401 is the answer."""
    doorman.refused = {"Bearer first"}
    (doorman.directory / "token").write_text("first")
    async with transport(doorman.kubeconfig({"tokenFile": "token"})) as made:
        assert await ask(made) == 401
    assert len(doorman.asked) == 1


async def test_a_client_certificate_that_was_replaced_is_shown(doorman: Doorman) -> None:
    """Also when a connection stands that the old one has opened. Between the two writes the old one stays."""
    old, new = (doorman.authority.client(name, name) for name in ("old", "new"))
    certificate, key = doorman.directory / "own.crt", doorman.directory / "own.key"
    shutil.copy(old.certificate, certificate)
    shutil.copy(old.key, key)
    user = {"client-certificate": "own.crt", "client-key": "own.key"}
    async with transport(doorman.kubeconfig(user)) as made:
        await ask(made)
        replace(certificate, new.certificate.read_text())
        await ask(made)
        replace(key, new.key.read_text())
        await ask(made)
    assert doorman.who == [("old", ""), ("old", ""), ("new", "")]


async def test_a_certificate_in_one_file_with_its_key_is_followed(doorman: Doorman) -> None:
    """As Kubernetes' kubelet keeps its own: a link to the current one."""
    for name in ("old", "new"):
        pair = doorman.authority.client(name, name)
        pem = pair.certificate.read_text() + pair.key.read_text()
        (doorman.directory / f"{name}.pem").write_text(pem)
    link = doorman.directory / "current.pem"
    link.symlink_to("old.pem")
    user = {"client-certificate": "current.pem", "client-key": "current.pem"}
    async with transport(doorman.kubeconfig(user)) as made:
        await ask(made)
        (doorman.directory / "link").symlink_to("new.pem")
        os.replace(doorman.directory / "link", link)
        await ask(made)
    assert doorman.who == [("old", ""), ("new", "")]


async def test_a_watch_begins_with_what_is_current(doorman: Doorman) -> None:
    file = doorman.directory / "token"
    file.write_text("first")
    async with transport(doorman.kubeconfig({"tokenFile": "token"})) as made:
        for token in ("first", "second"):
            replace(file, token)
            async with aclosing(made.stream("/api", {})) as stream:
                assert [piece async for piece in stream] == [b"come in"]
    assert doorman.who == [("", "Bearer first"), ("", "Bearer second")]


async def test_an_authority_that_was_replaced_is_trusted(doorman: Doorman) -> None:
    stranger = Authority(doorman.directory / "stranger", datetime.now(UTC)).ca.certificate
    trusted = doorman.directory / "trusted.crt"
    shutil.copy(stranger, trusted)
    async with transport(doorman.kubeconfig({}, **{"certificate-authority": "trusted.crt"})) as made:
        with pytest.raises(OSError, match="certificate verify failed"):
            await ask(made)
        replace(trusted, stranger.read_text() + doorman.authority.ca.certificate.read_text())
        assert await ask(made) == 200
