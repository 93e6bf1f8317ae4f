"""The document that says how to add an option is followed to the letter, and the option works."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[4]
DOCUMENT = (ROOT / "docs/adding-an-option.md").read_text()
ATTRIBUTE, ROW = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)

CONFIG, TABLE = "podling.kubelet.config", "podling.kubelet.options.table"
SETTINGS, COMMAND_LINE = "podling.assemble.kubelet_settings", "podling.cli.node_options"


def module(patch: pytest.MonkeyPatch, name: str, after: str = "", added: str = "") -> Any:
    """The module as it is once `added` stands behind `after`, and with what was made before it."""
    path = importlib.import_module(name).__file__
    assert path
    source = Path(path).read_text()
    assert source.count(after) == 1 or not after
    made = ModuleType(name)
    patch.setitem(sys.modules, name, made)
    exec(compile(source.replace(after, after + added) if after else source, path, "exec"), made.__dict__)
    return made


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {
        CONFIG: module(monkeypatch, CONFIG, "    max_pods: int = 110\n", f"    {ATTRIBUTE}"),
        TABLE: module(monkeypatch, TABLE, "LIMITS = (\n", f"{ROW},\n"),
        SETTINGS: module(monkeypatch, SETTINGS),
        COMMAND_LINE: module(monkeypatch, COMMAND_LINE),
    }


@pytest.fixture
def told(parts: dict[str, Any]) -> click.Command:
    """A command that prints what /configz would show."""

    @click.command()
    @parts[COMMAND_LINE].settings
    def told(settings: dict[str, Any]) -> None:
        config = parts[CONFIG].KubeletConfig("n", Path("/"), Path("/"), **settings)
        click.echo(parts[TABLE].configuration(config)["registryPullQPS"])

    return told


def test_a_flag_and_a_file_set_it(told: click.Command, tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nregistryPullQPS: 3\n"
    )
    given: list[list[str]] = [[], ["--config", str(file)], ["--config", str(file), "--registry-qps", "7"]]
    assert [CliRunner().invoke(told, words).output for words in given] == ["5\n", "3\n", "7\n"]


def test_it_is_explained_with_its_default(told: click.Command) -> None:
    shown = " ".join(CliRunner().invoke(told, ["--help"]).output.split())
    assert "--registry-qps NUMBER Pulls of images a second; 0 is any number. [default: 5]" in shown


def test_what_cannot_be_is_refused_by_both_its_names(told: click.Command) -> None:
    refused = CliRunner().invoke(told, ["--registry-qps", "-1"])
    assert refused.exit_code == 2
    assert "registryPullQPS (--registry-qps): -1 must be at least 0" in refused.output


@pytest.mark.usefixtures("parts")
def test_the_readme_gets_a_row() -> None:
    table = runpy.run_path(str(ROOT / "scripts/options.py"))["table"]()
    row = (
        "| `--registry-qps NUMBER` | `registryPullQPS` | Pulls of images a second; 0 is any number. | `5` |\n"
    )
    assert row in table
