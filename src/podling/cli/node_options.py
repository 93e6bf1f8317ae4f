"""Options of a node, which `podling up` and `podling kubelet` share.

Those of the kubelet are made from `kubelet/options/table.py`. `assemble/kubelet_settings.py` reads what was
given, and is imported only when something was.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from podling.cli.options import Command, gates
from podling.kubelet.options.table import ALONE, OPTIONS, Option

_config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="File of a KubeletConfiguration with any of these settings. Command-line options override the file.",
)

cri_endpoint = click.option(
    "--cri-endpoint", default="", help="Use this CRI v1 socket instead of a private containerd."
)
node_name = click.option("--node-name", default="", help="Name of the node.  [default: the host's name]")


def settings(command: Command, options: Sequence[Option] = OPTIONS) -> Command:
    """The kubelet's options; the command is given those that were set as `settings`."""
    offered = [option for option in options if option.flag]

    @functools.wraps(command)
    def collected(*, config: Path | None, **given: Any) -> Any:
        values = {option.flag: given.pop(option.attribute) for option in offered}
        # click gives None for what was not set, () for what may be set several times.
        flags = {flag: value for flag, value in values.items() if value not in (None, ())}
        if config is None and not flags:
            return command(settings={}, **given)
        from podling.assemble.kubelet_settings import SettingError, chosen

        try:
            values = dict(chosen(config, flags))
        except SettingError as error:
            raise click.UsageError(f"invalid configuration: {error}") from error
        return command(settings=values, **given)

    decorated: Command = _config(collected)
    for option in reversed(offered):
        decorated = click.option(
            option.flag,
            option.attribute,
            metavar=option.metavar,
            multiple=option.is_repeated,
            help=f"{option.help}  [default: {option.default}]" if option.default else option.help,
        )(decorated)
    return decorated


def _mirrors(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    mirrors = {}
    for text in given:
        registry, separator, url = text.partition("=")
        if not (registry and separator and url.startswith(("http://", "https://"))):
            raise click.BadParameter(
                f"{text!r} is not REGISTRY=URL, such as docker.io=http://127.0.0.1:5000",
                param_hint="--registry-mirror",
            )
        mirrors[registry] = url
    return mirrors


mirrors = click.option(
    "--registry-mirror",
    "registry_mirrors",
    multiple=True,
    metavar="REGISTRY=URL",
    callback=_mirrors,
    help="Pull images of REGISTRY from URL, such as docker.io=http://127.0.0.1:5000. May be repeated.",
)

NODE = (node_name, mirrors, cri_endpoint, gates)


def node(command: Command, options: Sequence[Option] = OPTIONS) -> Command:
    """All options of a node; the command is given them as `NodeOptions` has them."""
    command = settings(command, options)
    for option in reversed(NODE):
        command = option(command)
    return command


def node_alone(command: Command) -> Command:
    """Those of a node whose cluster is elsewhere."""
    return node(command, (*ALONE, *OPTIONS))
