"""Finding mounts below a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.cri.mounts import mounts_under

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


def test_mounts_below_come_in_the_order_they_can_be_taken_away(table: Path) -> None:
    assert mounts_under(Path("/run/podling"), table) == [
        Path("/run/podling/rootfs/a b"),
        Path("/run/podling/rootfs"),
        Path("/run/podling/shm"),
    ]


def test_a_directory_that_only_begins_alike_is_another(table: Path) -> None:
    assert mounts_under(Path("/run/podling-other"), table) == [Path("/run/podling-other")]


def test_this_machine_has_a_root() -> None:
    assert Path("/") in mounts_under(Path("/"))
