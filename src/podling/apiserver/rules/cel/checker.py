"""Whether the expressions of one object compile, and to what type.

A fault is what Kubernetes says of it. The library holds Python's global lock while it checks an expression,
for about 15 µs a word, so it checks long ones in a process of its own, which ends with its answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from podling.model.errors import internal

LONG, LONG_TOGETHER, MANY = 1_000, 16_000, 64
"""Characters of one expression, characters of all, and variables and mutations: more than that is checked
in a process of its own."""
PATIENCE = 30
"""Seconds until that process counts as lost."""
INTERNAL = "Internal error: "
"""How faults begin that Kubernetes calls its own."""
PROGRAM = "from podling.apiserver.rules.cel.checker import main; main()"


class Expression(msgspec.Struct, frozen=True):
    """`returns`: the types it may have, as Go writes them; none for any. `variable`: the name under which
    those that follow know it. `composed`: it may name such variables. `mutates`: it may make objects.
    `selects`: it is about a device, and about nothing else."""

    text: str
    returns: tuple[str, ...] = ()
    variable: str = ""
    params: bool = False
    authorizer: bool = True
    composed: bool = False
    mutates: bool = False
    selects: bool = False


def faults(expressions: Mapping[str, Expression]) -> dict[str, str]:
    """What is wrong with those that have faults, by the same names. Only to be called in a thread: it may
    wait for a process. Raises StatusError 500 if that is lost."""
    if not expressions:
        return {}
    asked = list(expressions.values())
    lengths = [len(one.text) for one in asked]
    if (
        max(lengths, default=0) <= LONG
        and sum(lengths) <= LONG_TOGETHER
        and sum(bool(one.variable) or one.mutates for one in asked) <= MANY
    ):
        said = check(asked)
    else:
        try:
            told = subprocess.run(
                [sys.executable, "-c", PROGRAM],
                input=msgspec.msgpack.encode(asked),
                stdout=subprocess.PIPE,
                check=True,
                timeout=PATIENCE,
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            raise internal("the expressions are too many or too long to be compiled") from error
        said = msgspec.msgpack.decode(told.stdout, type=list[str])
    return {name: fault for name, fault in zip(expressions, said, strict=True) if fault}


def check(expressions: Sequence[Expression]) -> list[str]:
    """The fault of each, empty for none."""
    # Only who has expressions pays for the library: 8 ms, and 14 MB for as long as it runs.
    from podling.apiserver.rules.cel.compilation import Compilation

    compilation = Compilation()
    return [compilation.fault(expression) for expression in expressions]


def main() -> None:
    """The main function of the process that checks long expressions."""
    os.nice(5)
    expressions = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Expression])
    sys.stdout.buffer.write(msgspec.msgpack.encode(check(expressions)))
