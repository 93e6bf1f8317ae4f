"""JSON Patch (RFC 6902): a list of operations, applied in order, all or none.

Documents are never changed in place: an operation copies the containers on its path and shares the rest, so a
patch that fails half-way leaves the caller's document as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from podling.apiserver.patch.errors import rejected
from podling.model.errors import StatusError, bad_request, too_large

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024

Edit = Callable[[Any, str], Any]
"""What to do with the last container of a path: (container, token) to the container in its place."""


def json_patch(document: Any, operations: Any) -> Any:
    """`document` after `operations`. Raises StatusError: 400 malformed, 422 does not apply, 413 too much."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is an array of operations")
    if len(operations) > MAX_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", why)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise bad_request("error decoding patch: an operation is an object")
        if operation.get("op") == "copy":
            copied += len(msgspec.json.encode(_get(document, _pointer(operation, "from"))))
            if copied > MAX_COPIED_BYTES:
                raise too_large(MAX_COPIED_BYTES)
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    op, path = operation.get("op"), _pointer(operation, "path")
    match op:
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _edit(document, path, _remove)
        case "replace":
            return _edit(document, path, _replacing(_value(operation))) if path else _value(operation)
        case "test":
            return _test(document, path, operation.get("value"))
        case "copy":
            return _add(document, path, _get(document, _pointer(operation, "from")))
        case "move":
            return _move(document, _pointer(operation, "from"), path)
    raise rejected(f"Unexpected kind: {op}")


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


def _edit(node: Any, path: Sequence[str], edit: Edit) -> Any:
    if not path:
        raise rejected("the whole document cannot be removed or moved")
    token, rest = path[0], path[1:]
    if not rest:
        return edit(node, token)
    child = _edit(_child(node, token), rest, edit)
    return _put(node, token, child)


def _put(node: Any, token: str, child: Any) -> Any:
    copy = node.copy()
    copy[_index(token, len(node) - 1) if isinstance(node, list) else token] = child
    return copy


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    return _edit(document, path, _adding(value)) if path else value


def _adding(value: Any) -> Edit:
    def add(node: Any, token: str) -> Any:
        if isinstance(node, dict):
            return {**node, token: value}
        if isinstance(node, list):
            at = len(node) if token == "-" else _index(token, len(node))
            return [*node[:at], value, *node[at:]]
        raise rejected(f"add operation does not apply: {token!r} has no object or array to be in")

    return add


def _replacing(value: Any) -> Edit:
    def replace(node: Any, token: str) -> Any:
        _child(node, token)
        return _put(node, token, value)

    return replace


def _remove(node: Any, token: str) -> Any:
    _child(node, token)
    if isinstance(node, dict):
        return {key: value for key, value in node.items() if key != token}
    at = _index(token, len(node) - 1)
    return node[:at] + node[at + 1 :]


def _move(document: Any, source: list[str], target: list[str]) -> Any:
    if target[: len(source)] == source and len(target) > len(source):
        raise rejected("move operation does not apply: a value cannot be moved into itself")
    value = _get(document, source)
    return _add(_edit(document, source, _remove), target, value)


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
