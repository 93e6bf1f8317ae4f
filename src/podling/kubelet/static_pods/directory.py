"""The manifests of a directory, or of one file, again whenever one of them changes.

inotify says that something has changed; all files are then read, so nothing depends on which event came. A
file that is no pod is named in the log and leaves the others alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from asyncinotify import Inotify, Mask

from podling.kubelet.files.regular import open_regular
from podling.kubelet.static_pods.manifest import ManifestError, static_pod
from podling.model.pod import Pod
from podling.model.time import Clock, rfc3339

LOOK_AGAIN = 20.0
"""Seconds until a directory that is not there, or was taken away, is looked for again."""

_CHANGES = (
    Mask.CLOSE_WRITE
    | Mask.MOVED_TO
    | Mask.MOVED_FROM
    | Mask.DELETE
    | Mask.CREATE
    | Mask.ATTRIB
    | Mask.DELETE_SELF
    | Mask.MOVE_SELF
)
_GONE = Mask.IGNORED | Mask.DELETE_SELF | Mask.MOVE_SELF

LONGEST = 10 * 1024 * 1024
"""In bytes, of one file: Kubernetes' kubelet reads no more."""

log = logging.getLogger(__name__)


class ManifestDirectory:
    """`path` may also be one file."""

    def __init__(self, path: Path, node_name: str, clock: Clock) -> None:
        self._path = path
        self._node_name = node_name
        self._clock = clock

    async def follow(self) -> AsyncIterator[list[Pod]]:
        """All pods there are, now and after every change. Never ends by itself."""
        while True:
            directory = self._path.parent if self._path.is_file() else self._path
            with Inotify() as inotify:
                try:
                    inotify.add_watch(directory, _CHANGES | Mask.ONLYDIR)
                except OSError as error:
                    log.warning("manifests of static pods: %s: %s", directory, error)
                    yield []
                    await asyncio.sleep(LOOK_AGAIN)
                    continue
                # Read strictly after the watch was set, never before: else a file in between is missed.
                yield await self._read_now()
                async for event in inotify:
                    yield await self._read_now()
                    if event.mask & _GONE:
                        break

    async def _read_now(self) -> list[Pod]:
        return await asyncio.to_thread(self.read, rfc3339(self._clock.now()))

    def read(self, seen: str) -> list[Pod]:
        """In the order of their files' names. Blocking."""
        pods: dict[tuple[str, str], Pod] = {}
        for file in self._files():
            try:
                pod = static_pod(_content(file), file, self._node_name, seen)
            # RecursionError: lists in lists, or one that contains itself.
            except (ManifestError, OSError, RecursionError) as error:
                log.warning("static pod of %s: %s", file, error)
                continue
            pods.setdefault((pod.metadata.namespace, pod.metadata.name), pod)
        return list(pods.values())

    def _files(self) -> list[Path]:
        if self._path.is_file():
            return [self._path]
        try:
            found = sorted(self._path.iterdir())
        except OSError:
            return []
        return [file for file in found if file.is_file() and not file.name.startswith(".")]


def _content(file: Path) -> bytes:
    """Raises ManifestError and OSError."""
    with open_regular(file, follow=True) as opened:
        content = opened.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise ManifestError(f"longer than {LONGEST} bytes")
    return content
