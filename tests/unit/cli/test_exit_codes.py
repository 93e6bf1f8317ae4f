"""The exit codes of commands for any cluster, as `docs/debugging.md` has them, and what is said with each."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

from podling.cli import cluster as of_cluster
from podling.cli.main import Finished, main
from podling.client import kubeconfig
from podling.debug.container import WishError
from podling.debug.progress import NoContainer, TooLate
from podling.model.errors import StatusError, not_found

CONFIG = (
    "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
    "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]}"
)


@pytest.fixture
def exit_code(tmp_path: Path) -> Callable[[Callable[[], Awaitable[int]]], int]:
    file = tmp_path / "config"
    file.write_text(CONFIG)

    def run(work: Callable[[], Awaitable[int]]) -> int:
        async def worked(_: Any) -> int:
            return await work()

        with pytest.raises(Finished) as ended:
            of_cluster.ask(of_cluster.Cluster(kubeconfig.read(file), "default"), worked)
        return ended.value.code

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WishError("no such target"), 1, "no such target"),
        (OSError("unreachable"), 1, "unreachable"),
        (not_found("pods", "web"), 1, 'pods "web" not found (NotFound)'),
        (StatusError(500, "", "no words"), 1, "no words (500)"),
        (TooLate("it does not run"), 124, "it does not run"),
        (NoContainer("there is no image"), 125, "there is no image"),
        (NoContainer("there is \x1b[2Jno image"), 125, "there is ^[[2Jno image"),
    ],
)
def test_what_goes_wrong_has_a_code_and_words(
    exit_code: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    said: str,
) -> None:
    async def fail() -> NoReturn:
        raise error

    assert exit_code(fail) == code
    assert capsys.readouterr() == ("", f"Error: {said}\n")


@pytest.mark.parametrize("code", [0, 7, 126, 137])
def test_a_command_ends_as_the_container_does(exit_code: Callable[..., int], code: int) -> None:
    async def end() -> int:
        return code

    assert exit_code(end) == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_has_its_own_code(exit_code: Callable[..., int], number: signal.Signals) -> None:
    """After everything was left in order."""
    left: list[bool] = []

    async def wait() -> int:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            left.append(True)
        return 0

    assert exit_code(wait) == 128 + number
    assert left


def test_an_interrupt_before_there_is_an_event_loop_is_130(tmp_path: Path) -> None:
    """While the first request is on its way."""

    async def wait(_: Any) -> NoReturn:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("goes on")

    with socket.create_server(("127.0.0.1", 0)) as server:
        file = tmp_path / "config"
        file.write_text(CONFIG.replace("127.0.0.1:1", f"127.0.0.1:{server.getsockname()[1]}"))
        to_it = of_cluster.Cluster(kubeconfig.read(file), "default")
        with pytest.raises(Finished) as ended:
            of_cluster.ask(to_it, wait, of_cluster.asked_pods("default", "web"), is_early=True)
    assert ended.value.code == 130


@pytest.mark.parametrize("words", [["--no-such-option"], ["--parallel=0"], ["web", "--rm"], []])
def test_a_wrong_command_line_is_2(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CONFIG)
    done = CliRunner().invoke(main, ["debug", "--kubeconfig", str(file), *words])
    assert (done.exit_code, "Error: " in done.output) == (2, True)
