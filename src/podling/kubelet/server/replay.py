"""Attach with replay: an attach that first shows what the container printed before it (R-CLI-3).

The replay happens when the client asks for it, and at the first attach to an ephemeral container: nobody has
seen its output, and kubectl, which has just created it, cannot ask. Output comes from the log and, where it
must not wait for the end of a line, from the runtime (`replay_output.py`). Input goes to the runtime as in
any attach.

The runtime's output is always read, into bounded memory, however slow the client is: containerd cannot stop a
container whose attached output is not taken. The attach ends with the container, with the client, or, for a
client that has ended its input, after the container has printed nothing for a while. The end of the client's
input is passed on only for stdinOnce, as a runtime that sees it closes the outputs, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing

from podling.cri.interface import RuntimeFault
from podling.kubelet.logs.reading import LogChanges, container_log, log_changes, wait_complete
from podling.kubelet.pod.containers import all_containers
from podling.kubelet.pod.host import PodHost, Signal
from podling.kubelet.server.relay import (
    KUBELET_STOPS,
    RUNTIME_LOST,
    SUCCESS,
    CommandStreams,
    Dialect,
    drop_with,
    exited,
    failure,
    leave,
    open_streams,
    opened_in_time,
    tell,
    upload,
)
from podling.kubelet.server.replay_output import Replay, ReplayLog, ReplayOutput
from podling.model.types.pod import Pod
from podling.process.waits import woken
from podling.streaming.session import Session, Stream

QUIET = 0.05
"""Seconds without output after which log and runtime are compared."""
NEWS = 2.0
"""Seconds in which a container's exit is reported after the runtime has closed its streams."""
SILENCE = 30.0
"""Seconds without output, after the client has ended its input, until the attach ends."""


async def relay_replay(
    client: Session,
    runtime: Session,
    wanted: CommandStreams,
    dialect: Dialect,
    kubelet_stops: Signal,
    replay: Replay,
) -> None:
    """Join until both sides have ended. Raises OSError if the log cannot be read."""
    ours = await opened_in_time(client, runtime, wanted.types(resize=dialect.resize))
    if ours is None:
        return
    theirs = open_streams(runtime, wanted)

    async def kubelet_stop() -> None:
        await kubelet_stops()

    async with asyncio.TaskGroup() as group:
        uploads = [
            group.create_task(upload(ours[name], theirs[name], passes_end=replay.passes_end))
            for name in ("stdin", "resize")
            if name in ours
        ]
        leaving = group.create_task(drop_with(client, runtime, uploads))
        with log_changes(replay.log.path) as changes, closing(ReplayLog(replay)) as log:
            output = ReplayOutput(ours, theirs, changes, terminal=wanted.tty)
            stopping = group.create_task(kubelet_stop())
            losing = group.create_task(_lost(theirs["error"]))
            showing = group.create_task(_show(output, log, replay.log.ended, changes))
            ending = [
                showing,
                group.create_task(_until_silent(ours.get("stdin"), uploads, output)),
                group.create_task(client.wait_lost()),
                stopping,
                losing,
            ]
            done, _ = await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            for task in ending:
                task.cancel()
        output.end()
        told = SUCCESS
        if stopping in done:
            told = failure(KUBELET_STOPS)
        elif done == {losing}:
            told = failure(RUNTIME_LOST)
        elif showing in done:
            told = _ending_told(replay)
        await tell(ours["error"], told, dialect)
        await client.finish()
        await leave(runtime)
        await leaving


async def relay_ended(client: Session, wanted: CommandStreams, dialect: Dialect, replay: Replay) -> None:
    """Show the log of a container that has ended, and its exit code. Raises OSError if the log cannot be
    read."""
    ours = await opened_in_time(client, None, wanted.types(resize=dialect.resize))
    if ours is None:
        return
    for name in ("stdin", "resize"):
        if name in ours:
            ours[name].ignore()
    with log_changes(replay.log.path) as changes:
        await wait_complete(replay.log.ended, changes, asyncio.Event())
        output = ReplayOutput(ours, {}, changes, terminal=wanted.tty)
        with closing(ReplayLog(replay)) as log:
            while await log.show(output):
                pass
    output.end()
    await tell(ours["error"], _ending_told(replay), dialect)
    await client.finish()


def _ending_told(replay: Replay) -> bytes:
    """The Status at the container's end: its exit code only if the client asked for it, as an attach in
    Kubernetes does not tell it."""
    if not replay.tells_exit:
        return SUCCESS
    code = replay.log.exit_code()
    return exited(code) if code is not None else failure("nobody knows the exit code any more")


async def _lost(error: Stream) -> None:
    """Returns when the runtime has closed the stream without a Status, NEWS seconds later: if the cause was
    the container's exit, that is known by then."""
    if await error.read():
        await asyncio.Event().wait()
    await asyncio.sleep(NEWS)


async def _show(
    output: ReplayOutput, log: ReplayLog, ended: Callable[[], Awaitable[bool]], changes: LogChanges
) -> None:
    """All output, until the container has ended and its log has been shown to the end."""
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(output.hear())
        over = asyncio.Event()
        ending = group.create_task(wait_complete(ended, changes, over))
        while True:
            changes.changed.clear()
            # Asked before reading: what is read after the end is all there is.
            was_over = over.is_set()
            if output.live:
                # What a terminal says next; the log goes on when the runtime has no more to say.
                if await output.show_heard():
                    continue
                if hearing.done() or over.is_set():
                    output.behind()
                    continue
            elif await log.show(output):
                continue
            elif was_over:
                break
            elif await woken(changes.changed, QUIET):
                continue
            else:
                # In the absence of news, log and runtime are compared.
                await output.quiet()
                if output.live:
                    continue
            await changes.changed.wait()
        hearing.cancel()
        ending.cancel()


async def _until_silent(
    stdin: Stream | None, uploads: list[asyncio.Task[None]], output: ReplayOutput
) -> None:
    """Returns when a client that has ended its input has heard nothing for a while."""
    if stdin is None:
        await asyncio.Event().wait()
        return
    await asyncio.wait(uploads[:1])
    if not stdin.ended:
        await asyncio.Event().wait()
    output.spoke.clear()
    while await woken(output.spoke, SILENCE):
        output.spoke.clear()


class Replays:
    """Remembers, while the kubelet runs, which ephemeral containers have been attached to."""

    def __init__(self, host: PodHost) -> None:
        self._host = host
        self._attached: dict[str, str] = {}
        """By container id, the uid of its pod."""

    def claim(self, pod: Pod, name: str, container_id: str, *, asked: bool) -> bool:
        """Whether this attach gets a replay: if it asked, or is the first to an ephemeral container."""
        first = container_id not in self._attached
        if any(container.name == name for container in pod.spec.ephemeral_containers):
            here = {each.metadata.uid for each in self._host.pods()}
            self._attached = {one: uid for one, uid in self._attached.items() if uid in here}
            self._attached[container_id] = pod.metadata.uid
            return asked or first
        return asked

    async def of(self, pod: Pod, name: str, container_id: str, *, tells_exit: bool) -> Replay | None:
        """For an attach that the runtime has not been asked for yet; None when there is no log to show."""
        try:
            log = await container_log(self._host, container_id)
        except (RuntimeFault, OSError):
            return None
        containers = (container for _, container in all_containers(pod))
        passes_end = any(container.stdin_once for container in containers if container.name == name)
        asked = time.time_ns()
        return Replay(log, asked, passes_end=passes_end, tells_exit=tells_exit)
