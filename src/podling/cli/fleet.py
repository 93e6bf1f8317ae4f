"""What `podling debug` prints of many pods: a line for each as it is done, then all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podling.cli.debug_options import OfFleet
from podling.cli.tables import aligned, structured

if TYPE_CHECKING:
    from podling.model.types.pod import Pod
    from podling.remote.adding import Request
    from podling.remote.fleet import Outcome
    from podling.remote.pods import Cluster

HEADS = ["NAMESPACE", "POD", "RESULT", "TOOK", "FIRST LINE"]
WIDE = ["CONTAINER", "LINES"]


async def debug_fleet(
    cluster: Cluster, request: Request, pods: Sequence[Pod], asked: OfFleet, *, quiet: bool
) -> int:
    """0 if the command succeeded in all of them."""
    from podling.remote.fleet import debug_all

    done = 0

    def tell(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if asked.save is not None:
            file = asked.save / outcome.namespace / f"{outcome.pod}.log"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(outcome.output)
        if asked.output in (None, "wide") and not quiet:
            click.echo(f"{done}/{len(pods)}  {outcome.namespace}/{outcome.pod}  {_became(outcome)}", err=True)

    outcomes = await debug_all(cluster, request, pods, asked.parallel, tell)
    if asked.output in ("json", "yaml"):
        click.echo(structured(outcomes, asked.output))
    elif asked.output == "name":
        for one in outcomes:
            if not one.succeeded:
                click.echo(f"{one.namespace}/{one.pod}")
    elif outcomes:
        is_wide = asked.output == "wide"
        rows = [[*HEADS, *(WIDE if is_wide else ())]]
        for one in outcomes:
            lines = one.output.splitlines()
            more = [one.container, str(len(lines))] if is_wide else []
            row = [one.namespace, one.pod, _became(one), f"{one.seconds:.1f}s", next(iter(lines), "")]
            rows.append([*row, *more])
        click.echo("\n".join(aligned(rows)))
    else:
        click.echo("No pods found.", err=True)
    return 0 if all(one.succeeded for one in outcomes) else 1


def _became(outcome: Outcome) -> str:
    if outcome.exit_code is None:
        from podling.model.codec.quoting import printable

        return printable(f"not debugged: {outcome.why_not}")
    return "ok" if outcome.succeeded else f"exit code {outcome.exit_code}"
