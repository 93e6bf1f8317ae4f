"""`podling audit`: what the audit log has to say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from podling.cli import options
from podling.cli.tables import aligned
from podling.machine.instance import Instance


@click.group()
def audit() -> None:
    """Read the audit log."""


@audit.command()
@options.data_dir
@click.argument("pod", required=False)
@click.option("-n", "--namespace", help="Of the pods in this namespace.  [default: of all]")
@click.option("-o", "--output", type=click.Choice(["json", "wide"]), help="All there is to say of each.")
@click.option("--connections", is_flag=True, help="Also who reached in by exec, attach or port-forward.")
@click.option(
    "--file",
    "log",
    type=click.Path(path_type=Path),
    help="The audit log, with those rotated beside it.  [default: audit.log in the data directory]",
)
def debugged(
    instance: Instance,
    pod: str | None,
    namespace: str | None,
    output: str,
    connections: bool,
    log: Path | None,
) -> None:
    """Say who debugged POD, or any pod: when, with which image and rights, and whether it was allowed."""
    from podling.assemble.audit import NoLogError, debugged_in

    try:
        found = [
            one
            for one in debugged_in(log or instance.audit_log, connections=connections)
            if namespace in (None, one.namespace) and pod in (None, one.pod)
        ]
    except NoLogError as error:
        raise click.ClickException(f"{error}: --file says where it is, if podling keeps one") from error
    except PermissionError as error:
        raise click.ClickException(f"{error.filename} is for root to read: run podling with sudo") from error
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    elif not found:
        click.echo("Nobody that the audit log knows of.", err=True)
    else:
        for line in table(found, wide=output == "wide"):
            click.echo(line)


def table(found: Iterable[Any], *, wide: bool) -> list[str]:
    """The columns, as wide as their widest cell."""
    from podling.assemble.audit import rights_of

    heads = ["TIME", "USER", "NAMESPACE", "POD", "ACTION", "CONTAINER", "IMAGE", "RIGHTS", "ALLOWED"]
    more = ["TARGET", "PROFILE", "FROM", "COMMAND", "WHY NOT"]
    rows: list[Sequence[str]] = [heads + (more if wide else [])]
    for one in found:
        user = f"{one.user} as {one.impersonated_user}" if one.impersonated_user else one.user
        allowed = ("yes" if one.allowed else f"no ({one.code})") + (", dry run" if one.dry_run else "")
        rights = rights_of(one.security_context) if one.action == "debug" else ""
        row = [
            one.time[:19] + "Z",
            user,
            one.namespace,
            one.pod,
            one.action,
            one.container,
            one.image,
            rights,
        ]
        told = [one.target, one.profile, ",".join(one.source_ips), " ".join(one.command), one.reason]
        rows.append([*row, allowed, *(told if wide else ())])
    return aligned(rows)
