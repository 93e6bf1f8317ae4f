"""`podling up`: start a podling and stay with it, or leave it running."""

from __future__ import annotations

from typing import Any

import click

from podling.cli import node_options, options
from podling.cli.detach import fork_into_background
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import DEFAULT_PORT, Instance


@click.command()
@options.data_dir
@click.option("--port", type=click.IntRange(1, 65535), help=f"API server port.  [default: {DEFAULT_PORT}]")
@click.option("--detach", "-d", is_flag=True, help="Return when the node is ready; stop with `podling down`.")
@options.service_range
@node_options.node
@options.audit
def up(
    instance: Instance,
    port: int | None,
    detach: bool,
    service_range: str,
    audit: dict[str, Any],
    **node: Any,
) -> None:
    """Start API server, scheduler, controllers and kubelet in one process, and a containerd beside it."""
    reports = fork_into_background(instance.log_file) if detach else None
    # Not before it is known who goes on: what is imported from here on is most of a start.
    from podling.assemble.node_options import NodeOptions
    from podling.assemble.settle import AuditOptions
    from podling.assemble.up import UpOptions, run

    chosen = UpOptions(instance, port, service_range, NodeOptions(**node), AuditOptions(**audit))
    report = reports.line if reports else click.echo

    def ready() -> None:
        report(f"kubectl --kubeconfig {instance.kubeconfig} get nodes")
        if reports:
            reports.ready()

    with exit_on_start_error(reports.line if reports else None):
        run(chosen, report, ready)
