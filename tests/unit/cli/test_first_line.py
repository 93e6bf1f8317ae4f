"""What a command may import and compute until its first line; `scripts/first_line.py` prints what it does."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from podling.cli.main import COMMANDS

FIRST_LINE = runpy.run_path(str(Path(__file__).parents[3] / "scripts/first_line.py"))

LIGHT = {"cli", "machine", "model", "process"}
BACKUP = {"assemble", "storage"} | LIGHT
RUNTIME = {"assemble", "cri", "kubelet"} | LIGHT
"""What starts or ends containerd; of the kubelet its options, its defaults and its cgroups."""
CONTROLLERS = {"assemble", "client", "controllers", "scheduler"} | LIGHT
REMOTE = {"cli", "client", "debug", "model", "process", "remote", "streaming"}
SERVER = {"apiserver", "storage", "streaming", "watch"} | CONTROLLERS
NODE = {"client", "network", "streaming"} | RUNTIME

MOST: dict[str, tuple[int, int, set[str]]] = {
    "--help": (130, 200, {"cli"}),
    "--version": (120, 200, {"cli"}),
    "up --help": (180, 350, {"kubelet"} | LIGHT),
    "apiserver": (1000, 2500, SERVER),
    "audit debugged": (480, 1500, {"apiserver", "assemble", "client"} | LIGHT),
    "backup": (300, 500, BACKUP),
    "capture": (190, 700, REMOTE),
    "controllers": (600, 1500, CONTROLLERS),
    "cp": (202, 800, REMOTE),
    "debug --help": (145, 200, {"cli", "debug"}),
    "debug": (190, 700, REMOTE),
    "dns": (405, 1300, {"assemble", "client", "dns"} | LIGHT),
    "doctor": (240, 500, LIGHT),
    "down": (380, 850, RUNTIME),
    "feature-gates": (220, 450, LIGHT),
    "images list": (370, 750, RUNTIME),
    "join": (860, 2700, {"remote"} | NODE),
    "kubeconfig": (480, 1200, {"assemble", "client"} | LIGHT),
    "kubelet": (845, 2500, {"network"} | NODE),
    "leave": (860, 2700, {"remote"} | NODE),
    "logs": (182, 700, REMOTE),
    "migrate-storage": (900, 2500, SERVER),
    "network": (425, 1800, {"assemble", "client", "kubelet", "network", "streaming"} | LIGHT),
    "policies explain": (440, 1800, {"assemble", "client", "network", "streaming"} | LIGHT),
    "restore": (300, 500, BACKUP),
    "scheduler": (600, 1500, CONTROLLERS),
    "services explain": (440, 1800, {"assemble", "client", "network", "streaming"} | LIGHT),
    "sessions": (182, 700, REMOTE),
    "status": (430, 1200, {"client"} | LIGHT),
    "token list": (425, 1300, {"machine"} | REMOTE),
    "up": (450, 950, {"apiserver"} | RUNTIME),
    "why": (182, 700, REMOTE),
}
"""Command → modules, a tenth above what they were; milliseconds of the processor, four to five times what
they were; the rooms of podling it may need. Of `up` the thread that imports all the rest may have begun.
"""


def test_each_command_has_its_limits() -> None:
    assert set(MOST) == set(FIRST_LINE["COMMANDS"])
    assert {words.partition(" ")[0] for words in MOST} >= set(COMMANDS)


@pytest.mark.parametrize("command", MOST)
def test_a_command_imports_no_more_than_it_needs(command: str, tmp_path: Path) -> None:
    modules, ms, rooms = MOST[command]
    found = FIRST_LINE["measure"](command, tmp_path)
    assert set(found.rooms) <= rooms
    assert found.modules <= modules
    assert found.ms <= ms
