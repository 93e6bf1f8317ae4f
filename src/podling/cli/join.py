"""`podling join`: this machine becomes a node of a cluster that is elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from podling.cli import node_options, options
from podling.cli.detach import fork_into_background
from podling.cli.ending import exit_on_start_error
from podling.cli.kubelet import labels
from podling.machine.instance import Instance

if TYPE_CHECKING:
    from podling.model.types.node import Taint

KEY = re.compile(r"[0-9a-f]{64}")
HASH = re.compile(r"sha256:[0-9a-f]{64}")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _server(context: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        split = urlsplit(f"//{text}")
        if not text or (split.hostname and split.port and split.netloc == text and "@" not in text):
            return text
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not HOST:PORT")


def _hashes(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for text in given:
        if not HASH.fullmatch(text.lower()):
            raise click.BadParameter(f"{text!r} is not sha256: and 64 hexadecimal digits")
    return tuple(map(str.lower, given))


def taints(text: str) -> list[Taint]:
    """Of `KEY=VALUE:EFFECT,...`, as the kubelet's --register-with-taints. Raises ValueError."""
    from podling.model.types.node import Taint

    found = []
    for one in filter(None, text.split(",")):
        named, _, effect = one.rpartition(":")
        key, _, value = named.partition("=")
        if not key or effect not in EFFECTS:
            raise ValueError(f"{one!r} is not KEY=VALUE:EFFECT, with one of {', '.join(EFFECTS)}")
        found.append(Taint(key=key, value=value, effect=effect))
    return found


@click.command()
@click.argument("server", metavar="[HOST:PORT]", default="", callback=_server)
@click.option("--token", default="", help="A bootstrap token of the cluster (`podling token create`).")
@click.option(
    "--ca-hash",
    "hashes",
    multiple=True,
    metavar="sha256:HASH",
    callback=_hashes,
    help="Hash of the public key of the cluster's authority. May be repeated.",
)
@click.option(
    "--control-plane",
    "of_server",
    is_flag=True,
    help="Become one more API server (`podling token create --control-plane`).",
)
@click.option("--certificate-key", "key", default="", help="Opens what the cluster hands over then.")
@options.data_dir
@click.option("--detach", "-d", is_flag=True, help="Return when the node is Ready; stop with `podling down`.")
@click.option("--node-ip", default="", help="Address of the node.  [default: this machine's]")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the kubelet's server.  [default: 10250]")
@click.option("--node-labels", default="", metavar="NAME=VALUE,...", callback=labels)
@click.option("--register-with-taints", "tainted", default="", metavar="KEY=VALUE:EFFECT,...")
@node_options.node
def join(
    server: str,
    token: str,
    hashes: tuple[str, ...],
    of_server: bool,
    key: str,
    instance: Instance,
    detach: bool,
    node_ip: str,
    port: int | None,
    node_labels: dict[str, str],
    tainted: str,
    settings: dict[str, Any],
    **node: Any,
) -> None:
    """Make this machine a node of the cluster whose API server is at HOST:PORT, and run it: kubelet, network
    and a containerd. A machine that has joined needs nothing of it any more. Its pods go on when it is
    stopped; `podling down` ends them, and `podling leave` takes the node out of the cluster.

    With --control-plane it becomes an API server of the cluster as well, and is as after `podling up`."""
    if any((server, token, hashes)) and not all((server, token, hashes)):
        raise click.UsageError("HOST:PORT, --token and --ca-hash go together")
    if of_server and not (server and key):
        raise click.UsageError("--control-plane needs HOST:PORT, --token, --ca-hash and --certificate-key")
    if key and not (of_server and KEY.fullmatch(key)):
        raise click.UsageError("--certificate-key is 64 hexadecimal digits, with --control-plane")
    if of_server and (port or node_labels):
        raise click.UsageError("--port and --node-labels are not for --control-plane")
    reports = fork_into_background(instance.log_file) if detach else None
    report = reports.line if reports else click.echo
    try:
        registered = taints(tainted)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--register-with-taints") from error
    from podling.process.tls import import_aiohttp

    import_aiohttp()
    from podling.assemble.discovery import Joining
    from podling.assemble.node_options import NodeOptions
    from podling.assemble.worker import WorkerOptions, run

    joining = Joining(server, token, hashes) if server else None
    if node_labels:
        settings["node_labels"] = node_labels
    told = NodeOptions(settings=settings, **node)
    become = reports.ready if reports else lambda: None
    if of_server and joining:
        from podling.assemble import join_server

        further = join_server.JoinServerOptions(instance, joining, key, told, node_ip, registered)
        with exit_on_start_error(reports.line if reports else None):
            join_server.run(further, report, become)
        return
    chosen = WorkerOptions(instance, joining, told, node_ip, port, registered)
    with exit_on_start_error(reports.line if reports else None):
        run(chosen, report, become)
