"""Options that several commands share, so that they read and default alike.

Options that say what a node may use and must keep: Kubernetes' own, and its file with the same in it.

What they mean, and what is refused, is known to `assemble/kubelet_settings.py`, which is only asked when one
is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from podling.machine.instance import DEFAULT_DATA_DIR, DEFAULT_NODE_DIR, Instance
from podling.model.gates import Gates

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


def _instance(context: click.Context, parameter: click.Parameter, value: Path) -> Instance:
    return Instance.at(value)


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

mirrors = click.option(
    "--registry-mirror",
    "registry_mirrors",
    multiple=True,
    metavar="REGISTRY=URL",
    callback=_mirrors,
    help="Pull images of REGISTRY from URL, such as docker.io=http://127.0.0.1:5000. May be repeated.",
)

cri_endpoint = click.option(
    "--cri-endpoint", default="", help="Use this CRI v1 socket instead of a private containerd."
)

gates = click.option(
    "--feature-gates",
    "gates",
    default="",
    metavar="NAME=true|false,...",
    callback=_gates,
    help="Switch gates on or off; `podling feature-gates` lists them.",
)

debug_images = click.option(
    "--debug-image-allowlist",
    "debug_images",
    multiple=True,
    metavar="PATTERN",
    help="Start ephemeral containers only from images like PATTERN, such as registry:5000/tools/*. "
    "May be repeated.",
)

manifests = click.option(
    "--pod-manifest-path",
    "manifests",
    type=click.Path(path_type=Path),
    callback=lambda context, parameter, path: path.absolute() if path else None,
    help="Directory of manifests the kubelet runs as static pods, or one such file.",
)

unsafe_sysctls = click.option(
    "--allowed-unsafe-sysctls",
    "unsafe_sysctls",
    default="",
    metavar="NAME,...",
    callback=lambda context, parameter, text: tuple(filter(None, text.split(","))),
    help="Sysctls pods may set beside the safe ones; NAME may end in *.",
)


node_name = click.option("--node-name", default="", help="Name of the node.  [default: the host's name]")

NODE = (
    node_name,
    mirrors,
    cri_endpoint,
    gates,
    debug_images,
    manifests,
    unsafe_sysctls,
)


def node(command: Command) -> Command:
    """All options of a node; the command is given them as `NodeOptions` has them."""
    command = limits(command)
    for option in reversed(NODE):
        command = option(command)
    return command


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
    """All options of the audit log, given to the command together as `audit`: what `AuditOptions` takes."""

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
    """`--kubeconfig` of a part; without it the `file` an API server has written into its data directory."""

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
