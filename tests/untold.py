"""Errors of a podling that its loop was told of, because nobody waited for them."""

from __future__ import annotations

from pathlib import Path

MARK = " ERROR asyncio: "
LINES = 40
"""With where it came from."""


def untold(log: Path) -> str:
    """The first of them in a log, if there is any."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    first = next((number for number, line in enumerate(lines) if MARK in line), len(lines))
    return "\n".join(lines[first : first + LINES])
