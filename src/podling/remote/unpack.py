"""Archives become files of this machine, and files archives, piece by piece.

What a container sends is not trusted. Each member is reached from the directory that is unpacked into by
descriptors, component by component, and no symbolic link is followed: an archive can write nothing elsewhere,
whatever names and links it has. Links are made as they are. A file comes to its name when it is complete.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, Self

from podling.debug.places import parts_of

PIECE = 256 * 1024
PART = ".podling-part"
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS})
"""Errors that the next file would have, too."""
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
PERMISSIONS = 0o777
"""Of a mode what is kept: a container does not say what runs here with the rights of another."""
LONGEST_HEADER = 1024 * 1024
"""Bytes."""
LONGEST_NAME = 4096
"""Characters, as many as the kernel takes; each may be a directory."""
LATEST = 2.0**33
"""Seconds since 1970; a kernel takes no time beyond its file system's."""
_IS_NEW = 1 << 30
"""In the mode of a directory: it was made for what is unpacked."""

Parts = tuple[str, ...]


class Incomplete(OSError):
    """The archive ended too soon, or is none."""


class Watcher(Protocol):
    """Hears of each file: of pieces while they are copied, of its digest when it is complete, of what could
    not be copied."""

    def passed(self, count: int) -> None: ...

    def copied(self, name: str, digest: str) -> None: ...

    def failed(self, name: str, why: str) -> None: ...


def part_of(file: Path) -> Path:
    """Where a file is until it is complete."""
    return file.with_name(file.name[: 255 - len(PART)] + PART)


class _Made(NamedTuple):
    parts: Parts
    mode: int
    changed: float


def unpack(source: IO[bytes], into: Path, watcher: Watcher) -> None:
    """Unpack what was packed as `.` into the directory `into`, or the one file of an archive as the file
    `into`. Raises OSError when nothing more can be written, or the archive ends too soon."""
    try:
        counted = _Headers(source)
        stream: Any = counted
        with ExitStack() as ending:
            with _readable():
                archive = ending.enter_context(
                    tarfile.open(
                        fileobj=stream,
                        mode="r|",
                        bufsize=PIECE,
                        tarinfo=_Member,
                        encoding="utf-8",
                        errors="surrogateescape",
                    )
                )
            first = _next(archive, counted)
            if first is None:
                raise Incomplete("nothing came")
            if first.isdir():
                with suppress(FileExistsError):
                    into.mkdir(0o700)
                    first.mode |= _IS_NEW
                _Unpacker(archive, counted, into, watcher).run(first)
            elif first.isreg():
                first.name = into.name
                _Unpacker(archive, counted, into.parent, watcher).run(first, is_one=True)
            else:
                raise OSError("it is neither a file nor a directory")
    except tarfile.TarError as error:
        raise Incomplete(f"the archive is not complete: {error}") from error


class _Headers:
    """A source that gives no more than LONGEST_HEADER bytes for one header: tarfile would keep as many as a
    header says that it has."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._given = 0
        # The first header is read where an archive is opened.
        self._limit: int | None = LONGEST_HEADER

    def read(self, count: int) -> bytes:
        if self._limit is not None and self._given > self._limit:
            raise Incomplete(f"the archive has a header of more than {LONGEST_HEADER} bytes")
        piece = self._source.read(count)
        self._given += len(piece)
        return piece

    @contextmanager
    def header_at(self, offset: int) -> Iterator[None]:
        """Within the block the header at this place of the archive is read, after what is before it."""
        self._limit = max(self._given, offset) + LONGEST_HEADER
        try:
            yield
        finally:
            self._limit = None


class _Member(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Raises Incomplete where tarfile takes for the end what is no header, or half of one, or nothing."""
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if isinstance(error, tarfile.EOFHeaderError) or archive.offset == 0:  # type: ignore[attr-defined]
                raise
            raise Incomplete(f"the archive is not complete: {error}") from error


def _next(archive: tarfile.TarFile, counted: _Headers) -> tarfile.TarInfo | None:
    """The next member. Raises OSError, TarError."""
    with _readable(), counted.header_at(archive.offset):
        return archive.next()


@contextmanager
def _readable() -> Iterator[None]:
    """What tarfile has no error for: numbers that are none, and headers of headers of headers."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise Incomplete(f"the archive is damaged: {error}") from error


class _Unpacker:
    def __init__(self, archive: tarfile.TarFile, counted: _Headers, root: Path, watcher: Watcher) -> None:
        self._archive = archive
        self._counted = counted
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._watcher = watcher
        self._directories: list[_Made] = []

    def run(self, first: tarfile.TarInfo, *, is_one: bool = False) -> None:
        """`is_one`: whatever follows the first member was not asked for."""
        member: tarfile.TarInfo | None = first
        try:
            while member is not None:
                try:
                    self._take(member)
                except (OSError, ValueError) as error:
                    if isinstance(error, Incomplete) or (isinstance(error, OSError) and error.errno in FULL):
                        raise
                    self._watcher.failed(member.name, _why(error))
                # Or it would keep what it has read of all of them.
                self._archive.members = []  # type: ignore[attr-defined]
                member = None if is_one else _next(self._archive, self._counted)
            # What may not be written into is closed when all is in it.
            for made in reversed(self._directories):
                try:
                    with self._directory(made.parts) as there:
                        os.utime(there, (made.changed, made.changed))
                        os.fchmod(there, made.mode)
                except OSError as error:
                    self._watcher.failed("/".join(made.parts), _why(error))
        finally:
            os.close(self._root)

    def _take(self, member: tarfile.TarInfo) -> None:
        parts = parts_of(member.name)
        if len(member.name) > LONGEST_NAME:
            raise ValueError(f"its name has more than {LONGEST_NAME} characters")
        changed = 0.0 if math.isnan(member.mtime) else min(max(float(member.mtime), -LATEST), LATEST)
        if not parts:
            if not member.isdir():
                raise ValueError("a file without a name")
            if member.mode & _IS_NEW:
                self._directories.append(_Made(parts, member.mode & PERMISSIONS, changed))
            return
        with self._directory(parts[:-1], make=True) as there:
            if member.isdir():
                with suppress(FileExistsError):
                    os.mkdir(parts[-1], 0o700, dir_fd=there)
                    self._directories.append(_Made(parts, member.mode & PERMISSIONS, changed))
                os.close(os.open(parts[-1], DIRECTORY, dir_fd=there))
            elif member.isreg():
                self._file(member, there, parts[-1], changed)
            elif member.issym():
                _remove(there, parts[-1])
                os.symlink(member.linkname, parts[-1], dir_fd=there)
            elif member.islnk():
                *before, name = parts_of(member.linkname)
                with self._directory(tuple(before)) as other:
                    _remove(there, parts[-1])
                    os.link(name, parts[-1], src_dir_fd=other, dst_dir_fd=there, follow_symlinks=False)
            else:
                raise ValueError("neither file, directory nor link")

    def _file(self, member: tarfile.TarInfo, there: int, name: str, changed: float) -> None:
        data = self._archive.extractfile(member)
        assert data is not None
        part = part_of(Path(name)).name
        digest = hashlib.sha256()
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=there)
        descriptor = os.open(part, NEW | os.O_EXCL, 0o600, dir_fd=there)
        with open(descriptor, "wb", buffering=0) as file:
            left = member.size
            while left:
                piece = data.read(min(PIECE, left))
                if not piece:
                    raise Incomplete("the archive ended within a file")
                digest.update(piece)
                _write(file, piece)
                left -= len(piece)
                self._watcher.passed(len(piece))
            os.fchmod(descriptor, member.mode & PERMISSIONS)
            os.utime(descriptor, (changed, changed))
        os.rename(part, name, src_dir_fd=there, dst_dir_fd=there)
        self._watcher.copied(member.name, digest.hexdigest())

    @contextmanager
    def _directory(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        there = os.dup(self._root)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=there)
                inner = os.open(part, DIRECTORY, dir_fd=there)
                os.close(there)
                there = inner
            yield there
        finally:
            os.close(there)


def _write(file: IO[bytes], piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]


def _remove(there: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=there)


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


class _Sized:
    """A file as an archive has it: as many bytes as its header says, whatever became of it meanwhile."""

    def __init__(self, file: IO[bytes], size: int, passed: Callable[[int], None]) -> None:
        self._file = file
        self._left = size
        self._passed = passed
        self.digest = hashlib.sha256()
        self.is_short = False

    def read(self, count: int) -> bytes:
        wanted = min(count, self._left)
        piece = self._file.read(wanted)
        if len(piece) < wanted:
            self.is_short = True
            piece = piece.ljust(wanted, b"\0")
        self._left -= len(piece)
        self.digest.update(piece)
        self._passed(len(piece))
        return piece


def pack(into: IO[bytes], source: Path, name: str, user: tuple[int, int], watcher: Watcher) -> None:
    """Pack the file `source` as `name`, or what is in the directory `source` as `.`; a link as which it is
    given is followed, those within are packed as links. All belongs to `user`, which is user and group.
    Raises OSError for a `source` that cannot be read, or from `into`."""
    with tarfile.open(
        fileobj=into, mode="w|", bufsize=PIECE, format=tarfile.GNU_FORMAT, encoding="utf-8"
    ) as archive:
        archive.errors = "surrogateescape"
        resolved = source.resolve(strict=True)
        waiting = [(resolved, "." if resolved.is_dir() else name)]
        while waiting:
            path, named = waiting.pop()
            try:
                below = _pack_one(archive, path, named, user, watcher)
            except OSError as error:
                if error.filename is None:
                    # Not of reading, but of the way to the container.
                    raise
                if path == resolved:
                    raise
                watcher.failed(named, _why(error))
                continue
            finally:
                archive.members = []  # type: ignore[attr-defined]
            waiting += below


def _pack_one(
    archive: tarfile.TarFile, path: Path, name: str, user: tuple[int, int], watcher: Watcher
) -> list[tuple[Path, str]]:
    """What of a directory is to be packed next."""
    found = os.lstat(path)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        watcher.failed(name, "neither file, directory nor link")
        return []
    below = sorted(os.listdir(path), reverse=True) if stat.S_ISDIR(found.st_mode) else []
    member = archive.gettarinfo(str(path), name)
    member.uid, member.gid = user
    member.uname = member.gname = ""
    if not member.isreg():
        archive.addfile(member)
        return [(path / inner, f"{name}/{inner}") for inner in below]
    with open(path, "rb") as file:
        sized = _Sized(file, member.size, watcher.passed)
        archive.addfile(member, sized)  # type: ignore[arg-type]
    watcher.copied(name, sized.digest.hexdigest())
    if sized.is_short:
        watcher.failed(name, "it became shorter while it was read")
    return []
