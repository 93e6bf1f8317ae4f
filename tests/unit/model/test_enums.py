"""Enumerations are of fields that are there, in the order in which Kubernetes lists them."""

from __future__ import annotations

from podling.model.codec.fields import Part, fields_of
from podling.model.enums import ENUMS
from podling.model.scheme import RESOURCES
from podling.model.types.container import Container
from podling.model.types.pod import PodSpec


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


def test_every_field_is_there() -> None:
    known = _known()
    assert {(owner, wire) for owner, wire in ENUMS if wire not in fields_of(known[owner])} == set()


def test_values_are_in_order() -> None:
    assert [values for values in ENUMS.values() if list(values) != sorted(set(values))] == []


def test_what_is_a_default_is_a_value() -> None:
    assert "Always" in ENUMS[(PodSpec.__name__, "restartPolicy")]
    assert "File" in ENUMS[(Container.__name__, "terminationMessagePolicy")]
