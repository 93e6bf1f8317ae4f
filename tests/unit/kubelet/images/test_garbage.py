"""Images go when their disk is full, and never one that is needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage
from podling.kubelet.host.disk import FileSystem
from podling.kubelet.images.garbage import ImageCollector
from podling.kubelet.metrics.counters import PodCounts
from podling.model.types.meta import KubeObject
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.volume import ImageVolumeSource, Volume


class Disk:
    """Full as the test says; time is moved by hand."""

    def __init__(self, *images: str, kept: tuple[str, ...] = ()) -> None:
        self.runtime = HollowRuntime({name: HollowImage(present=True) for name in images})
        self.available = 100
        self.time = datetime(2026, 1, 2, tzinfo=UTC)
        self.said: list[str] = []
        self.forgotten: list[str] = []
        self.counts = PodCounts()
        self.pods: list[Pod] = []
        self.collector = ImageCollector(
            self.runtime,
            self,
            self,  # type: ignore[arg-type]
            self.counts,
            Node,
            self.forgotten.append,
            lambda: self.pods,
            kept,
            measure=lambda path: FileSystem(100, self.available, 0, 0),
        )

    def now(self) -> datetime:
        return self.time

    def warning(self, obj: KubeObject, reason: str, message: str, **_: Any) -> None:
        self.said.append(f"{reason} {message}")

    async def collect(self) -> None:
        await self.collector.collect()
        self.time += timedelta(minutes=5)

    async def images(self) -> list[str]:
        return [image.repo_tags[0] for image in await self.runtime.list_images()]

    async def use(self, image: str) -> None:
        config = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name="p", uid="u", namespace="n"))
        sandbox = await self.runtime.run_pod_sandbox(config)
        container = pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name="c"), image=pb.ImageSpec(image=image)
        )
        await self.runtime.create_container(sandbox, container, config)


async def test_nothing_goes_while_there_is_room() -> None:
    disk = Disk("a", "b")
    await disk.collect()
    await disk.collect()
    assert await disk.images() == ["a", "b"]
    assert disk.said == []


async def test_what_is_used_or_kept_stays_when_all_else_goes() -> None:
    """A container that has ended uses its image as well: it may be started again."""
    disk = Disk("used", "pause", "other", kept=("pause",))
    await disk.use("used")
    await disk.collect()
    disk.available = 5
    await disk.collect()
    assert sorted(await disk.images()) == ["pause", "used"]
    assert len(disk.forgotten) == 1
    assert disk.counts.images_collected == {"space": 1}
    shortfall = "Attempted to free 15 bytes, but only found 1 bytes eligible to free."
    full = f"Failed to garbage collect required amount of images. {shortfall}"
    assert disk.said == [f"FreeDiskSpaceFailed {full}"]


async def test_a_second_failure_in_a_row_is_an_event_of_its_own() -> None:
    disk = Disk()
    disk.available = 5
    await disk.collect()
    assert [said.split()[0] for said in disk.said] == ["FreeDiskSpaceFailed"]
    await disk.collect()
    assert [said.split()[0] for said in disk.said[1:]] == ["FreeDiskSpaceFailed", "ImageGCFailed"]


async def test_an_image_that_is_a_volume_of_a_pod_stays() -> None:
    """R-VOL-2: no container names it."""
    disk = Disk("data:latest", "other:1")
    volumes = [
        Volume(name="data", image=ImageVolumeSource(reference="data")),
        Volume(name="odd", image=ImageVolumeSource(reference="A B")),
        Volume(name="gone", image=ImageVolumeSource(reference="gone:1")),
    ]
    disk.pods = [Pod(spec=PodSpec(volumes=volumes))]
    await disk.collect()
    disk.available = 5
    await disk.collect()
    assert await disk.images() == ["data:latest"]
    disk.pods = []
    await disk.collect()
    assert await disk.images() == []


async def test_eviction_gets_every_image_nobody_uses_but_those_pulled_just_now() -> None:
    """Those are wanted by a pod whose container is not made yet."""
    disk = Disk("used", "other")
    await disk.use("used")
    await disk.collector.remove_unused()
    assert await disk.images() == ["other", "used"]
    disk.time += timedelta(minutes=2)
    await disk.collector.remove_unused()
    assert await disk.images() == ["used"]
