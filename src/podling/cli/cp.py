"""`podling cp`: files into containers and out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podling.cli import cluster as of_cluster
from podling.cli.cluster import Cluster
from podling.cli.debug_options import OfHelper, of_helper
from podling.debug.container import IMAGE, WishError
from podling.debug.places import place
from podling.debug.profiles import AUTO

if TYPE_CHECKING:
    from podling.remote import pods as remote


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("destination", metavar="TO")
@click.option(
    "-c", "--container", default="", metavar="NAME", help="[default: the pod's default, else its first]"
)
@click.option(
    "--via",
    type=click.Choice(["auto", "exec", "container"]),
    default="auto",
    show_default=True,
    help="tar of the container, or a container that is added for it; auto adds one if it must.",
)
@click.option("--resume", is_flag=True, help="Go on with a file of which a part is there.")
@click.option("--verify/--no-verify", default=True, help="Compare digests at the end.")
@of_helper(IMAGE, AUTO, "Of the added container.")
@of_cluster.options
def cp(
    cluster: Cluster,
    source: str,
    destination: str,
    container: str,
    via: str,
    resume: bool,
    verify: bool,
    helper: OfHelper,
) -> None:
    """Copy a file or directory FROM one place TO another, one of them in a pod: [NAMESPACE/]POD:PATH.

    \b
    Examples:
      podling cp web:/var/log/app.log .
      podling cp ./site web:/srv -c nginx

    The container needs neither tar nor a shell. The exit code is 1 if anything could not be copied.
    """
    try:
        here, there = place(source), place(destination)
    except WishError as error:
        raise click.UsageError(str(error)) from error
    if bool(here.pod) == bool(there.pod):
        raise click.UsageError("one of FROM and TO must be in a pod, the other here")

    pod = here if here.pod else there
    namespace = pod.namespace or cluster.namespace

    async def work(asked: remote.Cluster) -> int:
        from podling.remote.copying import Way, download, files_of, upload
        from podling.remote.terminal import Narrator

        narrator = Narrator(quiet=helper.quiet)
        way = Way(via, helper.image, helper.profile, helper.timeout)
        async with files_of(asked, namespace, pod.pod, container, way, narrator) as files:
            if here.pod:
                done = await download(files, here.path, destination, narrator, resume=resume, verify=verify)
            else:
                done = await upload(files, source, there.path, narrator, resume=resume, verify=verify)
        for error in done.errors:
            click.echo(error, err=True)
        if done.more:
            click.echo(f"and {done.more} more", err=True)
        return of_cluster.ERROR if done.errors else 0

    of_cluster.ask(cluster, work, of_cluster.asked_pods(namespace, pod.pod))
