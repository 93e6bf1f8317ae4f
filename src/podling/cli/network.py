"""`podling network`: the service proxy alone."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

import click

from podling.cli import options
from podling.cli.addresses import bind_address
from podling.cli.ending import exit_on_start_error
from podling.cli.node_options import node_name
from podling.machine.instance import Instance


def _subnets(context: click.Context, parameter: click.Parameter, given: str) -> str:
    try:
        networks = [ipaddress.ip_network(one.strip()) for one in given.split(",") if one.strip()]
    except ValueError as error:
        raise click.BadParameter(f"{given!r}: {error}") from error
    if len({network.version for network in networks}) < len(networks):
        raise click.BadParameter(f"{given!r} has more than one subnet of a family")
    return ",".join(map(str, networks))


@click.command()
@options.kubeconfig_in("kube-proxy.conf")
@node_name
@click.option(
    "--cluster-cidr",
    "pods",
    default="",
    callback=_subnets,
    metavar="SUBNET[,SUBNET]",
    help="Where this node's pods are: all other clients of services are masqueraded.  [default: none is]",
)
@click.option(
    "--service-cluster-ip-range",
    "services",
    default="",
    callback=_subnets,
    metavar="SUBNET[,SUBNET]",
    help="Where services have their addresses: routed to this machine, refused where there is none.",
)
@bind_address("--healthz-bind-address", "healthz", "0.0.0.0:10256", "Where /healthz and /livez are answered")
@bind_address("--metrics-bind-address", "metrics", "127.0.0.1:10249", "Where /metrics is answered")
@click.option(
    "--network-policies/--no-network-policies",
    "enforces_policies",
    default=False,
    help="Whether network policies are enforced on this node's pods. The kubeconfig must be of one who may "
    "list and watch network policies, pods and namespaces.  [default: they are not]",
)
def network(
    instance: Instance,
    kubeconfig: Path,
    node_name: str,
    pods: str,
    services: str,
    healthz: tuple[str, int] | None,
    metrics: tuple[str, int] | None,
    enforces_policies: bool,
) -> None:
    """Lead to the pods of services on this node, for the API server that the kubeconfig names. What it has
    set up stays when it ends, and `podling down` removes it."""
    from podling.assemble.network import ProxyOptions, run

    with exit_on_start_error():
        run(
            ProxyOptions(instance, node_name or socket.gethostname().lower(), services, pods),
            kubeconfig,
            click.echo,
            healthz,
            metrics,
            enforces_policies=enforces_policies,
        )
