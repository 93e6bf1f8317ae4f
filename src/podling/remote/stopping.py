"""End a debug container, which no API does: by what its user would type, else by ending its processes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from podling.debug.container import WishError, all_containers
from podling.debug.progress import NoContainer, Over, TooLate
from podling.debug.sessions import sessions
from podling.debug.wrapping import ENDS_ALL
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.remote.pods import Cluster
from podling.remote.streams import Wanted
from podling.remote.terminal import Narrator
from podling.remote.waiting import until_over, until_running
from podling.streaming.wire import Disconnected

SECONDS = 3.0
"""Within which a container ends after each attempt."""
STARTS = 10.0
"""Seconds in which one that is to be ended must have begun: nothing reaches it before."""
INTERRUPT, END = b"\x03", b"\x04"


async def stop_session(cluster: Cluster, pod: Pod, name: str, narrator: Narrator) -> int:
    """End the debug container `name`, or the only one that runs. Raises WishError, NoContainer, OSError."""
    running = [one.container for one in sessions([pod]) if one.is_running]
    if name not in running and (name or len(running) != 1):
        what = f"no debug container {name} runs in pod {pod.metadata.name}" if name else "which one?"
        raise WishError(f"{what}: there runs {', '.join(running) or 'none'}")
    name = name or running[0]
    await stop(cluster, pod, name)
    narrator.say(f"{name} has ended.")
    return 0


async def stop(cluster: Cluster, pod: Pod, name: str) -> None:
    """Raises NoContainer if it does not begin or end, OSError."""
    if isinstance(await until_running(cluster, pod, name, Narrator(quiet=True), STARTS), Over):
        return
    spec = next(container for container in all_containers(pod) if container.name == name)
    for attempt in (_typed, _killed, _typed):
        if attempt is _typed and not spec.stdin:
            continue
        with suppress(StatusError, Disconnected, TimeoutError):
            async with asyncio.timeout(SECONDS):
                await attempt(cluster, pod, name, spec.tty)
        with suppress(TooLate):
            await until_over(cluster, pod, name, SECONDS)
            return
    raise NoContainer(f"{name} does not end: it can be ended from within, and ends with its pod")


async def _typed(cluster: Cluster, pod: Pod, name: str, is_tty: bool) -> None:
    """What ends a shell at its prompt, after what interrupts a program."""
    wanted = Wanted(stdin=True, stderr=False, tty=is_tty)
    command = await cluster.attach(pod.metadata.namespace, pod.metadata.name, name, wanted)
    assert command.stdin is not None and command.stdout is not None
    command.stdout.ignore()
    try:
        for said in (INTERRUPT, END) if is_tty else (b"exit\n",):
            await command.stdin.write(said)
        if not is_tty:
            command.stdin.end()
        await command.ended()
    finally:
        await command.close()


async def _killed(cluster: Cluster, pod: Pod, name: str, is_tty: bool) -> None:
    said = ("sh", "-c", ENDS_ALL)
    command = await cluster.exec(pod.metadata.namespace, pod.metadata.name, name, said, Wanted())
    try:
        await command.ended()
    finally:
        await command.close()
