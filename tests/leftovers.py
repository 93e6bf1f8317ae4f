"""What tests leave on the machine beside their directories goes at the end of their run, and before the next
if it was cut off.

Each run notes the data directories of its podlings in a file named by its process. A containerd of a run has
that process in the name of all that it has.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podling.assemble import down
from podling.cri.containerd.config import ContainerdSettings
from podling.cri.containerd.containerd import remove_leftovers
from podling.machine.instance import RUN_ROOT, Instance
from podling.process.programs import Process, command_line, processes

RUNS = RUN_ROOT.with_name("podling-tests")
CGROUPS = Path("/sys/fs/cgroup")
_STATE = re.compile(r"podling-test-(\d+)-(\d+)")
_LINK = re.compile(r"pdlt(\d+)-\d+")


def containerd_name(number: int) -> str:
    """Of the state directory and the cgroup of this run's containerd."""
    return f"podling-test-{os.getpid()}-{number}"


def bridge_name(number: int) -> str:
    return f"pdlt{os.getpid()}-{number}"


def note(data_dir: Path) -> None:
    """A podling of this run may have something there; only root's can."""
    if os.geteuid() == 0:
        RUNS.mkdir(exist_ok=True)
        with (RUNS / str(os.getpid())).open("a") as file:
            print(data_dir.resolve(), file=file)


def running() -> list[Instance]:
    """Podlings of all runs that have something on the machine."""
    noted = [line for run in RUNS.glob("*") for line in run.read_text().splitlines()]
    return [up for up in map(Instance.at, map(Path, dict.fromkeys(noted))) if up.run_dir.exists()]


def clear_own() -> None:
    """At the end of this run."""
    _clear(RUNS / str(os.getpid()))


def clear_others() -> None:
    """Of the runs whose process is gone."""
    for run in RUNS.glob("*"):
        if _is_gone(int(run.name)):
            _clear(run)
    for state in RUN_ROOT.parent.glob("podling-test-*"):
        if (found := _STATE.fullmatch(state.name)) and _is_gone(int(found[1])):
            asyncio.run(_end_containerd(state))
            remove_cgroups(state.name)
    for cgroup in {place.name for place in _cgroups("podling-test-*")}:
        if (found := _STATE.fullmatch(cgroup)) and _is_gone(int(found[1])):
            remove_cgroups(cgroup)
    for link in os.listdir("/sys/class/net"):
        if (found := _LINK.fullmatch(link)) and _is_gone(int(found[1])):
            remove_link(link)


def remove_link(name: str) -> None:
    subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)


def remove_cgroups(name: str) -> None:
    """Deepest first; on cgroup v1 there is one hierarchy for each controller."""
    for root in _cgroups(name):
        # Others may go meanwhile: os.walk passes over what is gone.
        for directory, _, _ in os.walk(root, topdown=False):
            with suppress(OSError):
                os.rmdir(directory)


def _cgroups(pattern: str) -> Iterator[Path]:
    yield from CGROUPS.glob(pattern)
    yield from CGROUPS.glob(f"*/{pattern}")


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _clear(run: Path) -> None:
    with suppress(FileNotFoundError):
        for data_dir in dict.fromkeys(run.read_text().splitlines()):
            instance = Instance.at(Path(data_dir))
            if instance.run_dir.exists():
                down.stop(instance, lambda _: None)
        run.unlink()


async def _end_containerd(state: Path) -> None:
    settings = ContainerdSettings(state / "none", state, state / "log", "", state / "none")
    for pid in processes():
        if str(settings.config_file) in command_line(pid):
            with suppress(ProcessLookupError):
                await Process(pid).kill()
    await remove_leftovers(settings)
