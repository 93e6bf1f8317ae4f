"""A volume's group is set on what is in the volume, and on nothing its containers make the names lead to."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.kubelet.files.tree import Entry, walk
from podling.kubelet.volumes import set_up
from podling.kubelet.volumes.set_up import set_group
from unit.kubelet.files.hostile import Host, exchange

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving away files needs root")
TRIES = 300
GROUP = 4321


def of(path: Path) -> tuple[int, str]:
    state = path.lstat()
    return state.st_gid, f"{stat.S_IMODE(state.st_mode):o}"


@needs_root
def test_all_of_a_tree_has_the_group_and_what_the_group_may(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b").chmod(0o700)
    (tmp_path / "a/b/file").touch(mode=0o600)
    (tmp_path / "link").symlink_to("a")
    tmp_path.chmod(0o755)
    set_group(tmp_path, GROUP, read_only=True)
    assert [of(tmp_path / p) for p in ("", "a/b", "a/b/file")] == [
        (GROUP, "2755"),
        (GROUP, "2750"),
        (GROUP, "640"),
    ]
    assert of(tmp_path / "link")[0] == GROUP
    set_group(tmp_path, GROUP)
    assert [of(tmp_path / p) for p in ("a/b", "a/b/file")] == [(GROUP, "2770"), (GROUP, "660")]


@needs_root
@pytest.mark.parametrize("name", ["file", "directory"])
def test_a_name_that_becomes_a_link_before_it_is_used_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    host = Host(tmp_path / "host")
    volume = tmp_path / "volume"
    (volume / "directory").mkdir(parents=True)
    (volume / "file").touch()

    def swapped(top: int) -> Iterator[Entry]:
        for entry in walk(top):
            if entry.name == name:
                (volume / name).rename(volume.parent / "away")
                (volume / name).symlink_to(host.path / name)
            yield entry

    monkeypatch.setattr(set_up, "walk", swapped)
    set_group(volume, GROUP)
    assert (volume / name).is_symlink()
    host.assert_untouched()


@needs_root
def test_a_container_that_swaps_directory_and_link_changes_nothing_outside(tmp_path: Path) -> None:
    """Some hundred times, while names are exchanged as fast as they can be."""
    host = Host(tmp_path / "host")
    volume = tmp_path / "volume"
    (volume / "x/directory").mkdir(parents=True)
    (volume / "x/file").touch()
    (volume / "evil").symlink_to(host.path)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            exchange(volume / "x", volume / "evil")

    swapping = threading.Thread(target=swap)
    swapping.start()
    done = 0
    try:
        for _ in range(TRIES):
            try:
                set_group(volume, GROUP)
            except OSError:
                continue
            done += 1
    finally:
        over.set()
        swapping.join()
    assert done
    host.assert_untouched()
