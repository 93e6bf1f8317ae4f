"""The compilation of the expressions of one object, one after the other: each variable is known to those that
follow it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from podling.apiserver.cel.checker import INTERNAL, TOO_COMPLEX, Expression
from podling.apiserver.cel.device_costs import is_too_complex
from podling.apiserver.cel.environment import Knows, environment, with_macros, with_plain_names
from podling.apiserver.cel.inference import Inference
from podling.apiserver.cel.known import untyped
from podling.apiserver.cel.literals import constant_fault, literal_faults
from podling.apiserver.cel.named_types import may_name, names_open_type, null_value_faults, undefined_fault
from podling.apiserver.cel.tree import Tree, variable_type
from podling.apiserver.cel.types import DYN
from podling.apiserver.cel.words import INTRODUCTION, MOST_TOLD, Fault, at_offset, parsed, told

MOST_CHARACTERS = 100_000
MOST_ENVIRONMENTS = 256
"""Environments of one object, which take 5 ms each: one for each variable that knows others, and for each
mutation."""
SELECTING = ("bool", "any")
"""The types of an expression that selects a device."""
_HAS_FIELD = re.compile(r"\bhas\(device\.(?:attributes|capacity)\)")
_HAS = re.compile(r"\bhas\(variables\.(\w+)\)")
_BACKTICK = re.compile(
    r"[rR]?[bB]?[rR]?(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")|//[^\n]*|`",
    re.DOTALL,
)


class TooManyError(Exception):
    """An object has more expressions with an environment of their own than are looked at."""


class Compilation:
    def __init__(self) -> None:
        self._variables: dict[str, Any] = {}
        self._known: dict[tuple[object, ...], Any] = {}

    def fault(self, expression: Expression) -> str:
        """What is wrong with it, empty for nothing. A variable is known from here on, whatever its fault."""
        text = expression.text
        type_, fault = "dyn", ""
        if len(text) > MOST_CHARACTERS:
            fault = too_long(text)
        elif faults := backticks(text):
            fault = told(faults, text)
        else:
            type_, fault = self._compiled(expression)
        if expression.selects:
            fault = _of_selector(text, type_, fault)
        elif expression.variable:
            self._variables[expression.variable] = variable_type(type_)
        elif not fault and expression.returns and type_ not in expression.returns:
            wanted = expression.returns[0]
            if len(expression.returns) > 1:
                wanted = f"one of [{' '.join(expression.returns)}]"
            fault = f"must evaluate to {wanted} but got {type_}"
        return fault

    def _compiled(self, expression: Expression) -> tuple[str, str]:
        """The type, and what is wrong."""
        text = with_macros(expression.text)
        if expression.mutates:
            text = with_plain_names(text)
        if expression.selects:
            text = _HAS_FIELD.sub(lambda found: "true".ljust(len(found[0])), text)
        if expression.composed:
            text = _HAS.sub(self._has, text)
        try:
            known = self._environment(expression)
            plain = self._environment(Expression("", authorizer=False, selects=expression.selects))
        except TooManyError:
            return (
                "dyn",
                f"{INTRODUCTION}podling compiles at most {MOST_ENVIRONMENTS} such expressions of one object",
            )
        try:
            tree = Tree(known.compile(text), text)
        except RuntimeError as error:
            return "dyn", told(parse_faults(str(error), text, known), expression.text)
        named: Tree | None = None
        if may_name(text):
            named = Tree(known.compile(text, disable_check=True), text)
        if named is not None and (faults := self._misnamed(named, expression, plain)):
            return "dyn", told((at_offset(*fault, text) for fault in faults), expression.text)
        found = islice(literal_faults(tree, plain), MOST_TOLD)
        wrong = [at_offset(offset, why, text) for offset, why in found]
        why = "" if wrong else constant_fault(tree, plain)
        if not wrong and not why and named is not None:
            why = undefined_fault(named)
        if why:
            return "dyn", f"{INTERNAL}program instantiation failed: {why}"
        type_ = tree.type_of(tree.root).replace("Object_", "Object.")
        # The checked tree has names of several parts as one.
        if (
            expression.selects
            and not wrong
            and is_too_complex(Tree(known.compile(text, disable_check=True), text))
        ):
            return type_, TOO_COMPLEX
        return type_, told(wrong, expression.text) if wrong else ""

    def _misnamed(self, tree: Tree, expression: Expression, plain: Any) -> Sequence[tuple[int, str]]:
        """What does not fit the types that are named as values. `tree`: as it is parsed."""
        if found := list(islice(null_value_faults(tree), MOST_TOLD)):
            return found
        if expression.mutates or expression.about or expression.selects or not names_open_type(tree):
            return ()
        inference = Inference(tree, untyped(dict.fromkeys(self._variables, DYN)))
        tree.found = {id_: found.go for id_, found in inference.types.items()}
        return (inference.faults or list(literal_faults(tree, plain)))[:MOST_TOLD]

    def _has(self, found: re.Match[str]) -> str:
        """What is true of a variable; the library takes the question for the variable itself."""
        return "true".ljust(len(found[0])) if found[1] in self._variables else found[0]

    def _environment(self, expression: Expression) -> Any:
        """Raises TooManyError."""
        variables = self._variables if expression.composed and "variables" in expression.text else None
        objects = expression.text if expression.mutates else ""
        count = -1 if variables is None else len(variables)
        key = (
            *(expression.params, expression.authorizer, count, objects, expression.selects),
            expression.about,
        )
        if key not in self._known:
            if len(self._known) > MOST_ENVIRONMENTS:
                raise TooManyError
            knows = Knows(
                params=expression.params,
                authorizer=expression.authorizer,
                variables=variables,
                mutates=expression.mutates,
                device=expression.selects,
                about=expression.about,
            )
            self._known[key] = environment(knows, objects)
        return self._known[key]


def parse_faults(error: str, text: str, known: Any) -> list[Fault]:
    """From what the library says to what Kubernetes says."""

    def misfit(offset: int, operand: int) -> int:
        try:
            tree = Tree(known.compile(text, disable_check=True), text)
        except RuntimeError:
            return offset
        for part in tree.parts():
            if part.HasField("call") and tree.position(part.id) == offset:
                return tree.position(part.call.args[operand].id)
        return offset

    said = re.sub(r" \[[A-Z_]+\]$", "", error.removeprefix("INVALID_ARGUMENT: "))
    return list(parsed(said, text, misfit)) or [Fault(-1, -1, said)]


def _of_selector(text: str, type_: str, fault: str) -> str:
    """What is wrong with an expression about a device. Of what `.?` leads to the library knows no type."""
    if fault and fault != TOO_COMPLEX:
        return fault if text else fault.replace(":1:1:", ":1:0:")
    if type_ in SELECTING or (type_ == "dyn" and ".?" in text):
        return fault
    shown = re.sub(r"\bany\b", "google.protobuf.Any", type_)
    return f"must evaluate to bool or the unknown type, not {shown}"


def too_long(text: str) -> str:
    size = f"size: {len(text)}, limit {MOST_CHARACTERS}"
    return f"{INTRODUCTION}ERROR: <input>:-1:0: expression code point size exceeds limit: {size}"


def backticks(text: str) -> list[Fault]:
    if "`" not in text:
        return []
    found = (one.start() for one in _BACKTICK.finditer(text) if one[0] == "`")
    first = next(found, None)
    return [] if first is None else [at_offset(first, "unsupported syntax: '`'", text)]
