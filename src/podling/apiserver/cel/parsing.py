"""An expression is parsed by `cel-expr-python`, Google's C++ library, whose grammar and macros are those of
`cel-go`. What it means is inferred here (`inference.py`): the library checks types by rules of its own.

The library is imported when the first expression comes: that takes 8 ms and 14 MB.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from cel_expr_python import cel

from podling.apiserver.cel.tree import Tree

EXTENSIONS = ("lists", "optional", "two-var-comprehensions")
"""What has macros."""
_ONE_OF_PAIRS = re.compile(
    r"//[^\n]*|[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<macro>\.exists_one\()(?=\s*+\w++\s*+,\s*+\w++\s*+,)",
    re.DOTALL,
)


def parsed(text: str, *, bindings: bool = False) -> Tree:
    """`bindings`: it may have `cel.bind`. Raises RuntimeError with the library's words."""
    return Tree(_parser(bindings).compile(_with_macros(text), disable_check=True), text)


@cache
def _parser(bindings: bool) -> Any:
    names = (*EXTENSIONS, *(("bindings",) if bindings else ()))
    config = {"name": "kubernetes", "extensions": [{"name": name} for name in names]}
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(msgspec.json.encode(config).decode()))


def _with_macros(expression: str) -> str:
    """The expression with `existsOne` where `exists_one` has two variables, which the library knows by that
    name only. Everything keeps its place."""
    if "exists_one" not in expression:
        return expression
    return _ONE_OF_PAIRS.sub(lambda found: ".existsOne (" if found["macro"] else found[0], expression)
