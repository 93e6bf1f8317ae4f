"""What directories take of the disk, measured on real files."""

from __future__ import annotations

import os
from pathlib import Path

from podling.kubelet.stats.disk import NOTHING, Measured, file_system, used


def test_files_directories_and_links_are_counted_once(tmp_path: Path) -> None:
    empty = used(tmp_path)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * 100_000)
    os.link(tmp_path / "below" / "file", tmp_path / "again")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = used(tmp_path)
    assert found.inodes == empty.inodes + 3
    assert 100_000 <= found.size - empty.size < 200_000


def test_what_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert used(tmp_path / "gone") == NOTHING


def test_a_file_system_has_more_room_than_is_free(tmp_path: Path) -> None:
    system = file_system(tmp_path)
    assert 0 < system.available <= system.capacity


def test_a_directory_is_not_measured_again_within_a_minute(tmp_path: Path) -> None:
    now = 0.0
    measured = Measured(60, lambda: now)
    before = measured.used(tmp_path)
    (tmp_path / "file").touch()
    assert measured.used(tmp_path) == before
    now = 60.0
    assert measured.used(tmp_path).inodes == before.inodes + 1
