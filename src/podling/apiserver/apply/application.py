"""One configuration being applied: what the object becomes, and who manages it then. Pure.

kubectl applied on the client's side before it did on the server's, keeping the configuration in an
annotation. Where it still stands it counts: what it says is kubectl's own, and it is kept up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from podling.apiserver.apply.compare import Changes, changes, changes_of_new, owned
from podling.apiserver.apply.conflicts import Conflict, conflicts, refusal
from podling.apiserver.apply.fieldset import Fields, difference, union_all
from podling.apiserver.apply.managers import (
    BEFORE_FIRST_APPLY,
    Entries,
    Writer,
    applied,
    applier,
    fields_of,
    updated,
)
from podling.apiserver.apply.merge import merge, prune
from podling.apiserver.apply.parts import belonging
from podling.apiserver.apply.schema import schema_of
from podling.model import json
from podling.model.errors import StatusError
from podling.model.meta import KubeObject, ManagedFieldsEntry

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Application(msgspec.Struct, frozen=True):
    """`fields` is what `configuration` names of the part of the object that `writer` may write."""

    type: type[KubeObject]
    configuration: Mapping[str, Any]
    fields: Fields
    writer: Writer
    has_status: bool
    force: bool

    def known_entries(self, live: Any, entries: Entries, now: datetime) -> Entries:
        """Of an object that was never tracked, all is managed by whoever wrote it before."""
        if entries:
            return entries
        before = Writer(BEFORE_FIRST_APPLY, self.writer.api_version)
        return updated((), self._belonging(changes_of_new(self.type, live)), before, now)

    def result(self, live: Any, entries: Entries) -> Any:
        """The data of the object, applied to `live`."""
        schema = schema_of(self.type)
        merged = merge(schema, live, self.configuration)
        mine = applier(entries, self.writer)
        if mine is None:
            return merged
        others = (fields_of(entry) for entry in entries if entry is not mine)
        return prune(schema, merged, fields_of(mine), union_all((self.fields, *others)))

    def entries_after(self, live: Any, new: Any, entries: Entries, now: datetime) -> list[ManagedFieldsEntry]:
        """After `live` became `new`. Raises StatusError 409."""
        made = self._belonging(changes(self.type, live, new))
        if not self.force and (found := self._conflicts(entries, made.taken, live)):
            raise refusal(found)
        return applied(entries, self.fields, made, self.writer, now)

    def _conflicts(self, entries: Entries, taken: Fields, live: Any) -> list[Conflict]:
        found = conflicts(entries, taken, self.writer)
        if not found or self.writer.manager != KUBECTL:
            return found
        allowed = {path for _, path in conflicts(entries, _last_applied(self.type, live), self.writer)}
        return found if any(conflict.path not in allowed for conflict in found) else []

    def _belonging(self, made: Changes) -> Changes:
        subresource = self.writer.subresource
        return Changes(*(belonging(fields, subresource, self.has_status) for fields in made))

    def keep_annotation(self, new: KubeObject) -> None:
        """What kubectl applies is also what it last applied."""
        if self.writer.manager == KUBECTL and LAST_APPLIED in new.metadata.annotations:
            text = msgspec.json.encode(self.configuration, order="sorted").decode()
            new.metadata.annotations[LAST_APPLIED] = f"{text}\n"


def _last_applied(type_: type[KubeObject], live: Any) -> Fields:
    """What kubectl applied last and still stands as it was applied."""
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED, "")
    try:
        standing = json.to_data(json.decode(text.encode(), type_))
    except StatusError:
        return {}
    schema = schema_of(type_)
    return difference(owned(schema, standing), changes(type_, live, standing).taken)
