"""What only the kubelet alone is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podling.assemble.kubelet import KubeletOptions
from podling.cli.kubelet import kubelet, place


def placed(text: str | None) -> Any:
    return place(click.Context(kubelet), kubelet.params[0], text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("192.0.2.1:6443", ("192.0.2.1", 6443)),
        ("[fd00::1]:443", ("fd00::1", 443)),
        ("api.example:443", ("api.example", 443)),
        (None, None),
    ],
)
def test_where_pods_find_the_api_server(text: str | None, meant: tuple[str, int] | None) -> None:
    assert placed(text) == meant


@pytest.mark.parametrize(
    "text",
    ["", "192.0.2.1", ":6443", "192.0.2.1:0", "192.0.2.1:x", "192.0.2.1:99999", "a/b:1", "u@h:1", "[::1"],
)
def test_what_is_no_place_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not ADDRESS:PORT"):
        placed(text)
    said = CliRunner().invoke(kubelet, ["--kubeconfig", __file__, f"--api-server-for-pods={text}"])
    assert said.exit_code == 2 and "--api-server-for-pods" in said.output


def test_what_is_set_of_a_node_is_what_its_kubelet_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[KubeletOptions] = []
    monkeypatch.setattr("podling.assemble.kubelet.run", lambda options, report: told.append(options))
    words = ["--cluster-dns", "10.0.0.10", "--cluster-dns", "fd00::10", "--cluster-domain", "example.org"]
    words += ["--node-labels", "a=b", "--no-register-node", "--max-pods", "7", "--node-name", "n"]
    done = CliRunner().invoke(kubelet, ["--kubeconfig", __file__, "--data-dir", str(tmp_path), *words])
    assert done.exit_code == 0, done.output
    [options] = told
    assert options.node.node_name == "n"
    assert options.node.settings == {
        "cluster_dns": ("10.0.0.10", "fd00::10"),
        "cluster_domain": "example.org",
        "node_labels": {"a": "b"},
        "register_node": False,
        "max_pods": 7,
    }
