"""The document that says how to add an option is followed to the letter, and the option works."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from unit.recipe import code_of, extended

ROOT = Path(__file__).parents[4]
ATTRIBUTE, ROW = code_of("adding-an-option.md")

CONFIG, TABLE = "podling.kubelet.config", "podling.kubelet.options.table"
SETTINGS, COMMAND_LINE = "podling.assemble.kubelet_settings", "podling.cli.node_options"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {
        CONFIG: extended(monkeypatch, CONFIG, {"    max_pods: int = 110\n": f"    {ATTRIBUTE}"}),
        TABLE: extended(monkeypatch, TABLE, {"LIMITS = (\n": f"{ROW},\n"}),
        SETTINGS: extended(monkeypatch, SETTINGS),
        COMMAND_LINE: extended(monkeypatch, COMMAND_LINE),
    }


@pytest.fixture
def told(parts: dict[str, Any]) -> click.Command:
    """A command that prints what /configz would show."""

    def told(settings: dict[str, Any]) -> None:
        config = parts[CONFIG].KubeletConfig("n", Path("/"), Path("/"), **settings)
        click.echo(parts[TABLE].configuration(config)["registryPullQPS"])

    return click.command()(parts[COMMAND_LINE].settings(told))


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
