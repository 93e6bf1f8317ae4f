"""Options that are addresses: where a part answers, and the servers of domains."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _stubs(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]]:
    stubs: dict[str, list[str]] = {}
    for one in given:
        domain, equals, servers = one.partition("=")
        if not domain or not equals or not all(servers.split(",")):
            raise click.BadParameter(f"{one!r} is not DOMAIN=ADDRESS[,...]")
        for server in servers.split(","):
            host, _, port = server.rpartition(":") if server.count(":") == 1 else (server, "", "53")
            try:
                ip_address(host)
                int(port)
            except ValueError as error:
                raise click.BadParameter(f"{server!r} is no ADDRESS or ADDRESS:PORT") from error
        stubs.setdefault(domain, []).extend(servers.split(","))
    return stubs


def stub_domains(name: str) -> Callable[[F], F]:
    return click.option(
        name,
        "stubs",
        callback=_stubs,
        multiple=True,
        metavar="DOMAIN=ADDRESS[,...]",
        help="Who is asked for the names of a domain instead of the machine's servers. May be repeated.",
    )


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
