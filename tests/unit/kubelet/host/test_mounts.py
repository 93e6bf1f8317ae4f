"""The mount calls, on real mounts where the machine allows them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.kubelet.host.mounts import bind_mount, mount_tmpfs, mounts_under, unmount, unmount_under

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    unmount_under(tmp_path)


def test_the_innermost_mount_comes_first_and_escaped_names_are_read(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "1 0 0:1 / /a rw - ext4 x rw\n"
        "2 0 0:1 / /a/b\\040c rw - ext4 x rw\n"
        "3 0 0:1 / /a/b\\040c/d rw - ext4 x rw\n"
        "4 0 0:1 / /ab rw - ext4 x rw\n"
    )
    assert mounts_under(Path("/a"), table) == [Path("/a/b c/d"), Path("/a/b c"), Path("/a")]


def test_a_name_of_any_bytes_is_one_line_of_the_table(tmp_path: Path) -> None:
    """A mount that is overlooked is emptied with its pod's directory."""
    table = tmp_path / "mountinfo"
    names = [b"\xff", "\u2028".encode(), b"\x0b", b"\x1c\x85", "\u00fc".encode()]
    table.write_bytes(b"".join(b"1 0 0:1 / /a/" + name + b"\\012 rw - ext4 x rw\n" for name in names))
    assert mounts_under(Path("/a"), table) == [Path(os.fsdecode(b"/a/" + name + b"\n")) for name in names]


@needs_root
def test_a_link_to_a_mount_is_none(place: Path) -> None:
    (place / "memory").mkdir()
    mount_tmpfs(place / "memory")
    (place / "link").symlink_to("memory")
    unmount(place / "link")
    assert os.path.ismount(place / "memory")


@needs_root
def test_a_tmpfs_has_its_size_and_goes_away(place: Path) -> None:
    volume = place / "memory"
    volume.mkdir()
    mount_tmpfs(volume, 1 << 20)
    state = os.statvfs(volume)
    assert state.f_frsize * state.f_blocks == 1 << 20
    unmount(volume)
    unmount(volume)
    assert not os.path.ismount(volume)


@needs_root
def test_a_bind_mount_shows_the_source_and_may_be_read_only(place: Path) -> None:
    source, target = place / "source", place / "target"
    source.mkdir()
    target.mkdir()
    (source / "file").write_text("here")
    bind_mount(source, target, read_only=True)
    assert (target / "file").read_text() == "here"
    with pytest.raises(OSError, match="Read-only"):
        (target / "new").touch()


@needs_root
def test_mounting_on_nothing_says_what_failed(place: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mount tmpfs"):
        mount_tmpfs(place / "missing")
