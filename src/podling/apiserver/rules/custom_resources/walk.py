"""Walking a schema that somebody sent: as deep as it nests, and as wide, without a stack of calls.

A visit is a generator of faults, and of visits to what is further inside. A path is written only for a fault
that is told: it can be as long as the object, and there are as many as there are fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from podling.model.errors import LONGEST_TOLD, Cause
from podling.model.types.apiextensions import JSONSchemaProps

Visit = Iterator["Cause | Visit"]


class At(NamedTuple):
    """Where in an object; it is written as Kubernetes writes it."""

    above: At | None
    step: str

    def child(self, name: str) -> At:
        return At(self, f".{name}")

    def key(self, name: str) -> At:
        return At(self, f"[{name}]")

    def item(self, number: int) -> At:
        return At(self, f"[{number}]")

    def __str__(self) -> str:
        steps, at = [self.step], self.above
        while at is not None:
            steps.append(at.step)
            at = at.above
        return "".join(reversed(steps))


def told(visit: Visit) -> list[Cause]:
    """The faults of a visit in order, no more than can be told."""
    found: list[Cause] = []
    left, waiting = LONGEST_TOLD, [visit]
    while waiting and left > 0:
        for one in waiting[-1]:
            if not isinstance(one, Cause):
                waiting.append(one)
                break
            found.append(one)
            left -= len(one.message) + len(one.field)
            if left <= 0:
                break
        else:
            waiting.pop()
    return found


def parts_of(schema: JSONSchemaProps) -> Iterator[JSONSchemaProps]:
    """The schemas directly inside."""
    maps = (schema.properties, schema.pattern_properties, schema.definitions, schema.dependencies)
    lists = (schema.all_of, schema.any_of, schema.one_of)
    alone = (schema.not_, schema.additional_properties, schema.additional_items, schema.items)
    for named in maps:
        yield from (one for one in named.values() if isinstance(one, JSONSchemaProps))
    for listed in lists:
        yield from listed
    for one in alone:
        if isinstance(one, JSONSchemaProps):
            yield one
        elif isinstance(one, list):
            yield from one


def schemas_in(root: JSONSchemaProps | None) -> Iterator[JSONSchemaProps]:
    """The schema and all inside."""
    waiting = [] if root is None else [root]
    while waiting:
        schema = waiting.pop()
        yield schema
        waiting.extend(parts_of(schema))
