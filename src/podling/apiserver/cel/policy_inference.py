"""The expressions of an admission policy with the types of one kind of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podling.apiserver.cel.compilation import fault_of
from podling.apiserver.cel.declared import Declarations, Shape, declared
from podling.apiserver.cel.inference import Inference, Known, functions
from podling.apiserver.cel.known import OWN, KubernetesTypes, Several, VariableTypes, kept
from podling.apiserver.cel.parsing import parsed
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.types import (
    DYN,
    Structures,
    Type,
)
from podling.apiserver.cel.words import INTRODUCTION
from podling.model.types.admissionregistration import ValidatingAdmissionPolicySpec

if TYPE_CHECKING:
    from podling.apiserver.cel.policy_types import Described

REF = "#/components/schemas/"


class Checks:
    """What does not fit, where objects and parameters are of these kinds. Parameters of an unknown kind may
    be anything."""

    def __init__(
        self, spec: ValidatingAdmissionPolicySpec, kind: Described, params: Described | None
    ) -> None:
        objects = _declarations(kind)
        self._names: dict[str, Type] = {**OWN, "object": objects.type, "oldObject": objects.type}
        structures: list[Structures] = [objects, KubernetesTypes()]
        if spec.param_kind is not None:
            self._names["params"] = DYN
        if spec.param_kind is not None and params is not None:
            parameters = _declarations(params)
            self._names["params"] = parameters.type
            structures.append(parameters)
        self._variables: dict[str, Type] = {}
        self._structures = [VariableTypes(self._variables), *structures]
        for one in spec.variables:
            found = self._inferred(one.expression)
            is_right = found is not None and not found.faults
            self._variables[one.name] = kept(found.result) if found is not None and is_right else DYN

    def fault(self, text: str) -> str:
        """Empty if it fits, and for what does not compile at all."""
        found = self._inferred(text)
        if found is None:
            return ""
        return fault_of(found, text).removeprefix(INTRODUCTION)

    def _inferred(self, text: str) -> Inference | None:
        try:
            known = Known(self._names, Several(self._structures), functions())
            return with_room(lambda: Inference(parsed(text), known))
        except (RuntimeError, RecursionError):
            return None


def _declarations(kind: Described) -> Declarations:
    """What is known of the objects of a kind, whose schema refers to others."""

    def shape_of(at: tuple[Any, frozenset[str]]) -> Shape:
        """Of a schema, and the names that led to it: an object inside itself has no fields."""
        schema, around = at
        parts = schema.get("allOf") or [schema]
        if len(parts) == 1 and "$ref" in parts[0]:
            name = parts[0]["$ref"].removeprefix(REF)
            if name in around:
                return Shape("object")
            return shape_of((kind.schemas.get(name, {}), around | {name}))
        type_, form = schema.get("type", ""), schema.get("format", "")
        if form == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
            return Shape("int-or-string")
        items = schema.get("items") if type_ == "array" else schema.get("additionalProperties")
        if isinstance(items, dict):
            return Shape(type_, items=(items, around))
        fields = {name: (one, around) for name, one in schema.get("properties", {}).items()}
        return Shape(type_, form, fields=fields)

    found = declared(shape_of((kind.schema, frozenset())), shape_of)
    assert found is not None, "a kind is an object"
    return Declarations(found, f"{kind.kind}0")
