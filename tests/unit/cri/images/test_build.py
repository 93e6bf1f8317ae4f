"""Images built from files: complete, named, and the same every time."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from podling.cri.images.build import File, ImageConfig, Symlink, build_image, pause_image

_NAME = "docker.io/library/neato:1"


def _entries(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {
            member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar if member.isfile()
        }


def _layer(archive: bytes) -> tarfile.TarFile:
    entries = _entries(archive)
    (image,) = json.loads(entries["manifest.json"])
    return tarfile.open(fileobj=io.BytesIO(entries[image["Layers"][0]]))


def test_every_blob_has_the_digest_it_is_named_by() -> None:
    entries = _entries(build_image(_NAME, {"bin/server": b"program"}, ImageConfig(cmd=["/bin/server"])))
    blobs = {name: data for name, data in entries.items() if name.startswith("blobs/")}
    assert len(blobs) == 3
    for name, data in blobs.items():
        assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def test_it_is_an_oci_layout_and_a_docker_archive() -> None:
    entries = _entries(build_image(_NAME, {"a": b""}, ImageConfig(entrypoint=["/a"], env=["B=c"], user="7")))
    assert json.loads(entries["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads(entries["index.json"])["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == _NAME
    assert described["annotations"]["org.opencontainers.image.ref.name"] == "1"
    (image,) = json.loads(entries["manifest.json"])
    assert image["RepoTags"] == [_NAME]
    config = json.loads(entries[image["Config"]])
    assert config["config"] == {"Entrypoint": ["/a"], "Env": ["B=c"], "User": "7"}
    assert config["os"] == "linux"


def test_files_directories_and_links_are_what_they_were_said_to_be(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"text")
    plain.chmod(0o600)
    program = tmp_path / "program"
    program.write_bytes(b"elf")
    program.chmod(0o700)
    files: dict[str, File] = {
        "etc/app/plain": plain,
        "bin/program": program,
        "bin/link": Symlink("program"),
        "bin/script": b"#!/bin/sh",
        "tmp/": b"",
    }
    with _layer(build_image(_NAME, files, ImageConfig())) as layer:
        members = {member.name: member for member in layer}
        modes = {name: oct(member.mode) for name, member in members.items() if not member.issym()}
        assert modes == {
            "bin": "0o755",
            "bin/program": "0o755",
            "bin/script": "0o755",
            "etc": "0o755",
            "etc/app": "0o755",
            "etc/app/plain": "0o644",
            "tmp": "0o1777",
        }
        assert members["bin/link"].linkname == "program"
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in members.values()} == {(0, 0, 0, "")}


def test_the_time_of_a_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pause"
    file.write_bytes(b"program")
    first = pause_image(_NAME, file)
    os.utime(file, (1, 1))
    assert pause_image(_NAME, file) == first


_PATHS = st.dictionaries(
    st.from_regex(r"[a-z]{1,3}(/[a-z]{1,3}){0,2}", fullmatch=True), st.binary(max_size=20)
)


@given(_PATHS)
def test_every_directory_comes_before_what_is_in_it_and_once(files: dict[str, bytes]) -> None:
    with _layer(build_image(_NAME, files, ImageConfig())) as layer:
        seen: set[str] = set()
        for member in layer:
            parent = member.name.rpartition("/")[0]
            assert not parent or parent in seen
            seen.add(member.name)
        assert set(files) <= seen
        directories = [member.name for member in layer if member.isdir()]
        assert len(directories) == len(set(directories))
