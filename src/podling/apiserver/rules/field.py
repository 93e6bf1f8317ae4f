"""The faults of a field in Kubernetes' words, which all validation returns, the rules that fields of many
types have, and the difference of two objects.

The path of a field is written as Kubernetes shows it: `spec.containers[0].name`, `metadata.labels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

import msgspec

from podling.model.codec import json
from podling.model.codec.fields import ACRONYMS, FieldInfo, fields_of
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause
from podling.model.quantity import Quantity
from podling.model.types.container import EphemeralContainerCommon
from podling.model.types.meta import LabelSelector
from podling.model.types.pod import PodSpec

UNPRINTABLE = re.compile(r'["\\]|[^ -~]')
"""What may have to be escaped."""
ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
IMMUTABLE = "field is immutable"

MISSING = object()
CAPITAL = ACRONYMS | {"cel", "se", "uid"}
TIMES = ("date-time", "micro-time")
_ESCAPED = str.maketrans({letter: f"\\u{ord(letter):04x}" for letter in "<>&"})
"""What Go writes so in JSON, though not in a string by itself."""


def required(path: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _message("Required value", detail), path)


def invalid(path: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", _message(f"Invalid value: {shown(value)}", detail), path)


def forbidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", _message("Forbidden", detail), path)


def duplicate(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueDuplicate", _message(f"Duplicate value: {shown(value)}", detail), path)


def not_found(path: str, value: Any, detail: str = "") -> Cause:
    return Cause("FieldValueNotFound", _message(f"Not found: {shown(value)}", detail), path)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> Cause:
    """The supported values are listed as given; those of a set in order."""
    ordered = sorted(supported) if isinstance(supported, AbstractSet) else supported
    values = ", ".join(map(quoted, ordered))
    return Cause(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {values}", path
    )


def internal_error(path: str, detail: str) -> Cause:
    return Cause("InternalError", _message("Internal error", detail), path)


def too_long(path: str, limit: int) -> Cause:
    if limit < 0:
        return Cause("FieldValueTooLong", "Too long: value is too long", path)
    size = "1 byte" if limit == 1 else f"{limit} bytes"
    return Cause("FieldValueTooLong", f"Too long: may not be more than {size}", path)


def too_many(path: str, count: int, limit: int) -> Cause:
    if limit < 0:
        return Cause("FieldValueTooMany", f"Too many: {count}: has too many items", path)
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", path)


def shown(value: Any) -> str:
    """A value as error messages show it: strings as Go quotes them, bytes and structs as JSON, others
    plainly."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Quantity):
        return f'"{value}"'
    if isinstance(value, dict | list | msgspec.Struct):
        return json.encode(value).decode().translate(_ESCAPED)
    if isinstance(value, str):
        return f'"{UNPRINTABLE.sub(_escaped, value)}"'
    if isinstance(value, bytes):
        return json.encode(value).decode()
    return str(value)


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if known := ESCAPES.get(letter):
        return known
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def internal(value: Any) -> Any:
    """A part of an object as Kubernetes shows it where it has only its internal type at hand: by Go's names
    of the fields, absent ones too. A selector has the same type inside."""
    if isinstance(value, list):
        return [internal(one) for one in value] or None
    if isinstance(value, dict):
        return value or None
    if isinstance(value, msgspec.Struct) and not isinstance(value, LabelSelector):
        # A time that is not set is null.
        infos = fields_of(type(value)).values()
        return _internal_type(type(value))(
            *(
                _internal_part(part, info)
                for part, info in zip(msgspec.structs.astuple(value), infos, strict=True)
            )
        )
    return value


def _internal_part(part: Any, info: FieldInfo) -> Any:
    if info.type is Any:
        return part
    return internal(part if part or info.format not in TIMES else None)


@cache
def _internal_type(type_: type[msgspec.Struct]) -> type[msgspec.Struct]:
    fields = []
    for attribute, wire in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True):
        first = attribute.partition("_")[0]
        capital = first.upper() if first in CAPITAL else wire[0].upper()
        fields.append((capital + wire[len(capital) :], Any))
    return msgspec.defstruct(type_.__name__, fields)


def at_least(path: str, value: int, least: int) -> list[Cause]:
    """One fault when `value` is below `least`, 0 or 1."""
    if value >= least:
        return []
    detail = "must be greater than or equal to 0" if least == 0 else f"must be greater than {least - 1}"
    return [invalid(path, value, detail)]


def between(path: str, value: int, least: int, most: int) -> list[Cause]:
    if least <= value <= most:
        return []
    return [invalid(path, value, f"must be between {least} and {most}, inclusive")]


def one_of(path: str, value: str, supported: Iterable[str]) -> list[Cause]:
    """Faults of a required choice."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def choice(path: str, value: str | None, supported: Iterable[str]) -> list[Cause]:
    """Faults of a choice that may be left open."""
    return [] if value is None or value in supported else [not_supported(path, value, supported)]


def all_invalid(path: str, value: Any, problems: Iterable[str]) -> list[Cause]:
    return [invalid(path, value, problem) for problem in problems]


def _message(what: str, detail: str) -> str:
    return f"{what}: {detail}" if detail else what


def validate_no_backsteps(value: str, path: str) -> Iterator[Cause]:
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def validate_descending(value: str, path: str) -> Iterator[Cause]:
    """Relative, and not stepping out of where it begins."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from validate_no_backsteps(value, path)


def validate_not_reserved(value: str, path: str) -> Iterator[Cause]:
    """A file within a volume, where names in `..` are the kubelet's own."""
    yield from validate_descending(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def containers_with_paths(spec: PodSpec, path: str) -> Iterator[tuple[EphemeralContainerCommon, str]]:
    """Each container with its path, such as `spec.containers[0]`."""
    for i, volume in enumerate(spec.volumes):
        if volume.container is not None:
            yield volume.container, f"{path}.volumes[{i}].container"
    for i, init in enumerate(spec.init_containers):
        yield init, f"{path}.initContainers[{i}]"
    for i, app in enumerate(spec.containers):
        yield app, f"{path}.containers[{i}]"
    for i, ephemeral in enumerate(spec.ephemeral_containers):
        yield ephemeral, f"{path}.ephemeralContainers[{i}]"


def difference(old: Any, new: Any, path: str) -> str:
    return "\n".join(_lines(json.to_data(old), json.to_data(new), path))


def _lines(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _lines(old.get(key, MISSING), new.get(key, MISSING), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for i in range(max(len(old), len(new))):
            yield from _lines(_at(old, i), _at(new, i), f"{path}[{i}]")
    else:
        if old is not MISSING:
            yield f"- {path}: {shown(old)}"
        if new is not MISSING:
            yield f"+ {path}: {shown(new)}"


def _at(items: list[Any], i: int) -> Any:
    return items[i] if i < len(items) else MISSING
