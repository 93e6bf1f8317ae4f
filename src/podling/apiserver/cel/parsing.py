"""An expression is parsed by `cel-expr-python`, Google's C++ library, whose grammar and macros are those of
`cel-go`. What it means is inferred here (`inference.py`): the library checks types by rules of its own.

The library is imported when the first expression comes: that takes 8 ms and 14 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from cel_expr_python import cel

from podling.apiserver.cel.nesting import TooDeep, pieces, texts_of
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.tokens import tokens
from podling.apiserver.cel.tree import Tree, joined, tree_of

EXTENSIONS = ("lists", "optional", "two-var-comprehensions")
"""What has macros."""
PRIVATE = range(0xE000, 0xF900)
"""Letters that mean nothing of their own."""
_RAW, _ESCAPED_QUOTE = re.compile(r"[rR]['\"]"), re.compile(r"\\['\"]")
_TOO_DEEP = re.compile(r"Exceeded max recursion depth|Expression recursion limit exceeded")
_ONE_OF_PAIRS = re.compile(
    r"//[^\n]*|[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<macro>\.exists_one\()(?=\s*+\w++\s*+,\s*+\w++\s*+,)",
    re.DOTALL,
)


def parsed(text: str, *, bindings: bool = False) -> Tree:
    """`bindings`: it may have `cel.bind`. Raises RuntimeError with the library's words."""
    try:
        return _by_library(text, bindings)
    except RuntimeError as error:
        if not _TOO_DEEP.search(str(error)):
            raise
    return with_room(lambda: by_pieces(text, bindings))


def _by_library(text: str, bindings: bool) -> Tree:
    parser = _parser(bindings)
    if not (ends := list(_backslashes(text))):
        return tree_of(parser.compile(_with_macros(text), disable_check=True), text)
    # One with all of them is refused as the library has it.
    stand_in = next((one for one in map(chr, PRIVATE) if one not in text), "\\")
    letters = list(text)
    for at in ends:
        letters[at] = stand_in
    try:
        tree = tree_of(parser.compile(_with_macros("".join(letters)), disable_check=True), text)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace(stand_in, "\\")) from error
    for part in tree.parts():
        if part.const.HasField("string"):
            part.const.string = part.const.string.replace(stand_in, "\\")
        elif part.const.HasField("bytes"):
            part.const.bytes = part.const.bytes.replace(stand_in.encode(), b"\\")
    return tree


def _backslashes(text: str) -> Iterator[int]:
    """Where a raw literal ends with a backslash, which the library takes for that of a quote."""
    if not (_RAW.search(text) and _ESCAPED_QUOTE.search(text)):
        return
    for token in tokens(text):
        inside = token.text.rstrip(token.text[-1:])
        is_raw = token.sort in ("STRING", "BYTES") and _RAW.match(token.text.lstrip("bB"))
        if is_raw and (len(inside) - len(inside.rstrip("\\"))) % 2:
            yield token.start + len(inside) - 1


def by_pieces(text: str, bindings: bool) -> Tree:
    try:
        found = pieces(text)
    except TooDeep as error:
        raise RuntimeError(f"ERROR: <input>:-1:0: {error}") from error
    trees = {}
    for piece, own in texts_of(text, found):
        try:
            trees[piece.name] = _by_library(own, bindings), piece.start
        except RuntimeError:
            # Where it stands is told.
            _by_library(re.sub(r"[^\n]", " ", text[: piece.start]) + own, bindings)
            raise
    around, _ = trees.pop("")
    return joined(text, around, trees)


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
