"""Label selectors and field selectors.

A label selector comes from a query (`app=web,tier in (a, b)`) or from a meta/v1 LabelSelector, and is matched
against labels. A field selector comes from a query (`status.phase!=Running,spec.nodeName=a`); each Kind says
which fields it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from podling.model.codec.quoting import quoted
from podling.model.errors import bad_request, joined
from podling.model.names import label_key, label_value
from podling.model.types.meta import LabelSelector

T = TypeVar("T")
Pace = Callable[[Iterable[T]], Iterable[T]]

IN, NOT_IN, EXISTS, MISSING, GREATER, LESS = "in", "notin", "exists", "!", "gt", "lt"

_OF_EXPRESSION = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": MISSING}
_OF_SYMBOL = {"in": IN, "notin": NOT_IN, "=": IN, "==": IN, "!=": NOT_IN, ">": GREATER, "<": LESS}
_BLANKS = " \t\r\n"
_SYNTAX = re.compile(r"[ \t\r\n]*(==|!=|[=!(),><]|[^ \t\r\n=!(),><]+)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_SYMBOLS = frozenset(("=", "==", "!=", "!", "(", ")", ",", ">", "<"))
_ENDED = re.compile(r"(?<=[^ \t\r\n\0])\0")
_PARTS = re.compile(r"(?>(?:[^\\,]++|\\.?)*)", re.DOTALL)
_OPERATOR = re.compile("!=|==?")
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_MISPLACED = re.compile(r"\\(?P<escape>[^\\,=]|$)|\\.|(?P<bare>=)", re.DOTALL)


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One condition on one key; `operator` is one of this module's constants (IN, EXISTS …)."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator == IN:
            return value in self.values
        if self.operator == NOT_IN:
            return value not in self.values
        if self.operator in (EXISTS, MISSING):
            return (value is not None) == (self.operator == EXISTS)
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        if (number := _integer(value)) is None:
            return False
        (bound,) = self.values
        return number > int(bound) if self.operator == GREATER else number < int(bound)


class Selector(msgspec.Struct, frozen=True):
    """A label selector: all requirements must hold, so none selects everything. `nothing` selects nothing."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(r.matches(labels) for r in self.requirements)

    def __bool__(self) -> bool:
        """False when it selects everything, so that callers can skip it."""
        return self.nothing or bool(self.requirements)


class SortedSelector:
    """Selects as a Selector of the same requirements does, of many objects: its cost for each is bounded by
    the number of the object's labels, however long it is. It keeps no requirement of a long selector, since
    to free thousands of them would take milliseconds at once."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._is_empty = True
        self._forbidden: set[str] = set()
        """Keys."""
        self._refused: set[str] = set()
        """`key=value`."""
        needed: dict[tuple[str, str], set[str]] = {}
        for each in requirements:
            self._is_empty = False
            if each.operator == MISSING:
                self._forbidden.add(each.key)
            elif each.operator == NOT_IN:
                self._refused.update(f"{each.key}={value}" for value in each.values)
            else:
                _join(needed, each)
        self._needed = [Requirement(*which, frozenset(values)) for which, values in needed.items()]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(r.matches(labels) for r in self._needed) and not any(
            key in self._forbidden or f"{key}={value}" in self._refused for key, value in labels.items()
        )

    def __bool__(self) -> bool:
        """False when it selects everything."""
        return not self._is_empty


def _join(known: dict[tuple[str, str], set[str]], requirement: Requirement) -> None:
    """Add it to those of the same key and operator, so that one says what all of them say."""
    values = known.setdefault((requirement.key, requirement.operator), set(requirement.values))
    if requirement.operator == IN:
        values &= requirement.values
    else:
        values |= requirement.values
    if requirement.operator in (GREATER, LESS) and len(values) > 1:
        values.remove((min if requirement.operator == GREATER else max)(values, key=int))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """None selects nothing, an empty selector everything. Raises ValueError for one that validation
    refuses."""
    if selector is None:
        return NOTHING
    requirements = [_requirement(key, "in", [value]) for key, value in sorted(selector.match_labels.items())]
    for expression in selector.match_expressions:
        operator = _OF_EXPRESSION.get(expression.operator)
        if operator is None:
            raise ValueError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(_requirement(expression.key, operator, expression.values))
    return Selector(tuple(requirements))


def parse_label_selector(text: str, pace: Pace[Requirement] = iter) -> SortedSelector:
    """A label selector in its query form. `pace` goes through its requirements, which may be many. Raises
    StatusError 400."""
    try:
        return SortedSelector(pace(_Parser(text).requirements()))
    except ValueError as error:
        raise bad_request(str(error)) from error


def parse_requirements(text: str) -> Sequence[Requirement]:
    """What a short label selector asks for, in its order. Raises StatusError 400."""
    try:
        return list(_Parser(text).requirements())
    except ValueError as error:
        raise bad_request(str(error)) from error


def _requirement(key: str, operator: str, values: list[str]) -> Requirement:
    if found := label_key(key):
        # Kubernetes names no field here.
        raise ValueError(_invalid("<nil>", key, found))
    faults = []
    if operator in (IN, NOT_IN) and not values:
        faults = ["values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"]
    if operator in (EXISTS, MISSING) and values:
        listed = ", ".join(map(quoted, values))
        why = "values set must be empty for exists and does not exist"
        faults = [f"values: Invalid value: [{listed}]: {why}"]
    if operator in (GREATER, LESS) and _integer(values[0]) is None:
        faults = [
            _invalid("values[0]", values[0], ["for 'Gt', 'Lt' operators, the value must be an integer"])
        ]
    faults += [
        _invalid(f"values[{index}][{key}]", value, label_value(value))
        for index, value in enumerate(values)
        if label_value(value)
    ]
    if faults:
        raise ValueError(joined(faults))
    return Requirement(key, operator, frozenset(values))


def _invalid(where: str, value: str, why: Sequence[str]) -> str:
    return f"{where}: Invalid value: {quoted(value)}: {'; '.join(why)}"


def _integer(text: str) -> int | None:
    """None if it is none of 64 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    return number if -(1 << 63) <= (number := int(text)) < 1 << 63 else None


class _Parser:
    """Recursive descent over the tokens; the empty token is the end of the text."""

    def __init__(self, text: str) -> None:
        # To Kubernetes' lexer a NUL ends a word or symbol, and where none has begun, the text.
        read = _ENDED.sub(" ", text).partition("\0")[0] if "\0" in text else text
        # Blanks with nothing behind them would be looked through again from each of them.
        self._tokens = (match[1] for match in _SYNTAX.finditer(read.rstrip(_BLANKS)))
        self._token = next(self._tokens, "")

    def requirements(self) -> Iterator[Requirement]:
        if not self._token:
            return
        if not self._starts_requirement():
            raise ValueError(f"found '{self._token}', expected: !, identifier, or 'end of string'")
        yield self._parse_one()
        while self._accept(","):
            if not self._starts_requirement():
                raise ValueError(f"found '{self._token}', expected: identifier after ','")
            yield self._parse_one()
        if self._token:
            raise ValueError(f"found '{self._token}', expected: ',' or 'end of string'")

    def _starts_requirement(self) -> bool:
        return self._token == "!" or self._token not in ("", *_SYMBOLS)

    def _parse_one(self) -> Requirement:
        try:
            return self._parse_requirement()
        except ValueError as error:
            raise ValueError(f"unable to parse requirement: {error}") from error

    def _parse_requirement(self) -> Requirement:
        missing = self._accept("!")
        key = self._identifier()
        if missing or self._token in ("", ","):
            return _requirement(key, MISSING if missing else EXISTS, [])
        symbol = self._take()
        if symbol not in _OF_SYMBOL:
            raise ValueError(f"found '{symbol}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if symbol in ("in", "notin") else [self._exact_value()]
        return _requirement(key, _OF_SYMBOL[symbol], values)

    def _values(self) -> list[str]:
        if not self._accept("("):
            # In Kubernetes' words, without its comma.
            raise ValueError(f"found '{self._token}' expected: '('")
        values = [self._value_or_empty("',', ')' or identifier")]
        while self._accept(","):
            values.append(self._value_or_empty("',', or identifier"))
        if not self._accept(")"):
            raise ValueError(f"found '{self._token}', expected: ',' or ')'")
        return sorted(set(values))

    def _value_or_empty(self, expected: str) -> str:
        return "" if self._token in (",", ")") else self._identifier(expected)

    def _exact_value(self) -> str:
        return "" if self._token in ("", ",") else self._identifier()

    def _identifier(self, expected: str = "identifier") -> str:
        token = self._take()
        if not token or token in _SYMBOLS:
            raise ValueError(f"found '{token}', expected: {expected}")
        return token

    def _take(self) -> str:
        token, self._token = self._token, next(self._tokens, "")
        return token

    def _accept(self, token: str) -> bool:
        if self._token != token:
            return False
        self._take()
        return True


class FieldTerm(msgspec.Struct, frozen=True, gc=False):
    field: str
    value: str
    equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; without terms it selects everything."""

    values: Mapping[tuple[str, bool], Mapping[str, None]] = {}
    """The terms' values by (field, equal), in their order, so that thousands of terms about one field are one
    look-up for each object. The terms are not kept: to free them at once holds up all threads."""

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """`value_of` reads a field by its name in the selector."""
        return all(
            len(values) == 1 and value_of(field) in values if equal else value_of(field) not in values
            for (field, equal), values in self.values.items()
        )

    def exact(self, field: str) -> str | None:
        """The value that `field` must equal, None when the selector does not say."""
        return next(iter(self.values.get((field, True), ())), None)

    def __bool__(self) -> bool:
        return bool(self.values)


def parse_field_selector(text: str, pace: Pace[FieldTerm] = iter) -> FieldSelector:
    """`pace` goes through its terms, which may be many. Raises StatusError 400, as `field_terms` does."""
    values: dict[tuple[str, bool], dict[str, None]] = {}
    for term in pace(field_terms(text)):
        values.setdefault((term.field, term.equal), {})[term.value] = None
    return FieldSelector(values)


def field_terms(text: str) -> Iterator[FieldTerm]:
    """Terms `field=value`, `field==value`, `field!=value`, joined by commas; `\\` escapes `\\ , =` in values.

    Raises StatusError 400.
    """
    for match in _PARTS.finditer(text):
        # A term of nothing, `=`, asks for nothing.
        if match[0] and ((term := _term(match[0], text)).field or term.value):
            yield term


def escaped(value: str) -> str:
    """`value` with backslashes, commas and `=` escaped, for use in a field selector."""
    return "".join(f"\\{letter}" if letter in "\\,=" else letter for letter in value)


def _term(part: str, text: str) -> FieldTerm:
    operator = _OPERATOR.search(part)
    if operator is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    return FieldTerm(part[: operator.start()], _unescaped(part[operator.end() :]), operator[0] != "!=")


def _unescaped(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    for fault in _MISPLACED.finditer(value):
        if fault["bare"]:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
        if fault["escape"] is not None:
            raise bad_request(f"invalid field selector: invalid escape sequence: {fault[0]}")
    return _ESCAPED.sub(r"\1", value)


def go_text(selector: LabelSelector | None) -> str:
    """As Go prints a selector for people."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
