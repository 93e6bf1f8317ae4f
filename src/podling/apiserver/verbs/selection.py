"""The label and field selectors of a list or watch, as one predicate on entries of the watch cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podling.apiserver.request.aside import aside
from podling.apiserver.verbs.scope import Scope
from podling.model.errors import bad_request
from podling.model.selectors import FieldSelector, parse_field_selector, parse_label_selector
from podling.model.types.meta import ListOptions
from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
Read = Callable[[Any], str]

ON_ALL_KINDS: Mapping[str, Read] = {
    "metadata.name": lambda obj: str(obj.metadata.name),
    "metadata.namespace": lambda obj: str(obj.metadata.namespace),
}


DEARER = 8
"""How many bytes of a body take as long to read as one of a selector."""


async def matcher(scope: Scope, wanted: ListOptions) -> Match | None:
    """The predicate; None if everything is selected. Raises StatusError 400 for a malformed selector, or a
    field that the kind cannot be selected by."""
    size = DEARER * (len(wanted.field_selector) + len(wanted.label_selector))
    return await aside(size, _matcher, scope, wanted)


def _matcher(scope: Scope, wanted: ListOptions) -> Match | None:
    fields = parse_field_selector(wanted.field_selector)
    labels = parse_label_selector(wanted.label_selector)
    if not fields and not labels:
        return None
    readers, has_labels = _readers(scope, fields), labels.for_many()

    def match(entry: Entry) -> bool:
        obj = entry.object
        return has_labels(obj.metadata.labels) and fields.matches(lambda field: readers[field](obj))

    return match


def _readers(scope: Scope, fields: FieldSelector) -> Mapping[str, Read]:
    known = {**ON_ALL_KINDS, **scope.store.kind.selectable_fields}
    # Cluster-wide kinds without fields of their own may be asked for a namespace; they are in none.
    if scope.store.kind.selectable_fields and not scope.resource.namespaced:
        del known["metadata.namespace"]
    for term in fields.terms:
        if term.field not in known:
            raise bad_request(_unknown(term.field, scope))
    return known


def _unknown(field: str, scope: Scope) -> str:
    if scope.store.kind.selectable_fields:
        return f"field label not supported: {field}"
    known = ", ".join(f'"{name}"' for name in ON_ALL_KINDS)
    return f'"{field}" is not a known field selector: only {known}'
