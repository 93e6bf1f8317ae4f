"""Fields that a configuration would change although others manage them: refused unless forced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from podling.apiserver.apply.fieldset import Fields, intersection, paths, shown
from podling.apiserver.apply.managers import UPDATE, Entries, Writer, applier, fields_of
from podling.model.errors import Cause, StatusError
from podling.model.meta import ManagedFieldsEntry


class Conflict(NamedTuple):
    manager: str
    """As it is told: name, subresource, version."""
    path: str


def conflicts(entries: Entries, taken: Fields, writer: Writer) -> list[Conflict]:
    """What of `taken` others than `writer` manage, in order of managers and paths."""
    mine = applier(entries, writer)
    others = (entry for entry in entries if entry is not mine and entry.api_version == writer.api_version)
    return sorted(conflict for entry in others for conflict in _with(entry, taken))


def _with(entry: ManagedFieldsEntry, taken: Fields) -> Iterator[Conflict]:
    for path in paths(intersection(fields_of(entry), taken)):
        yield Conflict(_told(entry), shown(path))


def _told(entry: ManagedFieldsEntry) -> str:
    told = json.dumps(entry.manager, ensure_ascii=False)
    if entry.subresource:
        told += f' with subresource "{entry.subresource}"'
    return f"{told} using {entry.api_version}" if entry.operation == UPDATE else told


def refusal(found: list[Conflict]) -> StatusError:
    """409 that says whom to ask about which field."""
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in found]
    return StatusError(409, "Conflict", f"Apply failed with {_listed(found)}", causes=causes)


def _listed(found: list[Conflict]) -> str:
    if len(found) == 1:
        return f"1 conflict: conflict with {found[0].manager}: {found[0].path}"
    lines = []
    for manager in dict.fromkeys(conflict.manager for conflict in found):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {conflict.path}" for conflict in found if conflict.manager == manager]
    return f"{len(found)} conflicts: " + "\n".join(lines)
