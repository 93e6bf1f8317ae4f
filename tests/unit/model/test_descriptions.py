"""Descriptions are of types and fields that are there."""

from __future__ import annotations

from podling.model.base import Part
from podling.model.descriptions import FIELDS_OF, TYPES, describe_field
from podling.model.fields import fields_of
from podling.model.scheme import RESOURCES


def _known() -> dict[str, type[Part]]:
    """All parts of API types by name. Importing the scheme has defined them."""
    assert RESOURCES
    found: dict[str, type[Part]] = {}
    waiting: list[type[Part]] = [Part]
    while waiting:
        inner = waiting.pop().__subclasses__()
        waiting += inner
        found.update((one.__name__, one) for one in inner)
    return found


def test_every_described_type_is_there() -> None:
    assert TYPES.keys() | FIELDS_OF.keys() <= _known().keys()


def test_every_described_field_is_there() -> None:
    known = _known()
    for name, described in FIELDS_OF.items():
        assert described.keys() <= fields_of(known[name]).keys(), name


def test_a_type_comes_before_what_is_said_of_a_name_anywhere() -> None:
    assert describe_field("Taint", "effect") == "NoSchedule, PreferNoSchedule or NoExecute."
    assert describe_field("Gadget", "spec") == "What is wanted."
