"""Who may use an image that is there, also after the kubelet was started anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.images.images import PulledImages

ANN, JOE = (pb.AuthConfig(username=name, password="secret") for name in ("ann", "joe"))

USE = [
    # pulled by       used by         allowed
    ([],              [],             True),
    ([],              [JOE],          True),
    ([JOE],           [],             False),
    ([JOE],           [ANN],          False),
    ([JOE],           [ANN, JOE],     True),
    ([JOE, ANN],      [ANN],          True),
    ([JOE, None],     [],             True),
    ([None, JOE],     [],             True),
]  # fmt: skip


@pytest.mark.parametrize(("pulled_by", "used_by", "allowed"), USE)
def test_whoever_could_have_pulled_it(
    tmp_path: Path, pulled_by: list[pb.AuthConfig | None], used_by: list[pb.AuthConfig], allowed: bool
) -> None:
    images = PulledImages(tmp_path / "images" / "pulled.json")
    for credential in pulled_by:
        images.pulled("sha256:1", credential)
    for known in (images, PulledImages(tmp_path / "images" / "pulled.json")):
        assert known.usable("sha256:1", used_by) is allowed
        assert known.usable("sha256:2", used_by)


def test_no_credential_is_in_the_file(tmp_path: Path) -> None:
    PulledImages(tmp_path / "pulled.json").pulled("sha256:1", JOE)
    assert b"secret" not in (tmp_path / "pulled.json").read_bytes()


def test_a_broken_file_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "pulled.json").write_text("{")
    assert PulledImages(tmp_path / "pulled.json").usable("sha256:1", [])
