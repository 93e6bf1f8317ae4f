"""`podling logs`: what the containers of pods have printed and print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from podling.cli import cluster as of_cluster
from podling.cli import complete
from podling.cli.cluster import Cluster

if TYPE_CHECKING:
    from podling.debug.log_lines import Part
    from podling.remote import pods as remote
    from podling.remote.logs import Source

MOST = 50
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
STDOUT = 1


def _duration(context: click.Context, parameter: click.Parameter, given: str | None) -> timedelta | None:
    from podling.model.time import parse_duration

    if given is None:
        return None
    try:
        return parse_duration(given)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


@click.command()
@click.argument("pods", nargs=-1, metavar="[POD]...", shell_complete=complete.pods)
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="All pods with these labels.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@click.option(
    "-c", "--container", "containers", multiple=True, metavar="NAME", help="Only these.  [default: all]"
)
@click.option("-f", "--follow", is_flag=True, help="Go on until no container runs again.")
@click.option("-p", "--previous", is_flag=True, help="Of the run before.")
@click.option(
    "--since", callback=_duration, metavar="DURATION", help="Only what is younger, such as 90s or 1h30m."
)
@click.option("--since-time", default="", metavar="TIME", help="Only what is younger (RFC 3339).")
@click.option(
    "--tail", type=click.IntRange(-1), default=-1, metavar="LINES", help="So many of each at first."
)
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option(
    "--prefix/--no-prefix", default=None, help="Say which container it is.  [default: if there are several]"
)
@click.option(
    "--max-log-requests", type=click.IntRange(1), default=MOST, show_default=True, help="Followed at a time."
)
@of_cluster.options
def logs(
    cluster: Cluster,
    pods: tuple[str, ...],
    selector: str,
    all_namespaces: bool,
    containers: tuple[str, ...],
    follow: bool,
    previous: bool,
    since: timedelta | None,
    since_time: str,
    tail: int,
    timestamps: bool,
    prefix: bool | None,
    max_log_requests: int,
) -> None:
    """Show the logs of all containers of POD, init and debug containers, too.

    \b
    Examples:
      podling logs -f web
      podling logs -l app=shop --since 10m

    With -f each line comes once and in order, across lost connections and restarts, until no container of the
    pods runs again. The exit code is 1 if a log could not be shown.
    """
    if bool(pods) == bool(selector or all_namespaces):
        raise click.UsageError("which pods? Give names, or --selector, or --all-namespaces")
    if since and since_time:
        raise click.UsageError("--since and --since-time are given: only one can be")
    if follow and previous:
        raise click.UsageError("--previous has ended, so that nothing is there to --follow")

    names = [of_cluster.pod_name(name) for name in pods]
    namespace = "" if all_namespaces else cluster.namespace
    first = of_cluster.asked_pods(namespace, names[0] if names else "", selector)

    async def work(asked: remote.Cluster) -> int:
        from podling.debug.runs import check_chosen, chosen
        from podling.remote import logs as of_pods

        what = of_pods.Asked(
            containers,
            previous,
            since.total_seconds() if since else None,
            since_time,
            tail if tail >= 0 else None,
        )
        watched = [of_pods.Watched(namespace, name) for name in dict.fromkeys(names)]
        if not watched:
            watched = [of_pods.Watched(namespace, labels=selector)]
        there = await of_pods.found(asked, watched)
        check_chosen(there, containers)
        count = sum(len(chosen(pod, containers)) for pod in there)
        if not there:
            click.echo("No pods found.", err=True)
        elif follow and count > max_log_requests:
            of_cluster.fail(
                f"{count} logs are more than --max-log-requests={max_log_requests}: choose fewer, or raise it"
            )
        screen = _Screen(
            timestamps=timestamps,
            prefix=prefix if prefix is not None else bool(count > 1 or selector or all_namespaces),
            with_namespace=all_namespaces,
        )
        try:
            if not follow:
                is_whole = await of_pods.read_all(asked, there, what, screen.show, _tell)
                return 0 if is_whole else of_cluster.ERROR
            follower = of_pods.Follower(asked, what, screen.show, _tell, max_log_requests)
            await follower.follow(there, watched)
        except BrokenPipeError:
            # Who read has seen enough.
            return 0
        return 0

    of_cluster.ask(cluster, work, first)


def _tell(line: str) -> None:
    click.echo(line, err=True)


class _Screen:
    """Standard output, to which many containers write. A line begins with its container's name, as with
    kubectl, if `prefix`."""

    def __init__(self, *, timestamps: bool, prefix: bool, with_namespace: bool) -> None:
        from podling.remote import terminal

        self._timestamps = timestamps
        self._prefix = prefix
        self._with_namespace = with_namespace
        self._is_coloured = terminal.is_terminal(STDOUT) and not os.environ.get("NO_COLOR")
        self._write = terminal.write
        self._unfinished: Source | None = None

    def show(self, source: Source, parts: Sequence[Part]) -> None:
        written = bytearray()
        label = self._label(source)
        for part in parts:
            goes_on = not part.is_start and self._unfinished == source
            if self._unfinished is not None and not goes_on:
                written += b"\n"
            if not goes_on:
                written += label + (f"{part.stamp} ".encode() if self._timestamps else b"")
            written += part.text
            self._unfinished = None if part.text.endswith(b"\n") else source
        self._write(STDOUT, bytes(written))

    def _label(self, source: Source) -> bytes:
        if not self._prefix:
            return b""
        pod = f"{source.namespace}/{source.pod}" if self._with_namespace else source.pod
        label = f"[pod/{pod}/{source.container}]"
        colour = COLOURS[source.number % len(COLOURS)]
        return (f"\x1b[{colour}m{label}\x1b[0m " if self._is_coloured else f"{label} ").encode()
