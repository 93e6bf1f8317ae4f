"""A disk of its own whose file system has project quotas, where the kernel has them (`scripts/vm.sh`
boots one that does)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 1 << 30
"""Bytes, of which none are taken before they are written."""
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota"],
    "xfs": ["mkfs.xfs", "-q"],
}


@contextmanager
def quota_disk(kind: str, image: Path, place: Path) -> Iterator[None]:
    """Mounted at `place`, which is made, while the block runs. Skips where that cannot be."""
    command = MAKE[kind]
    if os.geteuid() != 0 or shutil.which(command[0]) is None:
        pytest.skip(f"needs root and {command[0]}")
    with image.open("wb") as file:
        file.truncate(SIZE)
    place.mkdir()
    subprocess.run([*command, image], check=True, capture_output=True)
    mounted = subprocess.run(
        ["mount", "-t", kind, "-o", "loop,prjquota", image, place],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"this kernel has no project quotas of {kind}: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)
        image.unlink()
