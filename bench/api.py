"""The API server over TLS against what aiohttp alone can do with as many bytes, with wrk as the client.

Each measurement and its floor take turns, so that what else the machine does falls on both; storage is
SQLite, so every create and patch is durable. Run with `python bench/api.py`; `--profile FILE` writes a py-spy
flame graph of GET instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from server import (
    CONFIGS,
    LISTED,
    LISTED_PODS,
    PODS,
    cpu_seconds,
    curl,
    labelling,
    pod,
    posting,
    running,
    wrk,
)
from table import Measurement, report

ROUNDS = 5
SECONDS = 2


class Case(NamedTuple):
    """`answers` is a path whose answer is as long as those of the case."""

    name: str
    path: str
    connections: int
    script: str = ""
    answers: str = f"{PODS}/one"
    goal: str = ""


ONE = f"{PODS}/one"
CASES = (
    Case("GET pod by name, 16 connections", ONE, 16, goal="≥ 0.7 x floor"),
    Case(f"LIST {LISTED} pods, 4 connections", LISTED_PODS, 4, answers=LISTED_PODS, goal="≥ 400/s"),
    Case("create pods, 8 connections", PODS, 8, posting(pod({"generateName": "p-"})), goal="≥ 2,500/s"),
    Case("create config maps, 8 connections", CONFIGS, 8, posting(b'{"metadata":{"generateName":"c-"}}')),
    Case("merge-patch a label, 8 connections", LISTED_PODS, 8, labelling(LISTED), goal="≥ 2,000/s"),
    Case("merge-patch a label of one pod, 8 connections", ONE, 8, labelling()),
)


def measured(case: Case, url: str, server: int, floor_url: str) -> Measurement:
    size = len(curl(f"{url}{case.answers}"))
    rates, floors, cpu = [], [], []
    for _ in range(ROUNDS):
        floors.append(wrk(f"{floor_url}/{size}", case.connections, SECONDS, case.script))
        spent = cpu_seconds(server)
        rates.append(wrk(f"{url}{case.path}", case.connections, SECONDS, case.script))
        cpu.append((cpu_seconds(server) - spent) / (rates[-1] * SECONDS) * 1e6)
    return Measurement(case.name, "/s", rates, floors, case.goal, cpu)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        with running("podling", directory) as (url, server), running("floor", directory) as (floor_url, _):
            report("api", [measured(case, url, server, floor_url) for case in CASES])


def profile(output: str) -> None:
    with tempfile.TemporaryDirectory() as temporary, running("podling", Path(temporary)) as (url, pid):
        spy = str(Path(sys.executable).with_name("py-spy"))
        recording = subprocess.Popen([spy, "record", "-p", str(pid), "-d", "4", "-o", output])
        wrk(f"{url}{ONE}", 16, seconds=5)
        recording.wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--profile", output]:
            profile(output)
        case _:
            main()
