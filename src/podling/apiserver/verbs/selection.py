"""Label and field selectors of a list or watch, as one question to ask of each entry of the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podling.apiserver.verbs.scope import Scope
from podling.model import field_selector, selector
from podling.model.errors import bad_request
from podling.model.field_selector import FieldSelector
from podling.model.options import ListOptions
from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
Read = Callable[[Any], str]

ON_ALL_KINDS: Mapping[str, Read] = {
    "metadata.name": lambda obj: str(obj.metadata.name),
    "metadata.namespace": lambda obj: str(obj.metadata.namespace),
}


def matcher(scope: Scope, wanted: ListOptions) -> Match | None:
    """None when everything is wanted. Raises StatusError 400 for a selector that cannot be read, or names a
    field this kind cannot be selected by."""
    fields = field_selector.parse(wanted.field_selector)
    labels = selector.parse(wanted.label_selector)
    if not fields and not labels:
        return None
    readers = _readers(scope, fields)

    def match(entry: Entry) -> bool:
        obj = entry.object
        return labels.matches(obj.metadata.labels) and fields.matches(lambda field: readers[field](obj))

    return match


def _readers(scope: Scope, fields: FieldSelector) -> Mapping[str, Read]:
    known = {**ON_ALL_KINDS, **scope.store.kind.selectable_fields}
    if not scope.resource.namespaced:
        del known["metadata.namespace"]
    for term in fields.terms:
        if term.field not in known:
            raise bad_request(f"field label not supported: {term.field}")
    return known
