"""A directory of manifests as a user changes it, seen by inotify."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from podling.kubelet.static_pods.files import ManifestDirectory
from podling.model.time import SystemClock

POD = "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: c, image: i}]}}"


async def test_every_change_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "manifests"
    path.mkdir()
    write = (path / "a.yaml").write_text
    write(POD.replace("NAME", "a"))
    (path / ".hidden.yaml").write_text(POD.replace("NAME", "hidden"))
    (path / "directory").mkdir()
    following = ManifestDirectory(path, "n1", SystemClock()).follow()

    async def until(*names: str) -> None:
        async with asyncio.timeout(5):
            async for pods in following:
                if [pod.metadata.name for pod in pods] == [f"{name}-n1" for name in names]:
                    return

    await until("a")
    (path / "b.json").write_text(POD.replace("NAME", "b"))
    await until("a", "b")
    write("no pod")
    await until("b")
    (path / "new").write_text(POD.replace("NAME", "c"))
    (path / "new").rename(path / "a.yaml")
    await until("c", "b")
    (path / "b.json").unlink()
    await until("c")
    (path / "a.yaml").unlink()
    await until()
    await following.aclose()


async def test_one_file_may_be_all(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD.replace("NAME", "a"))
    (tmp_path / "other.yaml").write_text(POD.replace("NAME", "b"))
    found = ManifestDirectory(file, "n1", SystemClock()).read("")
    assert [pod.metadata.name for pod in found] == ["a-n1"]


def test_of_two_pods_of_a_name_the_first_counts(tmp_path: Path) -> None:
    for name in ("2.yaml", "1.yaml"):
        (tmp_path / name).write_text(POD.replace("NAME", "a").replace("image: i", f"image: {name}"))
    (found,) = ManifestDirectory(tmp_path, "n1", SystemClock()).read("")
    assert found.spec.containers[0].image == "1.yaml"


def test_a_directory_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert ManifestDirectory(tmp_path / "none", "n1", SystemClock()).read("") == []


async def test_what_is_no_manifest_leaves_the_others_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "good.yaml").write_text(POD.replace("NAME", "good"))
    (tmp_path / "linked").symlink_to("good.yaml")
    for name, content in {
        "deep": b"x: " + b"[" * 600,
        "itself": POD.replace("NAME", "x, managedFields: [{fieldsV1: &a {f: *a}}]").encode(),
        "number": b"x: !!int abc",
        "bytes": b"\xff",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "endless").touch()
    os.truncate(tmp_path / "endless", 1 << 42)
    os.mkfifo(tmp_path / "pipe")
    directory = ManifestDirectory(tmp_path, "n1", SystemClock())
    assert [pod.metadata.name for pod in directory.read("")] == ["good-n1"]
    assert "longer than 10485760 bytes" in caplog.text
    assert {
        Path(str(record.args[0])).name for record in caplog.records if isinstance(record.args, tuple)
    } == {*("deep", "itself", "number", "bytes", "endless")}


def test_a_file_that_becomes_a_pipe_before_it_is_read_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    directory = ManifestDirectory(tmp_path, "n1", SystemClock())
    monkeypatch.setattr(Path, "is_file", lambda file: file.name == "pipe")
    assert directory.read("") == []
