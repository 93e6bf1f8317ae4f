"""What happens in directories, as inotify tells it. All of one event loop share an instance, as a user may
have few of them (128 on most machines).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from asyncinotify import Inotify, Mask, Watch

AT_ONCE = 64
"""Events in a turn of the loop: somebody who writes without a pause makes them faster than they are read."""
_ALWAYS = Mask.IGNORED | Mask.Q_OVERFLOW


class Happened(NamedTuple):
    """`name` is that of the file in the directory; empty for the directory itself."""

    mask: Mask
    name: str


Told = Callable[[Happened], None]


@contextmanager
def followed(directory: Path, mask: Mask, told: Told) -> Iterator[None]:
    """While the block runs, `told` hears what of `mask` happens in `directory`; also IGNORED if that is gone
    and nothing more will be told, and Q_OVERFLOW if some of it was lost. Raises OSError if there is none."""
    loop = asyncio.get_running_loop()
    shared = _of_loops.get(loop)
    if shared is None:
        shared = _of_loops[loop] = _Shared(loop)
    try:
        with shared.following(directory, mask, told):
            yield
    finally:
        if not shared.has_followers and _of_loops.get(loop) is shared:
            del _of_loops[loop]
            shared.close()


class _Shared:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._inotify = Inotify(sync_timeout=0)
        self._followers: dict[Watch, dict[object, tuple[Mask, Told]]] = {}
        """By the watch of their directory; those of one that is gone are with none."""
        loop.add_reader(self._inotify.fd, self._read)

    @property
    def has_followers(self) -> bool:
        return bool(self._followers)

    def close(self) -> None:
        self._loop.remove_reader(self._inotify.fd)
        self._inotify.close()

    @contextmanager
    def following(self, directory: Path, mask: Mask, told: Told) -> Iterator[None]:
        # One watch is all that an instance has of a directory, whatever name it goes by.
        watch = self._inotify.add_watch(directory, mask | Mask.MASK_ADD)
        this = object()
        self._followers.setdefault(watch, {})[this] = mask | _ALWAYS, told
        try:
            yield
        finally:
            followers = self._followers.get(watch, {})
            followers.pop(this, None)
            if watch in self._followers and not followers:
                del self._followers[watch]
                self._inotify.rm_watch(watch)

    def _read(self) -> None:
        if not self.has_followers:
            return
        for _ in range(AT_ONCE):
            event = self._inotify.sync_get()
            if event is None:
                return
            watch = event.watch
            if event.mask & Mask.IGNORED and watch is not None:
                told = self._followers.pop(watch, {})
            elif watch is None:
                told = {this: one for some in self._followers.values() for this, one in some.items()}
            else:
                told = self._followers.get(watch, {})
            happened = Happened(event.mask, event.name.name if event.name else "")
            for mask, tell in tuple(told.values()):
                if event.mask & mask:
                    tell(happened)
        # The rest may have been read already, so that the descriptor does not say that it is there.
        self._loop.call_soon(self._read)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()
