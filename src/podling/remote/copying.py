"""`podling cp`: files into a container and out of it, as a stream of tar.

tar runs in the container itself if it has one and a shell. Else it runs in a container that is added to the
pod for as long as it is needed and reaches the files through the target's processes. What was copied is
compared by digests at the end.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from podling.debug import places, profiles
from podling.debug.container import WishError
from podling.debug.places import Looked
from podling.model.codec.quoting import printable
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.remote.beside import beside
from podling.remote.helper import helper
from podling.remote.pods import Cluster
from podling.remote.streams import Command, Ended, Wanted
from podling.remote.terminal import Narrator
from podling.remote.unpack import PIECE, Incomplete, pack, part_of, unpack
from podling.streaming.session import Stream
from podling.streaming.wire import Disconnected

T = TypeVar("T")

NAME = "podling-cp"
NO_PROGRAM = 127
MOST_TOLD = 20
"""Errors that are kept; of others only how many there are."""
MOST_SAID = 64 * 1024
"""Bytes of a command's errors that are kept."""
OFTEN = 0.2
"""Seconds between two lines on how far it is."""
AUTO, EXEC, CONTAINER = "auto", "exec", "container"


class Way(NamedTuple):
    """How a container's files are reached. `via` is AUTO, EXEC (in the container itself) or CONTAINER (in one
    that is added, of this image and profile)."""

    via: str = AUTO
    image: str = ""
    profile: str = profiles.AUTO
    timeout: float = 120.0


class Copied(NamedTuple):
    """`errors` are lines on what could not be copied, and there are `more` of them."""

    files: int
    size: int
    errors: Sequence[str]
    more: int = 0


class CopyError(OSError):
    """It cannot be copied; the message says why."""


class _Tally:
    """What was copied, with its digests in a file: there may be very many."""

    def __init__(self, narrator: Narrator, digests: IO[bytes]) -> None:
        self.files = self.size = 0
        self.errors: list[str] = []
        self._more = 0
        self.digests = digests
        self._narrator = narrator
        self._began = self._told = time.monotonic()

    def passed(self, count: int) -> None:
        self.size += count
        now = time.monotonic()
        if now - self._told >= OFTEN:
            self._told = now
            rate = self.size / (now - self._began)
            self._narrator.now(f"{self.files} files, {_size(self.size)}, {_size(rate)}/s")

    def copied(self, name: str, digest: str) -> None:
        self.files += 1
        if "\n" in name or "\\" in name:
            # Of such names not all sha256sum think alike.
            return
        self.digests.write(f"{digest}  {name}\n".encode(errors="surrogateescape"))

    def failed(self, name: str, why: str) -> None:
        shown = name.removeprefix("./").encode(errors="surrogateescape").decode(errors="replace")
        self.say(f"{shown}: {why}".replace("\n", "\\n"))

    def say(self, error: str) -> None:
        """A line; there may be as many as a container likes to send."""
        if len(self.errors) < MOST_TOLD:
            self.errors.append(printable(error))
        else:
            self._more += 1

    def outcome(self) -> Copied:
        return Copied(self.files, self.size, self.errors, self._more)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


class Files:
    """The files of one container, reached by commands in a container; `root` is where they are there."""

    def __init__(self, cluster: Cluster, pod: Pod, runs_in: str, root: str, user: tuple[int, int]) -> None:
        self._cluster = cluster
        self._pod = pod
        self._runs_in = runs_in
        self._root = root
        self._user = user

    async def look(self, path: str) -> Looked:
        """Raises CopyError, StatusError, OSError."""
        ended, said, errors = await self.run(places.LOOK, self._root, path)
        if ended.exit_code != 0:
            raise CopyError(f"{path}: {errors or ended.message}")
        try:
            return places.looked(said)
        except ValueError:
            raise CopyError(f"{path}: the container's shell does not say what it is") from None

    async def can_tar(self) -> bool:
        """Whether there are tar and a shell."""
        try:
            ended, _, _ = await self.run("command -v tar")
        except StatusError as error:
            if error.code in (401, 403, 404):
                raise
            return False
        return ended.exit_code == 0

    async def fetch(self, found: Looked, into: Path, tally: _Tally) -> None:
        """Unpack it as `into`. Raises OSError."""
        where, what = (found.path, ".") if found.kind == "directory" else (found.directory, f"./{found.name}")
        command = await self._begin(Wanted(), places.PACK, self._root + where, what)
        assert command.stdout is not None
        reading = _Reading(command.stdout, asyncio.get_running_loop())
        source = io.BufferedReader(reading, PIECE)
        said = _Said()
        async with beside(said.hear(command.stderr)):
            try:
                await _beside_loop(reading, unpack, source, into, tally)
            except Incomplete:
                # What the command says of it says more.
                await self._end(command, said, tally)
                if not tally.errors:
                    raise
                return
            # What follows an archive's end is not of it.
            while await command.stdout.read():
                pass
            await self._end(command, said, tally)

    async def fetch_rest(self, found: Looked, into: Path, tally: _Tally) -> None:
        """What of a file is not in the part that is there. Raises OSError."""
        part = part_of(into)
        digest, there = await asyncio.to_thread(_digest, part)
        command = await self._begin(Wanted(), places.REST, self._root + found.path, str(there + 1))
        assert command.stdout is not None
        said = _Said()
        with part.open("ab", buffering=0) as file:
            async with beside(said.hear(command.stderr)):
                while piece := await command.stdout.read():
                    file.write(piece)
                    digest.update(piece)
                    tally.passed(len(piece))
                await self._end(command, said, tally)
        if not tally.errors:
            part.rename(into)
            tally.copied(found.name, digest.hexdigest())

    async def put(self, source: Path, at: Looked, tally: _Tally) -> None:
        """Pack `source` so that it comes to `at`. Raises OSError."""
        directory, name = (at.path, ".") if source.is_dir() else (at.directory, at.name)

        def work(stream: IO[bytes]) -> None:
            pack(stream, source, name, self._user, tally)

        await self._send(work, tally, places.UNPACK, self._root + directory)

    async def put_rest(self, source: Path, at: Looked, tally: _Tally) -> None:
        """What of a file the container has not got. Raises OSError."""

        def work(stream: IO[bytes]) -> None:
            digest = hashlib.sha256()
            with source.open("rb") as file:
                left = at.size
                while piece := file.read(min(PIECE, left) if left else PIECE):
                    digest.update(piece)
                    if left:
                        left -= len(piece)
                    else:
                        stream.write(piece)
                        tally.passed(len(piece))
            tally.copied(at.name, digest.hexdigest())

        await self._send(work, tally, places.APPEND, self._root + at.path)

    async def _send(self, work: Any, tally: _Tally, script: str, *arguments: str) -> None:
        command = await self._begin(Wanted(stdin=True), script, *arguments)
        assert command.stdin is not None and command.stdout is not None
        stdin = command.stdin
        said = _Said()
        stream = _Writing(stdin, asyncio.get_running_loop())
        async with beside(said.hear(command.stderr), _Said().hear(command.stdout)):
            try:
                await _beside_loop(stream, work, stream)
                stdin.end()
            except Disconnected:
                # The command ended before its input did, and most often says why.
                await self._end(command, said, tally)
                if not tally.errors:
                    raise
                return
            await self._end(command, said, tally)

    async def check(self, below: str, tally: _Tally) -> bool:
        """Compare what was copied with what is in the container; whether that could be done."""
        tally.digests.seek(0)
        said = _Said()
        command = await self._begin(Wanted(stdin=True), places.CHECK, self._root + below)
        assert command.stdin is not None and command.stdout is not None

        async def feed(stdin: Stream) -> None:
            try:
                while piece := tally.digests.read(PIECE):
                    await stdin.write(piece)
                stdin.end()
            except Disconnected:
                return

        rest = b""
        async with beside(feed(command.stdin), said.hear(command.stderr)):
            while piece := await command.stdout.read():
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > MOST_SAID:
                    raise CopyError("what the container says of digests has no lines")
                for line in lines:
                    if line.endswith(b": FAILED"):
                        name = line.removesuffix(b": FAILED").decode(errors="surrogateescape")
                        tally.failed(
                            name, "it differs from what was copied: it changed meanwhile, or was damaged"
                        )
            ended = await command.ended()
        await command.close()
        return ended is not None and ended.exit_code != NO_PROGRAM

    async def _begin(self, wanted: Wanted, script: str, *arguments: str) -> Command:
        shell = ["sh", "-c", script, "sh", *arguments]
        meta = self._pod.metadata
        return await self._cluster.exec(meta.namespace, meta.name, self._runs_in, shell, wanted)

    async def run(self, script: str, *arguments: str) -> tuple[Ended, bytes, str]:
        """How it ended, what it printed, and its errors as a line."""
        command = await self._begin(Wanted(), script, *arguments)
        printed, said = _Said(), _Said()
        await asyncio.gather(printed.hear(command.stdout), said.hear(command.stderr))
        ended = await command.ended() or Ended(None, "the connection was lost")
        await command.close()
        return ended, await printed.whole(), _line(await said.whole())

    async def _end(self, command: Command, said: _Said, tally: _Tally) -> None:
        ended, errors = await command.ended(), await said.whole()
        await command.close()
        if ended is None:
            raise CopyError("the connection to the container was lost")
        if ended.exit_code != 0:
            lines = errors.decode(errors="replace").splitlines()
            for line in lines or [ended.message or f"exit code {ended.exit_code}"]:
                tally.say(line)


@asynccontextmanager
async def files_of(
    cluster: Cluster, namespace: str, name: str, container: str, way: Way, narrator: Narrator
) -> AsyncGenerator[Files]:
    """Raises WishError, NoContainer, StatusError, OSError."""
    pod = await cluster.get(namespace, name)
    target = places.container_of(pod, container)
    user = places.user_of(pod, target)
    direct = Files(cluster, pod, target, "", user)
    if way.via == EXEC or (way.via == AUTO and await direct.can_tar()):
        yield direct
        return
    container_id = next(
        (
            one.container_id.rpartition("/")[2]
            for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)
            if one.name == target
        ),
        "",
    )
    if not container_id:
        raise WishError(f"container {target} of pod {name} does not run")
    custom = await _as_whom(cluster, pod, user)
    async with helper(
        cluster,
        pod,
        NAME,
        way.image,
        narrator,
        target=target,
        profile=way.profile,
        timeout=way.timeout,
        custom=custom,
    ) as runs_in:
        aside = Files(cluster, pod, runs_in, "", user)
        ended, root, errors = await aside.run(places.FIND_TARGET, container_id)
        if ended.exit_code != 0:
            raise CopyError(f"container {target} cannot be reached from {runs_in}: {errors or ended.message}")
        yield Files(cluster, pod, runs_in, root.decode(), user)


async def _as_whom(cluster: Cluster, pod: Pod, user: tuple[int, int]) -> dict[str, Any]:
    """Root reaches all files of the target; where it is not allowed, the target's own user its own."""
    labels = await cluster.labels_of_namespace(pod.metadata.namespace)
    of_pod = pod.spec.security_context
    is_refused = labels.get(profiles.ENFORCE) == "restricted" or bool(of_pod and of_pod.run_as_non_root)
    uid, gid = user if is_refused else (0, 0)
    rights = {"runAsUser": uid, "runAsGroup": gid} if uid or not is_refused else {}
    return {"securityContext": rights} if rights else {}


async def download(
    files: Files, path: str, into: str, narrator: Narrator, *, resume: bool, verify: bool
) -> Copied:
    """Copy `path` of the container to `into`, or into it if that is a directory, as cp does. Raises
    CopyError, StatusError, OSError."""
    found = await files.look(path)
    if found.kind not in ("file", "directory"):
        why = "not found" if found.kind in ("missing", "nowhere") else "neither a file nor a directory"
        raise CopyError(f"{path}: {why}")
    own = Path(into).expanduser()
    name = path.rstrip("/").rpartition("/")[2]
    if own.is_dir() and name not in ("", ".", ".."):
        own = own / name
    below = found.path if found.kind == "directory" else found.directory
    part = part_of(own)
    with tempfile.TemporaryFile() as digests:
        tally = _Tally(narrator, digests)
        if resume and found.kind == "file" and part.exists() and part.stat().st_size <= found.size:
            await files.fetch_rest(found, own, tally)
        else:
            await files.fetch(found, own, tally)
        if found.kind == "file":
            _rename(tally, found.name)
        return await _checked(files, below, tally, narrator, verify=verify)


def _rename(tally: _Tally, name: str) -> None:
    """The digest of one file, under the name that it has in the container."""
    tally.digests.seek(0)
    digest = tally.digests.read(64)
    tally.digests.seek(0)
    tally.digests.truncate()
    if digest:
        tally.digests.write(digest + f"  {name}\n".encode(errors="surrogateescape"))


async def upload(
    files: Files, source: str, path: str, narrator: Narrator, *, resume: bool, verify: bool
) -> Copied:
    """As `download`, into the container."""
    own = Path(source).expanduser()
    if not own.exists():
        raise CopyError(f"{source}: not found")
    at = await files.look(path)
    if at.kind == "missing" and path.endswith("/") and not own.is_dir():
        raise CopyError(f"{path}: there is no such directory in the container")
    if at.kind == "directory" and own.name not in ("", "..") and not source.endswith("/."):
        at = await files.look(f"{at.path}/{own.name}")
    if at.kind == "nowhere":
        raise CopyError(f"{path}: there is no such directory in the container")
    if own.is_dir() != (at.kind == "directory") and at.kind != "missing":
        raise CopyError(f"{path}: the one is a directory, the other is not")
    below = at.path if own.is_dir() else at.directory
    with tempfile.TemporaryFile() as digests:
        tally = _Tally(narrator, digests)
        if resume and at.kind == "file" and at.size <= own.stat().st_size:
            await files.put_rest(own, at, tally)
        else:
            await files.put(own, at, tally)
        return await _checked(files, below, tally, narrator, verify=verify)


async def _checked(files: Files, below: str, tally: _Tally, narrator: Narrator, *, verify: bool) -> Copied:
    narrator.clear()
    if verify and tally.files and not await files.check(below, tally):
        narrator.say("Not compared: the container has no sha256sum.")
    return tally.outcome()


def _digest(file: Path) -> tuple[Any, int]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            digest.update(piece)
            size += len(piece)
    return digest, size


def _line(said: bytes) -> str:
    return "; ".join(said.decode(errors="replace").split("\n")).strip("; ")


class _Said:
    """What a command says, no more than MOST_SAID bytes of it."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._ended = asyncio.Event()

    async def hear(self, stream: Stream | None) -> None:
        size = 0
        while stream is not None and (piece := await stream.read()):
            if size < MOST_SAID:
                self._kept.append(piece[: MOST_SAID - size])
                size += len(piece)
        self._ended.set()

    async def whole(self) -> bytes:
        """When all of it has come, which may be after the command's exit code."""
        await self._ended.wait()
        return b"".join(self._kept)


class _Apart(io.RawIOBase):
    """A stream as a thread has it, which waits for the loop; `is_over` when nobody waits for the thread."""

    def __init__(self, stream: Stream, loop: asyncio.AbstractEventLoop) -> None:
        self.is_over = False
        self._stream = stream
        self._loop = loop

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        if self.is_over:
            work.close()
            raise Disconnected("the copy was ended")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


async def _beside_loop(stream: _Apart, work: Callable[..., None], *arguments: Any) -> None:
    """Run `work` in a thread. When this is cancelled, the thread ends with its next piece: the program would
    wait for it, however much a container sends."""
    try:
        await asyncio.to_thread(work, *arguments)
    finally:
        stream.is_over = True


class _Reading(_Apart):
    """For reading."""

    _rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(self._done(self._stream.read()))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _Writing(_Apart):
    """For writing; a write returns when the peer takes more."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._done(self._stream.write(piece))
        return len(piece)
