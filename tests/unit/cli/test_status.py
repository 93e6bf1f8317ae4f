from __future__ import annotations

import errno
import importlib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podling.cli.main import main
from podling.cli.status import condition, phases
from podling.machine.instance import Instance
from podling.model.types.node import Node, NodeCondition, NodeStatus
from podling.model.types.pod import Pod
from podling.model.types.pod_status import PodStatus

status = importlib.import_module("podling.cli.status")


def test_what_does_not_run_is_exit_3(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["status", "--data-dir", str(tmp_path)])
    assert (shown.exit_code, shown.output) == (3, f"podling is not running for {tmp_path}\n")


def test_phases_are_counted_the_most_frequent_first() -> None:
    pods = [Pod(status=PodStatus(phase=phase)) for phase in ("Pending", "Running", "Running", "Failed")]
    assert phases(pods) == "2 Running, 1 Failed, 1 Pending"
    assert phases([]) == "none"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], "no Ready condition yet"),
        ([NodeCondition(type="Ready", status="True")], "Ready"),
        (
            [NodeCondition(type="Ready", status="False", reason="KubeletNotReady", message="no CNI")],
            "not ready (KubeletNotReady: no CNI)",
        ),
    ],
)
def test_a_node_says_why_it_is_not_ready(conditions: list[NodeCondition], expected: str) -> None:
    assert condition(Node(status=NodeStatus(conditions=conditions))) == expected


def test_a_reader_who_has_seen_enough_is_no_dead_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`podling status | head -1`"""

    async def shown(instance: Instance) -> list[str]:
        return ["API server   https://127.0.0.1:1"]

    def echo(line: str, *, err: bool = False) -> None:
        said.append(line)
        if line.startswith("API server"):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    said: list[str] = []
    monkeypatch.setattr(Instance, "running", lambda instance: 7)
    monkeypatch.setattr(status, "_shown", shown)
    monkeypatch.setattr(click, "echo", echo)
    CliRunner().invoke(main, ["status", "--data-dir", str(tmp_path)])
    assert said == [f"podling is running for {tmp_path} (process 7)", "API server   https://127.0.0.1:1"]


def test_who_may_not_know_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def running(instance: Instance) -> int | None:
        raise PermissionError(13, "Permission denied", "/run/podling/x/lock")

    monkeypatch.setattr(Instance, "running", running)
    shown = CliRunner().invoke(main, ["status", "--data-dir", str(tmp_path)])
    assert (shown.exit_code, shown.output) == (
        1,
        "Error: /run/podling/x/lock is for root to read: run podling with sudo\n",
    )
