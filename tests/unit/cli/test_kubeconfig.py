"""`podling kubeconfig` and `podling backup`: what they write, and what they say."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from podling.cli.main import main
from podling.client import kubeconfig


def test_a_nodes_kubeconfig_is_written_and_its_use_is_told(tmp_path: Path) -> None:
    file = tmp_path / "node.conf"
    data, server = str(tmp_path / "data"), "https://192.0.2.7:6443"
    told = CliRunner().invoke(
        main, ["kubeconfig", "--data-dir", data, "--node", "far", "--server", server, str(file)]
    )
    assert (told.exit_code, told.output) == (0, f"podling kubelet --kubeconfig {file} --node-name far\n")
    assert kubeconfig.read(file).server == server


def test_a_backup_of_nothing_is_refused(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["backup", "--data-dir", str(tmp_path), str(tmp_path / "b.tar")])
    assert (told.exit_code, told.output) == (1, f"Error: {tmp_path} holds no objects of a podling\n")
