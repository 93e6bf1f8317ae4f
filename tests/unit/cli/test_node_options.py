"""The limits of a node on a command line: given on, or refused before anything starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podling.cli.main import main
from podling.cli.node_options import settings
from podling.kubelet.options.table import ALONE, OPTIONS, Option


@click.command()
@settings
def told(settings: dict[str, Any]) -> None:
    click.echo(repr(settings))


def test_nothing_is_set_by_default() -> None:
    assert CliRunner().invoke(told, []).output == "{}\n"


def test_what_is_given_is_what_the_kubelet_is_told(tmp_path: Path) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\n")
    shown = CliRunner().invoke(
        told, ["--config", str(config), "--eviction-pressure-transition-period", "10s"]
    )
    expected = {"max_pods": 7, "eviction_pressure_transition": timedelta(seconds=10)}
    assert shown.output == f"{expected!r}\n"


@pytest.mark.parametrize(("command", "options"), [("up", OPTIONS), ("kubelet", (*ALONE, *OPTIONS))])
def test_every_option_of_the_table_is_offered_with_its_default(
    command: str, options: tuple[Option, ...]
) -> None:
    found = main.get_command(click.Context(main), command)
    assert found
    shown = {option.opts[0]: option for option in found.params if isinstance(option, click.Option)}
    for option in options:
        if option.flag:
            offered = shown[option.flag]
            assert (offered.name, offered.metavar) == (option.attribute, option.metavar)
            assert offered.help and option.help in offered.help
            assert offered.help.endswith(f"[default: {option.default}]" if option.default else option.help)


def test_lists_and_paths_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images = ["--debug-image-allowlist", "a/*", "--debug-image-allowlist", "b"]
    others = ["--pod-manifest-path", "here", "--allowed-unsafe-sysctls", "net.*,kernel.msgmax"]
    shown = CliRunner().invoke(told, [*images, *others])
    expected = {
        "debug_image_allowlist": ("a/*", "b"),
        "pod_manifest_path": tmp_path / "here",
        "allowed_unsafe_sysctls": ("net.*", "kernel.msgmax"),
    }
    assert shown.output == f"{expected!r}\n"


@pytest.mark.parametrize(
    "command", [["up", "--data-dir", "/nonexistent"], ["up", "--detach", "--data-dir", "/nonexistent"]]
)
def test_a_wrong_value_is_refused_by_name(command: list[str]) -> None:
    refused = CliRunner().invoke(main, [*command, "--eviction-soft", "nodefs.available<5%"])
    assert refused.exit_code == 2
    assert (
        "Error: invalid configuration: evictionSoftGracePeriod (--eviction-soft-grace-period): "
        in refused.output
    )
    assert not Path("/nonexistent").exists()
