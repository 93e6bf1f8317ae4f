"""`podling capture`: the packets of a pod."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from podling.cli import cluster as of_cluster
from podling.cli import complete
from podling.cli.cluster import Cluster
from podling.cli.debug_options import OfHelper, of_helper
from podling.debug.tools import TOOLS

if TYPE_CHECKING:
    from podling.remote import pods as remote

STDOUT = "-"
STANDARD_OUTPUT = 1


@click.command()
@click.argument("pod", shell_complete=complete.pods)
@click.argument("filter", nargs=-1, metavar="[FILTER]...")
@click.option("-w", "--write", default=STDOUT, metavar="FILE", help="[default: standard output]")
@click.option("-i", "--interface", default="any", show_default=True, metavar="NAME")
@click.option(
    "-s",
    "--snaplen",
    type=click.IntRange(0),
    default=0,
    metavar="BYTES",
    help="Of each packet.  [default: all]",
)
@click.option("--count", type=click.IntRange(1), default=None, metavar="PACKETS", help="End after so many.")
@of_helper(TOOLS["net"], "netadmin", "One with tcpdump.")
@of_cluster.options
def capture(
    cluster: Cluster,
    pod: str,
    filter: tuple[str, ...],
    write: str,
    interface: str,
    snaplen: int,
    count: int | None,
    helper: OfHelper,
) -> None:
    """Capture the packets of POD until Ctrl-C, all or those that FILTER (pcap-filter) lets through.

    \b
    Examples:
      podling capture web | wireshark -k -i -
      podling capture web -w web.pcap port 8080
    """
    from podling.remote import terminal

    if write == STDOUT and terminal.is_terminal(STANDARD_OUTPUT):
        raise click.UsageError(
            "packets are not for a terminal: give --write FILE, or pipe them into wireshark"
        )
    name = of_cluster.pod_name(pod)

    with ExitStack() as ending:
        to = STANDARD_OUTPUT
        if write != STDOUT:
            try:
                to = ending.enter_context(open(write, "wb", buffering=0)).fileno()
            except OSError as error:
                of_cluster.fail(str(error))

        async def work(asked: remote.Cluster) -> int:
            from podling.remote.capturing import Capture, capture

            wanted = Capture(
                cluster.namespace,
                name,
                helper.image,
                helper.profile,
                interface,
                snaplen,
                count or 0,
                filter,
                helper.timeout,
            )
            narrator = terminal.Narrator(quiet=helper.quiet)
            try:
                return await capture(asked, wanted, lambda piece: terminal.write(to, piece), narrator)
            except BrokenPipeError:
                # Who looked at them has seen enough.
                return 0

        of_cluster.ask(cluster, work, of_cluster.asked_pods(cluster.namespace, name))
