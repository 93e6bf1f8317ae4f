"""The end of a podling that hears, of one that does not answer, and of one that is not the one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podling.assemble import down
from podling.machine import instance as instances
from podling.machine import node_runtime
from podling.machine.instance import Instance
from podling.machine.start import StartError

PODLING = """
import asyncio, sys, threading
from pathlib import Path
from podling.machine import instance
from podling.assemble import process

async def stops(told):
    print("ready", flush=True)
    await told.wait()

async def opens_and_closes(told):
    def work():
        while not told.is_set():
            for number, file in enumerate(files):
                file.close()
                files[number] = open("/dev/null")
    threading.Thread(target=work, daemon=True).start()
    await stops(told)

async def does_not_end(told):
    await stops(told)
    await asyncio.sleep(3600)

async def held(told):
    print("ready", flush=True)
    while True:
        pass

files = [open("/dev/null") for _ in range(200)]
instance.RUN_ROOT = Path(sys.argv[2])
with instance.Instance.at(Path(sys.argv[3])).lock():
    process.run(globals()[sys.argv[1]])
"""


class Podlings:
    def __init__(self, run_root: Path, data: Path) -> None:
        self.run_root = run_root
        self.instance = Instance.at(data)
        self.begun: list[subprocess.Popen[str]] = []

    def begin(self, behaviour: str) -> int:
        """The process id of a podling that holds the lock and catches SIGTERM."""
        command = [sys.executable, "-c", PODLING, behaviour, str(self.run_root), str(self.instance.data_dir)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.begun.append(process)
        assert process.stdout and process.stdout.readline() == "ready\n"
        return process.pid

    def said_by_down(self) -> list[str]:
        said: list[str] = []
        down.stop(self.instance, said.append)
        return said


@pytest.fixture
def podlings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podlings]:
    async def end(instance: Instance) -> bool:
        return True

    monkeypatch.setattr(instances, "RUN_ROOT", tmp_path / "run")
    monkeypatch.setattr(node_runtime, "end", end)
    made = Podlings(tmp_path / "run", tmp_path / "data")
    yield made
    for process in made.begun:
        process.kill()
        process.communicate()


def test_one_that_hears_stops(podlings: Podlings) -> None:
    pid = podlings.begin("stops")
    assert podlings.said_by_down() == [f"Stopping podling (process {pid}) and its pods"]
    assert podlings.instance.running() is None


def test_one_that_opens_and_closes_files_meanwhile_is_known_by_its_lock(podlings: Podlings) -> None:
    pid = podlings.begin("opens_and_closes")
    for _ in range(20):
        assert down.has_open(pid, podlings.instance.lock_file)
    assert podlings.said_by_down() == [f"Stopping podling (process {pid}) and its pods"]


@pytest.mark.parametrize("behaviour", ["held", "stops"])
def test_one_that_does_not_answer_is_killed(
    podlings: Podlings, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setattr(down, "ANSWER_WITHIN", 0.2)
    pid = podlings.begin(behaviour)
    if behaviour == "stops":
        os.kill(pid, signal.SIGSTOP)
    said = podlings.said_by_down()
    assert said[1:] == [f"podling (process {pid}) does not answer: it is killed, and what it leaves is ended"]
    assert podlings.instance.running() is None


def test_one_that_does_not_come_to_an_end_is_killed(
    podlings: Podlings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(down, "STOP_WITHIN", 0.2)
    pid = podlings.begin("does_not_end")
    said = podlings.said_by_down()
    assert said[1:] == [
        f"podling (process {pid}) does not come to an end: it is killed, and what it leaves is ended"
    ]


def test_a_process_that_does_not_hold_the_lock_is_left_alone(podlings: Podlings) -> None:
    """As when the lock was written among the processes of another container."""
    podlings.begin("stops")
    stranger = subprocess.Popen(["sleep", "3600"], text=True)
    podlings.begun.append(stranger)
    podlings.instance.lock_file.write_text(str(stranger.pid))
    with pytest.raises(StartError, match=f"process {stranger.pid} is not the podling"):
        podlings.said_by_down()
    assert stranger.poll() is None


def test_one_that_has_ended_has_heard() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert down.has_heard(process.pid)
