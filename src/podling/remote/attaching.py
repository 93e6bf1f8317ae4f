"""Attach to a container that runs or has ended: its output from the first byte, and its exit code."""

from __future__ import annotations

from podling.debug.container import Wish, all_containers
from podling.debug.joined import TerminalLog
from podling.debug.progress import NoContainer, Over, TooLate, progress
from podling.model.errors import StatusError
from podling.model.types.pod import Pod
from podling.remote import session, terminal
from podling.remote.pods import Cluster
from podling.remote.recording import Unrecorded
from podling.remote.streams import Wanted
from podling.remote.waiting import again, until_over
from podling.streaming.negotiation import REPLAYED

REPLAY = (("replay", "true"), ("exitCode", "true"))
"""What podling's kubelet understands of an attach; others ignore it."""
REFUSED = frozenset({401, 403, 404})
SETTLED = 5.0
"""Seconds until the API tells that a container has ended which its node does not attach to any more."""


async def attach(
    cluster: Cluster, pod: Pod, name: str, wish: Wish, recording: Unrecorded, *, is_over: bool = False
) -> int:
    """Show all that the container has printed and prints, give it what is typed, and return its exit code."""
    namespace, of_pod = pod.metadata.namespace, pod.metadata.name
    spec = next(container for container in all_containers(pod) if container.name == name)
    wanted = Wanted(wish.stdin and spec.stdin and not is_over, stderr=not spec.tty, tty=spec.tty)
    try:
        command = await cluster.attach(namespace, of_pod, name, wanted, REPLAY)
    except StatusError as error:
        if error.code in REFUSED:
            raise
        try:
            # It may have ended meanwhile: only its log is left.
            await until_over(cluster, pod, name, SETTLED)
        except TooLate:
            raise error from None
        return await _followed(cluster, pod, name, recording)
    is_whole = command.headers.get(REPLAYED) == "true"
    if not is_whole and not wanted.stdin:
        await command.close()
        return await _followed(cluster, pod, name, recording)

    async def log() -> bytes:
        printed = await cluster.log(namespace, of_pod, name)
        return TerminalLog().restored(printed) if spec.tty else printed

    raw = wanted.tty and wanted.stdin and terminal.is_terminal(session.STDIN)
    # Where a container's input does not end with a client's, containerd would only show this one no more of
    # what it prints. podling's kubelet knows.
    ended, shown, last = await session.converse(
        command,
        raw=raw,
        recording=recording,
        log=None if is_whole else log,
        passes_end=is_whole or spec.stdin_once,
    )
    if is_whole and ended is not None and ended.exit_code is not None:
        return ended.exit_code
    now = await again(cluster, pod)
    if now is None:
        raise NoContainer(f"pod {of_pod} was deleted")
    if ended is None and not isinstance(progress(now, name), Over):
        raise OSError("the connection to the container was lost; it may still run")
    # What a terminal showed cannot be counted in its log: a line that had no end when the attach began is
    # missing there, and was drawn anew.
    last_line = last[last.rfind(b"\n", 0, -1) + 1 :]
    if raw and last_line and (await log()).endswith(last_line):
        return (await until_over(cluster, now, name)).exit_code
    # A container that ends at once may be gone before the attach shows anything.
    return await _followed(cluster, now, name, recording, shown)


async def _followed(cluster: Cluster, pod: Pod, name: str, recording: Unrecorded, shown: int = 0) -> int:
    """The log to its end, without the bytes of it that were shown already."""
    spec = next(container for container in all_containers(pod) if container.name == name)
    restored = TerminalLog().restored if spec.tty else bytes
    async for printed in cluster.follow(pod.metadata.namespace, pod.metadata.name, name):
        piece = restored(printed)
        recording.shown(piece[shown:])
        terminal.write(session.STDOUT, piece[shown:])
        shown = max(0, shown - len(piece))
    return (await until_over(cluster, pod, name)).exit_code
