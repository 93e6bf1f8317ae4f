"""YAML loaders that read what Kubernetes' reader of YAML reads: numbers are Go's, and what looks like a date
stays the text it is, since JSON has no dates.

`PythonLoader` raises RecursionError for what nests too deeply. `CLoader` is many times as fast, but recurses
in C without a limit: whoever uses it looks at the depth of the events first.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml

_PREFIX = "tag:yaml.org,2002:"
_NUMBER, _BOOL = _PREFIX + "int", _PREFIX + "bool"
_OTHERS = frozenset(_PREFIX + name for name in ("timestamp", "int", "float"))
_RESOLVERS = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _OTHERS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_NOT_JSON = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_MAYBE_NUMBER = re.compile(rf"(?:[-+]?\.?[0-9][0-9A-Za-z_.+-]*|{_NOT_JSON})\Z")
_RESOLVERS |= {first: [*_RESOLVERS.get(first, ()), (_NUMBER, _MAYBE_NUMBER)] for first in "+-.0123456789"}
_ONE_LETTER = {"y": True, "Y": True, "n": False, "N": False}
"""Truths to Go's reader alone."""
_RESOLVERS |= {
    first: [*_RESOLVERS.get(first, ()), (_BOOL, re.compile(rf"{first}\Z"))] for first in _ONE_LETTER
}
_WRITTEN = yaml.CSafeDumper.yaml_implicit_resolvers
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_LONGEST = 400
"""Digits of a number that is looked at: what is longer is no integer, and a float with no end or no worth."""
_WRITTEN_OUT = 1e21
"""From here on JSON of Go has an exponent."""


class _TextKeys(yaml.constructor.SafeConstructor):
    """A key that is a truth or a number is text in JSON."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep)
        return {
            str(key).lower() if isinstance(key, (bool, int, float)) else key: one
            for key, one in found.items()
        }


class PythonLoader(_TextKeys, yaml.SafeLoader):
    yaml_implicit_resolvers = _RESOLVERS


class CLoader(_TextKeys, yaml.CSafeLoader):
    yaml_implicit_resolvers = _RESOLVERS


class Dumper(yaml.CSafeDumper):
    """Quotes texts that would be read as truths, those of one letter as well."""

    yaml_implicit_resolvers = _WRITTEN | {
        first: [*_WRITTEN.get(first, ()), (_BOOL, re.compile(rf"{first}\Z"))] for first in _ONE_LETTER
    }


def plain_scalar(text: str) -> bool | int | float | str:
    """What an unquoted scalar is: a number or truth, else the text. A float is one also if it is whole."""
    tags = [tag for tag, pattern in _RESOLVERS.get(text[:1], ()) if pattern.match(text)]
    if not {_NUMBER, _BOOL}.intersection(tags):
        return text
    value: bool | int | float | str = yaml.load(text, CLoader)
    is_float = type(value) is int and not _INTEGER.fullmatch(text.replace("_", ""))
    return float(value) if is_float else value


def _number(loader: Any, node: yaml.ScalarNode) -> int | float | str:
    """Raises YAMLError for what JSON does not have."""
    text = str(loader.construct_scalar(node))
    plain = text.replace("_", "")
    if re.fullmatch(_NOT_JSON, text):
        raise yaml.constructor.ConstructorError(None, None, f"unsupported value: {text}", node.start_mark)
    if _INTEGER.fullmatch(plain) and len(plain) <= _LONGEST:
        number = _integer(plain)
        if _LEAST <= number <= _MOST:
            return number
    if not _FLOAT.fullmatch(plain) or (real := float(plain)) in (float("inf"), float("-inf")):
        return text
    return int(Decimal(repr(real))) if real.is_integer() and abs(real) < _WRITTEN_OUT else real


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-")
    is_octal = digits[:1] == "0" and digits[1:].isdigit()
    size = int(digits, 8) if is_octal else int(digits, 0)
    return -size if plain.startswith("-") else size


def _bool(loader: Any, node: yaml.ScalarNode) -> bool:
    text = str(loader.construct_scalar(node))
    return _ONE_LETTER[text] if text in _ONE_LETTER else bool(loader.construct_yaml_bool(node))


for _loader in (PythonLoader, CLoader):
    _loader.add_constructor(_NUMBER, _number)
    _loader.add_constructor(_BOOL, _bool)
