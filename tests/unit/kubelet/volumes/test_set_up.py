"""Every kind of volume is set up where the runtime can mount it, and again after a restart of the kubelet."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podling.kubelet.files.tree import remove
from podling.kubelet.pod.directories import PodDirectory
from podling.kubelet.volumes.host import empty_dir_size
from podling.kubelet.volumes.objects import Objects
from podling.kubelet.volumes.set_up import Layout, MountedVolume, SetUpError, set_up_volumes, update_volumes
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSecurityContext, PodSpec
from podling.model.types.volume import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    KeyToPath,
    SecretVolumeSource,
    Volume,
)
from podling.model.types.volume_drivers import NFSVolumeSource

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting and giving away files need root")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
NODE_MEMORY = 8 << 20
OBJECTS = Objects(
    {"cm": ConfigMap(metadata=ObjectMeta(name="cm"), data={"k": "v"})},
    {"s": Secret(metadata=ObjectMeta(name="s"), data={"k": b"v"})},
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[PodDirectory]:
    made = PodDirectory(tmp_path / "pods", tmp_path / "logs", "ns", "web", "u")
    yield made
    made.remove()
    # Some are deeper than pytest can remove.
    remove(tmp_path / "host")


def set_up(
    directory: PodDirectory, *volumes: Volume, fs_group: int | None = None
) -> dict[str, MountedVolume]:
    context = PodSecurityContext(fs_group=fs_group) if fs_group else None
    pod = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(volumes=list(volumes), security_context=context))
    return set_up_volumes(Layout(pod, directory, OBJECTS, lambda selector: "", NOW, NODE_MEMORY))


def test_an_empty_dir_is_open_to_all_and_keeps_its_content(directory: PodDirectory) -> None:
    volume = Volume(name="work", empty_dir=EmptyDirVolumeSource())
    mounted = set_up(directory, volume)["work"]
    assert mounted == MountedVolume(directory.path / "volumes/kubernetes.io~empty-dir/work")
    assert stat.S_IMODE(mounted.path.stat().st_mode) == 0o777
    (mounted.path / "file").write_text("kept")
    set_up(directory, volume)
    assert (mounted.path / "file").read_text() == "kept"


@needs_root
def test_a_memory_empty_dir_is_a_tmpfs_of_its_size_mounted_once(directory: PodDirectory) -> None:
    volume = Volume(name="m", empty_dir=EmptyDirVolumeSource(medium="Memory", size_limit=Quantity("1Mi")))
    path = set_up(directory, volume)["m"].path
    (path / "file").write_text("kept")
    set_up(directory, volume)
    assert (path / "file").read_text() == "kept"
    assert os.statvfs(path).f_frsize * os.statvfs(path).f_blocks == 1 << 20
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


@needs_root
def test_secrets_are_in_memory_and_config_maps_on_disk_both_read_only(directory: PodDirectory) -> None:
    mounted = set_up(
        directory,
        Volume(name="c", config_map=ConfigMapVolumeSource(name="cm")),
        Volume(name="s", secret=SecretVolumeSource(secret_name="s", default_mode=0o400)),
    )
    assert [m.read_only for m in mounted.values()] == [True, True]
    assert (mounted["c"].path / "k").read_text() == "v"
    assert (mounted["s"].path / "k").stat().st_mode & 0o777 == 0o400
    assert not os.path.ismount(mounted["c"].path)
    assert os.path.ismount(mounted["s"].path)


@needs_root
def test_fs_group_owns_what_is_in_the_volumes(directory: PodDirectory) -> None:
    mounted = set_up(
        directory,
        Volume(name="e", empty_dir=EmptyDirVolumeSource()),
        Volume(name="s", secret=SecretVolumeSource(secret_name="s", default_mode=0o400)),
        fs_group=4321,
    )
    shared, file = mounted["e"].path.stat(), (mounted["s"].path / "k").stat()
    assert shared.st_gid == 4321 and shared.st_mode & stat.S_ISGID
    assert file.st_gid == 4321 and stat.S_IMODE(file.st_mode) == 0o440


@needs_root
@pytest.mark.parametrize("medium", ["", "Memory"])
def test_a_kubelet_that_comes_back_leaves_a_volume_as_its_containers_made_it(
    directory: PodDirectory, medium: str
) -> None:
    """What it set before they ran, it would set again on what they have put there since."""
    volume = Volume(name="e", empty_dir=EmptyDirVolumeSource(medium=medium))
    path = set_up(directory, volume, fs_group=4321)["e"].path
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (4321, 0o2777)
    outside = directory.path.parent / "of the host"
    outside.touch(mode=0o600)
    (path / "link").symlink_to(outside)
    (path / "file").touch(mode=0o600)
    os.chown(path, 5, 5)
    path.chmod(0o700)
    set_up(directory, volume, fs_group=4321)
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (5, 0o700)
    assert (outside.stat().st_gid, stat.S_IMODE(outside.stat().st_mode)) == (os.getegid(), 0o600)
    assert stat.S_IMODE((path / "file").stat().st_mode) == 0o600


@needs_root
def test_a_volume_that_a_killed_kubelet_began_is_finished(
    directory: PodDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = Volume(name="e", empty_dir=EmptyDirVolumeSource())

    def killed(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(Path, "rename", killed)
        set_up(directory, volume, fs_group=4321)
    path = set_up(directory, volume, fs_group=4321)["e"].path
    assert (path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (4321, 0o2777)
    assert os.listdir(path.parent) == ["e"]


@pytest.mark.parametrize(("kind", "made"), [("", False), ("DirectoryOrCreate", True), ("FileOrCreate", True)])
def test_a_missing_host_path_is_made_where_the_type_says_so(
    directory: PodDirectory, tmp_path: Path, kind: str, made: bool
) -> None:
    path = tmp_path / "of the host"
    volume = Volume(name="h", host_path=HostPathVolumeSource(path=str(path), type=kind))
    assert set_up(directory, volume)["h"] == MountedVolume(path)
    assert path.exists() is made


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Directory", "is not a directory"),
        ("File", "is not a file"),
        ("Socket", "is not a socket file"),
        ("CharDevice", "is not a character device"),
        ("BlockDevice", "is not a block device"),
    ],
)
def test_a_host_path_of_another_kind_is_refused(
    directory: PodDirectory, tmp_path: Path, kind: str, expected: str
) -> None:
    volume = Volume(name="h", host_path=HostPathVolumeSource(path=str(tmp_path / "no"), type=kind))
    with pytest.raises(SetUpError) as fault:
        set_up(directory, volume)
    message = (
        f'MountVolume.SetUp failed for volume "h" : hostPath type check failed: {tmp_path}/no {expected}'
    )
    assert str(fault.value) == message


def test_a_missing_object_and_an_unknown_kind_name_the_volume(directory: PodDirectory) -> None:
    for volume, message in (
        (Volume(name="c", config_map=ConfigMapVolumeSource(name="x")), 'configmap "x" not found'),
        (Volume(name="n", nfs=NFSVolumeSource()), "not supported"),
    ):
        with pytest.raises(SetUpError, match=f'volume "{volume.name}" : .*{message}'):
            set_up(directory, volume)


@pytest.mark.parametrize(
    ("limit", "pod_limit", "expected"),
    [
        (None, None, NODE_MEMORY),
        (None, "2Mi", 2 << 20),
        ("1Mi", "2Mi", 1 << 20),
        ("4Mi", "2Mi", 2 << 20),
        ("1Gi", None, NODE_MEMORY),
        ("0", None, NODE_MEMORY),
    ],
)
def test_memory_of_an_empty_dir_is_what_pod_and_node_allow(
    directory: PodDirectory, limit: str | None, pod_limit: str | None, expected: int
) -> None:
    resources = ResourceRequirements(limits={"memory": Quantity(pod_limit)} if pod_limit else {})
    pod = Pod(spec=PodSpec(containers=[Container(resources=resources)]))
    layout = Layout(pod, directory, OBJECTS, lambda selector: "", NOW, NODE_MEMORY)
    source = EmptyDirVolumeSource(medium="Memory", size_limit=Quantity(limit) if limit else None)
    assert empty_dir_size(source, layout.pod_memory) == expected


@pytest.mark.parametrize(
    ("path", "why"),
    [("a/" * 1500 + "f", None), ("a/" * 5000 + "f", "File name too long"), ("a\0b", "null byte")],
)
@pytest.mark.parametrize("of_the_host", [True, False])
def test_a_path_of_any_depth_or_name_is_made_or_refused(
    directory: PodDirectory, tmp_path: Path, path: str, why: str | None, of_the_host: bool
) -> None:
    """Whatever else is raised ends the kubelet, and all pods with it."""
    place = f"{tmp_path}/host/{path}"
    host = HostPathVolumeSource(path=place, type="DirectoryOrCreate")
    files = ConfigMapVolumeSource(name="cm", items=[KeyToPath(key="k", path=path)])
    volume = Volume(name="v", host_path=host) if of_the_host else Volume(name="v", config_map=files)
    if why is None:
        found = set_up(directory, volume)["v"].path
        set_up(directory, volume)
        assert found.is_dir() if of_the_host else (found / path).read_text() == "v"
    else:
        with pytest.raises(SetUpError, match=why):
            set_up(directory, volume)


def test_an_empty_dir_of_huge_pages_is_refused_by_name(directory: PodDirectory) -> None:
    volume = Volume(name="h", empty_dir=EmptyDirVolumeSource(medium="HugePages-2Mi"))
    with pytest.raises(SetUpError, match='"HugePages-2Mi" is not supported by this kubelet'):
        set_up(directory, volume)


def test_one_volume_that_cannot_be_updated_keeps_no_other_from_its_update(directory: PodDirectory) -> None:
    volumes = [
        Volume(name="gone", config_map=ConfigMapVolumeSource(name="x")),
        Volume(name="c", config_map=ConfigMapVolumeSource(name="cm")),
        Volume(name="h", host_path=HostPathVolumeSource(path="/none", type="File")),
    ]
    pod = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(volumes=volumes))
    layout = Layout(pod, directory, OBJECTS, lambda selector: "", NOW, NODE_MEMORY)
    with pytest.raises(SetUpError, match='volume "gone"'):
        update_volumes(layout)
    assert (directory.volume("configmap", "c") / "k").read_text() == "v"


def test_all_volumes_that_fail_are_told(directory: PodDirectory) -> None:
    volumes = [
        Volume(name="gone", config_map=ConfigMapVolumeSource(name="x")),
        Volume(name="c", config_map=ConfigMapVolumeSource(name="cm")),
        Volume(name="h", host_path=HostPathVolumeSource(path="/none", type="File")),
    ]
    pod = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(volumes=volumes))
    with pytest.raises(SetUpError) as fault:
        set_up_volumes(Layout(pod, directory, OBJECTS, lambda selector: "", NOW, NODE_MEMORY))
    assert [str(one).split('"')[1] for one in (fault.value, *fault.value.more)] == ["gone", "h"]
    assert (directory.volume("configmap", "c") / "k").read_text() == "v"
