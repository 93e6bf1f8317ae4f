"""A sub-path never leaves its volume, however it is written and whoever changes the volume meanwhile."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.files.descriptors import KEPT, Way
from podling.kubelet.files.tree import remove
from podling.kubelet.volumes.confined_path import opened
from podling.kubelet.volumes.container_mounts import check_subpath, mount_subpath
from podling.kubelet.volumes.files import VolumeError
from podling.process.mounts import unmount_under
from unit.kubelet.files.hostile import exchange

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
TRIES = 3000


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "volume"
    made.mkdir()
    made.chmod(0o777)
    yield made
    unmount_under(tmp_path)
    # Some are deeper than pytest can remove.
    remove(made)


def path_of(descriptor: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


@pytest.mark.parametrize(
    ("link", "sub_path"),
    [
        ("../outside", "link"),
        ("../outside", "link/file"),
        ("/", "link/etc"),
        ("//", "link/etc"),
        ("//etc", "link"),
        ("deep/../../outside", "link"),
        (".", "link/../.."),
        ("deep", "../outside"),
        ("deep", "/etc"),
        ("deep", "//etc"),
    ],
)
def test_a_path_that_leads_out_is_refused_and_nothing_is_made_outside(
    volume: Path, link: str, sub_path: str
) -> None:
    (volume / "link").symlink_to(link)
    (volume / "deep").mkdir()
    with (
        pytest.raises(VolumeError, match=f"subpath {sub_path} not within volume path"),
        opened(volume, sub_path),
    ):
        pass
    assert not (volume.parent / "outside").exists()


def test_links_inside_are_followed_and_what_is_missing_is_made_as_open_as_the_volume(volume: Path) -> None:
    (volume / "real/deeper").mkdir(parents=True)
    (volume / "link").symlink_to("real/deeper")
    (volume / "real/deeper/up").symlink_to("../../made")
    with opened(volume, "link/up/a") as found:
        assert path_of(found) == volume / "made/a"
    assert stat.S_IMODE((volume / "made").stat().st_mode) == 0o777
    assert stat.S_IMODE((volume / "made/a").stat().st_mode) == 0o777


def test_links_in_circles_end(volume: Path) -> None:
    (volume / "a").symlink_to("b")
    (volume / "b").symlink_to("a")
    with pytest.raises(VolumeError, match="too many levels of symbolic links"), opened(volume, "a"):
        pass


def test_no_descriptor_is_left_open(volume: Path) -> None:
    (volume / "link").symlink_to("../..")
    before = len(os.listdir("/proc/self/fd"))
    with opened(volume, "a/b/c"):
        pass
    with pytest.raises(VolumeError), opened(volume, "a/b/../../link"):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_long_sub_path_needs_no_more_descriptors_than_a_short_one(volume: Path) -> None:
    """All pods share those of one process."""
    before = len(os.listdir("/proc/self/fd"))
    (volume / "up").symlink_to("a/../" * 800 + "a")
    with opened(volume, "a/" * 800 + "../" * 790 + "b"), opened(volume, "up/" + "a/" * 1900 + "c"):
        assert len(os.listdir("/proc/self/fd")) <= before + 2 * KEPT + 1
    assert (volume / "a/a/a/a/a/a/a/a/a/a/b").is_dir()
    with pytest.raises(OSError, match="File name too long"), opened(volume, "a/" * 2048):
        pass


def test_a_sub_path_with_a_zero_byte_is_refused(volume: Path) -> None:
    with pytest.raises(VolumeError, match="zero byte"), opened(volume, "a\0b"):
        pass


def test_a_deep_directory_moved_while_it_is_walked_leads_nowhere_else(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up from it is another directory than the one it was found in."""
    (volume / "elsewhere").mkdir()

    def move(way: Way) -> None:
        if (volume / "a").exists() and not (volume / "elsewhere/a").exists():
            (volume / ("a/" * 50)).rename(volume / "elsewhere/a")
        real(way)

    real = Way.up
    monkeypatch.setattr(Way, "up", move)
    with pytest.raises(OSError, match="moved"), opened(volume, "a/" * (100 + KEPT // 2) + "../" * 100):
        pass


NAMES = st.sampled_from(["a", "b", "c", "..", ".", "link", "out", "top"])


@given(st.lists(NAMES, min_size=1, max_size=8), st.lists(NAMES, min_size=1, max_size=4))
def test_any_path_over_any_link_stays_inside_or_is_refused(path: list[str], target: list[str]) -> None:
    with tempfile.TemporaryDirectory() as root:
        volume = Path(root).resolve() / "volume"
        (volume / "a/b").mkdir(parents=True)
        for at, to in (("link", "/".join(target)), ("a/out", "../../outside"), ("a/b/top", "../..")):
            (volume / at).symlink_to(to)
        try:
            with opened(volume, "/".join(path)) as found:
                assert path_of(found).is_relative_to(volume)
        except VolumeError:
            pass
        assert os.listdir(root) == ["volume"]


@needs_root
def test_a_container_that_swaps_directory_and_link_gets_nothing_from_outside(volume: Path) -> None:
    """The race of CVE-2017-1002101 and CVE-2021-25741, some thousand times."""
    outside = volume.parent / "secret"
    (outside / "sub").mkdir(parents=True)
    (volume / "x/sub").mkdir(parents=True)
    (volume / "evil").symlink_to("/")
    (volume / "evil2").symlink_to(f"../{outside.name}")
    forbidden = {(s.st_dev, s.st_ino) for s in (os.stat("/"), outside.stat(), (outside / "sub").stat())}
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for evil in ("evil", "evil2"):
                exchange(volume / "x", volume / evil)
                exchange(volume / "x", volume / evil)

    swapping = threading.Thread(target=swap)
    swapping.start()
    refused = mounted = 0
    place = volume.parent / "subpaths/0"
    try:
        for i in range(TRIES):
            try:
                mount_subpath(volume, "x/sub" if i % 2 else "x", place)
            except (VolumeError, OSError):
                refused += 1
                continue
            mounted += 1
            at = place.stat()
            assert (at.st_dev, at.st_ino) not in forbidden
    finally:
        over.set()
        swapping.join()
    assert mounted and refused
    assert os.listdir(outside) == ["sub"] and not os.path.exists("/sub")


@needs_root
def test_a_sub_path_is_bound_once_and_again_when_it_has_become_another(volume: Path) -> None:
    """As when a container restarts after its ConfigMap has changed."""
    place = volume.parent / "subpaths/0"
    (volume / "file").write_text("one")
    assert mount_subpath(volume, "file", place).read_text() == "one"
    mount_subpath(volume, "file", place)
    (volume / "new").write_text("two")
    (volume / "new").rename(volume / "file")
    assert place.read_text() == "one"
    assert mount_subpath(volume, "file", place).read_text() == "two"
    (volume / "file").unlink()
    assert mount_subpath(volume, "file", place).is_dir()
    table = Path("/proc/self/mountinfo").read_text()
    assert table.count(f" {place} ") == 1


@pytest.mark.parametrize(
    ("sub_path", "why"),
    [
        ("/etc", "error SubPath `/etc` must not be an absolute path"),
        ("a/../b", "unable to provision SubPath `a/../b`: must not contain '..'"),
    ],
)
def test_what_an_expression_may_not_become(sub_path: str, why: str) -> None:
    with pytest.raises(VolumeError) as fault:
        check_subpath(sub_path)
    assert str(fault.value) == why
