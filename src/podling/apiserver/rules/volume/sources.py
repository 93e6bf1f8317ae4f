"""Which source a volume has, and which are one too many. Paths are written as Kubernetes writes them, also
where its spelling of a source differs from the field's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from podling.model.codec.fields import wire_name
from podling.model.errors import Cause

Faults = Callable[[Any, str], Iterator[Cause]]

_MISSPELT = {"gce_persistent_disk": "persistentDisk"}
_MISSPELT_AS_SECOND = {"cephfs": "cephFS", "downward_api": "downwarAPI"}


class Source(NamedTuple):
    attribute: str
    wire: str
    second: str
    """How it is named when it is one too many."""
    faults: Faults


def sources(faults: Mapping[str, Faults]) -> tuple[Source, ...]:
    """A row for each attribute. The first of several, in this order, is judged."""
    return tuple(
        Source(
            attribute,
            _MISSPELT.get(attribute, wire_name(attribute)),
            _MISSPELT_AS_SECOND.get(attribute, wire_name(attribute)),
            judge,
        )
        for attribute, judge in faults.items()
    )


def given(table: tuple[Source, ...], holder: Any) -> list[Source]:
    return [source for source in table if getattr(holder, source.attribute) is not None]
