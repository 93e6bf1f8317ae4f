"""Options that say what a node may use and must keep: Kubernetes' own, and its file with the same in it.

What they mean, and what is refused, is known to `assemble/kubelet_settings.py`, which is only asked when one
is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

THRESHOLDS = (
    "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,"
    "imagefs.available<15%,imagefs.inodesFree<5%"
)

LIMITS = (
    ("--max-pods", "NUMBER", "How many pods the node takes.  [default: 110]"),
    ("--pod-max-pids", "NUMBER", "Processes and threads a pod may have.  [default: -1, no limit]"),
    ("--max-parallel-image-pulls", "NUMBER", "Images pulled at a time.  [default: as many as are asked for]"),
    ("--image-pull-progress-deadline", "DURATION", "Give up a pull that gets on no longer.  [default: 5m]"),
    ("--image-gc-high-threshold", "PERCENT", "Disk use above which images are removed.  [default: 85]"),
    ("--image-gc-low-threshold", "PERCENT", "Disk use down to which they are.  [default: 80]"),
    ("--container-log-max-size", "SIZE", "Rotate a container's log when it is so long.  [default: 10Mi]"),
    ("--container-log-max-files", "NUMBER", "Files a container's log may be in.  [default: 5]"),
    (
        "--eviction-hard",
        "SIGNAL<AMOUNT,...",
        f"Evict pods at once when the node has less left.  [default: {THRESHOLDS}]",
    ),
    ("--eviction-soft", "SIGNAL<AMOUNT,...", "Evict pods when the node has had less left for a while."),
    ("--eviction-soft-grace-period", "SIGNAL=DURATION,...", "For how long, for each soft threshold."),
    (
        "--eviction-max-pod-grace-period",
        "SECONDS",
        "Grace of pods evicted for a soft threshold, at most.  [default: 0]",
    ),
    ("--eviction-minimum-reclaim", "SIGNAL=AMOUNT,...", "What must be free beyond a threshold once crossed."),
    (
        "--eviction-pressure-transition-period",
        "DURATION",
        "How long a node is called under pressure after it was last.  [default: 5m]",
    ),
)

_config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="File of a KubeletConfiguration with any of these limits; options win over it.",
)


def limits(command: Command) -> Command:
    """All of them; the command is given those that differ from the default as `settings`."""

    @functools.wraps(command)
    def collected(*, config: Path | None, **given: Any) -> Any:
        flags = {flag: given.pop(_name(flag)) for flag, _, _ in LIMITS}
        return command(settings=_chosen(config, flags), **given)

    decorated: Command = _config(collected)
    for flag, metavar, text in reversed(LIMITS):
        decorated = click.option(flag, _name(flag), metavar=metavar, help=text)(decorated)
    return decorated


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _chosen(config: Path | None, flags: dict[str, str | None]) -> dict[str, Any]:
    given = {flag: text for flag, text in flags.items() if text is not None}
    if config is None and not given:
        return {}
    from podling.assemble.kubelet_settings import SettingError, chosen

    try:
        return dict(chosen(config, given))
    except SettingError as error:
        raise click.UsageError(f"invalid configuration: {error}") from error
