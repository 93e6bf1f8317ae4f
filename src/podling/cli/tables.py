"""What commands print: tables of text, as kubectl aligns them, and JSON or YAML for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The columns as wide as their widest cells, three spaces apart; an empty cell is `-`. What others wrote
    commands no terminal."""
    from podling.model.codec.quoting import printable

    filled = [[printable(cell).replace("\n", " ") or "-" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in filled]


def structured(value: Any, form: str) -> str:
    """The value, of what msgspec knows, as `json` or `yaml`."""
    import msgspec

    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value)).decode()
    import yaml

    return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False).rstrip()
