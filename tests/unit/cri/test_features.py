"""What a runtime is taken to be able to do by what it says, its name and its version."""

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.interface import mounts_images, told_features


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


def test_a_runtime_is_believed_what_it_says_of_its_handlers() -> None:
    """R-SYS-2"""

    def handler(name: str, *, recursive: bool = False, users: bool = False) -> pb.RuntimeHandler:
        can = pb.RuntimeHandlerFeatures(recursive_read_only_mounts=recursive, user_namespaces=users)
        return pb.RuntimeHandler(name=name, features=can)

    handlers = [handler("", recursive=True, users=True), handler("runc", recursive=True), handler("kata")]
    status = pb.StatusResponse(
        runtime_handlers=handlers, features=pb.RuntimeFeatures(supplemental_groups_policy=True)
    )
    found = told_features(pb.VersionResponse(runtime_name="cri-o"), status)
    assert found.handlers == {"", "runc", "kata"}
    assert found.recursive_read_only == {"", "runc"}
    assert found.user_namespaces == {""}
    assert found.groups_policy


def test_a_runtime_that_says_nothing_can_nothing() -> None:
    """R-SYS-2: containerd 1.6"""
    version = pb.VersionResponse(runtime_name="containerd", runtime_version="1.6.20~ds1")
    found = told_features(version, pb.StatusResponse())
    assert not (found.handlers or found.recursive_read_only or found.user_namespaces)
    assert not (found.mounts_images or found.groups_policy)
