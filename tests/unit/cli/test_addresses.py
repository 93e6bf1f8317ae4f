"""`DOMAIN=ADDRESS[,...]`: what it means, and what is refused before anything starts."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from podling.cli.addresses import bind_address, names_elsewhere


@click.command()
@names_elsewhere("--dns-")
def command(elsewhere: dict[str, object]) -> None:
    click.echo(elsewhere)


def test_servers_of_a_domain_are_gathered() -> None:
    given = ["--dns-stub-domain=a.test=192.0.2.1,192.0.2.2:5353", "--dns-stub-domain=a.test=2001:db8::1"]
    stubs = {"a.test": ["192.0.2.1", "192.0.2.2:5353", "2001:db8::1"]}
    wanted = {"stubs": stubs, "servers": (), "autopath": False}
    assert CliRunner().invoke(command, given).output == f"{wanted}\n"


def test_servers_of_all_other_names_are_gathered() -> None:
    given = [
        "--dns-upstream-nameserver=192.0.2.1",
        "--dns-upstream-nameserver=[2001:db8::1]:54",
        "--dns-autopath",
    ]
    wanted = {"stubs": {}, "servers": ("192.0.2.1", "[2001:db8::1]:54"), "autopath": True}
    assert CliRunner().invoke(command, given).output == f"{wanted}\n"


@pytest.mark.parametrize("given", ["a.test", "=192.0.2.1", "a.test=", "a.test=ns.test", "a.test=192.0.2.1:x"])
def test_what_names_no_server_is_refused(given: str) -> None:
    assert CliRunner().invoke(command, ["--dns-stub-domain", given]).exit_code == 2
    server = given.removeprefix("a.test=")
    assert CliRunner().invoke(command, ["--dns-upstream-nameserver", server]).exit_code == 2


@click.command()
@bind_address("--bind", "place", "0.0.0.0:1", "Where")
def answering(place: tuple[str, int] | None) -> None:
    click.echo(place)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "('', 1)"),
        (("--bind=",), ""),
        (("--bind=[::]:80",), "('', 80)"),
        (("--bind=[::1]:80",), "('::1', 80)"),
        (("--bind=127.0.0.1:80",), "('127.0.0.1', 80)"),
    ],
)
def test_where_a_part_answers(given: tuple[str, ...], said: str) -> None:
    assert CliRunner().invoke(answering, given).output == f"{said}\n"


@pytest.mark.parametrize("given", ["127.0.0.1", "localhost:80", "127.0.0.1:0", "127.0.0.1:65536", ":80"])
def test_what_is_no_place_is_refused(given: str) -> None:
    assert CliRunner().invoke(answering, ["--bind", given]).exit_code == 2
