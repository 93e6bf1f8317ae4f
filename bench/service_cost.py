"""What leading to services costs a podling that has none: `podling up --detach` in turns with
`--no-service-proxy`. Measured are the time until it returns, the processor time of podling until then, its
memory (PSS), and its processor time at rest.

`python bench/service_cost.py [ROUNDS]`, as root.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from start import Starts
from table import Measurement, report

from podling.machine.instance import Instance

WAYS = {"with": (), "without": ("--no-service-proxy",)}
SETTLED, AT_REST = 5.0, 10.0
"""Seconds after a start until memory is measured, and of rest."""
UNITS = {"start": "ms", "processor time of the start": "ms", "memory": "MB", "at rest, of a second": "ms"}
GOALS = {"start": "≤ +40 ms", "memory": "≤ +10 MB", "at rest, of a second": "unchanged"}


def used(process: int) -> float:
    """Milliseconds of processor time, of the threads that there are."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e6


def memory(process: int) -> float:
    """MB, with its share of what it has in common with others."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    (size,) = (line.split()[1] for line in rollup if line.startswith("Pss:"))
    return int(size) / 1024


async def measure(starts: Starts, directory: Path, options: tuple[str, ...]) -> dict[str, float]:
    data = directory / "data"
    began = time.perf_counter()
    starts.up("up", data, *options)
    took = (time.perf_counter() - began) * 1000
    process = int(Instance.at(data).lock_file.read_text())
    by_start = used(process)
    await asyncio.sleep(SETTLED)
    size, before = memory(process), used(process)
    await asyncio.sleep(AT_REST)
    rest = (used(process) - before) / AT_REST
    starts.down(data)
    return dict(zip(UNITS, (took, by_start, size, rest), strict=True))


async def main(rounds: int) -> None:
    samples: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        starts = Starts(Path(name) / "bytecode")
        for number in range(-1, rounds):
            for way in sorted(WAYS, reverse=bool(number % 2)):
                found = await measure(starts, Path(name) / f"{way}{number}", WAYS[way])
                if number >= 0:
                    samples[way].append(found)
    report(
        "service_cost",
        [
            Measurement(
                what,
                unit,
                [one[what] for one in samples["with"]],
                [one[what] for one in samples["without"]],
                GOALS.get(what, ""),
            )
            for what, unit in UNITS.items()
        ],
        "without",
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
