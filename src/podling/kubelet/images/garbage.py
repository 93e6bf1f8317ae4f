"""Image garbage collection, every five minutes as in Kubernetes, and at once when eviction needs disk.

When the images' file system is fuller than the high threshold, images are removed until it is at the low one,
least recently used first. An image that a container was made from, that is a volume of a pod, that is pinned,
or that is younger than MINIMUM_AGE stays. The decisions are pure functions; `ImageCollector` carries them
out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

import msgspec

from podling.client.events import EventRecorder
from podling.cri.interface import Runtime, RuntimeFault
from podling.kubelet.host.disk import FileSystem, file_system
from podling.kubelet.images.reference import InvalidReference, with_default_tag
from podling.kubelet.metrics.counters import PodCounts
from podling.model.time import Clock
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod

MINIMUM_AGE = timedelta(minutes=2)

log = logging.getLogger(__name__)

PERIOD = 300.0


class Marks(msgspec.Struct, frozen=True):
    """imageGCHighThresholdPercent and imageGCLowThresholdPercent; a high of 100 disables garbage
    collection."""

    high: int = 85
    low: int = 80


DEFAULT_MARKS = Marks()


class KnownImage(msgspec.Struct, frozen=True):
    """An image, and when it was used."""

    id: str
    size: int
    """Bytes."""
    first_seen: datetime
    used: datetime
    """When it was last seen in use; `first_seen` if never."""
    pinned: bool = False


class Found(msgspec.Struct, frozen=True):
    """An image as the runtime lists it."""

    id: str
    size: int
    pinned: bool = False


def volume_images(pods: Iterable[Pod]) -> set[str]:
    """The references of all images that are volumes of these pods."""
    found = set()
    for pod in pods:
        for volume in pod.spec.volumes:
            if volume.image is not None:
                with suppress(InvalidReference):
                    found.add(with_default_tag(volume.image.reference))
    return found


def known_images(
    before: Mapping[str, KnownImage], found: Iterable[Found], in_use: Collection[str], now: datetime
) -> dict[str, KnownImage]:
    """`before` updated from the runtime's list, by id; images that are gone are dropped."""
    known = {}
    for image in found:
        old = before.get(image.id)
        first_seen = old.first_seen if old else now
        used = now if image.id in in_use or old is None else old.used
        known[image.id] = KnownImage(image.id, image.size, first_seen, used, image.pinned)
    return known


def excess(capacity: int, available: int, marks: Marks = DEFAULT_MARKS) -> int:
    """Bytes to free to get down to the low threshold; 0 below the high one."""
    if capacity <= 0 or marks.high >= 100 or 100 - available * 100 // capacity < marks.high:
        return 0
    return max(capacity * (100 - marks.low) // 100 - available, 0)


def candidates(
    known: Iterable[KnownImage], in_use: Collection[str], now: datetime, minimum_age: timedelta = MINIMUM_AGE
) -> list[KnownImage]:
    """In the order to remove them."""
    idle = [
        image
        for image in known
        if image.id not in in_use and not image.pinned and now - image.first_seen >= minimum_age
    ]
    return sorted(idle, key=lambda image: (image.used, image.first_seen))


class ImageCollector:
    """Collects image garbage. `run()` it. `pods` are asked for image volumes; `kept` are references that are
    never removed, such as the sandbox image's; `forget` is called with the id of each removed image; `node`
    is the object that events are about."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        events: EventRecorder,
        counts: PodCounts,
        node: Callable[[], KubeObject],
        forget: Callable[[str], None],
        pods: Callable[[], Iterable[Pod]],
        kept: tuple[str, ...] = (),
        marks: Marks = DEFAULT_MARKS,
        measure: Callable[[Path], FileSystem] = file_system,
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._events = events
        self._counts = counts
        self._node = node
        self._forget = forget
        self._pods = pods
        self._kept = kept
        self._marks = marks
        self._measure = measure
        self._known: dict[str, KnownImage] = {}
        self._failed = False

    async def run(self) -> NoReturn:
        """One collection every PERIOD seconds."""
        with suppress(RuntimeFault):
            # The age of the images present counts from now.
            await self._look()
        while True:
            await asyncio.sleep(PERIOD)
            await self.collect()

    async def collect(self) -> None:
        """Run one collection; failures are logged and become events."""
        try:
            in_use = await self._look()
            told = await self._runtime.image_fs_info()
            for usage in told.image_filesystems[:1]:
                system = await asyncio.to_thread(self._measure, Path(usage.fs_id.mountpoint))
                wanted = excess(system.capacity, system.available, self._marks)
                freed = await self._remove(in_use, wanted, "space") if wanted else 0
                if freed < wanted:
                    raise _NotEnough(wanted, freed)
            self._failed = False
        except (RuntimeFault, OSError, _NotEnough) as error:
            log.warning("images are not collected: %s", error)
            if isinstance(error, _NotEnough):
                self._events.warning(self._node(), "FreeDiskSpaceFailed", str(error))
            if self._failed:
                # The second failure in a row is an event, as in Kubernetes' kubelet.
                self._events.warning(self._node(), "ImageGCFailed", str(error))
            self._failed = True

    async def remove_unused(self) -> None:
        """Remove all unused images older than MINIMUM_AGE, for eviction. Raises RuntimeFault."""
        in_use = await self._look()
        await self._remove(in_use, None, "space")

    async def _look(self) -> set[str]:
        """Update the known images. Returns the ids of those in use by containers or volumes."""
        containers, images = await asyncio.gather(
            self._runtime.list_containers(), self._runtime.list_images()
        )
        named = {
            name: image.id for image in images for name in (image.id, *image.repo_tags, *image.repo_digests)
        }
        used = {
            named.get(name, name) for c in containers for name in (c.image_ref, c.image_id, c.image.image)
        }
        # Of images that are volumes no container tells, and not every runtime holds them.
        mounted = [await self._runtime.image_status(name) for name in volume_images(self._pods())]
        used |= {image.id for image in mounted if image is not None}
        found = [
            Found(image.id, image.size, image.pinned or not set(self._kept).isdisjoint(image.repo_tags))
            for image in images
        ]
        self._known = known_images(self._known, found, used, self._clock.now())
        return used

    async def _remove(self, in_use: set[str], wanted: int | None, reason: str) -> int:
        """Bytes freed."""
        freed = 0
        for image in candidates(self._known.values(), in_use, self._clock.now()):
            if wanted is not None and freed >= wanted:
                break
            try:
                await self._runtime.remove_image(image.id)
            except RuntimeFault as fault:
                log.warning("image %s is not removed: %s", image.id, fault)
                continue
            log.info("removed image %s, %d bytes", image.id, image.size)
            self._forget(image.id)
            del self._known[image.id]
            self._counts.images_collected[reason] += 1
            freed += image.size
        return freed


class _NotEnough(Exception):
    def __init__(self, wanted: int, freed: int) -> None:
        attempted = f"Attempted to free {wanted} bytes, but only found {freed} bytes eligible to free."
        super().__init__(f"Failed to garbage collect required amount of images. {attempted}")
