"""OpenAPI v2 of several servers as one document, as Kubernetes' aggregator joins them: of another server the
paths of its own group and version, and all that it has to refer to. What is called as something else already
is gets another name, `NAME_v2`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

TABLES = ("definitions", "parameters")
"""What paths refer to, as `#/TABLE/NAME`."""
KINDS = "x-kubernetes-group-version-kind"
MOST_ROUNDS = 8
FAULTS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

log = logging.getLogger(__name__)


class Description(NamedTuple):
    """What another server says of the paths below `place`, in JSON."""

    place: str
    document: bytes


class _Document(msgspec.Struct):
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    parameters: dict[str, Any] = {}

    def table(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = getattr(self, name)
        return found


def joined(own: dict[str, Any], others: Iterable[Description]) -> dict[str, Any]:
    """`own` with the others. A document that cannot be read is left out, and said in the log."""
    whole = own | {"paths": dict(own["paths"]), "definitions": dict(own["definitions"])}
    for other in others:
        try:
            document = msgspec.json.decode(other.document, type=_Document)
            names = new_names(whole, document)
            for table in TABLES:
                for name, thing in document.table(table).items():
                    new = names.get(f"#/{table}/{name}", name).removeprefix(f"#/{table}/")
                    whole.setdefault(table, {}).setdefault(new, _renamed(thing, names))
            for path, item in document.paths.items():
                if path.startswith(f"{other.place}/"):
                    whole["paths"].setdefault(path, _renamed(item, names))
        except FAULTS as error:
            log.warning("what describes %s in OpenAPI v2 cannot be used: %s", other.place, error)
    return whole | {"paths": dict(sorted(whole["paths"].items()))}


def new_names(whole: dict[str, Any], other: _Document) -> dict[str, str]:
    """What is referred to by another name in the whole, both as `#/TABLE/NAME`: the first that is free or
    stands for the same. One new name may make what refers to it the same as what is there already, so they
    are looked for until there is nothing to change."""
    names: dict[str, str] = {}
    for _ in range(MOST_ROUNDS):
        found = {}
        for table in TABLES:
            taken = whole.get(table, {})
            for name, thing in other.table(table).items():
                new, count, core = name, 1, _core(_renamed(thing, names))
                while new in taken and _core(taken[new]) != core:
                    count += 1
                    new = f"{name}_v{count}"
                if new != name:
                    found[f"#/{table}/{name}"] = f"#/{table}/{new}"
        if found == names:
            break
        names = found
    return names


def _core(thing: Any) -> Any:
    """Without the kinds that it is, which each server lists for itself."""
    return {key: value for key, value in thing.items() if key != KINDS} if isinstance(thing, dict) else thing


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: names.get(field, field)
            if key == "$ref" and isinstance(field, str)
            else _renamed(field, names)
            for key, field in value.items()
        }
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value
