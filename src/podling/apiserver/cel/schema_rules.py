"""The expressions in a schema (`x-kubernetes-validations`): whether they compile about a value of which the
schema says what it is, and what they may cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from podling.apiserver.cel.compilation import MOST_CHARACTERS, backticks, parse_faults, too_long
from podling.apiserver.cel.costs import MOST, Estimate
from podling.apiserver.cel.declared import Declarations, Declared
from podling.apiserver.cel.environment import Knows, environment, with_macros
from podling.apiserver.cel.inference import Inference, Known, functions
from podling.apiserver.cel.literals import constant_fault, literal_faults
from podling.apiserver.cel.named_types import may_name, undefined_fault
from podling.apiserver.cel.tree import Tree
from podling.apiserver.cel.types import Type, optional_of
from podling.apiserver.cel.words import MOST_TOLD, at_offset, told

NAME = "selfType0"
"""What the type of `self` is called; Kubernetes has another number each time."""
NESTED = "the expression is nested too deep"


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
            return self._checked(text, variables)
        except RecursionError:
            return Checked(NESTED)

    def _checked(self, text: str, variables: Mapping[str, Type]) -> Checked:
        if len(text) > MOST_CHARACTERS:
            return Checked(too_long(text))
        if faults := backticks(text):
            return Checked(told(faults, text))
        try:
            tree = parsed(text)
        except RuntimeError as error:
            return Checked(told(parse_faults(str(error), text, parser()), text))
        inference = Inference(tree, Known(variables, self._declarations, functions()))
        if inference.faults:
            return Checked(told((at_offset(*fault, text) for fault in inference.faults), text))
        tree.found = {id_: found.go for id_, found in inference.types.items()}
        found = islice(literal_faults(tree, parser()), MOST_TOLD)
        if wrong := [at_offset(offset, why, text) for offset, why in found]:
            return Checked(told(wrong, text))
        why = constant_fault(tree, parser()) or (undefined_fault(tree) if may_name(text) else "")
        cost = Estimate(tree, inference, self._declarations).cost
        told_of = f"program instantiation failed: {why}" if why else ""
        return Checked("", inference.result.go, told_of, min(cost, MOST))


def parsed(text: str) -> Tree:
    """Raises RuntimeError with the library's words."""
    return Tree(parser().compile(with_macros(text), disable_check=True), text)


@cache
def parser() -> Any:
    """The environment whose macros are those of every other, and which evaluates literals."""
    return environment(Knows(authorizer=False), "")
