"""Writes the table of a kubelet's options in `docs/commands.md` from the table that makes them.

`tests/unit/test_options.py` holds the page to what this writes.
"""

from __future__ import annotations

from pathlib import Path

from podling.kubelet.options.table import LIMITS, Option

PAGE = Path(__file__).parents[1] / "docs/commands.md"
BEFORE, AFTER = "<!-- written by scripts/options.py -->\n", "<!-- end -->\n"


def put(page: str) -> str:
    """The page with the table as it should be."""
    head, _, rest = page.partition(BEFORE)
    return head + BEFORE + table() + AFTER + rest.partition(AFTER)[2]


def table() -> str:
    rows = ["| option | in the file | what it is for | default |", "|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, LIMITS)]) + "\n"


def _row(option: Option) -> str:
    flag = f"{option.flag} {option.metavar}" if option.flag else ""
    cells = (_code(flag), _code(option.field), option.help, _code(option.default))
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text()))
