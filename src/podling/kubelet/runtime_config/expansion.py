"""`$(NAME)` in commands, arguments and environment values.

A reference to a name that is not defined stays as it is, `$$` is a dollar sign, so `$$(NAME)` is never
expanded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOLLAR = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, values: Mapping[str, str]) -> str:
    if "$" not in text:
        return text
    return _DOLLAR.sub(lambda match: _replacement(match, values), text)


def _replacement(match: re.Match[str], values: Mapping[str, str]) -> str:
    name: str | None = match[1]
    if name is None:
        return "$"
    return values.get(name, match[0])


def undefined(text: str, values: Mapping[str, str]) -> list[str]:
    """The names it refers to that have no value."""
    names = (match[1] for match in _DOLLAR.finditer(text))
    return [name for name in names if name is not None and name not in values]
