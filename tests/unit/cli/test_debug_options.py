"""Every option of the commands for any cluster has a test, one that names it, in a file said here; their
help has examples, which are right."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

TESTS = Path(__file__).parents[2]
OF_CLUSTER = ("unit/cli/test_cluster_options.py",)
"""The options that all of them have, from one place."""
OF_CONTAINERS = ("unit/cli/test_cluster_options.py",)
FILES = {
    "debug": ("e2e/test_debug.py", "peer/test_debug_copies.py"),
    **dict.fromkeys(("capture", "cp", "logs", "sessions", "why"), OF_CONTAINERS),
}
SHARED = {"file", "context", "namespace"}


def options() -> list[tuple[str, str, tuple[str, ...]]]:
    """Command, the names of an option that mean the same, and where its test may stand."""
    found = []
    for command, files in FILES.items():
        made: click.Command = getattr(import_module(f"podling.cli.{command}"), command)
        for parameter in made.params:
            for names in (parameter.opts, parameter.secondary_opts):
                if names and names[0].startswith("-"):
                    where = OF_CLUSTER if parameter.name in SHARED else files
                    found.append((command, "|".join(names), where))
    return found


def is_named(option: str, text: str) -> bool:
    """As a word of a command line."""
    return re.search(rf'"({option})(?:[="]|$)', text, re.MULTILINE) is not None


@pytest.mark.parametrize(("command", "option", "files"), options())
def test_every_option_has_a_test(command: str, option: str, files: tuple[str, ...]) -> None:
    """That uses it, by one of its names."""
    assert any(is_named(option, (TESTS / file).read_text()) for file in files)


def test_an_option_without_a_test_is_found() -> None:
    assert is_named("-x|--example", 'run("--example=1")') and is_named("-x", '["-x", "1"]')
    assert not is_named("-x|--example", "--example") and not is_named("--ex", '"--example"')


@pytest.mark.parametrize("command", FILES)
def test_its_help_has_examples(command: str) -> None:
    """Of command lines that it takes; what stands behind a pipe is another's."""
    made: click.Command = getattr(import_module(f"podling.cli.{command}"), command)
    examples = re.findall(rf"^ *podling {command} ([^|\n]+)", made.help or "", re.MULTILINE)
    assert examples
    for example in examples:
        words = shlex.split(example)
        _, rest, _ = made.make_parser(click.Context(made)).parse_args(words)
        assert rest == []
