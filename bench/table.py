"""How every benchmark reports: one line a measurement, with its ratio to the floor, on screen and as JSON.

A figure of a shared, noisy machine says little alone: give the floor (what the same run measured with
nothing of podling in between) wherever there is one. For latencies a ratio near 1 from above is good, for
rates one near 1 from below.
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
    """`samples` and `floor` are in `unit` (`ms`, `/s`, `MB` ...); `goal` is text: `≤ 1.25 x floor`."""

    name: str
    unit: str
    samples: Sequence[float]
    floor: float | None = None
    goal: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p99(self) -> float:
        """The sample only one in a hundred is worse than: for a rate worse is lower."""
        worst_last = sorted(self.samples, reverse=self.unit.endswith("/s"))
        return worst_last[min(len(worst_last) - 1, int(len(worst_last) * 0.99))]

    @property
    def ratio(self) -> float | None:
        return self.median / self.floor if self.floor else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "samples": len(self.samples),
            "median": self.median,
            "p99": self.p99,
            "floor": self.floor,
            "ratio": self.ratio,
            "goal": self.goal,
        }


def report(title: str, measurements: Sequence[Measurement]) -> None:
    """Print the table and write `bench/results/<title>.json`."""
    _print(title, measurements)
    RESULTS.mkdir(exist_ok=True)
    result = {
        "title": title,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "measurements": [measurement.as_json() for measurement in measurements],
    }
    (RESULTS / f"{title}.json").write_text(json.dumps(result, indent=2) + "\n")


def _print(title: str, measurements: Sequence[Measurement]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for heading in ("median", "p99", "floor", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("goal")
    for m in measurements:
        table.add_row(
            m.name,
            _figure(m.median, m.unit),
            _figure(m.p99, m.unit),
            _figure(m.floor, m.unit) if m.floor else "-",
            f"{m.ratio:.2f}" if m.ratio else "-",
            m.goal,
        )
    Console(width=None if Console().is_terminal else 120).print(table)


def _figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"
