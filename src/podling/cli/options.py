"""Options that several commands share, so that they read and default alike."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from podling.machine.instance import DEFAULT_DATA_DIR, DEFAULT_NODE_DIR, Instance
from podling.model.gates import Gates

Command = Callable[..., Any]


def _instance(context: click.Context, parameter: click.Parameter, value: Path) -> Instance:
    return Instance.at(value)


def _gates(context: click.Context, parameter: click.Parameter, text: str) -> Gates:
    try:
        return Gates.parse(text)
    except ValueError as error:
        raise click.UsageError(f'invalid argument "{text}" for "--feature-gates" flag: {error}') from error


data_dir = click.option(
    "--data-dir",
    "instance",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_DATA_DIR,
    show_default=True,
    envvar="PODLING_DATA_DIR",
    callback=_instance,
    is_eager=True,
    help="Where this podling keeps everything; podlings with different directories live side by side.",
)

node_dir = click.option(
    "--data-dir",
    "instance",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_NODE_DIR,
    show_default=True,
    callback=_instance,
    help="Where the node keeps its pods' files and its runtime; not an API server's directory.",
)

gates = click.option(
    "--feature-gates",
    "gates",
    default="",
    metavar="NAME=true|false,...",
    callback=_gates,
    help="Switch gates on or off; `podling feature-gates` lists them.",
)

AUDIT = (
    click.option(
        "--audit-log",
        "path",
        default="",
        metavar="PATH|-|off",
        help="File of the audit log, - for standard output.  [default: audit.log in the data directory]",
    ),
    click.option(
        "--audit-log-maxage",
        "max_age_days",
        type=click.IntRange(0),
        default=366,
        show_default=True,
        metavar="DAYS",
        help="Remove rotated audit logs that are older; 0 keeps them.",
    ),
    click.option(
        "--audit-log-maxbackup",
        "max_backups",
        type=click.IntRange(0),
        default=100,
        show_default=True,
        metavar="NUMBER",
        help="Remove the oldest rotated audit logs beyond so many; 0 keeps them.",
    ),
    click.option(
        "--audit-log-maxsize",
        "max_size_mib",
        type=click.IntRange(0),
        default=100,
        show_default=True,
        metavar="MEGABYTES",
        help="Rotate the audit log before it is longer; 0 never does.",
    ),
)
AUDIT_NAMES = ("path", "max_age_days", "max_backups", "max_size_mib")


def audit(command: Command) -> Command:
    """All options of the audit log, passed to the command together as `audit`, the arguments of
    `AuditOptions`."""

    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        return command(audit={name: given.pop(name) for name in AUDIT_NAMES}, **given)

    wrapped: Command = gathering
    for option in reversed(AUDIT):
        wrapped = option(wrapped)
    return wrapped


KUBECONFIG = click.Path(path_type=Path, exists=True, dir_okay=False)
kubeconfig = click.option(
    "--kubeconfig", type=KUBECONFIG, required=True, help="Which API server, whom to trust, who we are."
)


def kubeconfig_in(file: str) -> Callable[[Command], Command]:
    """The option `--kubeconfig` of a part. Its default is the `file` that an API server has written into its
    data directory."""

    def found(context: click.Context, parameter: click.Parameter, given: Path | None) -> Path:
        path: Path = given or context.params["instance"].data_dir / file
        if not path.is_file():
            raise click.BadParameter(f"{str(path)!r} does not exist", param_hint="--kubeconfig")
        return path

    def both(command: Command) -> Command:
        option = click.option(
            "--kubeconfig",
            type=KUBECONFIG,
            callback=found,
            help=f"Which API server, whom to trust, who we are.  [default: {file} in the data directory]",
        )
        return data_dir(option(command))

    return both
