"""JSON Patch (RFC 6902): a list of operations, applied in order, all or none.

The document is not changed. A container is copied the first time that an operation changes it, and only then,
so many operations on a large document cost no more than the document and the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podling.apiserver.patch.errors import rejected
from podling.model.errors import StatusError, bad_request

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
MAX_SHIFTED_ITEMS = 100_000_000
"""How many items of arrays all operations together may push aside; a list of 10,000 filled from its front is
half of it. Kubernetes has no such limit."""


def json_patch(document: Any, operations: Any) -> Any:
    """`document` after `operations`. Raises StatusError: 400 malformed, 422 does not apply, 413 too many."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is an array of operations")
    if len(operations) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")
    draft = _Draft(document)
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("error decoding patch: an operation is an object")
        draft.apply(operation)
    return draft.document


class _Draft:
    """A document that is being patched."""

    def __init__(self, document: Any) -> None:
        self.document = document
        # By id, and kept: while they live, no other object has their id.
        self._own: dict[int, Any] = {}
        self._copied = 0
        self._shifted = 0

    def apply(self, operation: dict[str, Any]) -> None:
        op, path = operation.get("op"), _pointer(operation, "path")
        match op:
            case "add":
                self._add(path, _value(operation))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, _value(operation))
            case "test":
                _test(self.document, path, operation.get("value"))
            case "copy":
                self._add(path, self._copy(_get(self.document, _pointer(operation, "from"))))
            case "move":
                self._move(_pointer(operation, "from"), path)
            case _:
                raise rejected(f"Unexpected kind: {op}")

    def _add(self, path: Sequence[str], value: Any) -> None:
        if not path:
            self.document = value
            return
        node, token = self._container(path), path[-1]
        if isinstance(node, dict):
            node[token] = value
        elif isinstance(node, list):
            at = len(node) if token == "-" else _index(token, len(node))
            self._shift(len(node) - at)
            node.insert(at, value)
        else:
            raise rejected(f"add operation does not apply: {token!r} has no object or array to be in")

    def _remove(self, path: Sequence[str]) -> None:
        if not path:
            raise rejected("the whole document cannot be removed or moved")
        node, token = self._container(path), path[-1]
        _child(node, token)
        if isinstance(node, list):
            self._shift(len(node) - int(token))
            del node[int(token)]
        else:
            del node[token]

    def _replace(self, path: Sequence[str], value: Any) -> None:
        if not path:
            self.document = value
            return
        node, token = self._container(path), path[-1]
        _child(node, token)
        node[int(token) if isinstance(node, list) else token] = value

    def _move(self, source: list[str], target: list[str]) -> None:
        if target[: len(source)] == source and len(target) > len(source):
            raise rejected("move operation does not apply: a value cannot be moved into itself")
        value = _get(self.document, source)
        self._remove(source)
        self._add(target, value)

    def _container(self, path: Sequence[str]) -> Any:
        """What the last token of a path is in, to be changed."""
        node = self.document = self._mine(self.document)
        for token in path[:-1]:
            child = self._mine(_child(node, token))
            node[int(token) if isinstance(node, list) else token] = child
            node = child
        return node

    def _mine(self, node: Any) -> Any:
        """`node`, or its copy while it is still somebody else's."""
        if id(node) in self._own or not isinstance(node, dict | list):
            return node
        copy = node.copy()
        self._own[id(copy)] = copy
        return copy

    def _copy(self, value: Any) -> Any:
        encoded = msgspec.json.encode(value)
        self._copied += len(encoded)
        if self._copied > MAX_COPIED_BYTES:
            raise rejected(f"copies come to more than {MAX_COPIED_BYTES} bytes")
        return msgspec.json.decode(encoded)

    def _shift(self, items: int) -> None:
        self._shifted += items
        if self._shifted > MAX_SHIFTED_ITEMS:
            raise rejected(f"operations push aside more than {MAX_SHIFTED_ITEMS} items of arrays")


def _pointer(operation: dict[str, Any], key: str) -> list[str]:
    """The tokens of a JSON pointer (RFC 6901); none for the whole document."""
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise rejected(f"an operation needs a JSON pointer in {key}, got {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise rejected(f"{operation['op']} operation needs a value")
    return operation["value"]


def _test(document: Any, path: list[str], expected: Any) -> Any:
    try:
        found = _get(document, path)
    except StatusError:
        if expected is not None:
            raise
        found = None
    if not _same(found, expected):
        raise rejected(f"testing value /{'/'.join(path)} failed")
    return document


def _get(document: Any, path: Sequence[str]) -> Any:
    for token in path:
        document = _child(document, token)
    return document


def _child(node: Any, token: str) -> Any:
    if isinstance(node, dict) and token in node:
        return node[token]
    if isinstance(node, list):
        return node[_index(token, len(node) - 1)]
    raise rejected(f"doc is missing path: {token!r}: missing value")


def _index(token: str, last: int) -> int:
    if not token.isdecimal() or not token.isascii() or (token[0] == "0" and token != "0") or len(token) > 9:
        raise rejected(f"{token!r} is not an array index")
    if int(token) > last:
        raise rejected(f"Unable to access invalid index: {token}")
    return int(token)


def _same(a: Any, b: Any) -> bool:
    """JSON equality; unlike Python's, true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
