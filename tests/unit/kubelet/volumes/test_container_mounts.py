"""What a container is told to mount, for each way a volume mount can be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.kubelet.pod.actions import StartContainer
from podling.kubelet.pod.containers import ConfigError, ContainerType
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes.container_mounts import MountSources, container_devices, container_mounts
from podling.kubelet.volumes.set_up import MountedVolume
from podling.model.types.container import Container, VolumeDevice, VolumeMount

START = StartContainer("app", ContainerType.REGULAR)
VOLUMES = {
    "v": MountedVolume(Path("/host/v")),
    "config": MountedVolume(Path("/host/config"), read_only=True),
    "image": MountedVolume(Path("/host/image"), sealed=True),
}


def mounts(tmp_path: Path, container: Container, **known: Any) -> list[pb.Mount]:
    directory = PodDirectory(tmp_path / "pods", tmp_path / "logs", "ns", "web", "u")
    sources = MountSources(directory, VOLUMES, {"NAME": "web", "UP": "../..", "ROOT": "/etc"}, **known)
    container.termination_message_path = ""
    return container_mounts(container, START, sources)


def one(tmp_path: Path, mount: VolumeMount, **known: Any) -> pb.Mount:
    [made] = mounts(tmp_path, Container(name="app", volume_mounts=[mount]), **known)
    return made


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ({}, {}),
        ({"mount_path": "relative"}, {"container_path": "/relative"}),
        ({"read_only": True}, {"readonly": True}),
        ({"name": "config"}, {"host_path": "/host/config", "readonly": True}),
        ({"name": "image", "read_only": True}, {"host_path": "/host/image", "readonly": False}),
        ({"mount_propagation": "None"}, {"propagation": pb.PROPAGATION_PRIVATE}),
        ({"mount_propagation": "HostToContainer"}, {"propagation": pb.PROPAGATION_HOST_TO_CONTAINER}),
        ({"mount_propagation": "Bidirectional"}, {"propagation": pb.PROPAGATION_BIDIRECTIONAL}),
    ],
)
def test_a_volume_mount(tmp_path: Path, mount: dict[str, Any], expected: dict[str, Any]) -> None:
    made = one(tmp_path, VolumeMount(**{"name": "v", "mount_path": "/data", **mount}))
    assert made == pb.Mount(**{"host_path": "/host/v", "container_path": "/data", **expected})


READ_ONLY: dict[str, Any] = {"name": "v", "mount_path": "/data", "read_only": True}


@pytest.mark.parametrize(
    ("asked", "possible", "recursive"),
    [
        (None, True, False),
        ("Disabled", True, False),
        ("IfPossible", True, True),
        ("IfPossible", False, False),
        ("Enabled", True, True),
    ],
)
def test_recursive_read_only(tmp_path: Path, asked: str | None, possible: bool, recursive: bool) -> None:
    mount = VolumeMount(**READ_ONLY, recursive_read_only=asked)
    assert one(tmp_path, mount, recursive_read_only=possible).recursive_read_only is recursive


@pytest.mark.parametrize(
    ("mount", "why"),
    [
        ({"recursive_read_only": "Enabled"}, "it is not supported by the runtime"),
        ({"recursive_read_only": "Enabled", "read_only": False}, "it is not read-only"),
        (
            {"recursive_read_only": "Enabled", "mount_propagation": "Bidirectional"},
            'it is not compatible with propagation "Bidirectional"',
        ),
        ({"sub_path_expr": "$(NONE)"}, "missing value for NONE"),
        ({"sub_path_expr": "a/$(UP)"}, "unable to provision SubPath `a/../..`: must not contain '..'"),
        ({"sub_path_expr": "$(ROOT)"}, "error SubPath `/etc` must not be an absolute path"),
        ({"sub_path": "x"}, 'failed to prepare subPath for volumeMount "v" of container "app"'),
        ({"name": "other"}, 'cannot find volume "other" to mount into container "app"'),
    ],
)
def test_what_cannot_be_mounted_is_refused_in_kubernetes_words(
    tmp_path: Path, mount: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError) as fault:
        one(tmp_path, VolumeMount(**{**READ_ONLY, **mount}))
    assert str(fault.value).endswith(why)


@pytest.mark.parametrize(("read_only", "permissions"), [(False, "mrw"), (True, "r")])
def test_a_block_volume_is_a_device(tmp_path: Path, read_only: bool, permissions: str) -> None:
    container = Container(name="app", volume_devices=[VolumeDevice(name="disk", device_path="/dev/x")])
    volume = MountedVolume(Path("/dev/sdb"), read_only, device=True)
    sources = MountSources(PodDirectory(tmp_path, tmp_path, "ns", "web", "u"), {"disk": volume}, {})
    assert container_devices(container, sources) == [
        pb.Device(container_path="/dev/x", host_path="/dev/sdb", permissions=permissions)
    ]
    mounting = Container(name="app", volume_mounts=[VolumeMount(name="disk", mount_path="/m")])
    with pytest.raises(ConfigError, match='cannot find volume "disk" to mount into container "app"'):
        container_mounts(mounting, START, sources)


@pytest.mark.parametrize("volumes", [{}, VOLUMES])
def test_what_is_no_device_is_not_passed_on(tmp_path: Path, volumes: dict[str, MountedVolume]) -> None:
    container = Container(name="app", volume_devices=[VolumeDevice(name="v", device_path="/dev/x")])
    sources = MountSources(PodDirectory(tmp_path, tmp_path, "ns", "web", "u"), volumes, {})
    with pytest.raises(ConfigError, match='cannot find volume "v" to pass into container "app"'):
        container_devices(container, sources)


def test_a_runtime_that_mounts_images_is_told_image_and_path(tmp_path: Path) -> None:
    """R-VOL-2"""
    mount = VolumeMount(name="image", mount_path="/tools", sub_path_expr="bin/$(NAME)")
    made = one(tmp_path, mount, images={"image": "sha256:1"})
    expected = pb.Mount(container_path="/tools", image=pb.ImageSpec(image="sha256:1"))
    expected.image_sub_path = "bin/web"
    assert made == expected
