"""Types that an expression names as values, of which the library says something else than `cel-go`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from podling.apiserver.cel.environment import KUBERNETES, OPEN_TYPES
from podling.apiserver.cel.tree import Tree, which

UNDEFINED = frozenset(
    (
        *(f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue")),
        *(f"google.protobuf.{name}Value" for name in ("Bool", "Bytes", "Double", "Float", "String")),
        *(f"google.protobuf.{name}Value" for name in ("Int32", "Int64", "UInt32", "UInt64")),
        *(f"kubernetes.{name}" for name in KUBERNETES),
        *("timestamp", "duration"),
    )
)
"""Kubernetes checks them, and then finds nothing that they stand for."""
NULL_VALUE = "google.protobuf.NullValue"
"""No type, though its one value may be named."""
_ANY = re.compile(r"\b(?:google|kubernetes|net)\s*\.|\b(?:timestamp|duration)\b(?!\s*\()")


def may_name(text: str) -> bool:
    """Whether an expression is to be looked at."""
    return _ANY.search(text) is not None


def null_value_faults(tree: Tree) -> Iterator[tuple[int, str]]:
    """`tree`: as it is parsed, here and below."""
    for name, root in _names(tree):
        if name.startswith(NULL_VALUE) and name != f"{NULL_VALUE}.NULL_VALUE":
            yield tree.position(root.id), "undeclared reference to 'google' (in container '')"


def undefined_fault(tree: Tree) -> str:
    found = ((tree.position(root.id), name) for name, root in _names(tree) if name in UNDEFINED)
    return next((f"reference to undefined type: {name}" for _, name in sorted(found)), "")


def names_open_type(tree: Tree) -> bool:
    """Whether the library takes for anything what `cel-go` knows as a type."""
    return any(name.startswith(type_) for name, _ in _names(tree) for type_ in OPEN_TYPES)


def _names(tree: Tree) -> Iterator[tuple[str, Any]]:
    """Each name with all its parts, and its first part."""
    within: set[int] = set()
    for part in tree.parts():
        if part.id in within:
            continue
        fields, node = [], part
        while which(node) == "select" and not node.select.test_only:
            within.add(node.select.operand.id)
            fields.append(node.select.field)
            node = node.select.operand
        if which(node) == "ident":
            yield ".".join((node.ident.name.removeprefix("."), *reversed(fields))), node
