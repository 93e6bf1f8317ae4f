"""Writes docs/served.md: what is served of every kind, from the code, and what is refused, and how.

`tests/unit/test_served.py` holds the document to what this writes, `tests/e2e/test_served.py` a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from podling.apiserver.kinds.kind import Connect, Kind, Members, Projection
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.patch.parse import MEDIA_TYPES
from podling.apiserver.request.negotiation import READ, SERVED
from podling.apiserver.routes import METHODS
from podling.apiserver.verbs.list import ON_ALL_KINDS

REFUSALS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text())
DOCUMENT = Path(__file__).parents[1] / "docs/served.md"
VERBS = ("create", "get", "list", "watch", "update", "patch", "delete", "deletecollection")
UNNAMED = frozenset({"create", "list", "watch", "deletecollection"})
NOT_ALLOWED = 405


class Cell(NamedTuple):
    """One verb of one resource: how to ask for it, and whether it is served."""

    verb: str
    method: str
    path: str
    served: bool


def cells(kind: Kind[Any]) -> Iterator[Cell]:
    """Every verb on a kind itself."""
    for verb in VERBS:
        path = _collection(kind) + ("" if verb in UNNAMED else "/sample")
        yield Cell(verb, METHODS[verb], path, verb in kind.verbs)


def subresource_cells(kind: Kind[Any]) -> Iterator[tuple[str, list[Cell]]]:
    """Every verb on the subresources of a kind."""
    for name, subresource in sorted(kind.subresources.items()):
        path = f"{_collection(kind)}/sample/{name}" + ("/x" if isinstance(subresource, Members) else "")
        asked = [verb for verb in VERBS if verb == "create" or verb not in UNNAMED]
        yield name, [Cell(verb, METHODS[verb], path, verb in subresource.verbs) for verb in asked]


def _collection(kind: Kind[Any]) -> str:
    resource = kind.resource
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return (
        f"{base}/namespaces/default/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )


def _row(*fields: object) -> str:
    return f"| {' | '.join(str(field) for field in fields)} |"


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(columns)
    return "\n".join([_row(*heads), _row(*("---" for _ in heads)), *(_row(*row) for row in rows)])


def _shown(cell: Cell) -> object:
    return "yes" if cell.served else NOT_ALLOWED


def _kinds() -> str:
    rows = ((_named(kind), *map(_shown, cells(kind))) for kind in KINDS)
    return _table(("", *VERBS), rows)


def _subresources() -> str:
    rows = (
        (f"`{kind.resource.plural}/{name}`", _how(kind.subresources[name]), *map(_shown, asked))
        for kind in KINDS
        for name, asked in subresource_cells(kind)
    )
    return _table(("", "is", "create", "get", "update", "patch", "delete"), rows)


def _how(subresource: Any) -> str:
    if isinstance(subresource, Connect):
        return "passed on as it is" if subresource.has_path else "a connection to the kubelet"
    if isinstance(subresource, Projection):
        return f"read and written as a `{subresource.body.KIND}`"
    if hasattr(subresource, "body"):
        return f"posted a `{subresource.body.KIND}`"
    return "a part of the object"


def _selectors() -> str:
    rows = (
        (_named(kind), ", ".join(f"`{field}`" for field in sorted(kind.selectable_fields)))
        for kind in KINDS
        if kind.selectable_fields
    )
    return _table(("", "fields"), rows)


def _refusals() -> str:
    return _table(
        ("asked for", "code", "reason"), ((r["what"], r["code"], f"`{r['reason']}`") for r in REFUSALS)
    )


def _named(kind: Kind[Any]) -> str:
    return f"`{kind.resource.qualified}`"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _bullets(names: Iterable[str]) -> str:
    return "\n".join(f"- `{name}`" for name in names)


def render() -> str:
    return f"""# What is served, and what is refused

Written by `scripts/served.py` from the code; tests hold a running server to it. Feature gates are as they are
when nobody sets them; [gates.md](gates.md) says what the others add.

## Kinds and verbs

A verb a kind does not have is refused with {NOT_ALLOWED} `MethodNotAllowed`. Namespaced kinds are listed and
watched in one namespace or in all.

{_kinds()}

## Subresources

{_subresources()}

## Patch types

Every kind and subresource that can be patched takes all of these; any other type is refused with 415
`UnsupportedMediaType`.

{_bullets(MEDIA_TYPES)}

## Selectors

Labels: `=`, `==`, `!=`, `in`, `notin`, `>`, `<`, presence (`a`) and absence (`!a`), for lists, watches and
deletecollection of every kind. Fields: `=`, `==` and `!=` on {_listed(ON_ALL_KINDS)} (the latter
not of nodes and namespaces) and on these; any other is refused with 400 `BadRequest`.

{_selectors()}

## Formats

What a body may be:

{_bullets(READ)}

What an answer may be, and both may be asked for as a `Table` or as `PartialObjectMetadata`:

{_bullets(SERVED)}

## Refusals

Every refusal is a `Status` that names its code and reason; one of an object also names every field at fault.

{_refusals()}
"""


if __name__ == "__main__":
    DOCUMENT.write_text(render())
