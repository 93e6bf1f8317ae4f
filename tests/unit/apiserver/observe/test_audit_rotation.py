"""R-EPH-7: what is rotated out of the audit log is kept, as long as Kubernetes keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podling.apiserver.observe.audit_debugged import lines
from podling.apiserver.observe.audit_rotation import Rotation, backups, rotate

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size", "more", "max_bytes", "due"),
    [(0, 9, 4, False), (2, 2, 4, False), (2, 3, 4, True), (9, 9, 0, False)],
)
def test_when_it_is_due(size: int, more: int, max_bytes: int, due: bool) -> None:
    assert Rotation(max_bytes).is_due(size, more) is due


def rotated(path: Path, rotation: Rotation, *after: timedelta) -> list[str]:
    """What is there when the log was rotated so long after `NOW`, again and again."""
    for number, later in enumerate(after):
        path.write_text(str(number))
        rotate(path, rotation, NOW + later)
    return sorted(file.name for file in path.parent.iterdir())


def test_it_is_called_what_kubernetes_calls_it(tmp_path: Path) -> None:
    assert rotated(tmp_path / "audit.log", Rotation(), timedelta()) == ["audit-2026-01-02T03-04-05.678.log"]


def test_those_of_one_millisecond_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    assert len(rotated(path, Rotation(), *[timedelta()] * 3)) == 3
    assert [old.path.read_text() for old in sorted(backups(path))] == ["0", "1", "2"]


@pytest.mark.parametrize(("most", "kept"), [(2, "34"), (0, "01234")])
def test_the_oldest_go_when_they_are_too_many(tmp_path: Path, most: int, kept: str) -> None:
    path = tmp_path / "audit.log"
    rotated(path, Rotation(backups=most), *(timedelta(hours=n) for n in range(5)))
    assert "".join(old.path.read_text() for old in sorted(backups(path))) == kept


@pytest.mark.parametrize(("days", "kept"), [(3, "234"), (0, "01234")])
def test_those_go_that_are_too_old(tmp_path: Path, days: int, kept: str) -> None:
    path = tmp_path / "audit.log"
    rotated(path, Rotation(age=timedelta(days=days)), *(timedelta(days=n) for n in (0, 1, 2, 3, 5)))
    assert "".join(old.path.read_text() for old in sorted(backups(path))) == kept


def test_what_is_no_old_log_is_left_alone(tmp_path: Path) -> None:
    others = ["audit-mine.log", "audit-2020-01-01T00-00-00.000.txt", "other-2020-01-01T00-00-00.000.log"]
    for name in others:
        (tmp_path / name).touch()
    assert set(others) < set(rotated(tmp_path / "audit.log", Rotation(backups=1), timedelta()))


def test_old_ones_are_compressed_and_read_and_removed_like_others(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    moments = (timedelta(), timedelta(), timedelta(days=1), timedelta(days=2))
    names = rotated(path, Rotation(backups=3, compress=True), *moments)
    assert names == [
        "audit-2026-01-02T03-04-05.679.log.gz",
        "audit-2026-01-03T03-04-05.678.log.gz",
        "audit-2026-01-04T03-04-05.678.log.gz",
    ]
    path.write_text("4")
    assert list(lines(path)) == [b"1", b"2", b"3", b"4"]
