"""The images of the in-memory runtime: those it has, and those a pull would find."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.hollow_script import HollowImage, Script
from podling.cri.hollow_time import Timers
from podling.cri.interface import PullProgress, RuntimeFault


class HollowImages:
    def __init__(self, images: Mapping[str, HollowImage], timers: Timers) -> None:
        self._known = images
        self._timers = timers
        self._fetching: list[str] = []
        self._present = {name for name, image in images.items() if image.present}

    def status(self, name: str) -> pb.Image | None:
        if name not in self._present:
            return None
        user = self._known[name].user
        uid = None if user is None else pb.Int64Value(value=user)
        return pb.Image(id=image_id(name), repo_tags=[name], size=1, uid=uid)

    def all(self) -> list[pb.Image]:
        return [image for image in map(self.status, sorted(self._present)) if image]

    async def fetch(self, name: str) -> None:
        """Takes the time a pull takes."""
        image = self._known.get(name)
        if image is None or not (image.stuck or image.pull_seconds):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not image.stuck:
            self._timers.call_later(
                image.pull_seconds, lambda: None if done.done() else done.set_result(None)
            )
        self._fetching.append(name)
        try:
            await done
        finally:
            self._fetching.remove(name)

    def progress(self) -> PullProgress:
        """A byte a second."""
        here = int(self._timers.now().timestamp())
        return frozenset((name, 0 if self._known[name].stuck else here) for name in self._fetching)

    def pull(self, name: str) -> str:
        image = self._known.get(name)
        if image is None:
            raise RuntimeFault("NOT_FOUND", f'failed to pull and unpack image "{name}": not found')
        if image.pull_faults:
            raise image.pull_faults.pop(0)
        self._present.add(name)
        return image_id(name)

    def remove(self, name: str) -> None:
        self._present = {known for known in self._present if name not in (known, image_id(known))}

    def script(self, name: str, attempt: int) -> Script:
        """What the container started `attempt` times before does. Raises RuntimeFault when the image is
        absent."""
        found = next((known for known in self._present if name in (known, image_id(known))), None)
        if found is None:
            raise RuntimeFault("NOT_FOUND", f'failed to resolve image "{name}": not found')
        return self._known[found].run(attempt)


def image_id(name: str) -> str:
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()}"
