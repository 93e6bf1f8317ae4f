"""What is typed at the terminal of this end, which is raw while a session lasts and restored whatever
happens, and how its size changes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from podling.remote.terminal import Size, size

PIECE = 64 * 1024

T = TypeVar("T")


@contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Every key goes to the block, also the control keys. The terminal is as before when the block has
    ended, by whatever way."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSANOW)
        yield
    finally:
        # In the background or without a terminal any more there is nothing to restore.
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def sizes(descriptor: int) -> AsyncGenerator[Size, None]:
    """The size now, and each time it changes."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            if found := size(descriptor):
                yield found
            await changed.wait()
            changed.clear()
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def read_all(descriptor: int, take: Callable[[bytes], Coroutine[Any, Any, None]]) -> None:
    """Give what comes to `take`, to the end. Nothing more is read while `take` is at work."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        while piece := os.read(descriptor, PIECE):
            asyncio.run_coroutine_threadsafe(take(piece), loop).result()

    await _in_thread(read)


async def asked(question: str) -> str | None:
    """What the user answers on standard input to a question on standard error; None at its end."""
    sys.stderr.write(question)
    sys.stderr.flush()
    # A terminal gives a line at a time.
    line = await _in_thread(lambda: os.read(0, PIECE))
    return line.decode(errors="replace").strip() if line else None


async def _in_thread(read: Callable[[], T]) -> T:
    """A thread reads: the loop cannot wait for files, and not every system's for terminals. It is left behind
    with its next piece when this is cancelled, which is when the program ends."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_exception(error) if error else ended.set_result(cast(T, result))

    def run() -> None:
        result, failed = None, None
        try:
            result = read()
        except BaseException as error:
            failed = error
        # The loop may be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result, failed)

    threading.Thread(target=run, daemon=True, name="input").start()
    return await ended
