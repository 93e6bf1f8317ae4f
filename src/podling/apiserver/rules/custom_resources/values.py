"""Validation of a JSON value by a schema (`kube-openapi/pkg/validation/validate` of Kubernetes).

A value costs as many steps as there are schemas for its parts. Alternatives multiply that, so steps are
counted, and a schema that wants too many is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from podling.apiserver.cel.formats import FORMATS, is_of_format
from podling.apiserver.cel.patterns import matches
from podling.apiserver.rules.custom_resources.numbers import kept, shown
from podling.apiserver.rules.custom_resources.walk import At
from podling.apiserver.rules.field import invalid, not_supported, required, too_long, too_many
from podling.model.codec import json
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause
from podling.model.types.apiextensions import JSONSchemaProps

MOST_STEPS = 50_000
A_STEP = 500
"""Characters that are read or written in a step."""
INTEGERS = {"int32": 31, "int64": 63}
SMALL_FLOATS = ("float", "float32")
BEYOND_FLOAT32 = 2.0**128 - 2.0**103
GO_FORMATS = {"integer": "int64", "number": "float64"}
"""What Kubernetes calls the formats of numbers that it has read."""
MOST_FAULTS = 1_000
EXACT, WIDEST = 1 << 53, 1 << 63
SHORT = 6
"""Digits before the point of a floating number that is shown without exponent."""
NEARLY = 1e-9
"""Part of a number that it may be away from a whole one."""
LETTERS = 0x110000
NO_LETTER = "\ufffd"
ONE_OF = "must validate one and only one schema (oneOf)."


class TooCostlyError(Exception):
    """The values would take more than MOST_STEPS to validate."""


class Budget(msgspec.Struct):
    """The steps that are left for all values of a definition."""

    left: int = MOST_STEPS

    def spend(self, steps: int) -> None:
        """Raises TooCostlyError."""
        self.left -= steps
        if self.left < 0:
            raise TooCostlyError


class _Result(msgspec.Struct):
    """The faults of a value, and how many checks were made, by which Kubernetes tells which alternative was
    meant."""

    causes: list[Cause] = []
    checks: int = 0

    def add(self, other: _Result) -> None:
        self.causes += other.causes
        self.checks += other.checks


def validate_value(value: Any, schema: JSONSchemaProps, at: At, budget: Budget) -> list[Cause]:
    """Raises TooCostlyError."""
    try:
        return _Validation(at, value, budget).of(value, schema, At(None, "")).causes
    except RecursionError:
        raise TooCostlyError from None


class _Validation:
    def __init__(self, at: At, value: Any, budget: Budget) -> None:
        self._at = at
        self._spend = budget.spend
        # A fault shows its path, and may show all of the value.
        self._price = 1 + (len(json.encode(value)) + len(str(at))) // A_STEP

    def of(self, value: Any, schema: JSONSchemaProps, path: At) -> _Result:
        """`path`: where in the value, `a.b[0]`. It is written only for a fault."""
        self._spend(1 + len(value) // A_STEP if isinstance(value, str) else 1)
        found = _Result(causes=list(self._type(value, schema, path)))
        found.checks += not found.causes
        if value is None:
            found.causes += self._enum(value, schema, path)
            return found
        # What has neither a type nor a format is not asked for them.
        found.checks += 5 if schema.type or schema.format else 3
        self._combined(value, schema, path, found)
        if isinstance(value, str):
            found.checks += 1 + (schema.format in FORMATS)
            found.causes += self._string(value, schema, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.checks += 2
            found.causes += self._number(value, schema, path)
        elif isinstance(value, list):
            found.checks += 2
            self._list(value, schema, path, found)
        found.causes += self._enum(value, schema, path)
        if isinstance(value, dict):
            found.checks += 1
            self._object(value, schema, path, found)
        return found

    def _where(self, path: At) -> str:
        self._spend(self._price)
        within = str(path).removeprefix(".")
        return str(self._at.child(within) if within else self._at)

    def _invalid(self, path: At, value: Any, what: str) -> Cause:
        return invalid(self._where(path), value, f"{path} in body {what}")

    def _told(self, what: str) -> Cause:
        """A fault that Kubernetes tells of the whole value."""
        self._spend(self._price)
        return invalid(str(self._at), "", what)

    def _type(self, value: Any, schema: JSONSchemaProps, path: At) -> Iterator[Cause]:
        wanted, kind = schema.type, kind_of(value)
        if value is None:
            if wanted and not schema.nullable:
                yield self._wrong_type(path, wanted, kind)
            return
        is_number = wanted in ("integer", "number")
        is_wanted = (
            kind == wanted
            or (wanted == "number" and kind == "integer")
            or (wanted == "integer" and kind == "number" and is_whole(value))
        )
        if schema.format and isinstance(value, str | list):
            # Of these a format says all, but of numbers.
            if is_number:
                yield self._wrong_type(path, wanted, kind)
        elif schema.format and not is_wanted and schema.format != (own := GO_FORMATS.get(kind, "")):
            yield self._wrong_type(path, schema.format, own)
        elif (wanted or schema.format) and not is_wanted:
            yield self._wrong_type(path, wanted, kind)

    def _wrong_type(self, path: At, wanted: str, got: str) -> Cause:
        why = f"{path} in body must be of type {wanted}: {quoted(got)}"
        return invalid(self._where(path), got, why)._replace(reason="FieldValueTypeInvalid")

    def _combined(self, value: Any, schema: JSONSchemaProps, path: At, found: _Result) -> None:
        def shown() -> str:
            return quoted(str(path))

        if schema.any_of:
            best = self._alternatives(value, schema.any_of, path)
            if best.causes:
                found.causes.append(self._told(f"{shown()} must validate at least one schema (anyOf)"))
            found.add(best)
        if schema.one_of:
            results = [self.of(value, one, path) for one in schema.one_of]
            valid = [one for one in results if not one.causes]
            if not valid:
                found.causes.append(self._told(f"{shown()} {ONE_OF} Found none valid"))
                found.add(max(results, key=lambda one: one.checks))
            elif len(valid) > 1:
                found.causes.append(self._told(f"{shown()} {ONE_OF} Found {len(valid)} valid alternatives"))
            else:
                found.add(valid[0])
        if schema.all_of:
            results = [self.of(value, one, path) for one in schema.all_of]
            for one in results:
                found.add(one)
            if wrong := sum(bool(one.causes) for one in results):
                none = ". None validated" if wrong == len(results) else ""
                found.causes.append(self._told(f"{shown()} must validate all the schemas (allOf){none}"))
        if schema.not_ is not None and not self.of(value, schema.not_, path).causes:
            found.causes.append(self._told(f"{shown()} must not validate the schema (not)"))

    def _alternatives(self, value: Any, schemas: list[JSONSchemaProps], path: At) -> _Result:
        """The result of the first that is met, otherwise of that with most checks."""
        best: _Result | None = None
        for one in schemas:
            result = self.of(value, one, path)
            if not result.causes:
                return result
            if best is None or result.checks > best.checks:
                best = result
        assert best is not None
        return best

    def _string(self, value: str, schema: JSONSchemaProps, path: At) -> Iterator[Cause]:
        if schema.max_length is not None and len(value) > schema.max_length:
            yield too_long(self._where(path), schema.max_length)
        elif schema.min_length is not None and len(value) < schema.min_length:
            yield self._invalid(path, value, f"should be at least {schema.min_length} chars long")
        elif schema.pattern and not matches(schema.pattern, value):
            yield self._invalid(path, value, f"should match '{schema.pattern}'")
        if schema.format in FORMATS and not is_of_format(schema.format, value):
            yield self._wrong_type(path, schema.format, value)

    def _number(self, value: float, schema: JSONSchemaProps, path: At) -> Iterator[Cause]:
        if why := _beyond(value, schema):
            yield self._told(f"Checked value {why} in {path}")
        if schema.multiple_of is not None:
            yield from self._multiple(value, schema, path)
        for limit, name, words, is_exclusive in (
            (
                schema.minimum,
                "Minimum",
                ("greater than or equal to", "greater than"),
                schema.exclusive_minimum,
            ),
            (schema.maximum, "Maximum", ("less than or equal to", "less than"), schema.exclusive_maximum),
        ):
            if limit is None:
                continue
            judged, bound = value, _as_of(value, float(limit))
            if why := _beyond(float(limit), schema):
                yield self._told(f"{name} boundary value {why} in {path}")
                judged, bound = float(value), float(limit)
            is_beyond = judged < bound if name == "Minimum" else judged > bound
            if is_beyond or (is_exclusive and judged == bound):
                yield self._limit(path, judged, f"should be {words[is_exclusive]} {go_number(bound)}")

    def _multiple(self, value: float, schema: JSONSchemaProps, path: At) -> Iterator[Cause]:
        factor = float(schema.multiple_of or 0)
        judged: float = value
        if why := _beyond(factor, schema):
            yield self._told(f"MultipleOf value {why} in {path}")
            judged = float(value)
        factor = _as_of(judged, factor)
        if factor <= 0:
            why = f"factor MultipleOf declared for {path} must be positive: {go_number(factor)}"
            yield self._shown(path, factor, why)
        elif judged % factor if isinstance(judged, int) else not is_whole(_times(judged, factor)):
            yield self._limit(path, judged, f"should be a multiple of {go_number(factor)}")

    def _limit(self, path: At, value: float, what: str) -> Cause:
        return self._shown(path, value, f"{path} in body {what}")

    def _shown(self, path: At, value: float, why: str) -> Cause:
        return Cause("FieldValueInvalid", f"Invalid value: {go_number(value)}: {why}", self._where(path))

    def _list(self, value: list[Any], schema: JSONSchemaProps, path: At, found: _Result) -> None:
        if isinstance(schema.items, JSONSchemaProps):
            for i, item in enumerate(value):
                found.add(self.of(item, schema.items, path.item(i)))
                if len(found.causes) > MOST_FAULTS:
                    return
        if schema.min_items is not None and len(value) < schema.min_items:
            why = f"should have at least {schema.min_items} items"
            found.causes.append(self._invalid(path, len(value), why))
        if schema.max_items is not None and len(value) > schema.max_items:
            found.causes.append(too_many(self._where(path), len(value), schema.max_items))
        if schema.unique_items and len({json.encode(one) for one in value}) < len(value):
            found.causes.append(self._invalid(path, "", "shouldn't contain duplicates"))

    def _enum(self, value: Any, schema: JSONSchemaProps, path: At) -> Iterator[Cause]:
        self._spend(len(schema.enum))
        if schema.enum and not any(_equals(value, one) for one in schema.enum):
            listed = [
                one if isinstance(one, str) else json.encode(shown(one)).decode() for one in schema.enum
            ]
            found = not_supported(self._where(path), kept(value), listed)
            if isinstance(value, float):
                rest = found.message.partition(": supported")[2]
                found = found._replace(message=f"Unsupported value: {go_number(value)}: supported{rest}")
            yield found

    def _object(self, value: dict[str, Any], schema: JSONSchemaProps, path: At, found: _Result) -> None:
        if schema.min_properties is not None and len(value) < schema.min_properties:
            why = f"should have at least {schema.min_properties} properties"
            found.causes.append(self._invalid(path, len(value), why))
        if schema.max_properties is not None and len(value) > schema.max_properties:
            found.causes.append(too_many(self._where(path), len(value), schema.max_properties))
        for name, one in sorted(value.items()):
            known = schema.properties.get(name)
            where = At(path, name) if known is not None and path.above is None else path.child(name)
            if known is None and schema.additional_properties is False:
                why = f"{path}.{name} in body is a forbidden property"
                found.causes.append(invalid(self._where(path), name, why))
                continue
            inner_schema = known if known is not None else schema.additional_properties
            if isinstance(inner_schema, JSONSchemaProps):
                found.add(self.of(one, inner_schema, where))
            if len(found.causes) > MOST_FAULTS:
                return
        for name in schema.required:
            if name not in value:
                found.causes.append(required(self._where(path.child(name))))


def kind_of(value: Any) -> str:
    """What a schema calls it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds[type(value)]


def is_whole(value: float) -> bool:
    """Whether a number is an integer to JSON, nearly."""
    if isinstance(value, int):
        return True
    if not abs(value) < EXACT:
        return False
    # Nearly is a bit more than whole; what is below zero is exact.
    away = value - int(value)
    return away == 0 or (value > 0 and away / (value + int(value)) < NEARLY)


def _times(value: float, factor: float) -> float:
    """How often a number has the factor, as near as Kubernetes comes to it."""
    return 1 / factor * value if factor < 1 else value / factor


def _beyond(number: float, schema: JSONSchemaProps) -> str:
    """Why a number is none of the type and format of that schema; empty if it is."""
    if schema.type == "integer":
        most = 1 << INTEGERS.get(schema.format, INTEGERS["int64"])
        is_integer = isinstance(number, int) or (abs(number) < WIDEST and number.is_integer())
        if is_integer and -most <= number < most:
            return ""
    elif schema.format not in SMALL_FLOATS or abs(number) < BEYOND_FLOAT32:
        return ""
    is_told = schema.type != "integer" or schema.format in INTEGERS
    of_format = f"with format {schema.format}" if is_told else "(default format)"
    return f"must be of type {schema.type} {of_format}"


def _as_of(value: float, limit: float) -> float:
    """A limit in the type of the number that is judged, as Go converts it on amd64: what no int64 holds is
    the least of them."""
    if not isinstance(value, int):
        return limit
    return int(limit) if abs(limit) < WIDEST else -WIDEST


def go_number(value: float) -> str:
    """A number as `%v` of Go shows it."""
    if isinstance(value, int):
        return str(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    above = len(digits) + exponent - 1
    if -5 < above < SHORT:
        return f"{Decimal(repr(value)).normalize():f}"
    whole, *part = map(str, digits)
    return f"{'-' * sign}{whole}{'.' if part else ''}{''.join(part)}e{above:+03d}"


def _equals(value: Any, allowed: Any) -> bool:
    """As Go compares: a number is converted to the type of the other, an integer also to a letter."""
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(allowed, str):
        return allowed == (chr(value) if 0 <= value < LETTERS else NO_LETTER)
    if isinstance(value, float) and type(allowed) is int:
        return int(value) == allowed
    if type(value) is int and isinstance(allowed, float):
        return float(value) == allowed
    return value is not None and _is_same(value, allowed)


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(one[name], other[name]) for name in one)
    return bool(one == other)
