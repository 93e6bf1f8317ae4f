"""Whatever a container puts where the kubelet expects something else: the kubelet is done soon, or says why
not, and nothing of the host is another afterwards.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podling.kubelet.cri_config.environment import FileKey
from podling.kubelet.files.descriptors import open_regular
from podling.kubelet.host.disk import used
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes.container_mounts import mount_subpath
from podling.kubelet.volumes.env_files import read_env_files
from podling.kubelet.volumes.files import VolumeError
from podling.kubelet.volumes.set_up import MountedVolume, set_group
from podling.process.mounts import mount_tmpfs, unmount_under
from unit.kubelet.files.hostile import HOSTILE, Host

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="devices and mounts need root")
SOON = 60.0
"""Seconds; what waits for a pipe, or reads what has no end, takes longer."""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[PodDirectory]:
    # In memory: a disk takes its time to remove so many directories.
    mount_tmpfs(tmp_path)
    made = PodDirectory(tmp_path / "pods", tmp_path / "logs", "ns", "web", "u")
    made.volume("empty-dir", "v").mkdir(parents=True)
    yield made
    unmount_under(tmp_path)


def measure(directory: PodDirectory) -> None:
    found = used(directory.volume("empty-dir", "v"))
    assert found.inodes < 20_000 and found.size < 1 << 30


def own(directory: PodDirectory) -> None:
    set_group(directory.volume("empty-dir", "v"), 4321)


def bind(directory: PodDirectory) -> None:
    mount_subpath(directory.volume("empty-dir", "v"), "x", directory.subpath("v", "c", 0))


def read_variables(directory: PodDirectory) -> None:
    volumes = {"v": MountedVolume(directory.volume("empty-dir", "v"))}
    read_env_files([FileKey("v", "x", "KEY")], volumes)


def read(directory: PodDirectory) -> None:
    with open_regular(directory.volume("empty-dir", "v") / "x") as file:
        file.read(100)


def remove_volumes(directory: PodDirectory) -> None:
    with suppress(OSError, VolumeError):
        bind(directory)
    directory.remove_volumes()
    assert not directory.volumes.exists()


def remove(directory: PodDirectory) -> None:
    directory.remove()
    assert not directory.path.exists()


MAY_REFUSE = (measure, own, bind, read_variables, read)
MUST_DO = (remove_volumes, remove)


@pytest.mark.parametrize("walker", [*MAY_REFUSE, *MUST_DO])
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_host_is_left_alone_and_the_walk_ends(
    directory: PodDirectory, tmp_path: Path, kind: str, walker: Callable[[PodDirectory], None]
) -> None:
    host = Host(tmp_path / "host")
    HOSTILE[kind](directory.volume("empty-dir", "v") / "x", host.path)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            walker(directory)
        except BaseException as error:
            raised.append(error)

    walking = threading.Thread(target=run, daemon=True)
    walking.start()
    walking.join(SOON)
    assert not walking.is_alive()
    assert all(walker in MAY_REFUSE and isinstance(error, OSError | VolumeError) for error in raised), raised
    host.assert_untouched()
