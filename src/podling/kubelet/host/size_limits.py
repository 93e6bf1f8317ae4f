"""Limits of what a directory may take with all that is below it.

`ProjectQuotas` sets them where a file system keeps them: ext4 made with `-O project,quota` and mounted with
`prjquota`, and XFS mounted with `pquota`. The directory is given a project, which whatever is made below it
inherits, and the project a limit. Who passes it is told EDQUOT or ENOSPC, and df(1) shows it as the size.

There is no list of projects that could be wrong. The directory's own inode has the number, and the file
system has the limit by that number. A number is free if nothing has it and no limit is set for it, whoever
would have set it. quotactl_fd(2) takes any descriptor of the file system, so no device is looked for.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import zlib
from pathlib import Path
from threading import Lock
from typing import Protocol

from podling.kubelet.files.descriptors import DIRECTORY

FIRST, COUNT = 1 << 30, 1 << 30
"""The projects chosen from: far from the small numbers that people and Kubernetes' kubelet choose."""
TRIES = 1000
NO_PROJECT = 0

_libc = ctypes.CDLL(None, use_errno=True)
_QUOTACTL_FD = 443
_Q_GETQUOTA, _Q_SETQUOTA, _Q_XGETQSTAT = 0x800007, 0x800008, 0x5805
_PROJECTS = 2
_ENFORCED = 1 << 5
"""FS_QUOTA_PDQ_ENFD: limits of projects are kept, not only counted."""
_STATE = struct.Struct("=bxH")
"""The beginning of `struct fs_quota_stat`: its version and flags."""
_RECORD = struct.Struct("=QQQQQQQQI4x")
"""`struct if_dqblk`: the hard and soft limit of blocks, bytes used, the limits of inodes, inodes used, two
times, and what of it is valid."""
_BLOCK = 1024
_LIMITS_OF_BLOCKS = 1
_FS_IOC_FSGETXATTR, _FS_IOC_FSSETXATTR = 0x801C581F, 0x401C5820
_ATTRIBUTES = struct.Struct("=IIIII8x")
"""`struct fsxattr`: flags, two sizes of extents, the project, another size."""
_INHERITED = 0x200


class SizeLimits(Protocol):
    """Blocking: run it off the event loop."""

    def limit(self, place: Path, size: int) -> bool:
        """Let the directory take no more than so many bytes; one that has a limit gets another. False if
        nothing will keep it from growing. Raises OSError."""

    def free(self, place: Path) -> None:
        """The directory is about to be removed, or gone. Raises OSError."""


class ProjectQuotas:
    def __init__(self) -> None:
        self._choosing = Lock()
        """Until a directory has its project, another thread would find the same one free."""

    def limit(self, place: Path, size: int) -> bool:
        directory = os.open(place, DIRECTORY)
        try:
            if not _enforces(directory):
                return False
            with self._choosing:
                project = _own_project(directory) or _given(directory, place.name)
            if project == NO_PROJECT:
                return False
            _set_limit(directory, project, size)
        except PermissionError:
            # Not root of the machine.
            return False
        finally:
            os.close(directory)
        return True

    def free(self, place: Path) -> None:
        """Before the removal, so that a kill in between leaves no limit without a directory."""
        try:
            directory = os.open(place, DIRECTORY)
        except OSError:
            # It is gone, or a link in its place, which is for whoever removes it.
            return
        try:
            if _enforces(directory) and (project := _own_project(directory)):
                _set_limit(directory, project, 0)
        finally:
            os.close(directory)


def _enforces(directory: int) -> bool:
    state = bytearray(256)
    try:
        _quotactl(directory, _Q_XGETQSTAT, 0, state)
    except OSError:
        # The kernel, the file system, or this mount of it has no quotas.
        return False
    return bool(_STATE.unpack_from(state)[1] & _ENFORCED)


def _own_project(directory: int) -> int:
    """The project that the directory was given here; NO_PROJECT if none."""
    flags, project = _attributes(directory)
    is_ours = flags & _INHERITED and FIRST <= project < FIRST + COUNT
    return project if is_ours and project != _project_above(directory) else NO_PROJECT


def _given(directory: int, name: str) -> int:
    """A project that the directory has now; NO_PROJECT if it cannot have one of its own: it has files, which
    would not count, or all that is above it has one project already."""
    with os.scandir(directory) as files:
        if next(files, None) is not None:
            return NO_PROJECT
    if _project_above(directory) != NO_PROJECT:
        return NO_PROJECT
    hashed = zlib.crc32(name.encode())
    for number in range(TRIES):
        project = FIRST + (hashed + number) % COUNT
        if _is_free(directory, project):
            _give(directory, project)
            return project
    return NO_PROJECT


def _project_above(directory: int) -> int:
    """What a new directory beside this one inherits."""
    above = os.open("..", DIRECTORY, dir_fd=directory)
    try:
        flags, project = _attributes(above)
    finally:
        os.close(above)
    return project if flags & _INHERITED else NO_PROJECT


def _attributes(directory: int) -> tuple[int, int]:
    """Flags and project."""
    found = fcntl.ioctl(directory, _FS_IOC_FSGETXATTR, bytes(_ATTRIBUTES.size))
    flags, _, _, project, _ = _ATTRIBUTES.unpack(found)
    return flags, project


def _give(directory: int, project: int) -> None:
    found = fcntl.ioctl(directory, _FS_IOC_FSGETXATTR, bytes(_ATTRIBUTES.size))
    flags, extent, extents, _, shared = _ATTRIBUTES.unpack(found)
    wanted = _ATTRIBUTES.pack(flags | _INHERITED, extent, extents, project, shared)
    fcntl.ioctl(directory, _FS_IOC_FSSETXATTR, wanted)


def _is_free(directory: int, project: int) -> bool:
    record = bytearray(_RECORD.size)
    try:
        _quotactl(directory, _Q_GETQUOTA, project, record)
    except OSError as error:
        # XFS: there is no record yet.
        if error.errno == errno.ENOENT:
            return True
        raise
    hard, soft, used, hard_inodes, soft_inodes, inodes, *_ = _RECORD.unpack(record)
    return not any((hard, soft, used, hard_inodes, soft_inodes, inodes))


def _set_limit(directory: int, project: int, size: int) -> None:
    """In bytes, 0 for none."""
    hard = -(-size // _BLOCK)
    record = bytearray(_RECORD.pack(hard, 0, 0, 0, 0, 0, 0, 0, _LIMITS_OF_BLOCKS))
    _quotactl(directory, _Q_SETQUOTA, project, record)


def _quotactl(directory: int, command: int, project: int, data: bytearray) -> None:
    """`data` is what the kernel reads or fills."""
    shared = (ctypes.c_char * len(data)).from_buffer(data)
    asked = ctypes.c_uint32(command << 8 | _PROJECTS)
    if _libc.syscall(_QUOTACTL_FD, directory, asked, ctypes.c_uint32(project), shared) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"quotactl: {os.strerror(code)}")
