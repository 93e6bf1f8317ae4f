"""Directories keep to their limits on every file system that has project quotas."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.kubelet.files.tree import remove
from podling.kubelet.host import size_limits
from podling.kubelet.host.size_limits import ProjectQuotas
from quota_disk import quota_disk

MEGA = 1 << 20
LOOKS = 200


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    with quota_disk(request.param, tmp_path / "image", place):
        yield place


def made(place: Path) -> Path:
    place.mkdir(parents=True)
    place.chmod(0o777)
    return place


def write(place: Path, megabytes: int) -> str:
    """What it says: root without what lets one pass all limits, as in a container."""
    command = ["dd", "if=/dev/zero", f"of={place}/file", "bs=1M", f"count={megabytes}", "conv=fsync"]
    user = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"]
    return subprocess.run([*user, *command], capture_output=True, text=True, check=False).stderr


def is_refused(said: str) -> bool:
    return "Disk quota exceeded" in said or "No space left on device" in said


def test_a_directory_takes_no_more_than_its_limit(disk: Path) -> None:
    limits, place, other = ProjectQuotas(), made(disk / "a"), made(disk / "b")
    assert limits.limit(place, 4 * MEGA)
    found = os.statvfs(place)
    assert found.f_blocks * found.f_frsize == 4 * MEGA
    assert is_refused(write(place, 8)) and (place / "file").stat().st_size <= 4 * MEGA
    assert not is_refused(write(other, 8))
    assert limits.limit(place, 12 * MEGA)
    assert not is_refused(write(place, 8))
    # Below it, and in what is renamed within it.
    (place / "file").unlink()
    made(place / "sub/sub").rename(place / "moved")
    assert is_refused(write(place / "moved", 16))


def test_each_has_its_own(disk: Path) -> None:
    """Also two whose names lead to the same number first."""
    limits = ProjectQuotas()
    one, other = made(disk / "1/same"), made(disk / "2/same")
    assert limits.limit(one, 4 * MEGA) and limits.limit(other, 8 * MEGA)
    assert not is_refused(write(one, 3)) and not is_refused(write(other, 7))
    assert is_refused(write(one, 5)) and is_refused(write(other, 9))


def test_a_number_is_free_again(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XFS counts what is removed for a little longer."""
    monkeypatch.setattr(size_limits, "TRIES", 1)
    limits = ProjectQuotas()
    for _ in range(2):
        place = made(disk / "1/same")
        for _ in range(LOOKS):
            if limits.limit(place, 4 * MEGA):
                break
            os.sync()
        assert not is_refused(write(place, 2))
        assert not limits.limit(made(disk / "2/same"), 4 * MEGA)
        shutil.rmtree(disk / "2")
        limits.free(place)
        # A kill may have come here: it is freed and removed again.
        limits.free(place)
        remove(place)
        limits.free(place)


def test_what_has_files_already_or_is_in_a_project_is_left_alone(disk: Path) -> None:
    limits, full, outer = ProjectQuotas(), made(disk / "full"), made(disk / "outer")
    (full / "file").write_text("x")
    assert not limits.limit(full, MEGA)
    assert limits.limit(outer, 2 * MEGA)
    assert not limits.limit(made(outer / "inner"), 8 * MEGA)
    assert is_refused(write(outer / "inner", 3))


def test_a_file_system_without_them_is_told(tmp_path: Path) -> None:
    """Where tests run; if it has them, another one."""
    place = made(Path("/dev/shm") / f"podling-{os.getpid()}")
    try:
        assert not ProjectQuotas().limit(place, MEGA)
        ProjectQuotas().free(place)
        ProjectQuotas().free(place / "gone")
    finally:
        place.rmdir()
