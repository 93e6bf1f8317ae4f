"""The compilation of the expressions of one object, one after the other: each variable is known to those that
follow it.
"""

from __future__ import annotations

import re

from podling.apiserver.cel.checker import INTERNAL, TOO_COMPLEX, Expression
from podling.apiserver.cel.device_costs import KNOWN, is_too_complex
from podling.apiserver.cel.inference import Inference, Known
from podling.apiserver.cel.known import kept, known_about, untyped
from podling.apiserver.cel.literals import literal_faults
from podling.apiserver.cel.named_types import undefined_fault
from podling.apiserver.cel.parsing import parsed
from podling.apiserver.cel.program import constant_fault
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.tokens import tokens
from podling.apiserver.cel.tree import Tree
from podling.apiserver.cel.types import DYN, Type
from podling.apiserver.cel.words import INTRODUCTION, MOST_TOLD, SYNTAX, Fault, at_offset, faults_in, told

MOST_CHARACTERS = 100_000
NESTED = f"{INTRODUCTION}the expression is nested too deep"
SELECTING = ("bool", "any")
"""The types of an expression that selects a device."""


class Compilation:
    def __init__(self) -> None:
        self._variables: dict[str, Type] = {}

    def fault(self, expression: Expression) -> str:
        """What is wrong with it, empty for nothing. A variable is known from here on, whatever its fault."""
        try:
            type_, fault, of_program = with_room(lambda: self._compiled(expression))
        except RecursionError:
            type_, fault, of_program = DYN, NESTED, ""
        if expression.selects:
            fault = _of_selector(expression.text, type_.go, fault)
        elif expression.variable:
            self._variables[expression.variable] = kept(DYN if of_program else type_)
        elif not fault and expression.returns and type_.go not in expression.returns:
            wanted = expression.returns[0]
            if len(expression.returns) > 1:
                wanted = f"one of [{' '.join(expression.returns)}]"
            fault = f"must evaluate to {wanted} but got {type_.go}"
        return fault or of_program

    def _compiled(self, expression: Expression) -> tuple[Type, str, str]:
        """The type, what is wrong, and what is wrong with the program that is made of it."""
        text = expression.text
        tree, fault = parsed_or_fault(text, bindings=expression.selects)
        if tree is None:
            return DYN, fault, ""
        found = Inference(tree, self._known(expression))
        if fault := fault_of(found, text):
            return DYN, fault, ""
        if why := constant_fault(tree) or undefined_fault(tree, text):
            return found.result, "", f"{INTERNAL}program instantiation failed: {why}"
        return found.result, "", TOO_COMPLEX if expression.selects and is_too_complex(found) else ""

    def _known(self, expression: Expression) -> Known:
        if expression.selects:
            return KNOWN
        if expression.about:
            return known_about(expression.about)
        return untyped(
            self._variables if expression.composed else None,
            params=expression.params,
            authorizer=expression.authorizer,
            mutates=expression.mutates,
        )


def parsed_or_fault(text: str, *, bindings: bool = False) -> tuple[Tree | None, str]:
    """Why an expression is none, if there is no tree."""
    if len(text) > MOST_CHARACTERS:
        return None, too_long(text)
    found: list[Fault] = []
    try:
        tree = parsed(text, bindings=bindings)
        if not has_quoted_name(text):
            return tree, ""
    except RuntimeError as error:
        said = re.sub(r" \[[A-Z_]+\]$", "", str(error).removeprefix("INVALID_ARGUMENT: "))
        found = list(faults_in(said, text)) or [Fault(-1, -1, said)]
    if all(fault.line > 0 and not fault.message.startswith(SYNTAX) for fault in found) and found:
        return None, told(found, text)
    # 50 ms, and some MB, for those who have such expressions.
    from podling.apiserver.cel.syntax import syntax_faults

    return None, told(syntax_faults(text, found) or found, text)


def fault_of(found: Inference, text: str) -> str:
    """What does not fit the types of an expression; empty for nothing."""
    faults = found.faults or list(literal_faults(found))
    shown = [at_offset(*one, text) for one in faults[:MOST_TOLD]]
    return told(shown, text, len(faults) - len(shown)) if faults else ""


def _of_selector(text: str, type_: str, fault: str) -> str:
    """What is wrong with an expression about a device. Of what `.?` leads to the library knows no type."""
    if fault:
        return fault if text else fault.replace(":1:1:", ":1:0:")
    if type_ in SELECTING or (type_ == "dyn" and ".?" in text):
        return fault
    shown = re.sub(r"\bany\b", "google.protobuf.Any", type_)
    return f"must evaluate to bool or the unknown type, not {shown}"


def too_long(text: str) -> str:
    size = f"size: {len(text)}, limit {MOST_CHARACTERS}"
    return f"{INTRODUCTION}ERROR: <input>:-1:0: expression code point size exceeds limit: {size}"


def has_quoted_name(text: str) -> bool:
    """Which the library takes."""
    return "`" in text and any(token.sort == "ESC_IDENTIFIER" for token in tokens(text))
