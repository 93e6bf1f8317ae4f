"""Issue 13: a configuration of authentication that changes is read again, and one with a fault changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from podling.assemble.authentication import authentication
from podling.assemble.settle import AuthenticationOptions
from podling.machine.start import StartError
from podling.model.time import SystemClock

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"


def open_at(path: str) -> str:
    return f"{HEAD}anonymous: {{enabled: true, conditions: [{{path: {path}}}]}}\n"


class Told(logging.Handler):
    """What was logged, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.said: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.put_nowait(record.getMessage())


async def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file, other, told = tmp_path / "config.yaml", tmp_path / "other.yaml", Told()
    file.write_text(open_at("/livez"))
    log = logging.getLogger("podling.assemble.followed")
    log.addHandler(told)
    log.setLevel(logging.INFO)
    try:
        options = AuthenticationOptions(config_file=file)
        async with authentication(options, tmp_path / "ca.crt", SystemClock()) as ways, asyncio.timeout(30):
            assert ways.is_open("/livez") and not ways.is_open("/readyz")
            other.write_text(open_at("/readyz"))
            other.rename(file)
            assert "has changed" in await told.said.get()
            assert ways.is_open("/%72eadyz") and not ways.is_open("/livez")
            other.write_text(f"{HEAD}nope: 1\n")
            other.rename(file)
            assert 'strict decoding error: unknown field "nope"' in await told.said.get()
            assert ways.is_open("/readyz")
    finally:
        log.removeHandler(told)
        log.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"anonymous": True}, "anonymous: Forbidden: --anonymous-auth flag cannot be set when"),
        ({"oidc_client": "a"}, "authentication-config file and oidc-\\* flags are mutually exclusive"),
    ],
)
async def test_what_excludes_a_file(tmp_path: Path, more: dict[str, object], why: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(open_at("/livez"))
    options = AuthenticationOptions(config_file=file, **more)  # type: ignore[arg-type]
    with pytest.raises(StartError, match=why):
        async with authentication(options, tmp_path / "ca.crt", SystemClock()):
            pass
