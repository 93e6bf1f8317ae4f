"""Which images go, and when: decided from what is known of them. Pure.

Above the high mark of the file system images are removed until it is down at the low mark: those nobody has
used for longest first, and never one that a container was made from or a volume is, that is pinned, or that
is new here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from podling.kubelet.pulling.image_reference import InvalidReference, with_default_tag
from podling.model.pod import Pod

MINIMUM_AGE = timedelta(minutes=2)


class Marks(msgspec.Struct, frozen=True):
    """How full the file system may be, in percent: 100 switches collecting off."""

    high: int = 85
    low: int = 80


DEFAULT_MARKS = Marks()


class KnownImage(msgspec.Struct, frozen=True):
    """`used` is when it was last seen in use (when it was first seen, if never)."""

    id: str
    size: int
    first_seen: datetime
    used: datetime
    pinned: bool = False


class Found(msgspec.Struct, frozen=True):
    """An image the runtime has now."""

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
    """By id; what the runtime has no more is forgotten."""
    known = {}
    for image in found:
        old = before.get(image.id)
        first_seen = old.first_seen if old else now
        used = now if image.id in in_use or old is None else old.used
        known[image.id] = KnownImage(image.id, image.size, first_seen, used, image.pinned)
    return known


def excess(capacity: int, available: int, marks: Marks = DEFAULT_MARKS) -> int:
    """Bytes to free; 0 while the file system is not too full."""
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
