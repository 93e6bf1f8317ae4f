"""Whether the expressions of one object compile, and to what type.

A fault is what Kubernetes says of it. The library holds Python's global lock while it parses, and types take
some 100 µs a word, so long expressions are checked in a process of their own, which ends with its answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from podling.model.errors import internal

LONG, LONG_TOGETHER, MANY = 1_000, 16_000, 64
"""Characters of one expression, characters of all, and rules of a schema: more than that is checked in a
process of its own."""
PATIENCE = 30
"""Seconds until that process counts as lost."""
INTERNAL = "Internal error: "
"""How faults begin that Kubernetes calls its own."""
TOO_COMPLEX = "too complex, exceeds cost limit"
"""The fault of a selector that may cost too much, which is forbidden."""
PROGRAM = "from podling.apiserver.cel.checker import main; main()"


class Expression(msgspec.Struct, frozen=True):
    """`returns`: the types it may have, as Go writes them; none for any. `variable`: the name under which
    those that follow know it. `composed`: it may name such variables. `mutates`: it may make objects.
    `selects`: it is about a device, and about nothing else.
    `about`: it is about the `claims` of a token, the `user` made of them, or a `request` that is authorized,
    and about nothing else."""

    text: str
    returns: tuple[str, ...] = ()
    variable: str = ""
    params: bool = False
    authorizer: bool = True
    composed: bool = False
    mutates: bool = False
    selects: bool = False
    about: str = ""


def faults(expressions: Mapping[str, Expression]) -> dict[str, str]:
    """What is wrong with those that have faults, by the same names. Only to be called in a thread: it may
    wait for a process. Raises StatusError 500 if that is lost."""
    if not expressions:
        return {}
    asked = list(expressions.values())
    if not is_long([one.text for one in asked]):
        said = check(asked)
    else:
        told = apart(PROGRAM, msgspec.msgpack.encode(asked))
        said = msgspec.msgpack.decode(told, type=list[str])
    return {name: fault for name, fault in zip(expressions, said, strict=True) if fault}


def is_long(texts: Sequence[str]) -> bool:
    """Whether expressions are to be parsed in a process of their own."""
    lengths = [len(text) for text in texts]
    return max(lengths, default=0) > LONG or sum(lengths) > LONG_TOGETHER


def apart(program: str, data: bytes) -> bytes:
    """What a program of Python makes of the data, in a process of its own, which ends with its answer. Only
    to be called in a thread. Raises StatusError 500 if the process is lost."""
    try:
        told = subprocess.run(
            [sys.executable, "-c", program],
            input=data,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise internal("the expressions are too many or too long to be compiled") from error
    return told.stdout


def check(expressions: Sequence[Expression]) -> list[str]:
    """The fault of each, empty for none."""
    # Only who has expressions pays for the library: 8 ms, and 14 MB for as long as it runs.
    from podling.apiserver.cel.compilation import Compilation

    compilation = Compilation()
    return [compilation.fault(expression) for expression in expressions]


def main() -> None:
    """The main function of the process that checks long expressions."""
    os.nice(5)
    expressions = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[Expression])
    sys.stdout.buffer.write(msgspec.msgpack.encode(check(expressions)))
