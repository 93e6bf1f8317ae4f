"""`podling kubelet`: the kubelet alone, a node of any API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from podling.cli import addresses, node_options, options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance
from podling.machine.pki import KeyPair

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def labels(context: click.Context, parameter: click.Parameter, text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if any(not name or not separator for name, separator, _ in pairs):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE,...", param_hint="--node-labels")
    return {name: value for name, _, value in pairs}


def place(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, int] | None:
    """`ADDRESS:PORT`, an IPv6 address in brackets."""
    if text is None:
        return None
    try:
        split = urlsplit(f"//{text}")
        if split.hostname and split.port and split.netloc == text and "@" not in text:
            return split.hostname, split.port
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not ADDRESS:PORT", param_hint="--api-server-for-pods")


@click.command()
@options.kubeconfig
@options.node_dir
@addresses.node_ip
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the kubelet's server.  [default: 10250]")
@addresses.pod_cidr
@click.option("--register-node/--no-register-node", default=True, help="Create the Node if it is missing.")
@click.option("--node-labels", default="", metavar="NAME=VALUE,...", callback=labels)
@click.option(
    "--client-ca-file",
    "client_ca",
    type=FILE,
    help="Authority of those who may ask the kubelet.  [default: the kubeconfig's]",
)
@click.option("--tls-cert-file", type=FILE, help="What its server shows.  [default: made by itself]")
@click.option("--tls-private-key-file", type=FILE)
@click.option(
    "--rotate-certificates",
    is_flag=True,
    help="Ask the cluster for a client certificate of its own, and renew it in time.",
)
@click.option(
    "--rotate-server-certificates",
    is_flag=True,
    help="Ask the cluster for its server's certificate, which an administrator approves, and renew it.",
)
@click.option(
    "--api-server-for-pods",
    "api_server",
    metavar="ADDRESS:PORT",
    callback=place,
    help="Where pods are told to find the API server.  [default: at its service's cluster address]",
)
@node_options.node_alone
def kubelet(
    kubeconfig: Path,
    instance: Instance,
    node_ip: str,
    port: int | None,
    pod_cidr: str,
    client_ca: Path | None,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    rotate_certificates: bool,
    rotate_server_certificates: bool,
    api_server: tuple[str, int] | None,
    register_node: bool,
    node_labels: dict[str, str],
    settings: dict[str, Any],
    **node: Any,
) -> None:
    """Run a node of the API server that the kubeconfig names. Its pods go on when it is stopped; `podling
    down` with its data directory ends them."""
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
    if tls_cert_file is not None and rotate_server_certificates:
        raise click.UsageError("--tls-cert-file and --rotate-server-certificates: only one can be")
    from podling.process.tls import import_aiohttp

    import_aiohttp()
    from podling.assemble.kubelet import KubeletOptions, run
    from podling.assemble.node_options import NodeOptions

    serving = KeyPair(tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None
    settings |= {"register_node": register_node, "node_labels": node_labels}
    told = NodeOptions(settings=settings, **node)
    chosen = KubeletOptions(
        instance,
        kubeconfig,
        told,
        node_ip,
        port,
        pod_cidr,
        client_ca,
        serving,
        api_server,
        rotate_certificates,
        rotate_server_certificates,
    )
    with exit_on_start_error():
        run(chosen, click.echo)
