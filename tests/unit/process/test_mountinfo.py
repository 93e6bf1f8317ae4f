"""The kernel's table of mounts, with names of any bytes in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podling.process.mountinfo import Mounted, read_mounts


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
