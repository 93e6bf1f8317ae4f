"""Credential plugins of a kubeconfig (`users[].user.exec`, client.authentication.k8s.io/v1 and v1beta1).

The program runs when a credential is first needed, when the last one has expired, and after the server
answered 401. It is told about the cluster in `KUBERNETES_EXEC_INFO` and answers with an ExecCredential. Its
standard error is podling's, and its standard input, too, where it may ask who types at a terminal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from podling.client.login import Shown, bearer
from podling.client.tls import Pair, Trust, client_tls
from podling.model.time import Clock, parse_time
from podling.process.tls import Reread

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
DEADLINE = 60.0
"""Seconds a program may take that asks nobody."""
NEVER, IF_AVAILABLE, ALWAYS = "Never", "IfAvailable", "Always"
MODES = (NEVER, IF_AVAILABLE, ALWAYS)
STDIN = 0


class PluginError(OSError):
    """There is no credential; the message names the program."""


class Plugin(msgspec.Struct, frozen=True):
    """`cluster` is the cluster information for the program, None without `provideClusterInfo`; `mode` is
    whether it asks who types."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    api_version: str
    cluster: Mapping[str, Any] | None = None
    mode: str = NEVER

    def info(self, *, is_interactive: bool = False) -> str:
        """The value of KUBERNETES_EXEC_INFO."""
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        told = {"kind": "ExecCredential", "apiVersion": self.api_version, "spec": spec}
        return msgspec.json.encode(told).decode()


class Credential(msgspec.Struct, frozen=True, rename="camel"):
    """`status` of an ExecCredential; certificate and key are PEM."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None

    def authorization(self) -> str:
        return bearer(self.token) if self.token else ""

    def pair(self) -> Pair:
        return Pair((self.client_certificate_data or "").encode(), (self.client_key_data or "").encode())

    def expires(self) -> datetime | None:
        return parse_time(self.expiration_timestamp) if self.expiration_timestamp else None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: Credential | None = None


def credential(answer: bytes, api_version: str) -> Credential:
    """The credential in the program's output. Raises ValueError."""
    said = msgspec.json.decode(answer, type=_Answer)
    if said.kind != "ExecCredential":
        raise ValueError(f'kind is "{said.kind}", not ExecCredential')
    if said.api_version != api_version:
        raise ValueError(f"it is configured to use apiVersion {api_version}, and answered {said.api_version}")
    status = said.status
    if status is None:
        raise ValueError("it answered without a status")
    if not status.token and not status.client_certificate_data and not status.client_key_data:
        raise ValueError("status has neither a token nor a certificate and key")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ValueError("status has only one of clientCertificateData and clientKeyData")
    for field, read in (("expirationTimestamp", status.expires), ("token", status.authorization)):
        try:
            read()
        except ValueError as error:
            raise ValueError(f"status.{field}: {error}") from error
    return status


async def run(plugin: Plugin, deadline: float = DEADLINE) -> Credential:
    """Run the program; its credential. Raises PluginError."""
    name = plugin.command[0]
    is_interactive = plugin.mode != NEVER and _is_typed()
    if plugin.mode == ALWAYS and not is_interactive:
        raise PluginError(f"exec plugin {name}: it asks who types, and standard input is no terminal")
    try:
        # Who types takes the time he needs.
        async with asyncio.timeout(None if is_interactive else deadline):
            answer = await _output(plugin, is_interactive=is_interactive)
        return credential(answer, plugin.api_version)
    except TimeoutError as error:
        raise PluginError(f"exec plugin {name}: no answer within {deadline:g} s") from error
    except (OSError, ValueError) as error:
        raise PluginError(f"exec plugin {name}: {error}") from error


def _is_typed() -> bool:
    try:
        return os.isatty(STDIN)
    except OSError:
        return False


async def _output(plugin: Plugin, *, is_interactive: bool) -> bytes:
    process = _begin(plugin, is_interactive=is_interactive)
    ending = asyncio.get_running_loop().run_in_executor(None, process.communicate)
    try:
        # Cancelled before a thread is free for it, it would leave behind a process that nobody waits for.
        output, _ = await asyncio.shield(ending)
    except asyncio.CancelledError:
        # The thread, too, ends then: nobody is left who could write to it.
        with suppress(ProcessLookupError):
            if is_interactive:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        raise
    if process.returncode != 0:
        raise PluginError(f"it ended with {process.returncode}")
    return output


def _begin(plugin: Plugin, *, is_interactive: bool) -> subprocess.Popen[bytes]:
    """Start the program in one step. asyncio's own way has several: cancelled in between, it leaves a program
    that it has started."""
    return subprocess.Popen(
        plugin.command,
        env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": plugin.info(is_interactive=is_interactive)},
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Away from the terminal if it is not its to ask, and to be ended with all it has begun.
        start_new_session=not is_interactive,
    )


class ExecLogin:
    """A login by plugin. Callers that need a credential while the program runs wait for that run."""

    def __init__(self, plugin: Plugin, trust: Trust, clock: Clock) -> None:
        self._plugin = plugin
        self._trust = trust
        self._clock = clock
        self._running = asyncio.Lock()
        self._authorization = ""
        self._pair = Pair()
        self._expires: datetime | None = None
        self._tls: Reread[ssl.SSLContext] = client_tls(trust, self._pair)
        self._had = False

    async def present(self) -> Shown:
        async with self._running:
            expired = self._expires is not None and self._clock.now() >= self._expires
            if not self._had or expired:
                await self._take()
            return self._shown()

    async def renew(self, refused: Shown) -> Shown | None:
        async with self._running:
            if self._shown() == refused:
                await self._take()
            shown = self._shown()
        return shown if shown != refused else None

    async def _take(self) -> None:
        given = await run(self._plugin)
        if given.pair() != self._pair:
            self._tls, self._pair = client_tls(self._trust, given.pair()), given.pair()
        self._authorization, self._expires, self._had = given.authorization(), given.expires(), True

    def _shown(self) -> Shown:
        return Shown(self._authorization, self._tls.get())
