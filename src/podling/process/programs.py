"""Other programs of this machine, children or not, and the limit of open files that they inherit.

A process is held by its pidfd: its end is an event, and a reused pid is never signalled. podling raises its
own limit of open files, and programs that it starts get the original one: containers inherit containerd's,
and programs that close every number below the limit take minutes where it is a billion.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

STANDARD_ERROR = 2
_GIVEN = resource.getrlimit(resource.RLIMIT_NOFILE)


def raise_limit() -> int:
    """Raise this process's soft limit of open files to the hard one; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextmanager
def limit_as_given() -> Iterator[None]:
    """Programs started inside the block inherit the soft limit this process was started with."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_GIVEN[0], soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Process:
    """A running process. Raises ProcessLookupError when there is none with this pid."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    def __del__(self) -> None:
        # A pidfd_open that failed left nothing to close.
        if hasattr(self, "_pidfd"):
            os.close(self._pidfd)

    async def exited(self) -> None:
        """Returns when the process has ended; a child is reaped."""
        await self.exited_or_readable()

    async def exited_or_readable(self, other: int | None = None) -> bool:
        """Returns when the process has ended (True) or the descriptor `other` is readable (False)."""
        # A loop knows one reader for a descriptor, and several may wait for the same process.
        pidfd = os.dup(self._pidfd)
        try:
            ended = await _first_readable(pidfd, other) == pidfd
        finally:
            os.close(pidfd)
        if ended:
            # Reaped if it is a child. WNOHANG does not block.
            with suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)  # noqa: ASYNC222
        return ended

    def send(self, number: signal.Signals) -> None:
        """Send a signal. Does nothing when the process has ended."""
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return

    async def terminate(self, grace: float) -> None:
        """TERM, and KILL when it is still there after `grace` seconds; returns when it has ended."""
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace):
                await self.exited()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        self.send(signal.SIGKILL)
        await self.exited()


def spawn(argv: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    """Start a program in a session of its own that outlives podling, with its output appended to `log`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    handed_down = []
    """Descriptors that podling's parent left open, and may wait for the end of; a process that outlives
    podling must not hold them."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        # OSError: closed meanwhile, as that of the listing itself is.
        with suppress(OSError):
            if descriptor > STANDARD_ERROR and os.get_inheritable(descriptor):
                handed_down.append(descriptor)
    with limit_as_given():
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o640),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in handed_down),
            ],
            setsid=True,
        )
    return Process(pid)


async def ended(*argv: str, script: str = "") -> subprocess.CompletedProcess[bytes]:
    """A program after its end, what it printed, and its errors; it may read `script`. Raises OSError."""

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(argv, input=script.encode(), capture_output=True, check=False)

    # uvloop forks the whole of podling for it, which takes ten times as long as a short command does; this
    # is by vfork.
    return await asyncio.to_thread(run)


def command_line(pid: int) -> list[str]:
    """The arguments of a process; empty when there is none, or it is a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def processes() -> list[int]:
    """The pids of all processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


async def _first_readable(*descriptors: int | None) -> int:
    loop = asyncio.get_running_loop()
    first: asyncio.Future[int] = loop.create_future()

    def tell(descriptor: int) -> None:
        if not first.done():
            first.set_result(descriptor)

    watched = [descriptor for descriptor in descriptors if descriptor is not None]
    for descriptor in watched:
        loop.add_reader(descriptor, tell, descriptor)
    try:
        return await first
    finally:
        for descriptor in watched:
            loop.remove_reader(descriptor)
