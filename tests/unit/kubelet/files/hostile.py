"""What a container may put where the kubelet expects a file or a directory, and a host it must not reach."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from pathlib import Path

from podling.process.mounts import bind_mount, mount_tmpfs

DEPTH = 3_000
"""More than there are descriptors of a process by default, calls in Python's stack, and names in a path."""
_LIBC = ctypes.CDLL(None)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Host:
    """A directory of the node that no pod has: `file`, and `directory` with another one in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "directory/below").mkdir(parents=True)
        for name in ("file", "directory/file", "directory/below/file"):
            (path / name).write_text("the host's")
            (path / name).chmod(0o600)
        self._was = self._is()

    def assert_untouched(self) -> None:
        assert self._is() == self._was

    def _is(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for place in (self.path, *self.path.rglob("*")):
            state = place.lstat()
            content = place.read_bytes() if place.is_file() else sorted(os.listdir(place))
            found[str(place)] = (state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns, content)
        return found


def exchange(one: Path, other: Path) -> None:
    """At no moment is either missing."""
    assert _LIBC.renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0


def _deep(place: Path, host: Path) -> None:
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def _socket(place: Path, host: Path) -> None:
    # By a short name: a socket's has 108 bytes.
    parent = os.open(place.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{parent}/{place.name}")
    os.close(parent)


def _mounted(place: Path, host: Path) -> None:
    place.mkdir()
    bind_mount(host, place)


def _mounted_below(place: Path, host: Path) -> None:
    (place / "deeper").mkdir(parents=True)
    mount_tmpfs(place / "deeper")
    (place / "deeper/bound").mkdir()
    bind_mount(host, place / "deeper/bound")


def _mounted_file(place: Path, host: Path) -> None:
    place.touch()
    bind_mount(host / "file", place)


def _endless(place: Path, host: Path) -> None:
    place.touch()
    os.truncate(place, 1 << 42)


def _second_name(place: Path, host: Path) -> None:
    (place.parent / "one").touch()
    os.link(place.parent / "one", place)


def _named(name: bytes) -> Callable[[Path, Path], None]:
    def make(place: Path, host: Path) -> None:
        _mounted(place.with_name(os.fsdecode(name)), host)
        place.symlink_to(os.fsdecode(name))

    return make


HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    "link to a file of the host": lambda place, host: place.symlink_to(host / "file"),
    "link to a directory of the host": lambda place, host: place.symlink_to(host / "directory"),
    "link that climbs out": lambda place, host: place.symlink_to(os.path.relpath(host, place.parent)),
    "link to itself": lambda place, host: place.symlink_to(place.name),
    "link to nothing": lambda place, host: place.symlink_to("nothing"),
    "pipe": lambda place, host: os.mkfifo(place),
    "endless device": lambda place, host: os.mknod(place, 0o020666, os.makedev(1, 5)),
    "block device": lambda place, host: os.mknod(place, 0o060666, os.makedev(7, 200)),
    "socket": _socket,
    "endless file": _endless,
    "deep directories": _deep,
    "second name": _second_name,
    "mount of the host": _mounted,
    "mount in a mount": _mounted_below,
    "mount of a file": _mounted_file,
    "mount named with a newline": _named(b"a\nb"),
    "mount named with another line's end": _named("a\u2028b\x0bc".encode()),
    "mount named in no encoding": _named(b"a\xff b\\134"),
}
"""Each is made at a place, of a host's directory."""
