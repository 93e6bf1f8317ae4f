"""What a pod was given is written down, and read again by the next kubelet (R-INIT-11)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from podling.kubelet.pod.directories import replace_file
from podling.kubelet.worker.resources import WrittenAllocation, read
from podling.model.codec.json import encode
from podling.model.quantity import Quantity
from podling.model.types.container import ResourceRequirements

ONE = ResourceRequirements(requests={"cpu": Quantity("100m")}, limits={"memory": Quantity("64Mi")})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    share = WrittenAllocation(given={"app": ONE}, whole=ONE, actuated={"id": ONE})
    replace_file(tmp_path / "pod" / "resources", encode(share))
    assert read(tmp_path / "pod" / "resources") == share
    assert [path.name for path in (tmp_path / "pod").iterdir()] == ["resources"]


def test_nothing_was_given_to_a_pod_without_a_file(tmp_path: Path) -> None:
    assert read(tmp_path / "resources") == WrittenAllocation()


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"given": 1}', b'{"given": {"app": {"limits": {"cpu": "x"}}}}']
)
def test_a_file_that_cannot_be_read_is_said_and_counts_as_none(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "resources").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert read(tmp_path / "resources") == WrittenAllocation()
    assert "cannot be read" in caplog.text
