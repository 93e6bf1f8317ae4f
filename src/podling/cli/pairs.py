"""Options of the form NAME=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

import click


def pairs(
    context: click.Context, parameter: click.Parameter, given: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    found = [one.partition("=") for one in given]
    for name, sign, _ in found:
        if not name or not sign:
            raise click.BadParameter(f"{name or sign} must be formatted as key=value", context, parameter)
    return tuple((name, value) for name, _, value in found)
