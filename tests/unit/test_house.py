"""The shape of the source is kept: layers are described, topics are files, citations are real."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/podling"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if not path.stem.endswith("_pb2"))
CHARACTERS, POSSESSIVE = re.compile(r"\[(?:\\.|[^]\\])*\]"), re.compile(r"[^\\]\)(?:[*+?]|\{[0-9,]+\})\+")
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DECISIONS = ROOT / "docs/decisions"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LAYERS = {
    container: [name for layer in contract["layers"] for name in re.split(r"\s*\|\s*", layer)]
    for contract in CONTRACTS
    if contract["type"] == "layers"
    for container in contract["containers"]
}
LONGEST_FILE = 550
MOST_FILES_WALKED, MOST_CALLS_LEAVING = 122, 0.27
"""Of a pod from its POST until it is Ready."""
PRIVATE_CALLED_ONCE = 0.11
"""The part of all functions that are private and called in one place; one that a table names is no such."""


@pytest.fixture(scope="module")
def modules() -> Mapping[Path, ast.Module]:
    """What each source file is, read."""
    return {path: ast.parse(path.read_text()) for path in SOURCES}


@pytest.mark.parametrize("container", LAYERS)
def test_the_page_describes_each_layer_in_order(container: str) -> None:
    part = container.rpartition(".")[2]
    page = (ROOT / "docs/architecture.md").read_text()
    section = page.partition(f"(`{part}/`)")[2].partition("\n## ")[0]
    assert re.findall(r"^- `(\w+)`", section, re.MULTILINE) == LAYERS[container]


def test_the_page_describes_each_part() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    section = page.partition("## The parts")[2].partition("\n## ")[0]
    parts = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    named = re.findall(r"^- `(\w+)/`(?: and `(\w+)/`)?", section, re.MULTILINE)
    assert {name for names in named for name in names if name} == parts


def test_each_requirement_cited_stands_in_the_list() -> None:
    page = (ROOT / "docs/requirements.md").read_text()
    known = {
        f"R-{area}-{number}"
        for area, section in re.findall(r"^## R-(\w+)(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        for number in re.findall(r"^(\d+)\.", section, re.MULTILINE)
    }
    cited = Counter(
        name for path in [*SOURCES, *TESTS] for name in re.findall(r"\bR-[A-Z]+-\d+\b", path.read_text())
    )
    assert cited and cited.keys() <= known


def test_the_index_of_decisions_has_each_with_its_title() -> None:
    index = (DECISIONS / "README.md").read_text()
    for path in DECISIONS.glob("[0-9]*.md"):
        title = path.read_text().partition("\n")[0].removeprefix("# ")
        assert f"- [{title}]({path.name})" in index


def test_a_file_is_one_topic() -> None:
    lines = {path.relative_to(PACKAGE): len(path.read_text().splitlines()) for path in SOURCES}
    assert not {path: count for path, count in lines.items() if count > LONGEST_FILE}


def test_a_public_class_of_a_part_has_a_name_of_its_own(modules: Mapping[Path, ast.Module]) -> None:
    places: dict[tuple[str, str], list[str]] = {}
    for path, module in modules.items():
        where = path.relative_to(PACKAGE)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault((where.parts[0], node.name), []).append(str(where))
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_constants_stand_before_what_uses_them(modules: Mapping[Path, ast.Module]) -> None:
    """A constant that needs no function or class of its file stands above the first of them."""
    late = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path, module in modules.items()
        for line in late_constants(module)
    ]
    assert not late


def late_constants(module: ast.Module) -> Iterator[int]:
    """The lines of those that stand too late."""
    known: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and known:
            needed = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            if needed & known:
                known |= needed
            else:
                yield node.lineno


def test_no_group_of_a_regular_expression_is_possessive(modules: Mapping[Path, ast.Module]) -> None:
    """Python 3.11.2, which Debian has, goes on behind what such a group has tried in vain; atomic ones are
    sound."""
    strings = (
        (path.name, node.value)
        for path, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert [one for one in strings if POSSESSIVE.search(CHARACTERS.sub("c", one[1]))] == []


def test_few_functions_are_private_and_called_once(modules: Mapping[Path, ast.Module]) -> None:
    """A helper that is called once and carries no rule of its own hides its lines."""
    functions = once = 0
    for path, module in modules.items():
        text = path.read_text()
        names = Counter(re.findall(r"\b_\w+\b", text))
        for node in ast.walk(module):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions += 1
                is_private = node.name.startswith("_") and not node.name.startswith("__")
                once += is_private and names[node.name] == 2 and text.count(f"{node.name}(") == 2
    assert once / functions <= PRIVATE_CALLED_ONCE


def test_a_pod_walks_through_few_files() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/walk.py"], capture_output=True, text=True, check=True, timeout=60
    )
    pod = done.stdout.splitlines()[2].split("|")
    assert int(pod[3]) <= MOST_FILES_WALKED
    assert int(pod[6].rstrip(" %")) <= 100 * MOST_CALLS_LEAVING
