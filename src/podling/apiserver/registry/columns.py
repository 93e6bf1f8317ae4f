"""Columns that most tables share, and cells that say there is nothing to show."""

from __future__ import annotations

from collections.abc import Iterable

from podling.apiserver.registry.kind import Column

NONE = "<none>"

NAME = Column("Name", "string", "name", "Unique within its namespace and kind; cannot be changed.")
AGE = Column("Age", description="Time since the object was created.")
CREATED_AT = Column("Created At", "date", description="When the object was created.")


def or_none(text: str) -> str:
    return text or NONE


def joined(items: Iterable[str], separator: str = ",") -> str:
    return separator.join(items) or NONE


def labels_text(labels: dict[str, str]) -> str:
    """Labels as a selector: `a=b,c=d`."""
    return joined(f"{key}={value}" for key, value in sorted(labels.items()))
