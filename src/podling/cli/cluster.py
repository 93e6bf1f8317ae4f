"""The options by which a command finds a cluster, named as kubectl names them; how it is run, and fails."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from podling.cli import complete
from podling.cli.main import Finished

if TYPE_CHECKING:
    from podling.client.https import HttpsTransport
    from podling.client.kubeconfig import Access
    from podling.remote import pods as remote

ERROR, TIMED_OUT, NOT_STARTED = 1, 124, 125
"""Exit codes of commands that wait for a container; any other is the container's own."""
INTERRUPTED = 130
"""As shells say it of SIGINT."""


class Asked(NamedTuple):
    """A GET of the API."""

    path: str = ""
    query: Mapping[str, str] = {}


NOTHING = Asked()


def asked_pods(namespace: str, name: str = "", selector: str = "") -> Asked:
    """A pod, or those with these labels of a namespace, or of all. A name that cannot be one ends the
    command."""
    from podling.debug.container import WishError, pod_path

    try:
        return Asked(pod_path(namespace, name), {"labelSelector": selector} if selector else {})
    except WishError as error:
        fail(str(error))


def pod_name(given: str) -> str:
    """The name in POD, pod/POD or pods/POD."""
    name = given.removeprefix("pod/").removeprefix("pods/")
    if not name:
        raise click.UsageError("which pod? Its name is empty")
    return name


class Cluster(NamedTuple):
    """`is_named`: the namespace is not just that of the context."""

    access: Access
    namespace: str
    is_named: bool = False


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them; the command gets `cluster`."""

    @click.option(
        "--kubeconfig",
        "file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The cluster and who asks.  [default: $KUBECONFIG, else ~/.kube/config, else podling's]",
    )
    @click.option(
        "--context",
        default="",
        metavar="NAME",
        shell_complete=complete.contexts,
        help="Of the kubeconfig.  [default: its current one]",
    )
    @click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        shell_complete=complete.namespaces,
        help="[default: that of the context]",
    )
    @functools.wraps(command)
    def found(*arguments: Any, file: Path | None, context: str, namespace: str, **given: Any) -> Any:
        from podling.client import kubeconfig

        try:
            access = kubeconfig.read_merged(kubeconfigs(file), context)
        except kubeconfig.KubeconfigError as error:
            fail(str(error))
        cluster = Cluster(access, namespace or access.namespace, bool(namespace))
        return command(*arguments, cluster=cluster, **given)

    return found


def kubeconfigs(given: Path | None) -> list[Path]:
    """The file that is given, else those that kubectl would read, else that of this machine's podling."""
    if given is not None:
        return [given]
    if named := [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return named
    own = Path.home() / ".kube" / "config"
    if own.exists():
        return [own]
    from podling.machine.instance import DEFAULT_DATA_DIR, Instance

    of_podling = Instance.at(DEFAULT_DATA_DIR).kubeconfig
    return [of_podling if os.access(of_podling, os.R_OK) else own]


def ask(
    cluster: Cluster,
    work: Callable[[remote.Cluster], Awaitable[int]],
    first: Asked = NOTHING,
    *,
    is_early: bool = False,
) -> NoReturn:
    """Run `work` on the cluster and exit with what it returns; what goes wrong is said, with an exit code.
    `first` is what `work` asks for before all else, if that is known: it is sent before what `work` needs is
    imported. `is_early`: `work` begins before there is an event loop, and enters it by `event_loop`."""
    from podling.process import early

    async def asked() -> int:
        try:
            sent = cluster.access.send_first(first.path, first.query) if first.path else None
        except OSError as error:
            return tell(str(error))
        if sent is None or not is_early:
            await early.event_loop()
        transport = cluster.access.transport(sent)
        try:
            return await _told(transport, work)
        finally:
            await transport.close()

    try:
        code = early.run(asked(), _in_loop)
    except KeyboardInterrupt:
        code = INTERRUPTED
    with suppress(OSError):
        sys.stdout.flush()
    raise Finished(code)


async def _told(transport: HttpsTransport, work: Callable[[remote.Cluster], Awaitable[int]]) -> int:
    from podling.debug.container import WishError
    from podling.debug.progress import NoContainer, TooLate
    from podling.model.errors import StatusError
    from podling.remote import pods

    try:
        return await work(pods.Cluster(transport))
    except TooLate as error:
        return tell(str(error), TIMED_OUT)
    except NoContainer as error:
        return tell(str(error), NOT_STARTED)
    except StatusError as error:
        return tell(f"{error.message} ({error.reason or error.code})")
    except (WishError, OSError) as error:
        return tell(str(error))


def _in_loop(work: Awaitable[int]) -> int:
    """Run to the end and return what it returns; a signal that ends programs cancels it first, so that it
    leaves the terminal as it was."""
    import asyncio

    from podling.process.early import ENDING, release_signals

    async def watched() -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        ended_by = 0

        def end(number: int) -> None:
            nonlocal ended_by
            ended_by = number
            task.cancel()

        for number in ENDING:
            loop.add_signal_handler(number, end, number)
        release_signals()
        try:
            return await work
        except asyncio.CancelledError:
            return 128 + ended_by
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)

    return asyncio.run(watched())


def tell(message: str, code: int = ERROR) -> int:
    """What is wrong; the exit code."""
    from podling.model.codec.quoting import printable

    click.echo(f"Error: {printable(message)}", err=True)
    return code


def fail(message: str, code: int = ERROR) -> NoReturn:
    sys.exit(tell(message, code))
