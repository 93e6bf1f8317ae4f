"""Runs a containerd of our own: its own root, state and socket, beside any other on the machine.

It outlives us on purpose: containers go on while podling restarts, and the next podling adopts the containerd
it finds running from the same directories, unless it would now be configured otherwise. What ends without
being told to is started again; containers do not notice, their shims hold them.

    start ─▶ (adopt | spawn ─▶ serving ─▶ answering) ─▶ supervise ─▶ stop ─▶ leftovers.remove_leftovers
                        ▲                                   │ died
                        └───────────── backoff ─────────────┘
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from podling.cri.containerd_config import ContainerdSettings, render_config, render_hosts
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.host_facts import detect
from podling.cri.interface import RuntimeFault
from podling.cri.process import Process, command_line, spawn
from podling.model.growing_wait import GrowingWait

_START_WITHIN = 30.0
_STOP_GRACE = 10.0
_SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 10.0
_LAST_WORDS = 5
_LOG_TAIL = 8192
_NOT_YET = "server is not initialized yet"


class ContainerdError(Exception):
    """containerd cannot be had; the message says why, with its last words."""


class Containerd:
    """One containerd, for one set of directories. `sleep` waits between attempts to start it."""

    def __init__(
        self, settings: ContainerdSettings, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.settings = settings
        self._sleep = sleep
        self._process: Process | None = None
        self._stopping = False

    async def start(self) -> None:
        """Returns when CRI answers. Raises ContainerdError."""
        settings = self.settings
        for directory in (settings.root, settings.state, settings.cni_conf_dir, settings.log.parent):
            directory.mkdir(parents=True, exist_ok=True)
        # As containerd would make it: what images hold is not for every user to list.
        settings.root.chmod(0o711)
        self._write_registries()
        config = render_config(settings, detect(settings.root))
        self._process = running(settings)
        if self._process is not None:
            if not _differs(settings.config_file, config) and await self._adopted():
                return
            await self._process.terminate(_STOP_GRACE)
        settings.config_file.write_text(config)
        await self._launch()

    async def supervise(self, died: Callable[[str], None]) -> None:
        """Start it again whenever it ends, telling `died` of its last words. Returns after `stop`."""
        wait = GrowingWait(_SHORTEST_WAIT, _LONGEST_WAIT)
        while True:
            if self._process is not None:
                await self._process.exited()
            if self._stopping:
                return
            died(f"containerd ended by itself: {self._last_words()}")
            try:
                await self._launch()
                wait.reset()
            except ContainerdError as error:
                self._process = None
                died(str(error))
                await self._sleep(wait.next())

    async def stop(self) -> None:
        """End it, ours or left by an earlier podling. Containers stay as they are."""
        self._stopping = True
        process = self._process or running(self.settings)
        if process is not None:
            await process.terminate(_STOP_GRACE)
        self.settings.pid_file.unlink(missing_ok=True)

    async def _launch(self) -> None:
        binary = shutil.which(self.settings.binary)
        if binary is None:
            raise ContainerdError(
                f"there is no {self.settings.binary} on this machine: install the package containerd"
            )
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            # The protocol of systemd's Type=notify, over an abstract address: it says when the sockets are
            # served.
            name = f"podling-{uuid.uuid4().hex}"
            ready.bind(f"\0{name}")
            argv = [binary, "--config", str(self.settings.config_file)]
            process = spawn(argv, {**os.environ, "NOTIFY_SOCKET": f"@{name}"}, self.settings.log)
            self._process = process
            self.settings.pid_file.write_text(f"{process.pid}\n")
            try:
                async with asyncio.timeout(_START_WITHIN):
                    ended = await process.exited_or_readable(ready.fileno())
            except TimeoutError:
                await process.kill()
                ended = True
        if ended:
            raise ContainerdError(f"containerd did not start: {self._last_words()}")
        try:
            await self._answering()
        except ContainerdError:
            await process.kill()
            raise

    async def _adopted(self) -> bool:
        """Whether the one that runs is fit for use; one that hangs is not."""
        try:
            await self._answering()
        except ContainerdError:
            return False
        return True

    async def _answering(self) -> None:
        runtime = GrpcRuntime(str(self.settings.socket))
        try:
            async with asyncio.timeout(_START_WITHIN):
                while not await _answers(runtime):
                    # containerd 1.x recovers its containers after it serves, and tells nobody when it is
                    # through.
                    await self._sleep(0.01)
        except (TimeoutError, RuntimeFault) as error:
            raise ContainerdError(f"containerd serves no CRI ({error}): {self._last_words()}") from error
        finally:
            await runtime.close()

    def _write_registries(self) -> None:
        """containerd reads these at each pull, so a change needs no restart."""
        shutil.rmtree(self.settings.registry_dir, ignore_errors=True)
        for registry, urls in self.settings.registries.items():
            directory = self.settings.registry_dir / registry
            directory.mkdir(parents=True)
            (directory / "hosts.toml").write_text(render_hosts(registry, urls))

    def _last_words(self) -> str:
        with self.settings.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LAST_WORDS:]) or "it said nothing"


def running(settings: ContainerdSettings) -> Process | None:
    """The containerd that runs from these directories, whoever started it."""
    try:
        pid = int(settings.pid_file.read_text())
        process = Process(pid)
    except (OSError, ValueError):
        return None
    # Looked at after the pidfd is held: the pid cannot become another's between the two.
    return process if str(settings.config_file) in command_line(pid) else None


async def _answers(runtime: GrpcRuntime) -> bool:
    try:
        await runtime.status()
    except RuntimeFault as fault:
        if _NOT_YET in fault.message:
            return False
        raise
    return True


def _differs(file: Path, text: str) -> bool:
    return not file.exists() or file.read_text() != text
