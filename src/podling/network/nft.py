"""nftables, by its library in this process; by the program `nft` where the library cannot be loaded, and for
long scripts, in a thread.

A change of some elements takes the library 0.2 to 0.5 ms, and the program 16 ms, most of it to start. Either
takes fifty times a script's length in memory: the program's goes with it. Such a change is made by the event
loop itself: a thread on a busy machine gets a processor milliseconds later (docs/decisions/113).
"""

from __future__ import annotations

import asyncio
import ctypes
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")

LIBRARY = "libnftables.so.1"
LONG = 256 << 10
"""Characters of a script that is for the program."""
LONGEST_ON_LOOP = 0.005
"""Seconds. The kernel makes one transaction at a time: while those of others are long, a thread waits."""

Run = Callable[[str], str]
"""Does the commands of a script in one transaction; returns what they print. Raises NftError."""


class NftError(Exception):
    """The kernel or the library has refused a script, and nothing of it was done. The message is theirs."""


def library(name: str = LIBRARY) -> Run:
    """Raises OSError if it cannot be loaded."""
    nft = ctypes.CDLL(name)
    nft.nft_ctx_new.restype = ctypes.c_void_p
    for function in (nft.nft_ctx_get_error_buffer, nft.nft_ctx_get_output_buffer):
        function.restype = ctypes.c_char_p
    context = ctypes.c_void_p(nft.nft_ctx_new(0))
    if not context:
        raise OSError(f"{name} has no context to give")
    nft.nft_ctx_buffer_output(context)
    nft.nft_ctx_buffer_error(context)

    def run(script: str) -> str:
        if len(script) > LONG:
            return program(script)
        # ctypes lets go of the interpreter's lock meanwhile.
        if nft.nft_run_cmd_from_buffer(context, ctypes.c_char_p(script.encode())):
            raise NftError(_short(nft.nft_ctx_get_error_buffer(context)))
        output: bytes = nft.nft_ctx_get_output_buffer(context)
        return output.decode()

    return run


def program(script: str) -> str:
    """Raises NftError."""
    try:
        done = subprocess.run(["nft", "-f", "-"], input=script.encode(), capture_output=True, check=False)
    except OSError as error:
        raise NftError(f"nft: {error}") from error
    if done.returncode:
        raise NftError(_short(done.stderr))
    return done.stdout.decode()


def _short(errors: bytes) -> str:
    """The first error, without the line that it quotes, which may be megabytes."""
    return errors.decode(errors="replace").partition("\n")[0][:500]


class Nft:
    """Runs scripts one after the other."""

    def __init__(self, name: str = LIBRARY) -> None:
        self._name = name
        self._thread = ThreadPoolExecutor(1, "nft")
        self._run: Run | None = None
        self._count = 0
        """Works that the thread has."""
        self._took = 0.0
        """Seconds, of the last short work."""

    async def run(self, work: Callable[[Run], T], *, is_short: bool = False) -> T:
        """The result of `work`, which is given a way to run scripts. It is done in the thread, but where it
        `is_short` and nothing says that the kernel will keep it waiting."""
        if (
            is_short
            and not self._count
            and self._took <= LONGEST_ON_LOOP
            and self._run not in (None, program)
        ):
            return self._work(work, is_short=True)
        self._count += 1
        try:
            doing = partial(self._work, work, is_short=is_short)
            return await asyncio.get_running_loop().run_in_executor(self._thread, doing)
        finally:
            self._count -= 1

    def _work(self, work: Callable[[Run], T], *, is_short: bool) -> T:
        if self._run is None:
            # A library's context belongs to the network namespace in which it was made.
            try:
                self._run = library(self._name)
            except OSError:
                self._run = program
        began = time.perf_counter()
        try:
            return work(self._run)
        finally:
            if is_short:
                self._took = time.perf_counter() - began

    def close(self) -> None:
        self._thread.shutdown(wait=True)
