"""The options of `podling debug`, in groups: of the container, of the session, of copies, of many pods."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from podling.cli import complete, debug_modes
from podling.cli.pairs import pairs
from podling.debug.container import IMAGE, Wish, WishError
from podling.debug.copies import Copy
from podling.debug.profiles import AUTO, PROFILES
from podling.debug.tools import FILE, TOOLS, image_for

if TYPE_CHECKING:
    from podling.remote.recording import Unrecorded

PULLS = ("Always", "IfNotPresent", "Never")
TIMEOUT = click.option(
    "--timeout", type=click.FloatRange(0), default=120.0, show_default=True, metavar="SECONDS"
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Say nothing of what is going on.")

Command = Callable[..., Any]


def document(file: TextIO, option: str) -> dict[str, Any]:
    """The mapping in a file of YAML."""
    import yaml

    try:
        found = yaml.safe_load(file)
    except yaml.YAMLError as error:
        raise click.UsageError(f"{option}: {error}") from error
    if not isinstance(found, dict):
        raise click.UsageError(f"{option}: {file.name} has no object in it")
    return found


class OfContainer(NamedTuple):
    container: str
    image: str
    tools: str
    target: str
    like_target: bool
    root: bool
    stdin: bool
    tty: bool
    profile: str
    env: tuple[tuple[str, str], ...]
    pull: str | None
    arguments_only: bool
    custom: TextIO | None

    def wish(
        self, command: tuple[str, ...], default_image: str, session: OfSession, *, is_typed: bool
    ) -> Wish:
        """`is_typed`: somebody sits at a terminal, and gets one where no command says otherwise."""
        is_shell = is_typed and not (self.stdin or self.tty or command)
        image = self.image or (_image_for(self.tools) if self.tools else default_image)
        return Wish(
            image,
            self.target,
            command,
            self.arguments_only,
            self.env,
            self.pull or "",
            stdin=self.stdin or is_shell,
            tty=self.tty or is_shell,
            like_target=self.like_target,
            root=self.root,
            idle=session.idle_timeout,
            ends_with_session=session.end_with_session,
        )


def _image_for(name: str) -> str:
    """The image for what `--tools` names."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / FILE
    own: dict[str, Any] = {}
    if home.exists():
        with home.open() as file:
            own = document(file, str(home))
    try:
        return image_for(name, own)
    except WishError as error:
        raise click.UsageError(str(error)) from error


class OfSession(NamedTuple):
    new: bool
    detach: bool
    end_with_session: bool
    idle_timeout: int
    stop: bool
    explain: bool
    timeout: float
    quiet: bool
    record: Path | None
    record_input: bool

    @contextmanager
    def recorded(self) -> Iterator[Unrecorded]:
        """What is shown in the block goes into the file that is asked for. Raises OSError."""
        from podling.remote import terminal
        from podling.remote.recording import recording

        if self.record is None:
            yield terminal.NOT_RECORDED
            return
        size = terminal.size(0) or terminal.USUAL
        words = shlex.join(["podling", *sys.argv[1:]])
        tell = (lambda _: None) if self.quiet else functools.partial(click.echo, err=True)
        with recording(self.record, size, words, keeps_input=self.record_input, tell=tell) as made:
            yield made


class OfCopy(NamedTuple):
    copy_to: str
    hold: str
    replace: bool
    remove: bool
    ttl: int
    same_node: bool
    share_processes: bool
    images: tuple[tuple[str, str], ...]
    keep_labels: bool
    keep_annotations: bool
    keep_liveness: bool
    keep_readiness: bool
    keep_startup: bool
    keep_init_containers: bool

    def copy(self, default_name: str) -> Copy:
        kept = {
            "labels": self.keep_labels,
            "annotations": self.keep_annotations,
            "liveness": self.keep_liveness,
            "readiness": self.keep_readiness,
            "startup": self.keep_startup,
        }
        return Copy(
            self.copy_to or default_name,
            frozenset(name for name, is_kept in kept.items() if is_kept),
            self.keep_init_containers,
            self.same_node,
            self.share_processes,
            self.images,
            self.ttl,
        )


def check_used_together(mode: str) -> None:
    """Raises UsageError for an option of the command line that says nothing of this."""
    context = click.get_current_context()
    of_line = click.core.ParameterSource.COMMANDLINE
    given = [name for name in context.params if context.get_parameter_source(name) is of_line]
    if found := debug_modes.refused(mode, given):
        name, why = found
        (parameter,) = (one for one in context.command.params if one.name == name)
        raise click.UsageError(f"{max(parameter.opts, key=len)} {why}")


class OfFleet(NamedTuple):
    selector: str
    all_namespaces: bool
    parallel: int
    save: Path | None
    output: str | None


def group(
    name: str, made: Callable[..., Any], *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """A decorator: the command has these options, and gets them as `name`, a `made` of them."""
    fields: tuple[str, ...] = made._fields  # type: ignore[attr-defined]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def grouped(*arguments: Any, **given: Any) -> Any:
            own = {field: given.pop(field) for field in fields}
            return command(*arguments, **given, **{name: made(**own)})

        decorated: Command = grouped
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def profile(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--profile",
        type=click.Choice([AUTO, *PROFILES]),
        default=default,
        show_default=True,
        help="The container's rights; auto is the strongest that pod and namespace allow.",
    )


class OfHelper(NamedTuple):
    """Of a container that a command adds to a pod for its own work."""

    image: str
    profile: str
    timeout: float
    quiet: bool


def of_helper(image: str, default_profile: str, about: str) -> Callable[[Command], Command]:
    """`about` says of the image what it is."""
    shown = click.option("-m", "--image", default=image, show_default=True, metavar="IMAGE", help=about)
    return group("helper", OfHelper, shown, profile(default_profile), TIMEOUT, QUIET)


of_container = group(
    "of_container",
    OfContainer,
    click.option(
        "-c",
        "--container",
        default="",
        metavar="NAME",
        shell_complete=complete.containers,
        help="Name of the container.  [default: debug]",
    ),
    click.option(
        "-m", "--image", default="", metavar="IMAGE", help=f"What to debug with.  [default: {IMAGE}]"
    ),
    click.option(
        "--tools", default="", metavar="NAME", help=f"An image for {', '.join(TOOLS)} or of your own list."
    ),
    click.option(
        "--target",
        default="",
        metavar="CONTAINER",
        shell_complete=complete.containers,
        help="See the processes of this container, too.",
    ),
    click.option("--like-target", is_flag=True, help="With its mounts, environment, user and directory."),
    click.option("--root", is_flag=True, help="With the target's files as /, and the tools beside them."),
    click.option("-i", "--stdin", is_flag=True, help="Pass on what is typed.  [default: if it is typed]"),
    click.option(
        "-t", "--tty", is_flag=True, help="Give the command a terminal.  [default: if there is one]"
    ),
    profile(AUTO),
    click.option("--env", multiple=True, callback=pairs, metavar="NAME=VALUE", help="Environment variables."),
    click.option("--image-pull-policy", "pull", type=click.Choice(PULLS), default=None),
    click.option(
        "--arguments-only", is_flag=True, help="Pass COMMAND as arguments of the image's own command."
    ),
    click.option("--custom", type=click.File(), help="YAML or JSON with more of the container."),
)
of_session = group(
    "of_session",
    OfSession,
    click.option("--new", is_flag=True, help="Another session, also where one runs."),
    click.option("-d", "--detach", is_flag=True, help="Do not wait for the container."),
    click.option("--end-with-session", is_flag=True, help="End the container when you leave it."),
    click.option(
        "--idle-timeout",
        type=click.IntRange(0),
        default=0,
        metavar="SECONDS",
        help="End a terminal after that time without input and output.",
    ),
    click.option("--stop", is_flag=True, help="End the debug container of POD, or POD/NAME."),
    click.option(
        "--explain", is_flag=True, help="Show what would be sent and who judges it, and send nothing."
    ),
    TIMEOUT,
    QUIET,
    click.option(
        "--record",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Keep what is shown in a new file, for asciinema.",
    ),
    click.option("--record-input", is_flag=True, help="And what is typed, passwords too."),
)
of_copy = group(
    "of_copy",
    OfCopy,
    click.option("--copy-to", default="", metavar="NAME", help="Debug in a copy of the pod, beside it."),
    click.option("--hold", default="", metavar="INIT", help="In a copy, stand still at this init container."),
    click.option("--replace", is_flag=True, help="Delete the pod that was copied."),
    click.option("--rm", "remove", is_flag=True, help="Delete the copy, or the pod on a node, at the end."),
    click.option(
        "--ttl", type=click.IntRange(0), default=0, metavar="SECONDS", help="End it after that time."
    ),
    click.option("--same-node", is_flag=True, help="Put the copy where the pod is."),
    click.option("--share-processes/--no-share-processes", default=True, help="Of the copy's containers."),
    click.option(
        "--set-image",
        "images",
        multiple=True,
        callback=pairs,
        metavar="NAME=IMAGE",
        help="In the copy; * is all.",
    ),
    click.option("--keep-labels", is_flag=True, help="In the copy; it may then be taken for the pod."),
    click.option("--keep-annotations", is_flag=True, help="In the copy."),
    click.option("--keep-liveness", is_flag=True, help="Keep probes in the copy."),
    click.option("--keep-readiness", is_flag=True, help="Keep probes in the copy."),
    click.option("--keep-startup", is_flag=True, help="Keep probes in the copy."),
    click.option("--keep-init-containers/--no-keep-init-containers", default=True, help="In the copy."),
)
of_fleet = group(
    "of_fleet",
    OfFleet,
    click.option("-l", "--selector", default="", metavar="SELECTOR", help="In all pods with these labels."),
    click.option("-A", "--all-namespaces", is_flag=True, help="In pods of all namespaces."),
    click.option(
        "--parallel", type=click.IntRange(1), default=20, show_default=True, help="So many at a time."
    ),
    click.option("--save", type=click.Path(path_type=Path, file_okay=False), help="Where outputs are kept."),
    click.option("-o", "--output", type=click.Choice(["json", "yaml", "wide", "name"]), help="Of many pods."),
)
