"""Work in a network of its own, for tests that may change one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
CLONE_NEWNET = 0x40000000


def apart(work: Callable[[], T]) -> T:
    """The result of `work`, in a thread whose network is its own and ends with it."""

    def alone() -> T:
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0
        return work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(alone).result()
