"""Where podling answers otherwise than Kubernetes, and why: everything else that differs is a fault."""

from __future__ import annotations

import re
from typing import NamedTuple

from peer.sequence import Found


class Difference(NamedTuple):
    """`path` is of the field in the answer, the others are of what is said there: patterns, all three."""

    name: str
    reason: str
    path: str
    kubernetes: str
    podling: str


_NOT_OURS = "what a client sends is the client's fault, also a version that Kubernetes answers with 500"
NAMED = (
    Difference(
        "no storage key",
        "podling keeps objects in SQLite: there is no key of etcd's to name",
        r"body\.message",
        r".*StorageError: invalid object, Code: 4, Key: .*",
        r"Operation cannot be fulfilled on .*: Precondition failed: UID in precondition: .*",
    ),
    Difference("the client's fault", _NOT_OURS, r"(body\.)?code", "500", "400"),
    Difference("the client's fault", _NOT_OURS, r"body\.reason", "nothing", "BadRequest"),
    Difference(
        "the client's fault",
        _NOT_OURS,
        r"body\.message",
        r"resourceVersion: Invalid value: .*",
        r"invalid resource version: resourceVersion: Invalid value: .*",
    ),
)


def unnamed(found: list[Found]) -> list[Found]:
    return [one for one in found if not any(_is(one, named) for named in NAMED)]


def _is(found: Found, named: Difference) -> bool:
    said = (found.path, str(found.kubernetes), str(found.podling))
    patterns = (named.path, named.kubernetes, named.podling)
    return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in zip(patterns, said, strict=True))
