"""The files of a volume that variables are taken from: found as by one who has the volume for its root."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from podling.kubelet.cri_config.environment import FileKey, FoundInFile
from podling.kubelet.volumes.env_files import read_env_files
from podling.kubelet.volumes.set_up import MountedVolume


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "outside.env").write_text("K='outside'\n")
    made = tmp_path / "volume"
    (made / "deep").mkdir(parents=True)
    (made / "deep/file.env").write_text("K='inside'\n")
    return made


def read(volume: Path, path: str, name: str = "K") -> FoundInFile:
    key = FileKey("v", path, name)
    return read_env_files([key], {"v": MountedVolume(volume)})[key]


@pytest.mark.parametrize("path", ["deep/file.env", "/deep/file.env", "./deep//file.env"])
def test_a_key_is_read_where_the_file_has_it(volume: Path, path: str) -> None:
    assert read(volume, path) == FoundInFile(str(volume / "deep/file.env"), "inside")
    assert read(volume, path, "OTHER") == FoundInFile(str(volume / "deep/file.env"), "")


def test_a_volume_that_is_not_there_has_no_keys() -> None:
    assert read_env_files([FileKey("v", "a", "K")], {}) == {}


@pytest.mark.parametrize(
    "target",
    ["deep/file.env", "/deep/file.env", "//deep/file.env", "../deep/file.env", "/../../deep/file.env"],
)
def test_links_never_leave_the_volume(volume: Path, target: str) -> None:
    (volume / "link").symlink_to(target)
    assert read(volume, "link").value == "inside"


@pytest.mark.parametrize(
    "target", ["../outside.env", "{outside}", "/{outside}", "link", "gone/../deep/file.env"]
)
def test_what_is_outside_is_not_there(volume: Path, target: str, caplog: pytest.LogCaptureFixture) -> None:
    (volume / "link").symlink_to(target.format(outside=volume.parent / "outside.env"))
    with caplog.at_level(logging.WARNING):
        assert read(volume, "link").value is None
    assert f"cannot take variables from {volume}/link" in caplog.text


def test_what_is_missing_or_no_file_is_told_from_an_empty_file(volume: Path) -> None:
    os.mkfifo(volume / "pipe")
    (volume / "empty").touch()
    (volume / "wrong").write_text("K=v\n")
    assert [read(volume, name).value for name in ("none/none", "deep", "pipe", "wrong")] == [None] * 4
    assert read(volume, "empty").value == ""
    assert not (volume / "none").exists()
