"""Kubernetes' own values: quantities, URLs, semantic versions and named formats."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import total_ordering
from typing import Any, ClassVar
from urllib.parse import quote, unquote

import msgspec

from podling.apiserver.cel.formats import is_of_format
from podling.apiserver.cel.urls import Url, requested_url
from podling.apiserver.cel.values import (
    LARGEST,
    LARGEST_UNSIGNED,
    NONE,
    SMALLEST,
    CelError,
    Meter,
    Optional,
    no_overload,
)
from podling.model import names
from podling.model.codec.quoting import quoted
from podling.model.quantity import Quantity

NANO = 10**9
_IN_PATH = re.compile(r"[A-Za-z0-9\-_.~/!$&'()*+,;=:@\[\]%]*")
_DIGITS = re.compile(r"\d*", re.ASCII)
_WORD = re.compile(r"[0-9A-Za-z-]*")
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class Measure(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.Quantity"
    quantity: Quantity


def _amounts(function: str, *values: Any) -> list[Quantity]:
    if any(type(one) is not Measure for one in values):
        raise no_overload(function, *values)
    return [one.quantity for one in values]


def amount(meter: Meter, text: Any) -> Measure:
    if type(text) is not str:
        raise no_overload("quantity", text)
    try:
        return Measure(Quantity(text))
    except ValueError as error:
        raise CelError(str(error)) from None


def is_amount(meter: Meter, text: Any) -> bool:
    if type(text) is not str:
        raise no_overload("isQuantity", text)
    try:
        amount(meter, text)
    except ValueError:
        return False
    except CelError as error:
        if type(error) is not CelError:
            raise
        return False
    return True


def sign(meter: Meter, value: Any) -> int:
    nanos = _amounts("sign", value)[0].nanos
    return (nanos > 0) - (nanos < 0)


def _is_whole(quantity: Quantity) -> bool:
    return quantity.nanos % NANO == 0 and SMALLEST <= quantity.nanos // NANO <= LARGEST


def is_integer(meter: Meter, value: Any) -> bool:
    return _is_whole(_amounts("isInteger", value)[0])


def as_integer(meter: Meter, value: Any) -> int:
    quantity = _amounts("asInteger", value)[0]
    if not _is_whole(quantity):
        raise CelError("cannot convert value to integer")
    return quantity.nanos // NANO


def as_float(meter: Meter, value: Any) -> float:
    return _amounts("asApproximateFloat", value)[0].nanos / NANO


def plus(meter: Meter, value: Any, other: Any) -> Measure:
    return Measure(_amount("add", value, other) + _operand("add", value, other))


def minus(meter: Meter, value: Any, other: Any) -> Measure:
    return Measure(_amount("sub", value, other) - _operand("sub", value, other))


def _amount(function: str, value: Any, other: Any) -> Quantity:
    if type(value) is not Measure:
        raise no_overload(function, value, other)
    return value.quantity


def _operand(function: str, value: Any, other: Any) -> Quantity:
    if type(other) is int:
        return Quantity.of_nanos(other * NANO)
    return _amounts(function, value, other)[1]


@total_ordering
class Semver(msgspec.Struct, frozen=True, eq=False):
    """`pre`: numbers stand before words."""

    cel_type: ClassVar[str] = "kubernetes.Semver"
    major: int
    minor: int
    patch: int
    pre: tuple[tuple[int, int, str], ...] = ()

    @property
    def _rank(self) -> tuple[Any, ...]:
        return self.major, self.minor, self.patch, not self.pre, self.pre

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._rank == other._rank

    def __lt__(self, other: Semver) -> bool:
        return self._rank < other._rank

    def __hash__(self) -> int:
        return hash(self._rank)


def parsed_semver(text: str, *, loosely: bool) -> Semver:
    """Raises CelError."""
    if loosely:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, plus_, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    numbers = [
        _number(part, name)
        for part, name in zip((parts[0], parts[1], patch), ("major", "minor", "patch"), strict=True)
    ]
    ranks = tuple(map(_rank_of, pre.split("."))) if dash else ()
    for word in build.split(".") if plus_ else ():
        if not word:
            raise CelError("Build meta data is empty")
        if not _WORD.fullmatch(word):
            raise CelError(f"Invalid character(s) found in build meta data {quoted(word)}")
    major, minor, patch_number = numbers
    return Semver(major, minor, patch_number, ranks)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            plain = part.lstrip("0")
            parts[i] = plain if plain and plain[0] in "0123456789" else f"0{plain}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("Short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _number(text: str, name: str) -> int:
    if not text or not _DIGITS.fullmatch(text):
        if not text:
            raise CelError('strconv.ParseUint: parsing "": invalid syntax')
        raise CelError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _ranged(text)


def _ranged(text: str) -> int:
    if len(text) > 20 or int(text) > LARGEST_UNSIGNED:
        raise CelError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _rank_of(word: str) -> tuple[int, int, str]:
    if not word:
        raise CelError("Prerelease is empty")
    if _DIGITS.fullmatch(word):
        if len(word) > 1 and word[0] == "0":
            why = f"Numeric PreRelease version must not contain leading zeroes {quoted(word)}"
            raise CelError(why)
        return 0, _ranged(word), ""
    if not _WORD.fullmatch(word):
        raise CelError(f"Invalid character(s) found in prerelease {quoted(word)}")
    return 1, 0, word


def semver(meter: Meter, text: Any, *loosely: Any) -> Semver:
    if type(text) is not str or any(type(one) is not bool for one in loosely):
        raise no_overload("semver", text, *loosely)
    return parsed_semver(text, loosely=loosely == (True,))


def is_semver(meter: Meter, text: Any, *loosely: Any) -> bool:
    if type(text) is not str or any(type(one) is not bool for one in loosely):
        raise no_overload("isSemver", text, *loosely)
    try:
        parsed_semver(text, loosely=loosely == (True,))
    except CelError:
        return False
    return True


def _part(name: str) -> Callable[[Meter, Any], int]:
    def part(meter: Meter, value: Any) -> int:
        if type(value) is not Semver:
            raise no_overload(name, value)
        return int(getattr(value, name))

    return part


def _pair(function: str, one: Any, other: Any) -> tuple[Any, Any]:
    """Two quantities, or two versions."""
    if type(one) is type(other) is Semver:
        return one, other
    mine, its = _amounts(function, one, other)
    return mine, its


def is_less_than(meter: Meter, one: Any, other: Any) -> bool:
    mine, its = _pair("isLessThan", one, other)
    return bool(mine < its)


def is_greater_than(meter: Meter, one: Any, other: Any) -> bool:
    mine, its = _pair("isGreaterThan", one, other)
    return bool(mine > its)


def compare_to(meter: Meter, one: Any, other: Any) -> int:
    mine, its = _pair("compareTo", one, other)
    return int(mine > its) - int(mine < its)


class Link(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.URL"
    url: Url


def link(meter: Meter, text: Any) -> Link:
    if type(text) is not str:
        raise no_overload("url", text)
    try:
        return Link(requested_url(text))
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def is_link(meter: Meter, text: Any) -> bool:
    if type(text) is not str:
        raise no_overload("isURL", text)
    try:
        requested_url(text)
    except ValueError:
        return False
    return True


def _url(function: str, value: Any) -> Url:
    if type(value) is not Link:
        raise no_overload(function, value)
    return value.url


def scheme(meter: Meter, value: Any) -> str:
    return _url("getScheme", value).scheme


def host(meter: Meter, value: Any) -> str:
    return _url("getHost", value).host


def hostname(meter: Meter, value: Any) -> str:
    text = _url("getHostname", value).host
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def port(meter: Meter, value: Any) -> str:
    text = _url("getPort", value).host.rpartition("]")[2]
    return text.partition(":")[2]


def escaped_path(meter: Meter, value: Any) -> str:
    path = _url("getEscapedPath", value).path
    return path if _IN_PATH.fullmatch(path) else quote(unquote(path), safe="$&+,/:;=@")


def query(meter: Meter, value: Any) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for pair in _url("getQuery", value).query.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, said = pair.replace("+", " ").partition("=")
        made.setdefault(unquote(name), []).append(unquote(said))
    return made


class NamedFormat(msgspec.Struct, frozen=True):
    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    name: str


def _as_prefix(text: str) -> str:
    """What stands in for a name to which something is added."""
    return f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text


def _uri(text: str) -> list[str]:
    try:
        requested_url(text)
    except ValueError as error:
        return [str(error)]
    return []


def _told(form: str, fault: str) -> Callable[[str], list[str]]:
    return lambda text: [] if is_of_format(form, text) else [fault]


FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns1123_label,
    "dns1123Subdomain": names.dns1123_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": lambda text: names.dns1123_label(_as_prefix(text)),
    "dns1123SubdomainPrefix": lambda text: names.dns1123_subdomain(_as_prefix(text)),
    "dns1035LabelPrefix": lambda text: names.dns1035_label(_as_prefix(text)),
    "labelValue": names.label_value,
    "uri": _uri,
    "uuid": _told("uuid", "does not match the UUID format"),
    "byte": _told("byte", "invalid base64"),
    "date": _told("date", "invalid date"),
    "datetime": _told("datetime", "invalid datetime"),
}


def named(meter: Meter, name: Any) -> Optional:
    if type(name) is not str:
        raise no_overload("format.named", name)
    return Optional(NamedFormat(name)) if name in FORMATS else NONE


def validate(meter: Meter, value: Any, text: Any) -> Optional:
    if type(value) is not NamedFormat or type(text) is not str:
        raise no_overload("validate", value, text)
    faults = FORMATS[value.name](text)
    return Optional(faults) if faults else NONE


def _format(name: str) -> Callable[[Meter], NamedFormat]:
    return lambda meter: NamedFormat(name)


def escape_key(meter: Meter, text: Any) -> str:
    if type(text) is not str:
        raise no_overload("jsonpatch.escapeKey", text)
    return text.replace("~", "~0").replace("/", "~1")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": amount,
    "isQuantity": is_amount,
    "sign": sign,
    "isInteger": is_integer,
    "asInteger": as_integer,
    "asApproximateFloat": as_float,
    "add": plus,
    "sub": minus,
    "isLessThan": is_less_than,
    "isGreaterThan": is_greater_than,
    "compareTo": compare_to,
    "semver": semver,
    "isSemver": is_semver,
    **{name: _part(name) for name in ("major", "minor", "patch")},
    "url": link,
    "isURL": is_link,
    "getScheme": scheme,
    "getHost": host,
    "getHostname": hostname,
    "getPort": port,
    "getEscapedPath": escaped_path,
    "getQuery": query,
    "format.named": named,
    "validate": validate,
    **{f"format.{name}": _format(name) for name in FORMATS},
    "jsonpatch.escapeKey": escape_key,
}
