"""`podling why`: one screen on why a pod is not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podling.cli import cluster as of_cluster
from podling.cli import complete
from podling.cli.cluster import Cluster
from podling.cli.tables import structured

if TYPE_CHECKING:
    from podling.debug.why import Why
    from podling.model.types.pod import Pod
    from podling.remote import pods as remote

NOT_READY = 3
"""The exit code for a pod that is not ready."""
LAST_LINES = "10"
CLEAR = "\x1b[H\x1b[2J"


@click.command()
@click.argument("pod", shell_complete=complete.pods)
@click.option("-w", "--watch", is_flag=True, help="Show it again after each change, until it is ready.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="For programs.")
@of_cluster.options
def why(cluster: Cluster, pod: str, watch: bool, output: str | None) -> None:
    """Say why POD is not ready: where it stands, when each step was, last lines, events.

    \b
    Examples:
      podling why web
      podling why web --watch

    Exit 0 for a pod that is ready, 3 for one that is not.
    """
    name = of_cluster.pod_name(pod)

    async def work(asked: remote.Cluster) -> int:
        from contextlib import aclosing

        from podling.debug.why import why as why_of
        from podling.model.codec.quoting import printable
        from podling.remote.waiting import states

        async with aclosing(states(asked, await asked.get(cluster.namespace, name))) as seen:
            async for now in seen:
                found = why_of(now)
                lines = [structured(found, output)] if output else await _screen(asked, now, found)
                lines = [printable(line) for line in lines]
                click.echo((CLEAR if watch and not output else "") + "\n".join(lines))
                if found.is_ready or not watch:
                    return 0 if found.is_ready else NOT_READY
        return NOT_READY

    of_cluster.ask(cluster, work, of_cluster.asked_pods(cluster.namespace, name))


async def _screen(asked: remote.Cluster, pod: Pod, found: Why) -> list[str]:
    from podling.debug.why import time_line, told
    from podling.model.errors import StatusError
    from podling.model.time import SystemClock

    now = SystemClock().now()
    lines = [f"{found.verdict}.", "", *time_line(found.steps, now)]
    if found.log_of is not None:
        container, is_before = found.log_of
        options = {"tailLines": LAST_LINES, **({"previous": "true"} if is_before else {})}
        try:
            said = await asked.log(pod.metadata.namespace, pod.metadata.name, container, **options)
        except StatusError as error:
            said = error.message.encode()
        if said.strip():
            shown = said.decode(errors="replace").rstrip().splitlines()
            lines += ["", f"Last lines of {container}:", *(f"  {line}" for line in shown)]
    if events := told(await asked.events(pod), now):
        lines += ["", "Events:", *(f"  {line}" for line in events)]
    return lines
