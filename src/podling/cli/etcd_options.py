"""The options of the etcd that an API server keeps its objects in, as kube-apiserver's."""

from __future__ import annotations

import functools
from typing import Any

import click

from podling.cli.options import FILE, Command, listed_names, together

ETCD = (
    click.option(
        "--etcd-servers",
        "etcd_servers",
        metavar="URL,...",
        default="",
        callback=listed_names,
        help="Keep objects in this etcd instead of the data directory, as kube-apiserver does.",
    ),
    click.option("--etcd-cafile", "etcd_ca", type=FILE, help="Whose certificates its members show."),
    click.option("--etcd-certfile", "etcd_certificate", type=FILE, help="What is shown to them, and"),
    click.option("--etcd-keyfile", "etcd_key", type=FILE, help="its key."),
)


def etcd(command: Command) -> Command:
    """All options of etcd, passed to the command together as `etcd`, the arguments of `EtcdOptions`."""

    @functools.wraps(command)
    def checked(*, etcd: dict[str, Any], **given: Any) -> Any:
        etcd = {name.removeprefix("etcd_"): value for name, value in etcd.items()}
        files = [name for name in ("ca", "certificate", "key") if etcd[name] is not None]
        if files and not etcd["servers"]:
            raise click.UsageError("--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers")
        if (etcd["certificate"] is None) != (etcd["key"] is None):
            raise click.UsageError("--etcd-certfile and --etcd-keyfile need each other")
        if etcd["servers"] and given.get("encryption", {}).get("keys") is not None:
            raise click.UsageError("--encryption-provider-config cannot be used with --etcd-servers")
        return command(etcd=etcd, **given)

    return together(checked, "etcd", ETCD, ("etcd_servers", "etcd_ca", "etcd_certificate", "etcd_key"))
