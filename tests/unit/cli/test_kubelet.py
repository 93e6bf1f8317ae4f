"""What only the kubelet alone is told."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

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
