"""Runs a private containerd: with its own root, state and socket, beside any other on the machine.

containerd outlives podling on purpose: containers go on while podling restarts, and the next podling adopts
the containerd that runs from the same directories, unless its configuration would differ. A containerd that
dies is started again; containers do not notice, because their shims hold them.

    start ─▶ (adopt | spawn ─▶ serving ─▶ answering) ─▶ supervise ─▶ stop ─▶ remove_leftovers
                        ▲                                   │ died
                        └───────────── backoff ─────────────┘

`detect` finds out what the configuration must take into account of this machine. `remove_leftovers` removes
what a stopped containerd left (containers, shims, mounts, its state directory), for `podling down` and for
tests: normally every sandbox was stopped first and little is left, but a containerd that was killed leaves
all of it. Images and container metadata (its root) stay.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from podling.cri.containerd.config import ContainerdSettings, HostFacts, render_config, render_hosts
from podling.cri.grpc.client import GrpcRuntime
from podling.cri.interface import RuntimeFault
from podling.process.mounts import overlay_works, unmount_under
from podling.process.programs import Process, command_line, processes, spawn
from podling.process.waits import Backoff

_CAP_SYS_RESOURCE = 24
_START_WITHIN = 30.0
_STOP_GRACE = 10.0
_RESTART = Backoff(0.1, 10.0)
_LAST_WORDS = 5
_LOG_TAIL = 8192
_NOT_YET = "server is not initialized yet"
_NAMESPACE = "k8s.io"


def detect(root: Path) -> HostFacts:
    """`root` is the directory, which exists, where containerd will keep its snapshots."""
    return HostFacts(
        restrict_oom_score_adj=not has_capability(Path("/proc/self/status").read_text(), _CAP_SYS_RESOURCE),
        disable_cgroup=not cgroups_writable(Path("/sys/fs/cgroup")),
        snapshotter="overlayfs" if overlay_works(root) else "native",
    )


def cgroups_writable(mount: Path) -> bool:
    """Whether cgroups can be made. In v1 and hybrid `mount` itself is often read-only, and the hierarchies
    below it are not."""
    if not mount.is_dir():
        return False
    places = [mount, *(Path(entry.path) for entry in os.scandir(mount) if entry.is_dir())]
    return any(os.access(place / "cgroup.procs", os.W_OK) for place in places)


def has_capability(status: str, number: int) -> bool:
    """Whether the text of /proc/PID/status has capability `number` in the effective set."""
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> number & 1)


class ContainerdError(Exception):
    """containerd cannot be started; the message has the reason and the end of its log."""


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
        """Adopt or start it; returns when CRI answers. Raises ContainerdError."""
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
        """Start it again whenever it dies, and call `died` with the end of its log. Returns after `stop`."""
        wait = _RESTART.begin()
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
        """End it, whichever podling started it. Containers stay as they are."""
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
        """Whether the containerd that runs can be used; one that does not answer cannot."""
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
    """The process of the containerd that runs from these directories, whoever started it; None when there is
    none."""
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


async def remove_leftovers(settings: ContainerdSettings) -> None:
    """Call it when containerd has been stopped. Raises OSError when a mount cannot be removed; then nothing
    below it is deleted."""
    await _delete_containers(settings.runc_root / _NAMESPACE)
    sockets = shim_sockets(settings.state)
    await _kill_shims(settings.socket)
    for path in sockets:
        path.unlink(missing_ok=True)
    # Sandboxes' shared memory, containers' root filesystems, network namespaces. A mount that stayed would
    # have its contents deleted with the directory, and it may be the host's.
    unmount_under(settings.state)
    unmount_under(settings.root)
    shutil.rmtree(settings.state, ignore_errors=True)


async def _delete_containers(directory: Path) -> None:
    """runc ends all processes of a container and removes its cgroups."""
    if not directory.is_dir() or shutil.which("runc") is None:
        return
    for name in os.listdir(directory):
        runc = await asyncio.create_subprocess_exec(
            "runc",
            "--root",
            str(directory),
            "delete",
            "--force",
            name,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await runc.wait()


async def _kill_shims(socket: Path) -> None:
    for pid in processes():
        if is_shim_of(command_line(pid), socket):
            try:
                await Process(pid).kill()
            except ProcessLookupError:
                continue


def is_shim_of(argv: list[str], socket: Path) -> bool:
    """Whether a command line is that of a shim started by the containerd that serves `socket`."""
    if not argv or not Path(argv[0]).name.startswith("containerd-shim"):
        return False
    return "-address" in argv and argv[argv.index("-address") + 1 :][:1] == [str(socket)]


def shim_sockets(state: Path) -> list[Path]:
    """Sockets of the shims; they are in /run/containerd/s whatever the state directory is."""
    addresses = state.glob(f"io.containerd.runtime.v2.task/{_NAMESPACE}/*/address")
    return [Path(address.read_text().strip().removeprefix("unix://")) for address in addresses]
