"""`podling up`: start a podling and stay with it, or leave it running."""

from __future__ import annotations

from typing import Any

import click

from podling.cli import addresses, audit_options, etcd_options, node_options, options
from podling.cli.detach import fork_into_background
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import DEFAULT_PORT, Instance


@click.command()
@options.data_dir
@click.option("--port", type=click.IntRange(1, 65535), help=f"API server port.  [default: {DEFAULT_PORT}]")
@addresses.advertise_address
@click.option("--detach", "-d", is_flag=True, help="Return when the node is ready; stop with `podling down`.")
@options.service_range
@addresses.cluster_cidr
@click.option(
    "--service-proxy/--no-service-proxy",
    default=True,
    help="Whether podling leads to the pods of services; without, kube-proxy may.  [default: it does]",
)
@click.option(
    "--service-lb/--no-service-lb",
    default=True,
    help="Whether services of type LoadBalancer get the nodes' addresses.  [default: they do]",
)
@click.option(
    "--workloads/--no-workloads",
    default=True,
    help="Whether Deployments and their like get pods; without, kube-controller-manager may.  [default: yes]",
)
@click.option(
    "--directory-storage/--no-directory-storage",
    default=True,
    help="Whether claims of the class `directory` get directories of the node.  [default: they do]",
)
@addresses.names_elsewhere("--dns-")
@node_options.node
@options.authorization
@options.authentication
@options.in_flight
@options.admission
@options.encryption
@etcd_options.etcd
@options.serving
@audit_options.audit
def up(
    instance: Instance,
    port: int | None,
    address: str,
    detach: bool,
    service_range: str,
    cluster_cidr: str,
    service_proxy: bool,
    service_lb: bool,
    workloads: bool,
    directory_storage: bool,
    elsewhere: dict[str, Any],
    authorization: dict[str, Any],
    authentication: dict[str, Any],
    in_flight: dict[str, Any],
    admission: dict[str, Any],
    etcd: dict[str, Any],
    encryption: dict[str, Any],
    showing: dict[str, Any],
    audit: dict[str, Any],
    **node: Any,
) -> None:
    """Start API server, scheduler, controllers and kubelet in one process, and a containerd beside it."""
    reports = fork_into_background(instance.log_file) if detach else None
    # Not before it is known who goes on: what is imported from here on is most of a start.
    from podling.assemble.node_options import NodeOptions
    from podling.assemble.settle import (
        AdmissionOptions,
        AuditOptions,
        AuthenticationOptions,
        AuthorizationOptions,
        ElsewhereOptions,
        EncryptionOptions,
        EtcdOptions,
        InFlightOptions,
        ServingOptions,
    )
    from podling.assemble.up import UpOptions, run

    chosen = UpOptions(
        instance,
        port,
        address,
        service_range,
        cluster_cidr,
        service_proxy,
        service_lb,
        workloads,
        directory_storage,
        ElsewhereOptions(**elsewhere),
        NodeOptions(**node),
        AuthorizationOptions(**authorization),
        AuditOptions(**audit),
        AuthenticationOptions(**authentication),
        InFlightOptions(**in_flight),
        AdmissionOptions(**admission),
        EncryptionOptions(**encryption),
        ServingOptions(**showing),
        EtcdOptions(**etcd),
    )
    report = reports.line if reports else click.echo

    def ready() -> None:
        report(f"kubectl --kubeconfig {instance.kubeconfig} get nodes")
        if reports:
            reports.ready()

    with exit_on_start_error(reports.line if reports else None):
        run(chosen, report, ready)
