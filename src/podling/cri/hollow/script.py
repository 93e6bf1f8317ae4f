"""What the runtime in memory works with: scripts of containers, images, time, and the records of sandboxes
and containers.

A `Script` says in advance what one start of a container does. `Timers` is real time, or virtual time that a
test moves by hand, so that a test of ten minutes takes none. `write_log` writes CRI's log format, `time
stream F line`.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Protocol

import msgspec

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import PullProgress, RuntimeFault
from podling.model.time import SystemClock

TERMINATED = 143
KILLED = 137
_START = datetime(2026, 1, 1, tzinfo=UTC)


class ExecOutcome(msgspec.Struct, frozen=True):
    """`seconds` is how long the command takes."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0


class Script(msgspec.Struct, frozen=True):
    """One run of a container. By default it runs until it is stopped, and ends at once on TERM.

    `exit_code` is what it exits with by itself, `after` seconds (None: never); `term_code` what it exits with
    on TERM (None: it ignores TERM and has to be killed). `stdout` and `stderr` are lines it prints when it
    starts; `written_bytes` are in its writable layer. `executes` maps commands to what they do; any other is
    not found in the container. The faults are raised by the calls.
    """

    exit_code: int | None = None
    after: float = 0.0
    term_code: int | None = TERMINATED
    out_of_memory: bool = False
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()
    written_bytes: int = 0
    executes: Mapping[tuple[str, ...], ExecOutcome] = msgspec.field(default_factory=dict)
    create_fault: RuntimeFault | None = None
    start_fault: RuntimeFault | None = None
    update_fault: RuntimeFault | None = None


class HollowImage(msgspec.Struct):
    """`runs[n]` is the script of attempt n, the last one that of all further attempts. The first pulls raise
    `pull_faults`, one each; a `present` image needs no pull. A pull progresses for `pull_seconds`; a `stuck`
    one makes no progress."""

    runs: Sequence[Script] = (Script(),)
    present: bool = False
    pull_faults: list[RuntimeFault] = msgspec.field(default_factory=list)
    user: int | None = None
    pull_seconds: float = 0.0
    stuck: bool = False

    def run(self, attempt: int) -> Script:
        return self.runs[min(attempt, len(self.runs) - 1)]


class Timers(Protocol):
    """A clock (`podling.model.time.Clock`) that can also call back. A callback cannot be cancelled: it checks
    whether it still matters."""

    def now(self) -> datetime: ...
    def call_later(self, seconds: float, what: Callable[[], None]) -> None: ...


class SystemTimers(SystemClock):
    """Real time, on the running event loop."""

    def call_later(self, seconds: float, what: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, what)


class VirtualTimers:
    """Time that stands still until `advance`."""

    def __init__(self, start: datetime = _START) -> None:
        self._now = start
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._now

    def call_later(self, seconds: float, what: Callable[[], None]) -> None:
        due = self._now + timedelta(seconds=seconds)
        heapq.heappush(self._due, (due, next(self._order), what))

    async def sleep(self, seconds: float) -> None:
        """As asyncio.sleep, in this time."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: None if done.done() else done.set_result(None))
        await done

    def advance(self, seconds: float) -> None:
        """Let time pass. Callbacks run in order, each at its time, including those that callbacks add."""
        end = self._now + timedelta(seconds=seconds)
        while self._due and self._due[0][0] <= end:
            self._now, _, what = heapq.heappop(self._due)
            what()
        self._now = end


class HollowImages:
    """The images of the runtime in memory: those it may pull, and those it has."""

    def __init__(self, images: Mapping[str, HollowImage], timers: Timers) -> None:
        self._known = images
        self._timers = timers
        self._fetching: list[str] = []
        self._present = {name for name, image in images.items() if image.present}

    def status(self, name: str) -> pb.Image | None:
        if name not in self._present:
            return None
        user = self._known[name].user
        uid = None if user is None else pb.Int64Value(value=user)
        return pb.Image(id=image_id(name), repo_tags=[name], size=1, uid=uid)

    def all(self) -> list[pb.Image]:
        return [image for image in map(self.status, sorted(self._present)) if image]

    async def fetch(self, name: str) -> None:
        """Takes the time of a pull."""
        image = self._known.get(name)
        if image is None or not (image.stuck or image.pull_seconds):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not image.stuck:
            self._timers.call_later(
                image.pull_seconds, lambda: None if done.done() else done.set_result(None)
            )
        self._fetching.append(name)
        try:
            await done
        finally:
            self._fetching.remove(name)

    def progress(self) -> PullProgress:
        """One byte a second of each pull."""
        here = int(self._timers.now().timestamp())
        return frozenset((name, 0 if self._known[name].stuck else here) for name in self._fetching)

    def pull(self, name: str) -> str:
        image = self._known.get(name)
        if image is None:
            raise RuntimeFault("NOT_FOUND", f'failed to pull and unpack image "{name}": not found')
        if image.pull_faults:
            raise image.pull_faults.pop(0)
        self._present.add(name)
        return image_id(name)

    def remove(self, name: str) -> None:
        self._present = {known for known in self._present if name not in (known, image_id(known))}

    def script(self, name: str, attempt: int) -> Script:
        """The script of the container's start number `attempt`, from 0. Raises RuntimeFault when the image is
        absent."""
        found = next((known for known in self._present if name in (known, image_id(known))), None)
        if found is None:
            raise RuntimeFault("NOT_FOUND", f'failed to resolve image "{name}": not found')
        return self._known[found].run(attempt)


def image_id(name: str) -> str:
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"


class HollowSandbox(msgspec.Struct):
    """A sandbox; `status` is what the runtime answers."""

    status: pb.PodSandboxStatus

    @property
    def label(self) -> str:
        metadata = self.status.metadata
        return f"{metadata.namespace}/{metadata.name}#{metadata.attempt}"

    def as_listed(self) -> pb.PodSandbox:
        status = self.status
        return pb.PodSandbox(
            id=status.id,
            metadata=status.metadata,
            state=status.state,
            created_at=status.created_at,
            labels=status.labels,
            annotations=status.annotations,
            runtime_handler=status.runtime_handler,
        )


class HollowContainer(msgspec.Struct):
    """A container that acts as its script says; `status` is what the runtime answers."""

    sandbox_id: str
    script: Script
    status: pb.ContainerStatus
    resources: pb.LinuxContainerResources
    ended: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def label(self) -> str:
        return f"{self.status.metadata.name}#{self.status.metadata.attempt}"

    @property
    def runs(self) -> bool:
        return self.status.state == pb.CONTAINER_RUNNING

    def end(self, exit_code: int, at: int, reason: str = "", message: str = "") -> None:
        status = self.status
        status.state = pb.CONTAINER_EXITED
        status.exit_code = exit_code
        status.finished_at = at
        status.reason = reason or ("Error" if exit_code else "Completed")
        status.message = message
        self.ended.set()

    def as_listed(self) -> pb.Container:
        status = self.status
        return pb.Container(
            id=status.id,
            pod_sandbox_id=self.sandbox_id,
            metadata=status.metadata,
            image=status.image,
            image_ref=status.image_ref,
            image_id=status.image_id,
            state=status.state,
            created_at=status.created_at,
            labels=status.labels,
            annotations=status.annotations,
        )

    def stats(self, now: int) -> pb.ContainerStats:
        """Zero usage, but for the bytes it wrote."""
        attributes = pb.ContainerAttributes(
            id=self.status.id, metadata=self.status.metadata, labels=self.status.labels
        )
        written = pb.FilesystemUsage(
            timestamp=now,
            used_bytes=pb.UInt64Value(value=self.script.written_bytes),
            inodes_used=pb.UInt64Value(value=1),
        )
        return pb.ContainerStats(attributes=attributes, writable_layer=written)


def new_sandbox(config: pb.PodSandboxConfig, runtime_handler: str, address: str, now: int) -> HollowSandbox:
    """`address` is empty for a pod in the host's network."""
    options = config.linux.security_context.namespace_options
    status = pb.PodSandboxStatus(
        id=_new_id(),
        metadata=config.metadata,
        state=pb.SANDBOX_READY,
        created_at=now,
        network=pb.PodSandboxNetworkStatus(ip=address),
        linux=pb.LinuxPodSandboxStatus(namespaces=pb.Namespace(options=options)),
        labels=config.labels,
        annotations=config.annotations,
        runtime_handler=runtime_handler,
    )
    return HollowSandbox(status)


def new_container(
    sandbox_id: str, config: pb.ContainerConfig, log_directory: str, script: Script, now: int
) -> HollowContainer:
    status = pb.ContainerStatus(
        id=_new_id(),
        metadata=config.metadata,
        state=pb.CONTAINER_CREATED,
        created_at=now,
        image=config.image,
        image_ref=image_id(config.image.image),
        image_id=image_id(config.image.image),
        labels=config.labels,
        annotations=config.annotations,
        mounts=config.mounts,
        log_path=f"{log_directory}/{config.log_path}" if config.log_path else "",
    )
    return HollowContainer(sandbox_id, script, status, config.linux.resources)


def carries(labels: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    return not wanted or wanted.items() <= labels.items()


def _new_id() -> str:
    return uuid.uuid4().hex * 2


def write_log(file: str, at: datetime, script: Script) -> None:
    """Append lines of a container, all with one time stamp; whole lines only."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    time = f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"
    with path.open("a") as log:
        for stream, lines in (("stdout", script.stdout), ("stderr", script.stderr)):
            log.writelines(f"{time} {stream} F {line}\n" for line in lines)
