"""The `podling` command. Each subcommand is imported when it is used, because most need few of the parts."""

from __future__ import annotations

from importlib import import_module

import click

from podling import __version__

COMMANDS = (
    "apiserver",
    "backup",
    "controllers",
    "doctor",
    "down",
    "feature-gates",
    "images",
    "kubeconfig",
    "kubelet",
    "restore",
    "scheduler",
    "status",
    "up",
)


class Commands(click.Group):
    """The command NAME is the object NAME of `podling.cli.NAME`, with `_` for `-`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"podling.cli.{name}"), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="podling")
def main() -> None:
    """Kubernetes pods in one Python process."""
