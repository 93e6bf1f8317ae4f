"""Reading archives, ours and others', whole and broken."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from podling.cri.images.archive import LONGEST_DESCRIPTION, ImageArchiveError, open_archive
from podling.cri.images.build import ImageConfig, build_image, digest_of

Mode = Literal["w", "w:gz", "w:xz"]


def _archive(path: Path, entries: dict[str, bytes], mode: Mode = "w") -> Path:
    with tarfile.open(path, mode) as tar:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def test_what_was_built_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(build_image("a.test/b:1", {"x": b"y"}, ImageConfig()))
    with open_archive(path) as archive:
        assert archive.names() == ["a.test/b:1"]
        media_type, manifest = archive.manifest()
        assert media_type == "application/vnd.oci.image.manifest.v1+json"
        described = json.loads(manifest)
        for part in [described["config"], *described["layers"]]:
            assert digest_of(archive.blob(part["digest"])) == part["digest"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_names_of_docker_archives_compressed_or_not(tmp_path: Path, mode: Mode) -> None:
    images = [{"RepoTags": ["a:1", "a:latest"]}, {"RepoTags": None}, {"RepoTags": ["b:1"]}]
    path = _archive(tmp_path / "image", {"manifest.json": json.dumps(images).encode()}, mode)
    with open_archive(path) as archive:
        assert archive.names() == ["a:1", "a:latest", "b:1"]


def test_names_of_oci_layouts(tmp_path: Path) -> None:
    manifests = [{"annotations": {"io.containerd.image.name": "a.test/b:1"}}, {}]
    path = _archive(tmp_path / "image", {"./index.json": json.dumps({"manifests": manifests}).encode()})
    with open_archive(path) as archive:
        assert archive.names() == ["a.test/b:1"]


@pytest.mark.parametrize("data", [b"", b"not a tar", b"\x1f\x8c broken"])
def test_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    with pytest.raises(ImageArchiveError) as refused, open_archive(path):
        pass
    assert str(refused.value) == f"{path} is no image archive: it is no tar, compressed or not"


def test_one_that_is_cut_short_is_said_to_be(tmp_path: Path) -> None:
    path = _archive(tmp_path / "image", {"other": bytes(range(256)) * 4096, "index.json": b"{}"}, "w:gz")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ImageArchiveError, match=f"{path} is damaged or cut short"), open_archive(path):
        pass


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"index.json": b"{"},
        {"index.json": b"\xff"},
        {"index.json": b'{"manifests": [{"annotations": {"a": "\xff"}}]}'},
        {"index.json": b"null"},
        {"index.json": b"{}"},
        {"index.json": b'{"manifests": [null]}'},
        {"index.json": b'{"manifests": [{"annotations": {"io.containerd.image.name": 1}}]}'},
        {"index.json": b'{"x": ' + b"[" * 100_000},
        {"index.json": b" " * LONGEST_DESCRIPTION + b'{"manifests": []}'},
        {"manifest.json": b'[{"RepoTags": 5}]'},
        {"manifest.json": b"{}"},
    ],
    ids=range(12),
)
def test_an_archive_that_lacks_its_index_is_refused(tmp_path: Path, entries: dict[str, bytes]) -> None:
    path = _archive(tmp_path / "image", {"other": b"", **entries})
    with pytest.raises(ImageArchiveError) as refused, open_archive(path) as archive:
        archive.names()
    assert str(path) in str(refused.value)


def test_links_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    outside, image = tmp_path / "outside", tmp_path / "image"
    outside.write_text('{"manifests": []}')
    for kind, target in (
        (tarfile.SYMTYPE, "index.json"),
        (tarfile.SYMTYPE, str(outside)),
        (tarfile.LNKTYPE, "x"),
    ):
        with tarfile.open(image, "w") as tar:
            member = tarfile.TarInfo("index.json")
            member.type, member.linkname = kind, target
            tar.addfile(member)
        with (
            pytest.raises(ImageArchiveError, match=r"neither manifest|no index"),
            open_archive(image) as archive,
        ):
            archive.names()


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    path = _archive(tmp_path / "image", {"index.json": b'{"manifests": []}'})
    with pytest.raises(ImageArchiveError, match="blobs/sha256/beef"), open_archive(path) as archive:
        archive.blob("sha256:beef")
