"""`podling debug`: a container with tools in a running pod, on any cluster."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

import click

from podling.cli import cluster as of_cluster
from podling.cli import complete, debug_modes, debug_options
from podling.cli.cluster import Cluster
from podling.cli.debug_options import OfContainer, OfCopy, OfFleet, OfSession, document
from podling.debug.container import IMAGE, free_name

if TYPE_CHECKING:
    from podling.remote import pods as remote
    from podling.remote.debugging import Aside

PODS = ("", "pod", "pods")
NODES = ("node", "nodes")
NODES_NAMESPACE = "podling-debug"


@click.command()
@click.argument("pod", required=False, metavar="[POD]", shell_complete=complete.pods)
@click.argument("command", nargs=-1, metavar="[-- COMMAND [ARGUMENTS]...]")
@click.option(
    "-p",
    "--pod",
    "pod_option",
    default="",
    metavar="POD",
    shell_complete=complete.pods,
    help="The pod, if not given first.",
)
@click.option("-f", "--filename", type=click.File(), help="The pod, in place of its name.")
@debug_options.of_container
@debug_options.of_session
@debug_options.of_copy
@debug_options.of_fleet
@of_cluster.options
def debug(
    cluster: Cluster,
    pod: str | None,
    command: tuple[str, ...],
    pod_option: str,
    filename: TextIO | None,
    of_container: OfContainer,
    of_session: OfSession,
    of_copy: OfCopy,
    of_fleet: OfFleet,
) -> None:
    """Add a container with tools to a running pod, and attach to it.

    \b
    Examples:
      podling debug web
      podling debug web --target=app -- ps
      podling debug web -m nicolaka/netshoot -- tcpdump -i any

    The exit code is the command's; 1 says what was wrong, 124 that the time was up, 125 that the container
    could not be started.
    """
    from podling.process.early import event_loop
    from podling.remote import terminal

    if filename is not None:
        metadata = document(filename, "--filename").get("metadata") or {}
        pod_option = str(metadata.get("name", ""))
        cluster = cluster._replace(namespace=str(metadata.get("namespace") or cluster.namespace))
    is_fleet = bool(of_fleet.selector or of_fleet.all_namespaces)
    is_of_node = (pod_option or pod or "").partition("/")[0] in NODES
    mode = debug_modes.mode_of(
        is_fleet=is_fleet,
        is_stop=of_session.stop,
        is_node=is_of_node,
        is_held=bool(of_copy.hold),
        is_copy=bool(of_copy.copy_to),
    )
    debug_options.check_used_together(mode)
    if pod and (pod_option or is_fleet):
        command = (pod, *command)
    kind, _, name = ("" if is_fleet else pod_option or pod or "").rpartition("/")
    if of_session.stop and kind not in PODS:
        (kind, name), of_container = ("", kind), of_container._replace(container=name)
    is_typed = terminal.is_terminal(0) and terminal.is_terminal(2)
    if not (name or is_fleet or is_typed):
        raise click.UsageError("which pod? Give its name: podling debug POD")
    if kind not in (*PODS, *NODES):
        raise click.UsageError(f"{kind}/{name} cannot be debugged: give a pod, or node/NAME")
    is_node, is_copy = mode == debug_modes.NODE, mode in (debug_modes.COPY, debug_modes.HOLD)

    is_screen = is_typed and terminal.is_terminal(1)
    wish = of_container.wish(command, "" if is_copy else IMAGE, of_session, is_typed=is_screen)
    custom = document(of_container.custom, "--custom") if of_container.custom else {}
    namespace = NODES_NAMESPACE if is_node and not cluster.is_named else cluster.namespace
    of_many = "" if of_fleet.all_namespaces else namespace
    first = of_cluster.NOTHING
    if is_fleet:
        first = of_cluster.asked_pods(of_many, selector=of_fleet.selector)
    elif not is_node:
        first = of_cluster.asked_pods(namespace, name)

    async def work(asked: remote.Cluster, narrator: terminal.Narrator) -> int:
        from podling.debug.sessions import attachable
        from podling.remote.adding import Request, container_for, joinable

        request = Request(
            namespace,
            name,
            wish,
            of_container.container,
            of_container.profile,
            attach=not of_session.detach and (wish.stdin or not of_copy.copy_to),
            timeout=of_session.timeout,
            custom=custom,
        )

        def aside(default_name: str) -> Aside:
            from podling.remote.debugging import Aside

            return Aside(of_copy.copy(default_name), of_copy.replace, of_copy.remove, of_copy.hold)

        if is_fleet:
            from podling.cli.fleet import debug_fleet

            pods = await asked.all(of_many, label_selector=of_fleet.selector)
            return await debug_fleet(asked, request, pods, of_fleet, quiet=of_session.quiet)
        if is_node:
            from podling.remote import debugging

            own = aside(f"node-debugger-{name}-{os.urandom(3).hex()}")
            if of_session.explain:
                from podling.remote import explaining

                body, _ = debugging.pod_on_node(request, name, own)
                return await shown(explaining.explained_pod(asked, body, deletes=own.remove))
            return await debugging.debug_node(asked, request, name, own, narrator)
        if name:
            found = await asked.get(request.namespace, name)
        else:
            from podling.cli.choosing import chosen_pod

            found = await chosen_pod(await asked.all(request.namespace))
        meant = request._replace(pod=found.metadata.name)
        if of_session.stop:
            from podling.remote.stopping import stop_session

            return await stop_session(asked, found, request.container, narrator)
        if is_copy:
            from podling.remote import debugging

            own = aside(f"{meant.pod}-held")
            if of_session.explain:
                from podling.remote import explaining

                body, _ = await debugging.copy_for(asked, meant, own, narrator)
                deletes = own.remove or own.replace
                return await shown(explaining.explained_pod(asked, body, deletes=deletes))
            return await debugging.debug_copy(asked, meant, own, narrator)
        if of_session.explain:
            from podling.remote import explaining

            container = await container_for(
                asked, meant, found, request.container or free_name(found), narrator
            )
            return await shown(explaining.explained_container(asked, found, container))
        is_another = bool(command or request.container or of_session.new or of_session.detach)
        if is_screen and not is_another and (running := [*attachable(found)]):
            await event_loop()
            from podling.cli.choosing import chosen_session

            meant = meant._replace(container=await chosen_session(running))
        there, added = await joinable(asked, meant, found, narrator)
        if not meant.attach:
            return 0
        # It is imported, with asyncio, while the container starts.
        await event_loop()
        from podling.remote.debugging import attached

        return await attached(asked, meant, there, added, narrator)

    async def shown(explained: Awaitable[tuple[list[str], bool]]) -> int:
        lines, is_taken = await explained
        click.echo("\n".join(lines))
        return 0 if is_taken else of_cluster.ERROR

    async def recorded(asked: remote.Cluster) -> int:
        with ExitStack() as ending:
            try:
                recording = ending.enter_context(of_session.recorded())
            except FileExistsError as error:
                return of_cluster.tell(f"--record: {error.filename} is there already")
            except OSError as error:
                return of_cluster.tell(f"--record: {error}")
            return await work(asked, terminal.Narrator(quiet=of_session.quiet, recording=recording))

    is_plain = mode == debug_modes.POD and bool(name) and not of_session.explain
    of_cluster.ask(cluster, recorded, first, is_early=is_plain)
