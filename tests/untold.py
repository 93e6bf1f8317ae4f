"""Errors of a podling that its loop was told of, because nobody waited for them."""

from __future__ import annotations

from pathlib import Path

MARK = " ERROR asyncio: "
LINES = 40
"""With where it came from."""


def check_told(log: Path) -> None:
    """Fails with the first of them that is in the log, if there is any."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    for number, line in enumerate(lines):
        assert MARK not in line, "\n".join(lines[number : number + LINES])
