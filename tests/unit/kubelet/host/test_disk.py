"""What directories take of the disk, measured on real files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.kubelet.host import disk
from podling.kubelet.host.disk import NOTHING, Measured, Used, file_system, used


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


def test_a_directory_of_many_files_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, walks = threading.Event(), []

    def endless(directory: Path) -> Iterator[Used]:
        walks.append(threading.current_thread())
        yield Used(10, 1)
        yield Used(20, 2)
        if walks[-1] is not threading.main_thread():
            assert go_on.wait(30)
        yield Used(30, 3)

    monkeypatch.setattr(disk, "measuring", endless)
    measured = Measured(patience=0)
    one, other = tmp_path / "one", tmp_path / "other"
    assert measured.used(one).size in (10, 20)
    assert measured.used(other).size in (10, 20), "found before it was handed over"
    assert measured.used(one).size in (10, 20)
    walking = measured._thread
    assert walking is not None and walking.daemon, "the process does not wait for it when it ends"
    go_on.set()
    walking.join(30)
    assert [measured.used(one), measured.used(other)] == [Used(30, 3)] * 2
    assert [walk is walking for walk in walks].count(True) == 2, "one thread, one after the other"


def test_a_known_size_stays_while_it_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    measured = Measured(60, lambda: now, patience=0)
    monkeypatch.setattr(disk, "measuring", lambda _: (found for found in [Used(50, 5)]))
    measured._patience = 60
    assert measured.used(tmp_path) == Used(50, 5)
    now, measured._patience = 60.0, 0
    held = threading.Event()

    def smaller(directory: Path) -> Iterator[Used]:
        yield Used(10, 1)
        if threading.current_thread() is not threading.main_thread():
            assert held.wait(30)
        yield Used(20, 2)

    monkeypatch.setattr(disk, "measuring", smaller)
    assert measured.used(tmp_path) == Used(50, 5)
    walking = measured._thread
    held.set()
    assert walking is not None
    walking.join(30)
    assert measured.used(tmp_path) == Used(20, 2)
