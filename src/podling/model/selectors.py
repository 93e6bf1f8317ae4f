"""Label selectors and field selectors.

A label selector comes from a query (`app=web,tier in (a, b)`) or from a meta/v1 LabelSelector, and is matched
against labels. A field selector comes from a query (`status.phase!=Running,spec.nodeName=a`); each Kind says
which fields it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from podling.model.errors import bad_request
from podling.model.names import label_key, label_value
from podling.model.types.meta import LabelSelector

IN, NOT_IN, EXISTS, MISSING, GREATER, LESS = "in", "notin", "exists", "!", "gt", "lt"

_OF_EXPRESSION = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": MISSING}
_OF_SYMBOL = {"in": IN, "notin": NOT_IN, "=": IN, "==": IN, "!=": NOT_IN, ">": GREATER, "<": LESS}
_SYNTAX = re.compile(r"\s*(==|!=|[=!(),><]|[^\s=!(),><]+)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_SYMBOLS = frozenset(("=", "==", "!=", "!", "(", ")", ",", ">", "<"))
_PARTS = re.compile(r"(?:[^\\,]++|\\.?)*+", re.DOTALL)
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
        if _INTEGER.fullmatch(value) is None:
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == GREATER else int(value) < int(bound)


class Selector(msgspec.Struct, frozen=True):
    """A label selector: all requirements must hold, so none selects everything. `nothing` selects nothing."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(r.matches(labels) for r in self.requirements)

    def for_many(self) -> Callable[[Mapping[str, str]], bool]:
        """A function that answers as `matches` does, for many objects: its cost for each is bounded by the
        number of the object's labels, however long the selector is."""
        joined = _joined(self.requirements)
        needed = [r for r in joined if r.operator not in (NOT_IN, MISSING)]
        refused: dict[str, list[Requirement]] = {}
        for requirement in joined:
            if requirement.operator in (NOT_IN, MISSING):
                refused.setdefault(requirement.key, []).append(requirement)

        def matches(labels: Mapping[str, str]) -> bool:
            return all(r.matches(labels) for r in needed) and all(
                r.matches(labels) for key in labels for r in refused.get(key, ())
            )

        return self.matches if self.nothing else matches

    def __bool__(self) -> bool:
        """False when it selects everything, so that callers can skip it."""
        return self.nothing or bool(self.requirements)


def _joined(requirements: Iterable[Requirement]) -> list[Requirement]:
    """One requirement for each key and operator, equal to all of `requirements` together."""
    values: dict[tuple[str, str], set[str]] = {}
    for each in requirements:
        known = values.setdefault((each.key, each.operator), set(each.values))
        if each.operator == IN:
            known &= each.values
        else:
            known |= each.values
        if each.operator in (GREATER, LESS) and len(known) > 1:
            known.remove((min if each.operator == GREATER else max)(known, key=int))
    return [Requirement(key, operator, frozenset(of)) for (key, operator), of in values.items()]


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


def parse_label_selector(text: str) -> Selector:
    """A label selector in its query form. Raises StatusError 400."""
    try:
        return Selector(tuple(_Parser(text).requirements()))
    except ValueError as error:
        raise bad_request(str(error)) from error


def _requirement(key: str, operator: str, values: list[str]) -> Requirement:
    _check_values(operator, values)
    faults = [f'key: Invalid value: "{key}": {fault}' for fault in label_key(key)]
    faults += [
        f'values[{index}][{key}]: Invalid value: "{value}": {fault}'
        for index, value in enumerate(values)
        for fault in label_value(value)
    ]
    if faults:
        raise ValueError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return Requirement(key, operator, frozenset(values))


def _check_values(operator: str, values: list[str]) -> None:
    if operator in (IN, NOT_IN) and not values:
        raise ValueError("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in (EXISTS, MISSING) and values:
        listed = ", ".join(f'"{value}"' for value in values)
        raise ValueError(
            f"values: Invalid value: [{listed}]: values set must be empty for exists and does not exist"
        )
    if operator in (GREATER, LESS) and _INTEGER.fullmatch(values[0]) is None:
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise ValueError(f'values[0]: Invalid value: "{values[0]}": {why}')


class _Parser:
    """Recursive descent over the tokens; the empty token is the end of the text."""

    def __init__(self, text: str) -> None:
        # Blanks with nothing behind them would be looked through again from each of them.
        self._tokens = (match[1] for match in _SYNTAX.finditer(text.rstrip()))
        self._token = next(self._tokens, "")

    def requirements(self) -> list[Requirement]:
        if not self._token:
            return []
        if not self._starts_requirement():
            raise ValueError(f"found '{self._token}', expected: !, identifier, or 'end of string'")
        found = [self._parse_one()]
        while self._accept(","):
            if not self._starts_requirement():
                raise ValueError(f"found '{self._token}', expected: identifier after ','")
            found.append(self._parse_one())
        if self._token:
            raise ValueError(f"found '{self._token}', expected: ',' or 'end of string'")
        return found

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
        self._expect("(", "'('")
        if self._accept(")"):
            return []
        values = [self._value_or_empty()]
        while self._accept(","):
            values.append(self._value_or_empty())
        self._expect(")", "',' or ')'")
        return sorted(set(values))

    def _value_or_empty(self) -> str:
        return "" if self._token in (",", ")") else self._identifier()

    def _exact_value(self) -> str:
        return "" if self._token in ("", ",") else self._identifier()

    def _identifier(self) -> str:
        token = self._take()
        if not token or token in _SYMBOLS:
            raise ValueError(f"found '{token}', expected: identifier")
        return token

    def _take(self) -> str:
        token, self._token = self._token, next(self._tokens, "")
        return token

    def _accept(self, token: str) -> bool:
        if self._token != token:
            return False
        self._take()
        return True

    def _expect(self, token: str, listed: str) -> None:
        if not self._accept(token):
            raise ValueError(f"found '{self._token}', expected: {listed}")


class FieldTerm(msgspec.Struct, frozen=True, gc=False):
    field: str
    value: str
    equal: bool


class FieldSelector(msgspec.Struct, frozen=True):
    """All terms must hold; without terms it selects everything."""

    terms: tuple[FieldTerm, ...] = ()
    values: Mapping[tuple[str, bool], AbstractSet[str]] = {}
    """The terms' values by (field, equal), so that thousands of terms about one field are one look-up for
    each object."""

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """`value_of` reads a field by its name in the selector."""
        return all(
            len(values) == 1 and value_of(field) in values if equal else value_of(field) not in values
            for (field, equal), values in self.values.items()
        )

    def exact(self, field: str) -> str | None:
        """The value that `field` must equal, None when the selector does not say."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __bool__(self) -> bool:
        return bool(self.terms)


def parse_field_selector(text: str) -> FieldSelector:
    """Terms `field=value`, `field==value`, `field!=value`, joined by commas; `\\` escapes `\\ , =` in values.

    Raises StatusError 400.
    """
    found = (_term(match[0], text) for match in _PARTS.finditer(text) if match[0])
    # A term of nothing, `=`, asks for nothing.
    terms = tuple(term for term in found if term.field or term.value)
    values: dict[tuple[str, bool], set[str]] = {}
    for term in terms:
        values.setdefault((term.field, term.equal), set()).add(term.value)
    return FieldSelector(terms, values)


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
