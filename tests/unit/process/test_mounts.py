"""The kernel's table of mounts, with names of any bytes in it, and the calls on real mounts where the machine
allows them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.process.mounts import (
    Mounted,
    bind_mount,
    mount_tmpfs,
    mounts_under,
    overlay_works,
    read_mounts,
    unmount,
    unmount_under,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

_MOUNTINFO = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:30 / /run/podling/shm rw - tmpfs shm rw
41 22 0:31 / /run/podling/rootfs rw - overlay overlay rw
42 41 0:32 / /run/podling/rootfs/a\\040b rw - tmpfs tmpfs rw
43 22 0:33 / /run/podling-other rw - tmpfs tmpfs rw
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    written = tmp_path / "mountinfo"
    written.write_text(_MOUNTINFO)
    return written


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    unmount_under(tmp_path)


def test_place_kind_and_options_of_the_file_system(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "30 25 0:26 / /sys/fs/cgroup/memory rw shared:1 master:2 - cgroup none rw,memory\n"
    )
    assert read_mounts(table) == [
        Mounted(Path("/"), "ext4", ("rw",)),
        Mounted(Path("/sys/fs/cgroup/memory"), "cgroup", ("rw", "memory")),
    ]


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (rb"/a\040b\011c\012d\134e", b"/a b\tc\nd\\e"),
        (b"/\xfcber", b"/\xfcber"),
        ("/\u00fcber\u2028\u0085".encode(), "/\u00fcber\u2028\u0085".encode()),
        (b"/\x0b\x0c\x1c\r", b"/\x0b\x0c\x1c\r"),
    ],
)
def test_a_name_of_any_bytes_is_one_line(tmp_path: Path, written: bytes, place: bytes) -> None:
    """Or podling does not start where somebody has mounted such a thing, or overlooks it."""
    table = tmp_path / "mountinfo"
    table.write_bytes(b"1 0 0:1 / " + written + b" rw - tmpfs tmpfs rw\n")
    assert read_mounts(table) == [Mounted(Path(os.fsdecode(place)), "tmpfs", ("rw",))]


def test_this_machine_has_a_root() -> None:
    assert Path("/") in {mounted.place for mounted in read_mounts()}
    assert Path("/") in mounts_under(Path("/"))


def test_mounts_below_come_in_the_order_they_can_be_taken_away(table: Path) -> None:
    assert mounts_under(Path("/run/podling"), table) == [
        Path("/run/podling/rootfs/a b"),
        Path("/run/podling/rootfs"),
        Path("/run/podling/shm"),
    ]


def test_a_directory_that_only_begins_alike_is_another(table: Path) -> None:
    assert mounts_under(Path("/run/podling-other"), table) == [Path("/run/podling-other")]


def test_the_newest_mount_comes_first_and_escaped_names_are_read(tmp_path: Path) -> None:
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
    assert mounts_under(Path("/a"), table) == [
        Path(os.fsdecode(b"/a/" + name + b"\n")) for name in reversed(names)
    ]


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


@pytest.mark.parametrize(
    ("taken", "asked"),
    [({",volatile"}, [",volatile"]), ({""}, [",volatile", ""]), (set[str](), [",volatile", ""])],
    ids=["since Linux 5.10", "before", "nowhere"],
)
def test_a_trial_of_overlays_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: set[str], asked: list[str]
) -> None:
    tried: list[str] = []

    def layers(base: Path) -> str:
        return f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"

    def mount(_kind: str, target: Path, _flags: int, options: str) -> int:
        tried.append(options.removeprefix(layers(target.parent)))
        return 0 if tried[-1] in taken else -1

    monkeypatch.setattr("podling.process.mounts._mount", mount)
    assert overlay_works(tmp_path) == bool(taken)
    assert tried == asked
