"""The login `oidc`: tokens that are renewed once, however many ask, and kept where they were."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from issuer import Issuer, token
from podling.client import kubeconfig
from podling.client.oidc import end_of

OLD, NEW = token(time.time() - 9), token(time.time() + 3600)


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    with Issuer(tmp_path).running() as made:
        yield made


async def ask(file: Path, times: int = 1) -> list[int]:
    transport = kubeconfig.read(file).transport()
    try:
        requests = (transport.request("GET", "/api", {}, None) for _ in range(times))
        return [code for code, _, _ in await asyncio.gather(*requests)]
    finally:
        await transport.close()


async def test_a_token_that_has_ended_is_renewed_once_and_kept(issuer: Issuer) -> None:
    issuer.answers = 200, {"id_token": NEW, "access_token": "a", "refresh_token": "r2"}
    file = issuer.kubeconfig({"id-token": OLD, "refresh-token": "r1"})
    assert await ask(file, 5) == [200] * 5
    assert await ask(file) == [200]
    paths = [path for _, path, _, _ in issuer.asked]
    assert paths.count("/token") == 1
    assert {shown for _, path, shown, _ in issuer.asked if path == "/api"} == {f"Bearer {NEW}"}
    kept = issuer.kept(file)
    assert (kept["id-token"], kept["refresh-token"]) == (NEW, "r2")


async def test_a_file_that_another_program_writes_is_left_alone(issuer: Issuer) -> None:
    issuer.answers = 200, {"id_token": NEW, "access_token": "a"}
    file = issuer.kubeconfig({"refresh-token": "r1"})
    before = file.read_text()
    file.with_name("config.lock").touch()
    with pytest.raises(OSError, match=r"auth-provider oidc: new tokens cannot be kept: .*config\.lock"):
        await ask(file)
    assert file.read_text() == before


@given(some.text())
def test_what_is_no_token_is_said(text: str) -> None:
    with pytest.raises(ValueError):
        end_of(f"{text}.{text}")
