"""R-EPH-12: who writes more to the node's disk than he may has to go, and is told why."""

from __future__ import annotations

import pytest

from podling.kubelet.eviction.ranking import excess, is_limited
from podling.kubelet.stats.summary import ContainerStats, FsStats, PodReference, PodStats, VolumeStats
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.volume import EmptyDirVolumeSource, Volume

MI = 1 << 20
NOW = "2026-01-02T03:04:05Z"


def pod(*limits: str, volume: str = "") -> Pod:
    containers = [
        Container(
            name=f"c{i}",
            resources=ResourceRequirements(limits={"ephemeral-storage": Quantity(limit)} if limit else {}),
        )
        for i, limit in enumerate(limits)
    ]
    size = Quantity(volume) if volume else None
    volumes = [Volume(name="v", empty_dir=EmptyDirVolumeSource(size_limit=size))]
    return Pod(spec=PodSpec(containers=containers, volumes=volumes))


def stats(volume: int, *used: tuple[int, int]) -> PodStats:
    """MiB of the volume, and of each container's writable layer and logs."""
    containers = [
        ContainerStats(
            name=f"c{i}",
            rootfs=FsStats(time=NOW, used_bytes=layer * MI),
            logs=FsStats(time=NOW, used_bytes=logs * MI),
        )
        for i, (layer, logs) in enumerate(used)
    ]
    whole = volume + sum(layer + logs for layer, logs in used)
    return PodStats(
        PodReference(),
        containers=containers,
        volume=[VolumeStats(time=NOW, name="v", used_bytes=volume * MI)],
        ephemeral_storage=FsStats(time=NOW, used_bytes=whole * MI),
    )


@pytest.mark.parametrize(
    ("limited", "used", "message"),
    [
        (pod("", volume="10Mi"), stats(10, (0, 0)), ""),
        (
            pod("", volume="10Mi"),
            stats(11, (0, 0)),
            'Usage of EmptyDir volume "v" exceeds the limit "10Mi". ',
        ),
        (pod("10Mi"), stats(4, (4, 2)), ""),
        (
            pod("10Mi"),
            stats(4, (4, 3)),
            "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
        ),
        (
            pod("10Mi", "90Mi"),
            stats(0, (6, 5), (1, 1)),
            'Container c0 exceeded its local ephemeral storage limit "10Mi". ',
        ),
        (pod("10Mi", "90Mi"), stats(0, (5, 5), (60, 1)), ""),
    ],
)
def test_who_has_to_go(limited: Pod, used: PodStats, message: str) -> None:
    assert is_limited(limited)
    assert excess(limited, used) == message


def test_who_has_no_limit_need_not_be_measured() -> None:
    assert not is_limited(pod("", ""))
