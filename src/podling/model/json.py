"""JSON of the API types, as Go reads and writes it.

The fast way is msgspec straight into the struct. What Go accepts and msgspec refuses (`null` for anything)
goes the slow way through plain data, which also finds the words for what is wrong. Quantities are parsed, so
they come out canonical; maps are written with sorted keys, so that equal objects are equal bytes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from podling.model.errors import StatusError, bad_request
from podling.model.go_json import GoJSONError, fit, syntax_error
from podling.model.quantity import Quantity
from podling.model.timestamps import TimeError, settle_times

T = TypeVar("T")


def decode_hook(type_: type[Any], value: Any) -> Any:
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
