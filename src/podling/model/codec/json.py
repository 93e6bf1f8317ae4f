"""JSON of the API types, read and written as Go reads and writes it.

`decode` and `encode` use msgspec directly on the struct. Go's decoder accepts some values that msgspec
refuses (`null` for anything, line breaks in base64). Such a body is decoded again as plain data and `fit` to
the type, which also finds Go's words for a refusal. Quantities are parsed on the way, so they come out
canonical; maps are written with sorted keys, so that equal objects are equal bytes.

Times are plain strings in the structs, so that reading a stored object costs nothing. `decode_sent` checks
and normalizes them once, when a client's object is accepted. `with_nulls` writes empty lists of stored
objects as `null` where Kubernetes does.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from typing import Any, NamedTuple, TypeVar

import msgspec

from podling.model.codec.fields import (
    INTEGERS,
    TOLD_EMPTY,
    FieldInfo,
    NotConvertibleError,
    Shape,
    Telling,
    fields_of,
    shape_of,
)
from podling.model.errors import StatusError, bad_request
from podling.model.quantity import Quantity
from podling.model.time import LAYOUTS, ZERO, TimeError, settled

T = TypeVar("T")
Encoded = bytes | bytearray | memoryview | msgspec.Raw | str

_GO_SCALARS = {str: "string", bool: "bool", float: "float64", bytes: "[]uint8"}
_JSON_KINDS: dict[type[Any], str] = {str: "string", list: "array", dict: "object"}
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
_plain = msgspec.json.Decoder()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


class _SpellingLost(TypeError):
    """A quantity is a number with a point or an exponent, of which it is kept how it was written."""


class _Spelt(float):
    """A number of JSON as it was written."""

    def __new__(cls, text: str) -> _Spelt:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def decode_hook(type_: type[Any], value: Any) -> Any:
    """Makes a Quantity for msgspec, the only type of the API types that msgspec does not know."""
    if type_ is not Quantity:
        raise NotImplementedError(f"{type_.__name__} is not an API type")
    if type(value) is float:
        raise _SpellingLost
    if type(value) not in (str, int):
        raise TypeError("a quantity is a string or a number")
    return Quantity(value)


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook, order="deterministic")


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


def decode(data: Encoded, type_: type[T]) -> T:
    """Raises StatusError 400 naming what Kubernetes would. Unknown fields are dropped."""
    decoder: msgspec.json.Decoder[T] = _decoders.get(type_) or decoder_of(type_)
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        is_spelt = isinstance(error.__cause__, _SpellingLost)
        return from_data(_spelt(data) if is_spelt else decode_data(data), type_)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        kind = getattr(type_, "KIND", "") or type_.__name__
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): "
            f"couldn't get version/kind; json parse error: {_syntax_error(error)}"
        ) from error


def decode_sent(data: bytes, type_: type[T]) -> T:
    """An object as a client sent it: as `decode`, its times are checked and put in one spelling, and what
    was sent as empty is noted."""
    obj = decode(data, type_)
    if isinstance(obj, msgspec.Struct):
        try:
            settle_times(obj)
        except TimeError as error:
            raise refusal(str(error), type_) from error
        note_empties(data, obj)
    return obj


def decode_data(data: Encoded) -> Any:
    """Plain data: dicts, lists, strings, numbers. Raises StatusError 400 when it is not JSON."""
    try:
        return _plain.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {_syntax_error(error)}") from error


def _spelt(data: Encoded) -> Any:
    """As `decode_data`, of what msgspec has read before."""
    # Not before: commands read no such data.
    import json as stdlib_json

    return stdlib_json.loads(bytes(data) if not isinstance(data, str) else data, parse_float=_Spelt)


def _syntax_error(error: Exception) -> str:
    """The message of a syntax error without the byte position that msgspec adds: Go's has none."""
    return str(error).partition(" (byte ")[0] if str(error) else "nested too deeply"


def from_data(data: Any, type_: type[T]) -> T:
    """An object of plain data, such as a patched document. Raises StatusError 400."""
    try:
        return msgspec.convert(fit(data, type_), type_, dec_hook=decode_hook)
    except (GoJSONError, TimeError) as error:
        raise refusal(str(error), type_) from error
    except (msgspec.ValidationError, RecursionError) as error:
        cause = error.__cause__
        if isinstance(cause, NotConvertibleError):
            raise refusal(str(cause), type_) from cause
        raise refusal(f"json: {error}", type_) from error


def to_data(value: Any) -> Any:
    """The plain data of an object, as it would be written."""
    return msgspec.to_builtins(value, enc_hook=_encode_hook)


def refusal(why: str, type_: Any) -> StatusError:
    """The 400 for a body that is JSON but not an object of this type."""
    kind = getattr(type_, "KIND", "")
    if not kind:
        return bad_request(why)
    version = str(type_.API_VERSION).rpartition("/")[2]
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


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
    """`"name":[]` and `"name":null` for each list, anywhere inside `type_`, that is always written."""
    names: set[str] = set()
    waiting, seen = [type_], set()
    while waiting:
        owner = waiting.pop()
        if owner in seen:
            continue
        seen.add(owner)
        for field in fields_of(owner).values():
            if field.shape.holds is list and field.always and not field.shape.may_be_null:
                names.add(field.wire)
            if inner := field.shape.part:
                waiting.append(inner)
    return tuple((f'"{name}":[]'.encode(), f'"{name}":null'.encode()) for name in sorted(names))


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
            time = settled(value, step.format)
            setattr(obj, step.attribute, None if step.may_be_null and time == ZERO else time)
        else:
            for part in value if step.is_list else (value,):
                settle_times(part)


class _Step(NamedTuple):
    """A field that is a time or a map of times, or that holds structs with times in them."""

    attribute: str
    format: str
    is_list: bool
    may_be_null: bool


@functools.cache
def _steps(owner: type[msgspec.Struct]) -> tuple[_Step, ...]:
    found = []
    for field in fields_of(owner).values():
        form, inner = field.format if field.format in LAYOUTS else "", field.shape.part
        if form or (inner and _has_times(inner)):
            shape = field.shape
            found.append(_Step(field.attribute, form, shape.holds is list, shape.may_be_null))
    return tuple(found)


def _has_times(type_: type[msgspec.Struct]) -> bool:
    """Whether there is a time anywhere inside `type_`, which may hold its like."""
    waiting, seen = [type_], {type_}
    while waiting:
        for field in fields_of(waiting.pop()).values():
            if field.format in LAYOUTS:
                return True
            if (inner := field.shape.part) and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    return False


def note_empties(data: bytes, obj: msgspec.Struct) -> None:
    """Keeps, in the parts of `obj`, what `told_empty` says of them. `data`: the JSON that it was made of."""
    pattern = _empty_fields(type(obj))
    if pattern is None or not pattern.search(data):
        return
    waiting: list[tuple[Any, Any]] = [(_plain.decode(data), obj)]
    while waiting:
        sent, made = waiting.pop()
        if isinstance(made, list) and isinstance(sent, list):
            waiting += zip(sent, made, strict=True)
        elif isinstance(made, dict) and isinstance(sent, dict):
            waiting += ((sent[key], value) for key, value in made.items())
        elif isinstance(made, msgspec.Struct) and isinstance(sent, dict):
            if isinstance(made, Telling):
                made.__dict__[TOLD_EMPTY] = frozenset(name for name in made.TELLS if _is_empty(sent, name))
            waiting += (
                (sent[field.wire], getattr(made, field.attribute))
                for field in fields_of(type(made)).values()
                if field.shape.part and _empty_fields(field.shape.part) and sent.get(field.wire)
            )


def _is_empty(sent: dict[str, Any], name: str) -> bool:
    *above, last = name.split(".")
    at: Any = sent
    for step in above:
        at = at.get(step) or {}
    return at.get(last) in ([], {})


@functools.cache
def _empty_fields(type_: type[msgspec.Struct]) -> re.Pattern[bytes] | None:
    """What has to be in the JSON of an object of the type for anything to be kept."""
    names: set[str] = set()
    waiting, seen = [type_], {type_}
    while waiting:
        owner = waiting.pop()
        if issubclass(owner, Telling):
            names.update(name.rpartition(".")[2] for name in owner.TELLS)
        for field in fields_of(owner).values():
            if (inner := field.shape.part) and inner not in seen:
                seen.add(inner)
                waiting.append(inner)
    if not names:
        return None
    return re.compile(rf'"(?:{"|".join(sorted(names))})"\s*:\s*(?:\[\s*\]|\{{\s*\}})'.encode())


class GoJSONError(ValueError):
    """Plain data does not fit a type; the message is Go's."""


class _Place(NamedTuple):
    """Where in an object: a field of a struct, and the place of that struct."""

    field: FieldInfo | None
    owner: str
    above: _Place | None

    @property
    def format(self) -> str:
        return (self.field and self.field.format) or "int32"

    def __str__(self) -> str:
        """As Go tells it: the innermost struct, and the JSON names that lead there, without indices."""
        place: _Place | None = self
        names = []
        while place and place.field:
            names.append(place.field.wire)
            place = place.above
        return ".".join((self.owner, *reversed(names)))


def fit(data: Any, type_: Any) -> Any:
    """Make plain data fit `type_` as Go's decoder would. null means absent, or the zero value inside a list
    or map. Raises GoJSONError with Go's message, and TimeError for an empty time."""
    return _fit(data, shape_of(type_), _Place(None, "", None))


def _fit(data: Any, shape: Shape, place: _Place) -> Any:
    if data is None and shape.type is not Any:
        return _zero(shape)
    if shape.choices:
        return _fit_choice(data, shape, place)
    if struct := shape.struct:
        fields = fields_of(struct)
        return {
            name: _fit(value, field.shape, _Place(field, _go_name(struct), place))
            for name, value in _expect(data, dict, shape, place).items()
            if value is not None and (field := fields.get(name))
        }
    if (item := shape.item) is None:
        return _fit_scalar(data, shape, place)
    if shape.holds is list:
        return [_fit(each, item, place) for each in _expect(data, list, shape, place)]
    return {
        key: None if value is None and item.may_be_null else _fit(value, item, place)
        for key, value in _expect(data, dict, shape, place).items()
    }


def _go_name(struct: type[Any]) -> str:
    return getattr(struct, "GO_NAME", "") or struct.__name__


def _fit_choice(data: Any, shape: Shape, place: _Place) -> Any:
    """What is of neither kind is none, unless one is a boolean."""
    for choice in shape.choices:
        if type(data) is (dict if choice.struct else choice.holds or choice.type):
            return _fit(data, choice, place)
    if any(choice.type is bool for choice in shape.choices):
        raise GoJSONError("boolean or JSON schema expected")
    return None


def _zero(shape: Shape) -> Any:
    """What null leaves in a list or map: Go's zero value."""
    if shape.type == int | str or shape.type is Quantity:
        return 0
    if shape.struct:
        return {}
    return shape.holds() if shape.holds else shape.type()


def _fit_scalar(data: Any, shape: Shape, place: _Place) -> Any:
    type_ = shape.type
    if type_ is Any:
        return msgspec.to_builtins(data, enc_hook=float)
    if type_ is Quantity:
        try:
            text = data.text if isinstance(data, _Spelt) else data
            return str(Quantity(text if type(text) in (str, int, float) else "?"))
        except ValueError as error:
            raise GoJSONError(str(error)) from error
    if type_ is msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(data, enc_hook=float))
    data = float(data) if isinstance(data, _Spelt) else data
    if type_ is bytes and place.field and isinstance(data, list):
        # Go reads a list of numbers, too.
        byte = place._replace(field=msgspec.structs.replace(place.field, format="uint8"))
        return bytes([0 if each is None else _expect(each, int, Shape(int), byte) for each in data])
    if type_ is bytes:
        return _fit_base64(_expect(data, str, shape, place))
    if type_ == int | float:
        return data if type(data) is int else _expect(data, float, Shape(float), place)
    if type_ == int | str:
        # Go takes for a number what is not a string, and says so of what is neither.
        return data if isinstance(data, str) else _expect(data, int, Shape(int), place)
    if data == "" and place.format in LAYOUTS:
        settled(data, place.format)
    return _expect(data, type_, shape, place)


def _fit_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        bad = (at for at, letter in enumerate(text) if letter not in _BASE64)
        first = next(bad, len(text) // 4 * 4)
        raise GoJSONError(f"illegal base64 data at input byte {first}") from error


def _expect(data: Any, python_type: type[Any], wanted: Shape, place: _Place) -> Any:
    """`data`, which has to be of `python_type`; GoJSONError if it is not, or is an integer out of range."""
    if type(data) is python_type:
        if python_type is not int:
            return data
        if data in INTEGERS[place.format]:
            return data
    if python_type is float and type(data) is int:
        return data
    if isinstance(data, bool):
        kind = "bool"
    elif isinstance(data, int | float):
        kind = f"number {data!r}" if python_type is int else "number"
    else:
        kind = _JSON_KINDS[type(data)]
    where = f"struct field {place}" if place.field else "value"
    raise GoJSONError(
        f"json: cannot unmarshal {kind} into Go {where} of type {go_type(wanted, place.format)}"
    )


def go_type(shape: Shape, integer: str = "int32") -> str:
    """How Go prints a type: `[]v1.Container`, `map[string]string`."""
    if shape.item:
        return ("[]" if shape.holds is list else "map[string]") + go_type(shape.item, integer)
    if shape.type is int:
        return integer
    if shape.type == int | str:
        return "intstr.IntOrString"
    return _GO_SCALARS.get(shape.type) or f"v1.{_go_name(shape.part or shape.type)}"
