"""Work in a network of its own, for tests that may change one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
CLONE_NEWNET = 0x40000000


def apart(work: Callable[[], T]) -> T:
    """The result of `work`, in a thread whose network is its own and ends with it."""
    with network() as thread:
        return thread.submit(work).result()


@contextmanager
def network() -> Iterator[ThreadPoolExecutor]:
    """A thread whose network is its own. Sockets and processes that are made in it keep that network."""

    def unshare() -> None:
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0

    with ThreadPoolExecutor(1) as thread:
        thread.submit(unshare).result()
        yield thread
