"""`podling controllers`: the controllers alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance
from podling.machine.pki import KeyPair
from podling.model.time import parse_duration

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def _duration(context: click.Context, parameter: click.Parameter, text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@options.kubeconfig_in("controller-manager.conf")
@options.secure_port(10257)
@options.leader_elect
@click.option(
    "--root-ca-file",
    "root_ca",
    type=FILE,
    help="The authority pods are given to trust.  [default: the kubeconfig's]",
)
@click.option(
    "--cluster-signing-cert-file",
    "certificate",
    type=FILE,
    help="The authority that signs the certificates kubelets and clients ask for.  [default: none]",
)
@click.option("--cluster-signing-key-file", "key", type=FILE, help="Its private key.")
@click.option(
    "--cluster-signing-duration",
    "longest",
    default="8760h",
    show_default=True,
    metavar="DURATION",
    callback=_duration,
    help="How long a certificate lasts for which no shorter time is asked.",
)
@click.option(
    "--use-service-account-credentials",
    "accounts_each",
    type=click.BOOL,
    metavar="true|false",
    default=True,
    show_default=True,
    help="Whether each controller has an account of its own in kube-system, whose tokens are asked for.",
)
@click.option(
    "--node-monitor-grace-period",
    "grace",
    default="50s",
    show_default=True,
    metavar="DURATION",
    callback=_duration,
    help="How long a kubelet may be silent before its node counts as lost.",
)
@click.option(
    "--node-monitor-period",
    "period",
    default="5s",
    show_default=True,
    metavar="DURATION",
    callback=_duration,
    help="Within how long nodes that are lost are judged together, before pods of any are evicted.",
)
@click.option(
    "--node-eviction-rate",
    "usual",
    type=click.FloatRange(0),
    default=0.1,
    show_default=True,
    metavar="NUMBER",
    help="Lost nodes of a zone whose pods are evicted, a second.",
)
@click.option(
    "--secondary-node-eviction-rate",
    "reduced",
    type=click.FloatRange(0),
    default=0.01,
    show_default=True,
    metavar="NUMBER",
    help="The same of a zone that is unhealthy and large; of a smaller one none are.",
)
@click.option(
    "--unhealthy-zone-threshold",
    "unhealthy",
    type=click.FloatRange(0, 1),
    default=0.55,
    show_default=True,
    metavar="PART",
    help="The part of a zone's nodes, at least three, whose loss makes it unhealthy.",
)
@click.option(
    "--large-cluster-size-threshold",
    "large",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    metavar="NUMBER",
    help="A zone with more nodes is large.",
)
def controllers(
    instance: Instance,
    kubeconfig: Path,
    root_ca: Path | None,
    certificate: Path | None,
    key: Path | None,
    longest: timedelta,
    port: int,
    accounts_each: bool,
    elects: bool,
    grace: timedelta,
    period: timedelta,
    usual: float,
    reduced: float,
    unhealthy: float,
    large: int,
) -> None:
    """Reconcile objects, on the API server that the kubeconfig names."""
    from podling.assemble.controllers import Limits, Monitoring, Signing, control

    if (certificate is None) != (key is None):
        raise click.UsageError("--cluster-signing-cert-file and --cluster-signing-key-file go together")
    signing = Signing(KeyPair(certificate, key), longest) if certificate and key else None
    with exit_on_start_error():
        control(
            kubeconfig,
            root_ca,
            signing,
            port,
            click.echo,
            accounts_each=accounts_each,
            elects=elects,
            monitoring=Monitoring(grace, period, Limits(usual, reduced, unhealthy, large)),
        )
