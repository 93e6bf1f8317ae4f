"""Files whose content is used anew when it changes, without polling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from asyncinotify import Mask

from podling.process.directories import followed

_CHANGES = Mask.CLOSE_WRITE | Mask.MOVED_TO | Mask.CREATE | Mask.DELETE

Contents = tuple[bytes | None, ...]
"""Of files, in their order; None for one that cannot be read."""


async def contents(files: Sequence[Path]) -> Contents:
    return await asyncio.to_thread(lambda: tuple(map(_content, files)))


async def changes(files: Sequence[Path], before: Contents) -> AsyncIterator[Contents]:
    """What the files hold whenever that is not what they held before, or last. Their directories are watched:
    each file may be a link to another one."""
    changed = asyncio.Event()
    with ExitStack() as following:
        for directory in {file.parent for file in files}:
            following.enter_context(followed(directory, _CHANGES, lambda _: changed.set()))
        known = before
        if (now := await contents(files)) != known:
            known = now
            yield now
        while True:
            await changed.wait()
            changed.clear()
            if (now := await contents(files)) != known:
                known = now
                yield now


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
