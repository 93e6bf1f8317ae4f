"""JSON of the API types, read and written as Go reads and writes it.

`decode` and `encode` use msgspec directly on the struct. Go's decoder accepts some values that msgspec
refuses (`null` for anything, line breaks in base64). Such a body is decoded again as plain data and `fit` to
the type, which also finds Go's words for a refusal. Quantities are parsed on the way, so they come out
canonical; maps are written with sorted keys, so that equal objects are equal bytes.

Times are plain strings in the structs, so that reading a stored object costs nothing. `decode_sent` checks
and normalizes them (`settle_times`) once, when a client's object is accepted.

`with_nulls` writes empty lists of stored objects as `null` where Kubernetes does. `field_faults` finds the
unknown and duplicate fields of a body for field validation. Almost no body has any, so two fast checks come
first: a copy of the type that refuses unknown fields, and a count of the keys before and after duplicates are
dropped.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from types import UnionType
from typing import Any, NamedTuple, TypeVar

import msgspec

from podling.model.codec.fields import INTEGER_BITS, FieldInfo, fields_of, is_struct, item_type, may_hold_null
from podling.model.errors import StatusError, bad_request
from podling.model.quantity import Quantity
from podling.model.remembered import remembered
from podling.model.time import micro_time, parse_time, rfc3339

OMITTED = (msgspec.NODEFAULT, list)


def with_nulls(data: bytes, type_: type[msgspec.Struct]) -> bytes:
    """`data`, an object of `type_` as `encode` writes it, with `null` for empty lists that are always
    written.

    Kubernetes stores protobuf, which has no empty list: a stored `[]` is read back as nil and written as
    `null`. Objects that are not stored, such as reviews, keep their `[]`. Replacing bytes is safe: the field
    names are no keys of maps, and quotes inside a string are escaped.
    """
    for empty, null in _spellings(type_):
        data = data.replace(empty, null)
    return data


def without_nulls(data: bytes, type_: type[msgspec.Struct]) -> bytes:
    """The reverse of `with_nulls`: `[]` for the `null` of lists that are always written."""
    for empty, null in _spellings(type_):
        data = data.replace(null, empty)
    return data


@functools.cache
def _spellings(type_: type[msgspec.Struct]) -> tuple[tuple[bytes, bytes], ...]:
    names = sorted(set(_always_written(type_, set())))
    return tuple((f'"{name}":[]'.encode(), f'"{name}":null'.encode()) for name in names)


def _always_written(type_: type[msgspec.Struct], seen: set[Any]) -> Iterator[str]:
    """Wire names of the lists, anywhere inside `type_`, that are written even when empty."""
    if type_ in seen:
        return
    seen.add(type_)
    factories = {field.name: field.default_factory for field in msgspec.structs.fields(type_)}
    for field in fields_of(type_).values():
        # A default that is `list` itself is left out when it is empty.
        if typing.get_origin(field.type) is list and factories[field.attribute] not in OMITTED:
            yield field.wire
        for part in (field.type, *typing.get_args(field.type)):
            if is_struct(part):
                yield from _always_written(part, seen)


LAYOUTS = {"date-time": "2006-01-02T15:04:05Z07:00", "micro-time": "2006-01-02T15:04:05.000000Z07:00"}
_WRITERS: dict[str, Callable[[datetime], str]] = {"date-time": rfc3339, "micro-time": micro_time}
_FRACTIONS = {"date-time": r"(\.\d+)?", "micro-time": r"\.\d{6}"}
_DAY = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"))
_HOUR = (("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))


class TimeError(ValueError):
    """A string that is not a time; the message is that of Go's parser."""


class _Step(NamedTuple):
    """A field that is a time or a map of times, or that holds structs with times in them."""

    attribute: str
    format: str
    is_list: bool


def settle_times(obj: msgspec.Struct) -> None:
    """Rewrite every time in `obj` as UTC in the precision of its field. Raises TimeError."""
    for step in _steps(type(obj)):
        value = getattr(obj, step.attribute)
        if not value:
            continue
        if step.format and isinstance(value, dict):
            times = {key: text and settled(text, step.format) for key, text in value.items()}
            setattr(obj, step.attribute, times)
        elif step.format:
            setattr(obj, step.attribute, settled(value, step.format))
        else:
            for part in value if step.is_list else (value,):
                settle_times(part)


@functools.cache
def _steps(owner: type[msgspec.Struct]) -> tuple[_Step, ...]:
    return tuple(
        _Step(field.attribute, field.format if field.format in LAYOUTS else "", _is_list(field.type))
        for field in fields_of(owner).values()
        if field.format in LAYOUTS or _holds_times(field.type)
    )


def _holds_times(type_: Any) -> bool:
    inner = item_type(type_) if _is_list(type_) else type_
    return is_struct(inner) and bool(_steps(inner))


def _is_list(type_: Any) -> bool:
    return typing.get_origin(type_) is list


@remembered(4096)
def settled(text: str, form: str) -> str:
    """`text` in the spelling of `form` (`date-time` or `micro-time`). Raises TimeError."""
    if _is_settled(text, form):
        return text
    for element, rest in _misfits(text, form):
        raise TimeError(f'parsing time "{text}" as "{LAYOUTS[form]}": cannot parse "{rest}" as "{element}"')
    try:
        return _WRITERS[form](parse_time(text))
    except (ValueError, OverflowError) as error:
        raise TimeError(f'parsing time "{text}": {error}') from error


def _is_settled(text: str, form: str) -> bool:
    """Whether `text` has the canonical spelling already, as most times have: their client read them here."""
    try:
        return _WRITERS[form](datetime.fromisoformat(text)) == text
    except (ValueError, OverflowError):
        return False


def _misfits(text: str, form: str) -> typing.Iterator[tuple[str, str]]:
    """At most one pair: the first element of the layout that `text` does not follow, and the rest of `text`
    there."""
    rest = text
    for element, pattern in (*_DAY, *_HOUR, (".000000", _FRACTIONS[form]), ("Z07:00", r"Z|[+-]\d\d:\d\d")):
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            yield element, rest
            return
        rest = rest[match.end() :]
    if rest:
        yield "", rest


class GoJSONError(ValueError):
    """Plain data does not fit a type; the message is Go's."""


class _Place(typing.NamedTuple):
    """Where in an object: the innermost struct's name and the JSON names that lead there, without indices."""

    struct: str
    path: tuple[str, ...]
    format: str = "int32"

    def __str__(self) -> str:
        return ".".join((self.struct, *self.path))


def fit(data: Any, type_: Any) -> Any:
    """Make plain data fit `type_` as Go's decoder would. null means absent, or the zero value inside a list
    or map. Raises GoJSONError with Go's message, and TimeError for an empty time."""
    return _fit(data, type_, _Place(getattr(type_, "__name__", ""), ()))


def _fit(data: Any, type_: Any, place: _Place) -> Any:
    if type_ is Any:
        return data
    if data is None:
        return _zero(type_)
    if is_struct(type_):
        return _fit_struct(data, type_, place)
    origin = typing.get_origin(type_)
    if origin is list:
        return [_fit(item, item_type(type_), place) for item in _expect(data, list, type_, place)]
    if origin is dict:
        pairs, inner, keeps_null = _expect(data, dict, type_, place), item_type(type_), may_hold_null(type_)
        return {
            key: None if value is None and keeps_null else _fit(value, inner, place)
            for key, value in pairs.items()
        }
    return _fit_scalar(data, type_, place)


def _fit_struct(data: Any, type_: type[msgspec.Struct], place: _Place) -> dict[str, Any]:
    fields = fields_of(type_)
    return {
        name: _fit(value, fields[name].type, _below(place, type_, fields[name]))
        for name, value in _expect(data, dict, type_, place).items()
        if value is not None and name in fields
    }


def _below(place: _Place, owner: type[Any], field: FieldInfo) -> _Place:
    return _Place(owner.__name__, (*place.path, field.wire), field.format or "int32")


def _fit_scalar(data: Any, type_: Any, place: _Place) -> Any:
    if type_ is Quantity:
        return _fit_quantity(data)
    if type_ is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(data))
    if type_ is bytes:
        return _fit_base64(_expect(data, str, type_, place))
    if type_ == int | str:
        return _expect(data, str if isinstance(data, str) else int, type_, place)
    if data == "" and place.format in LAYOUTS:
        settled(data, place.format)
    return _expect(data, type_, type_, place)


def _fit_quantity(data: Any) -> str:
    try:
        return str(Quantity(data if type(data) in (str, int, float) else "?"))
    except ValueError as error:
        raise GoJSONError(str(error)) from error


def _fit_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise GoJSONError(f"illegal base64 data at input byte {_first_fault(text)}") from error


def _first_fault(text: str) -> int:
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
    return next((i for i, letter in enumerate(text) if letter not in alphabet), len(text) // 4 * 4)


def _zero(type_: Any) -> Any:
    """What null leaves in a list or map: Go's zero value."""
    if type_ == int | str or type_ is Quantity:
        return 0
    if is_struct(type_) or typing.get_origin(type_) is dict:
        return {}
    return [] if typing.get_origin(type_) is list else type_()


def _expect(data: Any, python_type: type[Any], wanted: Any, place: _Place) -> Any:
    if type(data) is python_type and (python_type is not int or _in_range(data, place.format)):
        return data
    if python_type is float and type(data) is int:
        return data
    kind = _json_kind(data, wanted_integer=python_type is int)
    raise GoJSONError(
        f"json: cannot unmarshal {kind} into Go "
        f"{f'struct field {place}' if place.path else 'value'} of type {go_type(wanted, place.format)}"
    )


def _in_range(number: int, integer: str) -> bool:
    most = 1 << (INTEGER_BITS[integer] - 1)
    return -most <= number < most


def _json_kind(data: Any, *, wanted_integer: bool) -> str:
    if isinstance(data, bool):
        return "bool"
    if isinstance(data, int | float):
        return f"number {data!r}" if wanted_integer else "number"
    return _JSON_KINDS[type(data)]


_JSON_KINDS: dict[type[Any], str] = {str: "string", list: "array", dict: "object"}
_GO_SCALARS = {str: "string", bool: "bool", float: "float64", bytes: "[]uint8"}


def go_type(type_: Any, integer: str = "int32") -> str:
    """How Go prints a type: `[]v1.Container`, `map[string]string`."""
    if type_ is int:
        return integer
    origin = typing.get_origin(type_)
    if origin is list:
        return f"[]{go_type(item_type(type_), integer)}"
    if origin is dict:
        return f"map[string]{go_type(item_type(type_), integer)}"
    if type_ == int | str:
        return "intstr.IntOrString"
    return _GO_SCALARS.get(type_) or f"v1.{type_.__name__}"


def syntax_error(error: Exception) -> str:
    """The message of a syntax error without the byte position that msgspec adds: Go's has none."""
    return str(error).partition(" (byte ")[0] if str(error) else "nested too deeply"


T = TypeVar("T")


def decode_hook(type_: type[Any], value: Any) -> Any:
    """Makes a Quantity for msgspec, the only type of the API types that msgspec does not know."""
    if type_ is not Quantity:
        raise NotImplementedError(f"{type_.__name__} is not an API type")
    if type(value) not in (str, int, float):
        raise TypeError("a quantity is a string or a number")
    return Quantity(value)


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook, order="deterministic")
_plain = msgspec.json.Decoder()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def encode_into(value: Any, buffer: bytearray, offset: int = -1) -> None:
    """Append to `buffer` (or write from `offset`), to build a list without copies."""
    _encoder.encode_into(value, buffer, offset)


def decoder_of(type_: type[T]) -> msgspec.json.Decoder[T]:
    """The bare fast decoder, for bytes podling itself wrote."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_, dec_hook=decode_hook)
    return decoder


def decode(data: bytes | bytearray | memoryview | msgspec.Raw | str, type_: type[T]) -> T:
    """Raises StatusError 400 naming what Kubernetes would. Unknown fields are dropped."""
    decoder: msgspec.json.Decoder[T] = _decoders.get(type_) or decoder_of(type_)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return from_data(decode_data(data), type_)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise bad_request(_unreadable(error, type_)) from error


def decode_sent(data: bytes, type_: type[T]) -> T:
    """An object as a client sent it: as `decode`, and its times are checked and put in one spelling."""
    obj = decode(data, type_)
    if isinstance(obj, msgspec.Struct):
        try:
            settle_times(obj)
        except TimeError as error:
            raise refusal(str(error), type_) from error
    return obj


def decode_data(data: bytes | bytearray | memoryview | msgspec.Raw | str) -> Any:
    """Plain data: dicts, lists, strings, numbers. Raises StatusError 400 when it is not JSON."""
    try:
        return _plain.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {syntax_error(error)}") from error


def from_data(data: Any, type_: type[T]) -> T:
    """An object of plain data, such as a patched document. Raises StatusError 400."""
    try:
        return msgspec.convert(fit(data, type_), type_, dec_hook=decode_hook)
    except (GoJSONError, TimeError) as error:
        raise refusal(str(error), type_) from error
    except (msgspec.ValidationError, RecursionError) as error:
        raise refusal(f"json: {error}", type_) from error


def to_data(value: Any) -> Any:
    """The plain data of an object, as it would be written. Not of managedFields: those are raw bytes."""
    return msgspec.to_builtins(value, enc_hook=_encode_hook)


def refusal(why: str, type_: type[Any]) -> StatusError:
    """The 400 for a body that is JSON but not an object of this type."""
    kind = getattr(type_, "KIND", "")
    if not kind:
        return bad_request(why)
    return bad_request(f'{kind} in version "{_version(type_)}" cannot be handled as a {kind}: {why}')


def _version(type_: type[Any]) -> str:
    return str(getattr(type_, "API_VERSION", "")).rpartition("/")[2]


def _unreadable(error: Exception, type_: type[Any]) -> str:
    kind = getattr(type_, "KIND", "") or type_.__name__
    return (
        f"the object provided is unrecognized (must be of type {kind}): "
        f"couldn't get version/kind; json parse error: {syntax_error(error)}"
    )


MOST_REPORTED = 100
_KEY_END = b'":'


def field_faults(data: bytes, type_: type[Any]) -> list[str]:
    """`unknown field "spec.containers[0].foo"`, `duplicate field "spec.x"`, in the order of `data`.

    With `fieldValidation=Warn` each is a warning of its own; `strict_message` joins them for `Strict`. Raises
    StatusError 400 when `data` is not JSON.
    """
    if not may_repeat_keys(data) and _knows_all(data, type_):
        return []
    try:
        return _told(data, type_)
    except RecursionError as error:
        raise bad_request("exceeded max depth") from error


def _told(data: bytes, type_: type[Any]) -> list[str]:
    walked = json.loads(data, object_pairs_hook=_Pairs)
    found: list[str] = []
    for fault in _walk(walked, type_, ()):
        if fault not in found:
            found.append(fault)
        if len(found) == MOST_REPORTED:
            break
    return found


def strict_message(faults: list[str]) -> str:
    """The message of the 400 that `fieldValidation=Strict` answers."""
    return f"strict decoding error: {', '.join(faults)}"


_Path = tuple[()] | tuple["_Path", str | int]
"""From the innermost step out. Written only for what is said: a long key would be copied into each below."""


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its members in order, including duplicates."""


def may_repeat_keys(data: bytes) -> bool:
    """False only if no object in `data` has a key twice. An escaped quote before a colon is counted like a
    key both times, unless it is written `\\u0022`: then the answer is True. Raises StatusError 400 when it is
    no JSON."""
    once = msgspec.json.encode(decode_data(data))
    if once == data:
        return False
    compact = msgspec.json.format(data, indent=-1)
    return b"\\u0022" in data or compact.count(_KEY_END) != once.count(_KEY_END)


def _knows_all(data: bytes, type_: Any) -> bool:
    try:
        _strict_decoder(type_).decode(data)
    except msgspec.ValidationError:
        return False
    return True


@functools.cache
def _strict_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(type_), dec_hook=decode_hook)


@functools.cache
def _strict(type_: Any) -> Any:
    """A type of the same shape that refuses unknown fields."""
    if is_struct(type_):
        hints = typing.get_type_hints(type_)
        fields = [
            (name, _strict(hints[name]), msgspec.field(default=None, name=wire))
            for name, wire in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
        ]
        return msgspec.defstruct(type_.__name__, fields, forbid_unknown_fields=True)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, UnionType):
        return functools.reduce(lambda one, other: one | other, map(_strict, arguments))
    return origin[tuple(map(_strict, arguments))] if origin in (list, dict) else type_


def _walk(data: Any, type_: Any, path: _Path) -> Iterator[str]:
    if isinstance(data, _Pairs):
        yield from _walk_members(data, _member_type(type_), path)
    elif isinstance(data, list) and typing.get_origin(type_) is list:
        for index, item in enumerate(data):
            yield from _walk(item, item_type(type_), (path, index))


def _walk_members(members: _Pairs, type_of: Callable[[str], Any], path: _Path) -> Iterator[str]:
    seen: set[str] = set()
    for name, value in members:
        found = type_of(name)
        if found is None:
            yield f'unknown field "{_shown((path, name))}"'
            continue
        if name in seen:
            yield f'duplicate field "{_shown((path, name))}"'
        seen.add(name)
        yield from _walk(value, found, (path, name))


def _shown(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if path else step)
    return "".join(reversed(steps))


def _member_type(type_: Any) -> Callable[[str], Any]:
    """From the name of a member to its type; None for a field the type does not have."""
    if is_struct(type_):
        fields = fields_of(type_)
        return lambda name: fields[name].type if name in fields else None
    inner = item_type(type_) if typing.get_origin(type_) is dict else Any
    return lambda _: inner
