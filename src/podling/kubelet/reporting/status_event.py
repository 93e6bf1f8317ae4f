"""An event that a change of status stands for."""

from __future__ import annotations

from typing import NamedTuple


class StatusEvent(NamedTuple):
    warning: bool
    reason: str
    message: str
    field_path: str = ""
