"""How every benchmark reports: one line a measurement, with its ratio to the floor, on screen and as JSON.

A figure of a shared, noisy machine says little alone: give the floor (what the same run measured with
nothing of podling in between) wherever there is one. For latencies a ratio near 1 from above is good, for
rates one near 1 from below. Where floor and measurement took turns, each sample is compared with its own
floor; the best sample is the one the rest of the machine disturbed least.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Measurement:
    """`samples` and `floor` are in `unit` (`ms`, `/s`, `MB` ...), `floor` one figure or one for each sample;
    `goal` is text: `≤ 1.25 x floor`; `cpu` is what one took of the server's time, in microseconds, which
    other users of the machine distort least."""

    name: str
    unit: str
    samples: Sequence[float]
    floor: float | Sequence[float] | None = None
    goal: str = ""
    cpu: Sequence[float] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p99(self) -> float:
        """The sample only one in a hundred is worse than: for a rate worse is lower."""
        worst_last = sorted(self.samples, reverse=self.unit.endswith("/s"))
        return worst_last[min(len(worst_last) - 1, int(len(worst_last) * 0.99))]

    @property
    def best(self) -> float:
        return max(self.samples) if self.unit.endswith("/s") else min(self.samples)

    @property
    def typical_floor(self) -> float | None:
        return statistics.median(self.floor) if isinstance(self.floor, Sequence) else self.floor

    @property
    def ratio(self) -> float | None:
        if isinstance(self.floor, Sequence):
            pairs = zip(self.samples, self.floor, strict=True)
            return statistics.median(sample / floor for sample, floor in pairs)
        return self.median / self.floor if self.floor else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "samples": len(self.samples),
            "median": self.median,
            "best": self.best,
            "p99": self.p99,
            "floor": self.typical_floor,
            "ratio": self.ratio,
            "goal": self.goal,
            "cpu_us": statistics.median(self.cpu) if self.cpu else None,
        }


def report(title: str, measurements: Sequence[Measurement], beside: str = "floor") -> None:
    """Print the table and write `bench/results/<title>.json`. `beside`: what the floor is."""
    _print(title, measurements, beside)
    RESULTS.mkdir(exist_ok=True)
    result = {
        "title": title,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "measurements": [measurement.as_json() for measurement in measurements],
    }
    (RESULTS / f"{title}.json").write_text(json.dumps(result, indent=2) + "\n")


def _print(title: str, measurements: Sequence[Measurement], beside: str) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for heading in ("median", "best", "p99", beside, "ratio", "CPU"):
        table.add_column(heading, justify="right")
    table.add_column("goal")
    for m in measurements:
        table.add_row(
            m.name,
            _figure(m.median, m.unit),
            _figure(m.best, m.unit),
            _figure(m.p99, m.unit),
            _figure(m.typical_floor, m.unit) if m.typical_floor else "-",
            f"{m.ratio:.2f}" if m.ratio else "-",
            _figure(statistics.median(m.cpu), "µs") if m.cpu else "-",
            m.goal,
        )
    Console(width=None if Console().is_terminal else 120).print(table)


def _figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"
