"""`podling apiserver`: the API server alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from podling.cli import addresses, audit_options, etcd_options, options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import DEFAULT_PORT, Instance
from podling.model.gates import Gates


@click.command()
@options.data_dir
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True)
@addresses.advertise_address
@click.option(
    "--kubelet-certificate-authority",
    "kubelet_ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Believe only kubelets that show a certificate of this authority.  [default: believe all]",
)
@click.option(
    "--shutdown-delay-duration",
    "delay",
    type=options.Duration(),
    default="0s",
    show_default=True,
    metavar="DURATION",
    help="How long it goes on to answer when it was told to end: meanwhile clients are led to other servers.",
)
@click.option(
    "--shutdown-send-retry-after",
    "sends_retry_after",
    type=click.BOOL,
    metavar="true|false",
    default=False,
    show_default=True,
    help="Listen, at the end, until all requests are answered; who comes meanwhile is refused for 5 s (429).",
)
@options.service_range
@options.gates
@options.authorization
@options.authentication
@options.in_flight
@options.admission
@options.encryption
@etcd_options.etcd
@options.serving
@audit_options.audit
def apiserver(
    instance: Instance,
    port: int,
    address: str,
    delay: float,
    sends_retry_after: bool,
    service_range: str,
    kubelet_ca: Path | None,
    gates: Gates,
    authorization: dict[str, Any],
    authentication: dict[str, Any],
    in_flight: dict[str, Any],
    admission: dict[str, Any],
    etcd: dict[str, Any],
    encryption: dict[str, Any],
    showing: dict[str, Any],
    audit: dict[str, Any],
) -> None:
    """Serve the Kubernetes API from a data directory. Kubeconfigs for users and parts are written there:
    admin.conf, scheduler.conf and controller-manager.conf; `podling kubeconfig` makes those of nodes."""
    from podling.process.tls import import_aiohttp

    import_aiohttp()
    from podling.assemble.apiserver import ServerOptions, run
    from podling.assemble.settle import (
        AdmissionOptions,
        AuditOptions,
        AuthenticationOptions,
        AuthorizationOptions,
        EncryptionOptions,
        EtcdOptions,
        InFlightOptions,
        ServingOptions,
    )

    chosen = ServerOptions(
        instance,
        port,
        address,
        service_range,
        kubelet_ca,
        gates,
        AuthorizationOptions(**authorization),
        AuditOptions(**audit),
        AuthenticationOptions(**authentication),
        InFlightOptions(**in_flight),
        AdmissionOptions(**admission),
        EncryptionOptions(**encryption),
        ServingOptions(**showing),
        EtcdOptions(**etcd),
        delay,
        sends_retry_after,
    )
    with exit_on_start_error():
        run(chosen, click.echo)
