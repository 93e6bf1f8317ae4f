"""The newest acknowledged revision is there after whatever ended the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.storage.sqlite.newest import Newest


def test_it_says_what_was_noted_last(tmp_path: Path) -> None:
    path = tmp_path / "newest"
    newest = Newest.make(path)
    for revision in (1, 2, 300, 1 << 40):
        newest.note(revision)
        assert Newest(path).revision == revision, "nothing was closed, as after a kill"
    newest.close()
    assert Newest(path).revision == 1 << 40


def test_a_note_that_was_half_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "newest"
    newest = Newest.make(path)
    newest.note(1)
    newest.note(2)
    noted = path.read_bytes()
    newest.note(3)
    changed = [at for at, (old, new) in enumerate(zip(noted, path.read_bytes(), strict=True)) if old != new]
    path.write_bytes(noted[: changed[0]] + b"\xff" + noted[changed[0] + 1 :])
    assert Newest(path).revision == 2


def test_what_is_damaged_twice_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "newest"
    Newest.make(path).close()
    path.write_bytes(b"\xff" * len(path.read_bytes()))
    with pytest.raises(ValueError, match="neither of its two copies is whole"):
        Newest(path)


@pytest.mark.parametrize("left", [b"", b"short"])
def test_nor_is_what_was_cut_off(left: bytes, tmp_path: Path) -> None:
    path = tmp_path / "newest"
    path.write_bytes(left)
    with pytest.raises(ValueError):
        Newest(path)


def test_it_is_for_its_owner_alone_and_has_its_room_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "newest"
    Newest.make(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_blocks
