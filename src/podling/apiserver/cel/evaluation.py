"""Expressions are evaluated: compiled once, and within a bound of cost.

    program("object.spec.replicas <= 5").value({"object": {"spec": {"replicas": 3}}}).value  # True

A value is one of `podling.apiserver.cel.values`. Whatever an expression does, it ends with a value or with an
error in Kubernetes' words: each part costs what Kubernetes asks for it, an evaluation may cost LIMIT, and
those of one policy together BUDGET. What costs more than QUICK is to be evaluated beside the loop: `Cut`
says so, and since an evaluation changes nothing, it is begun again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podling.apiserver.cel.inference import Inference
from podling.apiserver.cel.known import kept, untyped
from podling.apiserver.cel.parsing import parsed
from podling.apiserver.cel.parts import Evaluation, Part, constant
from podling.apiserver.cel.program import Compiler
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.types import DYN, Type
from podling.apiserver.cel.values import ROOM, CelError, CostError
from podling.model.remembered import remembered

Variables = tuple[tuple[str, Type], ...]
"""The types of the variables of a policy."""
LIMIT, BUDGET = 1_000_000, 10_000_000
"""What one expression may cost, and those of one policy together (`apis/cel/config.go` of Kubernetes)."""
CONDITIONS_BUDGET = BUDGET // 4
QUICK, QUICK_ROOM = 10_000, 300_000
"""What an evaluation may cost on the loop: some 5 ms."""
MOST_PROGRAMS, LONGEST_KEPT = 4096, 10_000
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class Cut(Exception):
    """An evaluation is too long for the loop."""


class Evaluated(msgspec.Struct, frozen=True):
    """`error`: why there is no value; empty if there is one."""

    value: Any
    error: str
    cost: int


class Program:
    """One expression, which was found to be right when it was written. `type`: under which others know it as
    a variable."""

    def __init__(self, expression: str, variables: Variables = ()) -> None:
        self.expression = expression
        self.type: Type = DYN
        self._slots, self._error = 0, ""
        self._part: Part = constant(None)

        def compile_() -> None:
            tree = parsed(expression)
            inference = Inference(tree, untyped(dict(variables)))
            self.type = kept(inference.result)
            compiler = Compiler(inference.ways)
            self._part = compiler.part(tree.root, {})
            self._slots = compiler.slots

        try:
            with_room(compile_)
        except (RuntimeError, RecursionError) as error:
            self._error = f"compilation failed: {error}"

    def evaluated(self, names: Mapping[str, Any], *, quick: bool = False) -> Evaluated:
        """`quick`: raises Cut when it costs more than QUICK; only then may it run on the loop."""
        if self._error:
            return Evaluated(None, self._error, 0)
        floor, room = (LIMIT - QUICK, QUICK_ROOM) if quick else (0, ROOM)

        def evaluate() -> Evaluated:
            at = Evaluation(names, self._slots, LIMIT, floor, room)
            try:
                value, error = self._part(at), ""
            except CostError as cost:
                if at.floor and at.left >= 0:
                    raise Cut from cost
                value, error = None, str(cost)
            except CelError as failure:
                value, error = None, str(failure)
            return Evaluated(value, error, LIMIT - at.left)

        try:
            return with_room(evaluate)
        except RecursionError:
            return Evaluated(None, "values are nested too deep", LIMIT)


@remembered(MOST_PROGRAMS, longest=LONGEST_KEPT)
def program(expression: str, variables: Variables = ()) -> Program:
    """The program of an expression, kept if it is short. `variables`: those that it names."""
    return Program(expression, variables)
