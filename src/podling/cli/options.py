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

_LIMITS = (
    ("maxage", "max_age_days", 366, "DAYS", "Remove rotated audit logs that are older; 0 keeps them."),
    (
        "maxbackup",
        "max_backups",
        100,
        "NUMBER",
        "Remove the oldest rotated audit logs beyond so many; 0 keeps them.",
    ),
    ("maxsize", "max_size_mib", 100, "MEGABYTES", "Rotate the audit log before it is longer; 0 never does."),
)
AUDIT = (
    click.option(
        "--audit-log",
        "path",
        default="",
        metavar="PATH|-|off",
        help="File of the audit log, - for standard output.  [default: audit.log in the data directory]",
    ),
    *(
        click.option(
            f"--audit-log-{limit}",
            name,
            type=click.IntRange(0),
            default=default,
            show_default=True,
            metavar=unit,
            help=text,
        )
        for limit, name, default, unit, text in _LIMITS
    ),
)
AUDIT_NAMES = ("path", *(name for _, name, *_ in _LIMITS))
service_range = click.option(
    "--service-cluster-ip-range",
    "service_range",
    default="",
    metavar="SUBNET",
    help="Where services get their addresses.  [default: the range of before, or one that is free here]",
)
KUBECONFIG = click.Path(path_type=Path, exists=True, dir_okay=False)
kubeconfig = click.option(
    "--kubeconfig", type=KUBECONFIG, required=True, help="Which API server, whom to trust, who we are."
)


def _instance(context: click.Context, parameter: click.Parameter, value: Path) -> Instance:
    return Instance.at(value)


def _gates(context: click.Context, parameter: click.Parameter, text: str) -> Gates:
    try:
        return Gates.parse(text)
    except ValueError as error:
        raise click.UsageError(f'invalid argument "{text}" for "--feature-gates" flag: {error}') from error


_data_dir = functools.partial(
    click.option,
    "--data-dir",
    "instance",
    type=click.Path(path_type=Path, file_okay=False),
    show_default=True,
    callback=_instance,
)
data_dir = _data_dir(
    default=DEFAULT_DATA_DIR,
    envvar="PODLING_DATA_DIR",
    is_eager=True,
    help="Where this podling keeps everything; podlings with different directories live side by side.",
)
node_dir = _data_dir(
    default=DEFAULT_NODE_DIR,
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
