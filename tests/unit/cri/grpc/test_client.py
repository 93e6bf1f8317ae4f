"""What a runtime is taken to be able to do by its name and version."""

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.client import mounts_images


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("containerd", "1.6.20~ds1", False),
        ("containerd", "v1.7.27", False),
        ("containerd", "v2.0.5", False),
        ("containerd", "v2.1.0-rc.1", True),
        ("containerd", "3.0", True),
        ("containerd", "", False),
        ("cri-o", "1.31.0", True),
    ],
)
def test_who_mounts_images(name: str, version: str, expected: bool) -> None:
    """R-VOL-2"""
    assert mounts_images(pb.VersionResponse(runtime_name=name, runtime_version=version)) is expected
