"""`podling capture` on a cluster: tcpdump in a container that is added to the pod for as long as it lasts.

It runs by an exec, not as what the container runs: packets do not go into the container's log, where they
would fill the node's disk, and the stream begins with its first byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from podling.debug.capture import HEADER, command, is_capture
from podling.remote.beside import first_of
from podling.remote.helper import helper
from podling.remote.pods import Cluster
from podling.remote.streams import Wanted
from podling.remote.terminal import Narrator
from podling.streaming.session import Stream

NAME = "podling-capture"
LONGEST_LINE = 4096
"""Bytes of what tcpdump says that are waited for to be a line."""


class Capture(NamedTuple):
    """What is asked for; see `command`."""

    namespace: str
    pod: str
    image: str
    profile: str
    interface: str = "any"
    snap_length: int = 0
    packets: int = 0
    filter: Sequence[str] = ()
    timeout: float = 120.0


async def capture(cluster: Cluster, asked: Capture, take: Callable[[bytes], None], narrator: Narrator) -> int:
    """Give the pcap stream to `take`, to its end; tcpdump's exit code. Raises WishError, NoContainer,
    StatusError, OSError."""
    pod = await cluster.get(asked.namespace, asked.pod)
    # The packets of others are root's to see, whoever the pod runs as.
    custom = {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}}
    async with helper(
        cluster, pod, NAME, asked.image, narrator, profile=asked.profile, timeout=asked.timeout, custom=custom
    ) as name:
        words = command(asked.interface, asked.snap_length, asked.packets, asked.filter)
        running = await cluster.exec(asked.namespace, asked.pod, name, words, Wanted())
        assert running.stdout is not None and running.stderr is not None
        try:
            async with asyncio.TaskGroup() as tasks:
                # To its end, too: what tcpdump says last may come after the last packet.
                tasks.create_task(_tell(running.stderr, narrator))
                await _take(running.stdout, asked.image, take)
                ended = await running.ended()
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        await running.close()
    if ended is None:
        raise OSError("the connection to the container was lost")
    if ended.exit_code is None:
        raise OSError(f"tcpdump could not be run with {asked.image}: {ended.message}")
    return ended.exit_code


async def _take(stream: Stream, image: str, take: Callable[[bytes], None]) -> None:
    begin = b""
    while piece := await stream.read():
        if len(begin) < HEADER:
            begin += piece
            if len(begin) < HEADER:
                continue
            if not is_capture(begin):
                raise OSError(f"{image}: what its tcpdump writes are no packets")
            piece = begin
        take(piece)


async def _tell(stream: Stream, narrator: Narrator) -> None:
    """What tcpdump says: on what it listens, what is wrong with the filter, how many packets there were."""
    rest = b""
    while piece := await stream.read():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, rest = [*lines, rest], b""
        for line in lines:
            narrator.say(line.decode(errors="replace").rstrip("\r"))
    if rest:
        narrator.say(rest.decode(errors="replace"))
