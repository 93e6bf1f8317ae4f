"""What does not fit the types of the resources that a ValidatingAdmissionPolicy is for.

Such an expression is valid all the same: a policy is told in its status.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.cel.checker import apart, is_long
from podling.model.types.admissionregistration import ExpressionWarning, ValidatingAdmissionPolicySpec

PROGRAM = "from podling.apiserver.cel.policy_types import main; main()"
KINDS = "x-kubernetes-group-version-kind"


class Documented(msgspec.Struct, frozen=True):
    """A kind, and the OpenAPI v3 document of its group version, in JSON."""

    api_version: str
    kind: str
    document: bytes

    @property
    def gvk(self) -> dict[str, str]:
        group, _, version = self.api_version.rpartition("/")
        return {"group": group, "kind": self.kind, "version": version}

    def __str__(self) -> str:
        gvk = self.gvk
        return f"{gvk['group']}/{gvk['version']}, Kind={gvk['kind']}"


class Question(msgspec.Struct, frozen=True):
    """A policy, the kinds that it is for, in order, and that of its parameters."""

    spec: ValidatingAdmissionPolicySpec
    kinds: list[Documented]
    params: Documented | None = None


def warnings(question: Question) -> list[ExpressionWarning]:
    """One for each expression that does not fit all kinds. Only to be called in a thread: it may wait for a
    process. Raises StatusError 500 if that is lost."""
    if not is_long([text for _, text in _expressions(question.spec)]):
        return list(_warnings(question))
    told = apart(PROGRAM, msgspec.msgpack.encode(question))
    return msgspec.msgpack.decode(told, type=list[ExpressionWarning])


def main() -> None:
    """The main function of the process that checks long policies."""
    os.nice(5)
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Question)
    sys.stdout.buffer.write(msgspec.msgpack.encode(list(_warnings(question))))


def _expressions(spec: ValidatingAdmissionPolicySpec) -> Iterator[tuple[str, str]]:
    """Those that are checked, by their paths, after the variables, which have none."""
    yield from (("", one.expression) for one in spec.variables)
    for i, one in enumerate(spec.validations):
        yield f"spec.validations[{i}].expression", one.expression
        if one.message_expression:
            yield f"spec.validations[{i}].messageExpression", one.message_expression


def _warnings(question: Question) -> Iterator[ExpressionWarning]:
    # Only who has policies pays for the library.
    from podling.apiserver.cel.policy_inference import Checks

    known: dict[bytes, Any] = {}
    params = None if question.params is None else _described(question.params, known)
    checks = [
        (str(kind), Checks(question.spec, described, params))
        for kind in question.kinds
        if (described := _described(kind, known)) is not None
    ]
    for path, text in _expressions(question.spec):
        if path:
            found = [f"{kind}: {told}\n" for kind, check in checks if (told := check.fault(text))]
            if found:
                yield ExpressionWarning(path, "\n".join(found))


class Described(NamedTuple):
    """A kind and its schema, with those that it refers to, by name."""

    kind: str
    schema: Any
    schemas: Mapping[str, Any]


def _described(kind: Documented, known: dict[bytes, Any]) -> Described | None:
    """`known`: documents that were read before. None for a kind that is not in its document."""
    if not kind.document:
        return None
    if kind.document not in known:
        known[kind.document] = msgspec.json.decode(kind.document)["components"]["schemas"]
    schemas = known[kind.document]
    wanted = [kind.gvk]
    found = next(islice((one for one in schemas.values() if one.get(KINDS) == wanted), 1), None)
    return None if found is None else Described(kind.kind, found, schemas)
