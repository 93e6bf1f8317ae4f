"""`podling controllers`: the controllers alone."""

from __future__ import annotations

from pathlib import Path

import click

from podling.cli import options
from podling.cli.ending import exit_on_start_error
from podling.machine.instance import Instance
from podling.machine.pki import KeyPair

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@options.kubeconfig_in("controller-manager.conf")
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
def controllers(
    instance: Instance, kubeconfig: Path, root_ca: Path | None, certificate: Path | None, key: Path | None
) -> None:
    """Reconcile objects, on the API server that the kubeconfig names."""
    from podling.assemble.controllers import control

    if (certificate is None) != (key is None):
        raise click.UsageError("--cluster-signing-cert-file and --cluster-signing-key-file go together")
    signing = KeyPair(certificate, key) if certificate and key else None
    with exit_on_start_error():
        control(kubeconfig, root_ca, signing, click.echo)
