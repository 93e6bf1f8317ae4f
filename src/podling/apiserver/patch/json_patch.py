"""JSON Patch (RFC 6902): operations on a document, applied in order. If one fails, the whole patch fails.

The document is not changed. An object or array is copied when the first operation changes it, so the cost of
a patch is that of the document and of the operations, not their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podling.model.errors import StatusError, bad_request, unfit_patch

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
MAX_SHIFTED_ITEMS = 100_000_000
"""How many items of arrays all operations of a patch together may move, by an insertion or removal before
them. Filling a list of 10,000 from its front moves half as many. Kubernetes has no such limit."""


class _AsSent(msgspec.Struct):
    """An operation whose value is kept as it was written."""

    op: Any = None
    path: Any = None
    from_: Any = msgspec.field(name="from", default=None)
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def as_sent(body: bytes) -> list[dict[str, Any]]:
    """The operations of a JSON patch, with values as `msgspec.Raw`: applied, a value is taken apart only as
    far as later operations reach into it, so that keys that it gives twice stay in the document."""
    operations = msgspec.json.decode(body, type=list[_AsSent])
    return [
        {"op": one.op, "path": one.path, "from": one.from_}
        | ({} if one.value is msgspec.UNSET else {"value": one.value})
        for one in operations
    ]


def json_patch(document: Any, operations: Any) -> Any:
    """`document` after `operations`. Raises StatusError: 400 for a malformed patch, 413 for more than
    MAX_OPERATIONS, 422 for an operation that does not apply."""
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
    """The document while operations are applied to it."""

    def __init__(self, document: Any) -> None:
        self.document = document
        # The copies, by id. They are kept, since another object could have the id of one that is gone.
        self._own: dict[int, Any] = {}
        self._copied = 0
        self._shifted = 0

    def apply(self, operation: dict[str, Any]) -> None:
        op, path = operation.get("op"), _pointer(operation, "path")
        match op:
            case "add":
                # Without a value it adds null, other than RFC 6902 has it.
                self._add(path, operation.get("value"))
            case "remove":
                self._remove(path)
            case "replace" if not path:
                value = _opened(_value(operation))
                if not isinstance(value, dict | list):
                    raise unfit_patch("the whole document can only be an object or an array")
                self.document = value
            case "replace":
                value, token = _value(operation), path[-1]
                try:
                    node = self._container(path)
                except StatusError:
                    where = f"doc is missing path: /{'/'.join(path)}: missing value"
                    raise unfit_patch(f"replace operation does not apply: {where}") from None
                # A member that is not there is added, other than RFC 6902 has it.
                if not isinstance(node, dict):
                    _child(node, token)
                node[int(token) if isinstance(node, list) else token] = value
            case "test":
                self._test(path, operation.get("value"))
            case "copy":
                source = _pointer(operation, "from")
                if not source:
                    raise unfit_patch("the whole document cannot be copied")
                copied = _or_null(self.document, source)
                # What was taken apart for it stays so: it may be copied from again and again.
                self._container(source)
                encoded = msgspec.json.encode(copied)
                self._copied += len(encoded)
                if self._copied > MAX_COPIED_BYTES:
                    raise unfit_patch(f"copies come to more than {MAX_COPIED_BYTES} bytes")
                is_raw = isinstance(copied, msgspec.Raw)
                self._add(path, msgspec.Raw(encoded) if is_raw else msgspec.json.decode(encoded))
            case "move":
                source = _pointer(operation, "from")
                if path[: len(source)] == source and len(path) > len(source):
                    raise unfit_patch("move operation does not apply: a value cannot be moved into itself")
                value = _get(self.document, source)
                self._remove(source)
                self._add(path, value)
            case _:
                raise unfit_patch(f"Unexpected kind: {op}")

    def _add(self, path: Sequence[str], value: Any) -> None:
        if not path:
            # Only `replace` makes another document, other than RFC 6902 has it.
            raise unfit_patch("the whole document cannot be added")
        node, token = self._container(path), path[-1]
        if isinstance(node, dict):
            node[token] = value
        elif isinstance(node, list):
            at = len(node) if token == "-" else _index(token, len(node))
            self._shift(len(node) - at)
            node.insert(at, value)
        else:
            raise unfit_patch(f"add operation does not apply: {token!r} has no object or array to be in")

    def _remove(self, path: Sequence[str]) -> None:
        if not path:
            raise unfit_patch("the whole document cannot be removed or moved")
        node, token = self._container(path), path[-1]
        if isinstance(node, dict) and token not in node:
            where = f"error in remove for path: '/{'/'.join(path)}'"
            raise unfit_patch(f"{where}: Unable to remove nonexistent key: {token}: missing value")
        _child(node, token)
        if isinstance(node, list):
            self._shift(len(node) - int(token))
            del node[int(token)]
        else:
            del node[token]

    def _test(self, path: list[str], expected: Any) -> None:
        found = _or_null(self.document, path)
        if isinstance(expected, msgspec.Raw):
            found, expected = _plain(found), _plain(expected)
            # To be compared it was taken apart, and stays so: it may be compared again and again.
            if not path:
                self.document = found
            elif node := self._container(path):
                node[int(path[-1]) if isinstance(node, list) else path[-1]] = found
        if not _same(found, expected):
            raise unfit_patch(f"testing value /{'/'.join(path)} failed: test failed")

    def _container(self, path: Sequence[str]) -> Any:
        """The object or array that the last token of `path` is in, copied so that it can be changed."""
        node = self.document = self._mine(self.document)
        for token in path[:-1]:
            child = self._mine(_child(node, token))
            node[int(token) if isinstance(node, list) else token] = child
            node = child
        return node

    def _mine(self, node: Any) -> Any:
        """`node` if it is a copy of this draft already, otherwise a copy of it."""
        node = _opened(node)
        if id(node) in self._own or not isinstance(node, dict | list):
            return node
        copy = node.copy()
        self._own[id(copy)] = copy
        return copy

    def _shift(self, items: int) -> None:
        self._shifted += items
        if self._shifted > MAX_SHIFTED_ITEMS:
            raise unfit_patch(f"operations push aside more than {MAX_SHIFTED_ITEMS} items of arrays")


def _pointer(operation: dict[str, Any], key: str) -> list[str]:
    """The tokens of the JSON pointer (RFC 6901) in `key`; empty for the whole document."""
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise unfit_patch(f"an operation needs a JSON pointer in {key}, got {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise unfit_patch(f"{operation['op']} operation needs a value")
    return operation["value"]


def _opened(node: Any) -> Any:
    """What was kept as it was written, taken apart by one level."""
    if not isinstance(node, msgspec.Raw):
        return node
    match bytes(node).lstrip()[:1]:
        case b"{":
            return msgspec.json.decode(node, type=dict[str, msgspec.Raw])
        case b"[":
            return msgspec.json.decode(node, type=list[msgspec.Raw])
    return msgspec.json.decode(node)


def _plain(node: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(node))


def _get(document: Any, path: Sequence[str]) -> Any:
    for token in path:
        document = _child(document, token)
    return document


def _or_null(document: Any, path: Sequence[str]) -> Any:
    """As `_get`; a member that is not there is null, other than RFC 6902 has it."""
    node = _opened(_get(document, path[:-1])) if path else document
    return node.get(path[-1]) if path and isinstance(node, dict) else _get(document, path)


def _child(node: Any, token: str) -> Any:
    node = _opened(node)
    if isinstance(node, dict) and token in node:
        return node[token]
    if isinstance(node, list):
        return node[_index(token, len(node) - 1)]
    raise unfit_patch(f"doc is missing path: {token!r}: missing value")


def _index(token: str, last: int) -> int:
    if not token.isdecimal() or not token.isascii() or (token[0] == "0" and token != "0") or len(token) > 9:
        raise unfit_patch(f"{token!r} is not an array index")
    if int(token) > last:
        raise unfit_patch(f"Unable to access invalid index: {token}")
    return int(token)


def _same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal. In Python True equals 1, in JSON it does not."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
