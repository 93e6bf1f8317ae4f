"""The expressions in a schema (`x-kubernetes-validations`): whether they compile about a value of which the
schema says what it is, and what they may cost.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podling.apiserver.cel.compilation import NESTED, fault_of, parsed_or_fault
from podling.apiserver.cel.costs import MOST, Estimate
from podling.apiserver.cel.declared import Declarations, Declared
from podling.apiserver.cel.inference import Inference, Known, functions
from podling.apiserver.cel.named_types import undefined_fault
from podling.apiserver.cel.program import constant_fault
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.types import Type, optional_of

NAME = "selfType0"
"""What the type of `self` is called; Kubernetes has another number each time."""


class Checked(msgspec.Struct, frozen=True):
    """`fault`: why it does not compile, empty if it does. Then there is its type, as Go writes it, what is
    wrong with its constants, and what it may cost at most."""

    fault: str = ""
    type: str = ""
    of_constants: str = ""
    cost: int = 0


class SchemaRules:
    """The rules of one schema, which know its value as `self` and what was there before as `oldSelf`."""

    def __init__(self, of: Declared) -> None:
        self._declarations = Declarations(of, NAME)

    def checked(self, text: str, *, may_be_new: bool = False) -> Checked:
        """`may_be_new`: `oldSelf` is optional."""
        type_ = self._declarations.type
        variables = {"self": type_, "oldSelf": optional_of(type_) if may_be_new else type_}
        try:
            return with_room(lambda: self._checked(text, variables))
        except RecursionError:
            return Checked(NESTED)

    def _checked(self, text: str, variables: Mapping[str, Type]) -> Checked:
        tree, fault = parsed_or_fault(text)
        if tree is None:
            return Checked(fault)
        inference = Inference(tree, Known(variables, self._declarations, functions()))
        if fault := fault_of(inference, text):
            return Checked(fault)
        why = constant_fault(tree) or undefined_fault(tree, text)
        cost = Estimate(tree, inference, self._declarations).cost
        told_of = f"program instantiation failed: {why}" if why else ""
        return Checked("", inference.result.go, told_of, min(cost, MOST))
