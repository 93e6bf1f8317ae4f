"""Types that an expression may name as values when it is checked, and may not when it is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from podling.apiserver.cel.known import KUBERNETES
from podling.apiserver.cel.tree import Tree, which

UNDEFINED = frozenset(
    (
        *(f"google.protobuf.{name}" for name in ("Any", "Struct", "Value", "ListValue")),
        *(f"google.protobuf.{name}Value" for name in ("Bool", "Bytes", "Double", "Float", "String")),
        *(f"google.protobuf.{name}Value" for name in ("Int32", "Int64", "UInt32", "UInt64")),
        *KUBERNETES,
        *("timestamp", "duration"),
    )
)
"""Kubernetes checks them, and then finds nothing that they stand for."""
_ANY = re.compile(r"\b(?:google|kubernetes|net)\s*\.|\b(?:timestamp|duration)\b(?!\s*\()")


def undefined_fault(tree: Tree, text: str) -> str:
    """`text`: what the tree was parsed from."""
    if _ANY.search(text) is None:
        return ""
    found = ((tree.position(root.id), name) for name, root in _names(tree) if name in UNDEFINED)
    return next((f"reference to undefined type: {name}" for _, name in sorted(found)), "")


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
