"""The `podling` command. Each subcommand is imported when it is used, because most need few of the parts."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module

import click

from podling import __version__

COMMANDS = {
    "apiserver": "Serve the Kubernetes API from a data directory.",
    "audit": "Say who debugged which pod, from the audit log.",
    "backup": "Write objects, certificates and keys to a file.",
    "capture": "Write the packets of a pod, on any cluster.",
    "controllers": "Reconcile objects, for an API server elsewhere.",
    "cp": "Copy files into containers and out of them, on any cluster.",
    "debug": "Add a container with tools to a running pod, on any cluster.",
    "dns": "Answer names, of an API server elsewhere.",
    "doctor": "Check kernel, cgroups, capabilities, ports and programs.",
    "down": "Stop everything; objects and images stay.",
    "feature-gates": "List the feature gates.",
    "images": "Pull, load and list images.",
    "join": "Make this machine a node of a cluster elsewhere.",
    "kubeconfig": "Write what the kubelet of another node needs.",
    "kubelet": "Run a node of an API server elsewhere.",
    "leave": "Take this machine out of its cluster.",
    "logs": "Show what containers print, on any cluster.",
    "migrate-storage": "Move all objects from the data directory to etcd, or back.",
    "network": "Lead to the pods of services, for an API server elsewhere.",
    "policies": "Say whom network policies let through.",
    "restore": "Replace objects, certificates and keys by a backup's.",
    "scheduler": "Give pods their nodes, for an API server elsewhere.",
    "services": "Say where the addresses of services lead to.",
    "sessions": "List the debug containers of a cluster.",
    "status": "Say whether podling runs, and what it runs.",
    "token": "Make, list and delete the tokens by which machines join.",
    "up": "Start everything in one process.",
    "why": "Say why a pod is not ready.",
}
"""Command → what `podling --help` says of it. It stands here so that to say it imports none of them."""


COLLECT_AFTER = 100_000
"""New objects."""


class Finished(SystemExit):
    """A command that leaves nothing behind: its process ends at once. To take apart all that it has imported
    would be a twentieth of its work."""

    code: int


class Commands(click.Group):
    """The command NAME is the object NAME of `podling.cli.NAME`, with `_` for `-`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        # What is imported stays: it is not looked through for garbage again and again, nor at the end.
        gc.set_threshold(COLLECT_AFTER)
        atexit.register(gc.freeze)
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"podling.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="podling")
def main() -> None:
    """Kubernetes pods in one Python process."""


def program(name: str | None = None) -> None:
    """`podling` as a process of its own, whose help calls it `name`."""
    try:
        main(prog_name=name)
    except Finished as end:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(end.code)
