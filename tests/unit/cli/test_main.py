"""The command line alone: what it takes, what it refuses, and that it imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podling.cli.main import COMMANDS, main


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        shown = CliRunner().invoke(main, [name, "--help"])
        assert shown.exit_code == 0, shown.output
        assert "--help" in shown.output


def test_the_list_of_commands_tells_each_on_a_line_of_its_own() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output.partition("Commands:\n")[2].splitlines()
    assert [line.split(maxsplit=1) for line in shown] == [[name, told] for name, told in COMMANDS.items()]
    assert all(told.endswith(".") and not told.endswith("...") for told in COMMANDS.values())


def leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for below, found in command.commands.items():
            yield from leaves(f"{name} {below}", found)
    else:
        yield name, command


def test_every_command_takes_a_data_directory_or_a_kubeconfig() -> None:
    """Those of this machine the one, those of any cluster the other."""
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command
        for path, leaf in leaves(name, command):
            words = {word for option in leaf.params for word in option.opts}
            assert words & {"--data-dir", "--context"}, path


@pytest.mark.parametrize(
    ("part", "file"),
    [
        ("scheduler", "scheduler.conf"),
        ("controllers", "controller-manager.conf"),
        ("network", "kube-proxy.conf"),
    ],
)
def test_a_part_finds_its_kubeconfig_in_the_data_directory(part: str, file: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, [part, "--data-dir", str(tmp_path)])
    assert (refused.exit_code, f"{tmp_path / file}' does not exist" in refused.output) == (2, True)
    (tmp_path / file).write_text("kind: Config")
    refused = CliRunner().invoke(main, [part, "--data-dir", str(tmp_path)])
    assert refused.exit_code == 1 and str(tmp_path / file) in refused.output


def test_an_unknown_command_is_named() -> None:
    refused = CliRunner().invoke(main, ["upp"])
    assert refused.exit_code == 2
    assert "No such command 'upp'" in refused.output


@pytest.mark.parametrize(
    "mirror", ["docker.io", "=http://x", "docker.io=", "docker.io=ftp://x", "docker.io=x:5000"]
)
def test_a_mirror_that_is_none_is_refused_with_an_example(mirror: str) -> None:
    refused = CliRunner().invoke(main, ["up", "--data-dir", "/nonexistent", "--registry-mirror", mirror])
    assert refused.exit_code == 2
    assert "REGISTRY=URL, such as docker.io=http://127.0.0.1:5000" in refused.output


@pytest.mark.parametrize("port", ["0", "65536", "https"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    refused = CliRunner().invoke(main, ["up", "--data-dir", "/nonexistent", "--port", port])
    assert refused.exit_code == 2
    assert "--port" in refused.output


@pytest.mark.parametrize(
    ("command", "modules"),
    [("up", ["podling.kubelet.config", "podling.kubelet.options"]), ("status", []), ("apiserver", [])],
)
def test_the_options_of_a_kubelet_bring_nothing_of_it(command: str, modules: list[str]) -> None:
    code = (
        f"import sys, podling.cli.{command}; "
        "print(sorted(m for m in sys.modules if m.startswith('podling.kubelet.') and m.count('.') == 2))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{modules}\n"


def test_a_process_divides_before_it_has_any_part_or_thread() -> None:
    """`up --detach`: what is imported before is all that the command that waits needs."""
    code = (
        "import sys, threading; import podling.cli.up as up; from podling.cli.main import main; "
        "parts = {'aiohttp', 'asyncio', 'cryptography', 'grpc', 'podling.assemble', 'uvloop', 'yaml'}; "
        "said = lambda: f'{sorted(parts & sys.modules.keys())} {threading.active_count()}'; "
        "up.fork_into_background = lambda log: sys.exit(said()); "
        "main(['up', '--detach', '--data-dir', '/nonexistent'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[] 1\n"


@pytest.mark.parametrize(
    ("given", "why"),
    [("Nothing=true", "unrecognized feature gate: Nothing"), ("DebugSubresource", "missing bool value for")],
)
def test_a_gate_that_is_none_is_refused_as_kubernetes_does(given: str, why: str) -> None:
    refused = CliRunner().invoke(main, ["up", "--data-dir", "/nonexistent", "--feature-gates", given])
    assert refused.exit_code == 2
    assert f'invalid argument "{given}" for "--feature-gates" flag: {why}' in refused.output


def test_a_command_ends_without_looking_for_garbage() -> None:
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_count()[0] < 100 < gc.get_freeze_count())); "
        "from podling.cli.main import main; main(['doctor', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
