"""Plots of how cost grows, as small SVG files in `docs/plots/`: lines over a logarithmic axis, no library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PLOTS = Path(__file__).parent.parent / "docs" / "plots"
WIDTH, HEIGHT, MARGIN = 560, 300, 56
COLOURS = ("#326ce5", "#d9534f", "#3c9d5f")


class Line(NamedTuple):
    """Points are (x, y), x above 0."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(name: str, across: str, up: str, lines: Sequence[Line]) -> None:
    """Write `docs/plots/<name>.svg`. The vertical axis begins at 0."""
    PLOTS.mkdir(exist_ok=True)
    (PLOTS / f"{name}.svg").write_text("\n".join(_svg(across, up, lines)) + "\n")


def _svg(across: str, up: str, lines: Sequence[Line]) -> Iterator[str]:
    xs = sorted({x for line in lines for x, _ in line.points})
    top = _round_up(max(y for line in lines for _, y in line.points))

    def place(x: float, y: float) -> tuple[float, float]:
        share = math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
        return MARGIN + share * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - y / top * (HEIGHT - 2 * MARGIN)

    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    )
    for y in (0, top / 2, top):
        yield _rule(place(xs[0], y), place(xs[-1], y))
        yield _text(place(xs[0], y), f"{y:,.0f}", "end", -6, 4)
    for x in xs:
        yield _text(place(x, 0), f"{x:,.0f}", "middle", 0, 16)
    yield _text((WIDTH / 2, HEIGHT), across, "middle", 0, -14)
    yield _text((MARGIN, MARGIN), up, "start", 0, -14)
    for line, colour in zip(lines, COLOURS, strict=False):
        points = [place(x, y) for x, y in line.points]
        listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield _text(points[-1], line.name, "end", 0, -6, colour)
    yield "</svg>"


def _rule(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<path d="M{start[0]:.1f} {start[1]:.1f}H{end[0]:.1f}" stroke="#ddd"/>'


def _text(
    at: tuple[float, float], text: str, anchor: str, right: float, down: float, colour: str = "#333"
) -> str:
    x, y = at[0] + right, at[1] + down
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _round_up(value: float) -> float:
    """To 1, 2 or 5 times a power of ten."""
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 5, 10) if value <= unit * step)
