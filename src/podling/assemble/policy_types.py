"""Lends the API server's compiler of expressions to the controller that checks the types of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from podling.controllers.policy_types import Kind
from podling.model.scheme import RESOURCES
from podling.model.types.admissionregistration import ExpressionWarning, ValidatingAdmissionPolicySpec
from podling.process.waits import SHORT, apart, aside


async def type_check(
    spec: ValidatingAdmissionPolicySpec, kinds: Sequence[Kind], documents: Mapping[str, bytes]
) -> list[ExpressionWarning]:
    """What the compiler finds in a policy that does not fit the types of these kinds. `documents`: of group
    versions that podling does not know itself."""
    # Only who has policies pays for the engine of expressions: 0.1 s of importing, and 14 MB.
    compiler = await apart(import_module, "podling.apiserver.cel.policy_types")
    schemas = await apart(import_module, "podling.apiserver.paths.openapi.schemas")
    known = dict(documents)

    def documented(kind: Kind) -> Any:
        if kind[0] not in known:
            known[kind[0]] = _document(schemas, kind[0])
        return compiler.Documented(*kind, known[kind[0]])

    def warnings() -> list[ExpressionWarning]:
        param = spec.param_kind
        params = None if param is None else documented((param.api_version, param.kind))
        told: list[ExpressionWarning] = compiler.warnings(
            compiler.Question(spec, list(map(documented, kinds)), params)
        )
        return told

    return await aside(SHORT + 1, warnings)


def _document(schemas: Any, api_version: str) -> bytes:
    """What podling knows of a group version, as an OpenAPI document has it."""
    stored = [one.type for one in RESOURCES if one.api_version == api_version and one.stored]
    return msgspec.json.encode({"components": {"schemas": schemas.schemas_of(stored, [])}})
