"""What a cold start takes, beside the least it could: Python, and a containerd until it answers.

`python bench/start.py [ROUNDS]`: in every round `podling up --detach` with an empty data directory and once
more with what that left, in turns with the floor. podling runs from bytecode, as it does where pip installed
it, whatever this environment says of writing it. The lines of `up` are the time line.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from table import Measurement, report

from podling.cri.containerd.containerd import Containerd
from podling.machine import node_runtime
from podling.machine.instance import Instance

PORT = 16998
GOAL = "≤ 1000 ms"
IMPORTS = (
    "import gc; from podling.assemble import process; gc.set_threshold(process.COLLECT_AFTER); "
    "from podling.process.tls import import_aiohttp; import_aiohttp(); "
    "import podling.assemble.up, podling.assemble.cluster"
)
"""As a start does it."""


class Starts:
    """Samples in milliseconds; `lines` by what `up` said."""

    def __init__(self, bytecode: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._environment = {**kept, "PYTHONPYCACHEPREFIX": str(bytecode)}
        self.samples: dict[str, list[float]] = {}

    def add(self, what: str, began: float) -> None:
        self.samples.setdefault(what, []).append((time.perf_counter() - began) * 1000)

    def python(self, what: str, code: str) -> None:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=self._environment)
        self.add(what, began)

    def up(self, what: str, directory: Path, *options: str) -> None:
        command = ["up", "--detach", "--port", str(PORT), "--data-dir", str(directory), *options]
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "podling", *command],
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        ) as starting:
            for line in starting.stdout or ():
                self.add(f"{what}, {line.partition(' on ')[0].partition(' --')[0].strip()}", began)
        self.add(what, began)
        if starting.returncode:
            sys.exit(starting.returncode)

    def down(self, directory: Path) -> None:
        command = [sys.executable, "-m", "podling", "down", "--data-dir", str(directory)]
        subprocess.run(command, check=True, capture_output=True, env=self._environment)

    async def containerd(self, instance: Instance) -> None:
        containerd = Containerd(node_runtime.settings(instance))
        began = time.perf_counter()
        await containerd.start()
        self.add("containerd", began)
        await node_runtime.end(instance)


def one_round(starts: Starts, directory: Path) -> None:
    starts.python("python", "pass")
    starts.python("imports", IMPORTS)
    asyncio.run(starts.containerd(Instance.at(directory / "floor")))
    data = directory / "data"
    try:
        for what in ("first", "again"):
            starts.up(what, data)
            starts.down(data)
    finally:
        with suppress(subprocess.CalledProcessError):
            starts.down(data)
        shutil.rmtree(data, ignore_errors=True)
        shutil.rmtree(directory / "floor", ignore_errors=True)


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        starts = Starts(Path(name) / "bytecode")
        for _ in range(rounds + 1):
            one_round(starts, Path(name))
    taken = {what: samples[1:] for what, samples in starts.samples.items()}
    floor = [sum(pair) for pair in zip(taken["python"], taken["containerd"], strict=True)]
    floors = {"first": floor, "again": floor}
    report(
        "start",
        [
            Measurement(what, "ms", samples, floors.get(what), GOAL if what in floors else "")
            for what, samples in taken.items()
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
