"""Options that are addresses: where a part answers, and the servers of names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeVar

import click

from podling.cli import options

DNS_PORT = 53

F = TypeVar("F", bound=Callable[..., Any])


def _stubs(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    stubs: dict[str, list[str]] = {}
    for one in given:
        domain, equals, servers = one.partition("=")
        if not domain or not equals or not all(servers.split(",")):
            raise click.BadParameter(f"{one!r} is not DOMAIN=ADDRESS[,...]")
        stubs.setdefault(domain, []).extend(_servers(context, parameter, servers.split(",")))
    return stubs


def _servers(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> tuple[str, ...]:
    # The types of the API behind it are not for every command's start.
    from podling.model.rules.addresses import address_and_port

    for server in given:
        try:
            address_and_port(server, DNS_PORT)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return (*given,)


def names_elsewhere(prefix: str) -> Callable[[options.Command], options.Command]:
    """How cluster DNS answers names outside the cluster, by options that begin with `prefix`, passed to the
    command together as `elsewhere`, the arguments of `ElsewhereOptions`."""
    given_by = (
        click.option(
            f"{prefix}stub-domain",
            "stubs",
            callback=_stubs,
            multiple=True,
            metavar="DOMAIN=ADDRESS[,...]",
            help="Who is asked for the names of a domain instead of the machine's servers. May be repeated.",
        ),
        click.option(
            f"{prefix}upstream-nameserver",
            "servers",
            callback=_servers,
            multiple=True,
            metavar="ADDRESS[:PORT]",
            help="Who is asked for all other names instead of the machine's servers. May be repeated.",
        ),
        click.option(
            f"{prefix}autopath",
            "autopath",
            is_flag=True,
            help="Walk the search path of the pod that asks, so that a name takes it one question.",
        ),
    )
    return lambda command: options.together(command, "elsewhere", given_by, ("stubs", "servers", "autopath"))


def _place(context: click.Context, parameter: click.Parameter, given: str) -> tuple[str, int] | None:
    if not given:
        return None
    host, _, port = given.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        address = ip_address(host)
        if not 0 < int(port) < 1 << 16:
            raise ValueError(port)
    except ValueError as error:
        raise click.BadParameter(f"{given!r} is not ADDRESS:PORT") from error
    # As kube-proxy does: all addresses, whichever family's.
    return "" if address.is_unspecified else host, int(port)


def bind_address(name: str, attribute: str, default: str, what: str) -> Callable[[F], F]:
    """An address, empty for all of the machine, and a port; None for nowhere."""
    return click.option(
        name,
        attribute,
        default=default,
        show_default=True,
        callback=_place,
        metavar="ADDRESS:PORT",
        help=f"{what}; nowhere if empty.",
    )


def _address(context: click.Context, parameter: click.Parameter, given: str) -> str:
    if given:
        try:
            ip_address(given)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return given


advertise_address = click.option(
    "--advertise-address",
    "address",
    default="",
    callback=_address,
    metavar="ADDRESS",
    help="Where pods and nodes reach it; it listens there and on loopback.  [default: this machine's]",
)


def _of_both(parse: Callable[[str], IPv4Address | IPv6Address | IPv4Network | IPv6Network]) -> Any:
    """A callback: one of either family, or of IPv4 and, after a comma, of IPv6."""

    def checked(context: click.Context, parameter: click.Parameter, given: str) -> str:
        if given:
            try:
                versions = [parse(one).version for one in given.split(",")]
            except ValueError as error:
                raise click.BadParameter(str(error)) from error
            if versions not in ([4], [6], [4, 6]):
                raise click.BadParameter("it is one, or one of IPv4 and after a comma one of IPv6")
        return given

    return checked


node_ip = click.option(
    "--node-ip",
    default="",
    callback=_of_both(ip_address),
    metavar="ADDRESS[,ADDRESS]",
    help="Address of the node, of IPv4 and perhaps IPv6.  [default: this machine's]",
)
pod_cidr = click.option(
    "--pod-cidr",
    default="",
    callback=_of_both(ip_network),
    metavar="SUBNET[,SUBNET]",
    help="Subnet of the pods, of IPv4 and perhaps IPv6.  [default: one that is free here]",
)


def _ipv4_subnet(context: click.Context, parameter: click.Parameter, given: str) -> str:
    if given:
        try:
            if IPv4Network(given).prefixlen > 24:
                raise ValueError("it has no /24 for a node")
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return given


cluster_cidr = click.option(
    "--cluster-cidr",
    default="",
    callback=_ipv4_subnet,
    metavar="SUBNET",
    help="Of which nodes that join get a /24 for their pods.  [default: 10.64.0.0/14]",
)
