"""The documentation says what is there, and all of it: commands, options, files, names."""

from __future__ import annotations

import re
import runpy
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlparse

import click
import pytest
import yaml

from podling.cli.main import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
COMMANDS_PAGE = ROOT / "docs/commands.md"
DEBUGGING = ROOT / "docs/debugging.md"
DOCUMENTS = sorted([README, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
TRANSCRIPT = runpy.run_path(str(ROOT / "examples/neato/transcript.py"))

TEXTS = {path: path.read_text() for path in DOCUMENTS}


def commands(command: click.Command, name: str = "podling") -> Iterator[tuple[str, click.Command]]:
    """Every command by the words that run it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from commands(inner, f"{name} {word}")


def options(command: click.Command) -> set[str]:
    """Those a user may give; hidden ones are podling's own."""
    with click.Context(command) as context:
        shown = [p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden]
    return {spelling for option in shown for spelling in (*option.opts, *option.secondary_opts)}


COMMANDS = dict(commands(main))


def code(text: str) -> list[str]:
    """Everything set as code: `spans` one by one, blocks by line; of what a console showed, the input."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        spans += [line for line in lines if language != "console" or line.startswith("$ ")]
    return spans


def runs(text: str) -> Iterator[tuple[str, list[str]]]:
    """(command, options) of every podling command in the text."""
    for line in code(text):
        found = re.search(r"(?:^|\$ |sudo |bin/)(podling(?: .*)?)$", line.partition("#")[0].strip())
        if found:
            # What follows `--` is another program's.
            words = found.group(1).partition(" -- ")[0].split()
            known = [" ".join(words[:n]) for n in (1, 2, 3) if " ".join(words[:n]) in COMMANDS]
            asked = known[-1] if known else found.group(1)
            yield asked, [word.partition("=")[0] for word in words if word.startswith("-")]


def test_every_command_in_the_documents_exists() -> None:
    for document, text in TEXTS.items():
        for asked, given in runs(text):
            command = COMMANDS[asked]
            does_something = not isinstance(command, click.Group) or command.invoke_without_command
            assert does_something or given, f"{document}: `{asked}` alone does nothing"
            assert set(given) <= options(command), (document, asked)


def test_every_command_is_on_the_page_of_commands() -> None:
    shown = {asked for asked, _ in runs(COMMANDS_PAGE.read_text())}
    assert {name for name, command in COMMANDS.items() if not isinstance(command, click.Group)} <= shown


def test_every_option_is_documented() -> None:
    text = COMMANDS_PAGE.read_text() + DEBUGGING.read_text()
    words = {word for span in code(text) for word in re.split(r"[\s,=\[\]]", span)}
    unnamed = {name: options(command) - words for name, command in COMMANDS.items()}
    assert not {name: spellings for name, spellings in unnamed.items() if spellings}


def missing(pattern: str, is_there: Callable[[Path, str], bool]) -> list[tuple[Path, str]]:
    """What the documents name and is not there."""
    return [
        (document.relative_to(ROOT), name)
        for document, text in TEXTS.items()
        for name in set(re.findall(pattern, text))
        if not is_there(document, name)
    ]


def test_no_section_stands_twice() -> None:
    twice = {
        (document.relative_to(ROOT), heading)
        for document, text in TEXTS.items()
        for heading, times in Counter(re.findall(r"^## .*", text, re.MULTILINE)).items()
        if times > 1
    }
    assert not twice


def test_every_file_linked_is_there() -> None:
    assert not missing(
        r"\]\(([^)#]+)\)",
        lambda document, target: bool(urlparse(target).scheme) or (document.parent / target).exists(),
    )


def test_every_script_and_example_named_is_there() -> None:
    # Results are written by those who measure.
    assert not missing(
        r"\b(?:scripts|examples|bench|docs)/[\w./-]*\w\.\w+",
        lambda _, name: name.startswith("bench/results/") or (ROOT / name).exists(),
    )


def test_every_module_in_the_documents_exists() -> None:
    """By the end of its path: `plan/plan.py` is one of `src/podling/kubelet`."""
    made_by_the_reader = {
        "src/podling/model/types/gadget.py",
        "src/podling/apiserver/kinds/gadgets.py",
        "src/podling/apiserver/kinds/pods/notes.py",
        "src/podling/controllers/pod_counts.py",
    }
    ends = {
        "/".join(parts[-count:])
        for parts in (path.relative_to(ROOT).parts for path in MODULES)
        for count in range(1, len(parts) + 1)
    }
    assert not missing(
        r"`((?:\w+/)+\w+\.py)`",
        lambda _, name: name in made_by_the_reader or name in ends or (ROOT / name).exists(),
    )


def test_names_in_the_flow_are_names_in_the_source() -> None:
    text = "\n".join(path.read_text() for path in SOURCES)
    flow = (ROOT / "docs/flow.md").read_text()
    spans = set(re.findall(r"`([^`\n]+)`", flow))
    types = {name for names in re.findall(r'class (\w+)|"(\w+)"', text) for name in names}
    constants = set(re.findall(r"^([A-Z_]+) = ", text, re.MULTILINE))
    for span in spans:
        if re.fullmatch(r"[\w/]+\.py", span):
            assert (ROOT / "src/podling" / span).exists(), span
        elif re.fullmatch(r"[A-Z][a-z]\w+", span):
            assert span in types, span
        elif re.fullmatch(r"[A-Z][A-Z_]+", span):
            assert span in constants, span


def test_the_options_of_the_scripts_are_those_the_demo_has() -> None:
    shown = set(re.findall(r"scripts/demo\.sh[^\n`]*?(--[\w-]+)", README.read_text()))
    demo = (ROOT / "examples/neato/demo.py").read_text()
    assert shown <= set(re.findall(r'add_argument\("(--[\w-]+)"', demo))


def test_the_readme_shows_a_whole_run_of_the_demo() -> None:
    """That it shows the same steps as a real run is tested with the demo itself."""
    steps = TRANSCRIPT["steps"](TRANSCRIPT["in_readme"](README.read_text()))
    commands = [step.removeprefix("$ ").split()[:2] for step in steps if step.startswith("$ ")]
    assert ["podling", "up"] in commands
    assert commands[-1] == ["kubectl", "get"]
    assert "/ # echo I was $mark" in steps


def test_a_transcript_takes_the_place_of_the_one_before() -> None:
    readme = README.read_text()
    replaced = TRANSCRIPT["put"](readme, "$ true\n")
    assert TRANSCRIPT["in_readme"](replaced) == "$ true\n"
    assert TRANSCRIPT["put"](replaced, TRANSCRIPT["in_readme"](readme)) == readme


def test_the_ci_runs_what_the_readme_says() -> None:
    assert "sudo scripts/test.sh" in README.read_text()
    run = (ROOT / ".ci/run").read_text().splitlines()
    assert run[-1] == "exec bash scripts/test.sh"


def test_the_same_checks_stand_wherever_they_are_run() -> None:
    """scripts/test.sh, `make check` and the hooks of pre-commit."""
    of_script = re.findall(r"^check (.+)$", (ROOT / "scripts/test.sh").read_text(), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    of_make = makefile.partition("\ncheck:")[2].partition("\n\n")[0].splitlines()[1:]
    hooks = [hook for hook in HOOKS if hook["language"] == "system"]
    assert [line.strip() for line in of_make] == of_script
    assert [hook["entry"].removeprefix(".venv/bin/") for hook in hooks] == of_script


@pytest.mark.parametrize(
    ("message", "is_right"),
    [
        ("cli: say what it is for\n\nBecause.\n", True),
        ("kubelet, apiserver: one table", True),
        (f"docs: {'x' * 66}\n", True),
        (f"docs: {'x' * 67}\n", False),
        ("Say what it is for\n", False),
        ("cli:say\n", False),
        ("\ncli: say\n", False),
    ],
)
def test_a_subject_has_a_scope_and_72_columns(message: str, is_right: bool) -> None:
    [hook] = [hook for hook in HOOKS if hook["language"] == "pygrep"]
    assert hook["args"] == ["--negate", "--multiline"] and hook["stages"] == ["commit-msg"]
    assert bool(re.search(hook["entry"], message, re.MULTILINE | re.DOTALL)) == is_right


@pytest.mark.parametrize("script", sorted((ROOT / "scripts").glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_bash_and_may_be_run(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(script)], check=True)
