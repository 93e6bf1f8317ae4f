"""Trees of any depth and size are walked and removed, with everything outside of them left alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.kubelet.files import tree
from podling.kubelet.files.descriptors import DIRECTORY, KEPT
from podling.kubelet.files.tree import Entry, make_directories, remove, walk
from podling.process.mounts import mount_tmpfs, unmount_under
from unit.kubelet.files.hostile import DEPTH, HOSTILE, Host, exchange

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() == 0:
        # In memory: a disk takes its time to remove so many directories.
        mount_tmpfs(tmp_path)
    made = tmp_path / "top"
    made.mkdir()
    yield made
    unmount_under(tmp_path)
    remove(made)


def walked(top: Path, *, forgiving: bool = False) -> Iterator[Entry]:
    found = os.open(top, DIRECTORY)
    try:
        yield from walk(found, forgiving=forgiving)
    finally:
        os.close(found)


def test_a_directory_comes_after_what_is_in_it(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").touch()
    (top / "link").symlink_to("a")
    names = [entry.name for entry in walked(top)]
    assert sorted(names) == ["a", "b", "file", "link"]
    assert names.index("file") < names.index("b") < names.index("a")


def open_in(top: Path) -> int:
    """Descriptors of this process that lead into a tree; others come and go meanwhile."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{number}").startswith(str(top))
        except OSError as error:
            # Nothing else is so deep that its path cannot be told.
            count += error.errno == errno.ENAMETOOLONG
    return count


def test_no_depth_takes_more_descriptors_and_none_is_left_open(top: Path) -> None:
    HOSTILE["deep directories"](top / "x", top)
    most = count = 0
    for count, _ in enumerate(walked(top), 1):
        if count % 100 == 0:
            most = max(most, open_in(top))
    assert count == DEPTH + 1
    assert 0 < most <= KEPT + 3
    assert open_in(top) == 0
    remove(top)
    assert not top.exists() and open_in(top) == 0


@needs_root
def test_nothing_behind_a_mount_is_removed_and_its_place_is_named(top: Path) -> None:
    host = Host(top.parent / "host")
    (top / "a").mkdir()
    for hostile in ("mount of the host", "mount in a mount", "mount named in no encoding"):
        HOSTILE[hostile](top / "a" / hostile, host.path)
    with pytest.raises(OSError) as fault:
        remove(top)
    assert fault.value.errno == errno.EBUSY
    host.assert_untouched()
    unmount_under(top)
    remove(top)
    assert not top.exists()


@needs_root
def test_a_mount_point_itself_is_not_emptied(top: Path) -> None:
    host = Host(top.parent / "host")
    HOSTILE["mount of the host"](top / "m", host.path)
    with pytest.raises(OSError) as fault:
        remove(top / "m")
    assert fault.value.errno == errno.EBUSY
    host.assert_untouched()


def test_a_link_is_no_directory_to_remove(top: Path) -> None:
    host = Host(top.parent / "host")
    (top / "link").symlink_to(host.path)
    with pytest.raises(OSError):
        remove(top / "link")
    host.assert_untouched()
    remove(top / "none")


@pytest.mark.parametrize("name", ["file", "directory"])
def test_a_name_that_becomes_a_link_before_it_is_removed_leads_nowhere(
    top: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    host = Host(top.parent / "host")
    (top / "directory").mkdir()
    (top / "file").touch()
    real = tree.walk

    def swapped(found: int) -> Iterator[Entry]:
        for entry in real(found):
            if entry.name == name:
                (top / name).rename(top.parent / "away")
                (top / name).symlink_to(host.path / name)
            yield entry

    monkeypatch.setattr(tree, "walk", swapped)
    try:
        remove(top)
    except NotADirectoryError:
        assert name == "directory"
    host.assert_untouched()


@needs_root
def test_a_directory_that_becomes_a_link_before_it_is_entered_is_not_entered(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(top.parent / "host")
    (top / "x").mkdir()
    (top.parent / "evil").symlink_to(host.path)
    real = tree._opened

    def swapped(above: int, name: str, mount: int) -> int:
        if name == "x":
            exchange(top / "x", top.parent / "evil")
        return real(above, name, mount)

    monkeypatch.setattr(tree, "_opened", swapped)
    assert "file" not in {entry.name for entry in walked(top, forgiving=True)}
    exchange(top / "x", top.parent / "evil")
    with pytest.raises(OSError):
        remove(top)
    host.assert_untouched()


def test_directories_are_made_however_many_they_are(top: Path) -> None:
    deep = top / ("a/" * 1500)
    make_directories(deep)
    make_directories(deep)
    assert deep.is_dir()
    with pytest.raises(OSError, match="File name too long"):
        make_directories(top / ("b/" * 500_000))
    assert not (top / "b").exists()
