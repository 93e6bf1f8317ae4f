"""`kubectl explain` speaks for every type and field, with every gate on, and says more than its name."""

from __future__ import annotations

import re

from podling.apiserver.kinds.kind import Posted
from podling.apiserver.kinds.kinds import kinds
from podling.apiserver.paths.openapi.schemas import schemas_of
from podling.model.codec.fields import Part, fields_of
from podling.model.descriptions import EVERY, describe_field, describe_type, descriptions
from podling.model.gates import GATES, Gates

KINDS = kinds(Gates(dict.fromkeys(GATES, True)))
BODIES = [
    subresource.body
    for kind in KINDS
    for subresource in kind.subresources.values()
    if isinstance(subresource, Posted)
]
SCHEMAS = schemas_of([kind.resource.type for kind in KINDS], BODIES)
NO_TYPES = {EVERY, "List"}
SENTENCES = [(name, said.text) for name, said in descriptions().items() if name != EVERY] + [
    (field, text) for said in descriptions().values() for field, text in said.fields.items()
]


def _known() -> dict[str, type[Part]]:
    """All parts of API types by name. The kinds have defined them."""
    found: dict[str, type[Part]] = {}
    waiting: list[type[Part]] = [Part]
    while waiting:
        inner = waiting.pop().__subclasses__()
        waiting += inner
        found.update((one.__name__, one) for one in inner if one.__module__.startswith("podling.model"))
    return found


def test_every_type_is_described() -> None:
    assert not [name for name, schema in SCHEMAS.items() if not schema.get("description")]


def test_every_field_is_described() -> None:
    assert not [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, value in schema.get("properties", {}).items()
        if not value.get("description")
    ]


def test_every_described_type_is_there() -> None:
    assert descriptions().keys() - NO_TYPES <= _known().keys()


def test_every_described_field_is_there() -> None:
    for name in descriptions().keys() - NO_TYPES:
        assert descriptions()[name].fields.keys() <= fields_of(_known()[name]).keys(), name


def _words(text: str) -> list[str]:
    """Of a name in CamelCase or of a sentence, in small letters."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", text)]


def test_a_description_says_more_than_the_name() -> None:
    idle = {"the", "a", "an", "of", "this", "its"}
    assert not [text for name, text in SENTENCES if not set(_words(text)) - set(_words(name)) - idle]


def test_a_description_is_sentences() -> None:
    assert not [text for _, text in SENTENCES if not re.fullmatch(r"(?!.*  )\S.*[\w*)][.]", text)]


def test_a_type_comes_before_what_is_said_of_every_type() -> None:
    assert describe_field("ObjectMeta", "name").startswith("Unique within")
    assert describe_field("Gadget", "spec").startswith("What is wanted.")
    assert (describe_type("Gadget"), describe_field("Gadget", "color")) == ("", "")


def test_a_type_has_the_fields_of_its_base() -> None:
    assert describe_field("EphemeralContainer", "tty") == describe_field("Container", "tty")
    assert describe_field("EphemeralContainer", "targetContainerName")
