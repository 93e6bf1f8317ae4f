"""The options of how many requests are answered at a time, refused as by kube-apiserver."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from podling.apiserver.fairness.fairness import DEFAULT_LIMITS
from podling.assemble.settle import InFlightOptions
from podling.cli.options import in_flight


@click.command()
@in_flight
def told(in_flight: dict[str, Any]) -> None:
    click.echo(repr(InFlightOptions(**in_flight)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), InFlightOptions()),
        (("--max-requests-inflight=0",), InFlightOptions(reads=0)),
        (("--max-mutating-requests-inflight=7",), InFlightOptions(writes=7)),
        (("--enable-priority-and-fairness=false",), InFlightOptions(is_fair=False)),
    ],
)
def test_what_is_given_is_what_the_server_is_told(given: tuple[str, ...], expected: InFlightOptions) -> None:
    assert CliRunner().invoke(told, given).output == f"{expected!r}\n"


def test_the_defaults_are_those_of_the_server() -> None:
    options = InFlightOptions()
    assert (options.reads, options.writes, options.is_fair) == (
        DEFAULT_LIMITS.reads,
        DEFAULT_LIMITS.writes,
        DEFAULT_LIMITS.is_fair,
    )


@pytest.mark.parametrize("more", [(), ("--enable-priority-and-fairness=false",)])
def test_no_seats_at_all_are_refused_where_all_share_them(more: tuple[str, ...]) -> None:
    none = ("--max-requests-inflight=0", "--max-mutating-requests-inflight=0")
    done = CliRunner().invoke(told, [*none, *more])
    assert (done.exit_code == 0) is bool(more)
    assert more or "they must add up to something positive" in done.output
