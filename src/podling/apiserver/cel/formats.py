"""Formats of strings that a schema may ask for (`kube-openapi/pkg/validation/strfmt` of Kubernetes)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv6Address, ip_address, ip_network

from podling.apiserver.cel.urls import parsed_url
from podling.model import names

OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
"""The formats of numbers by type."""
LONGEST_HOST_NAME, LONGEST_HOST_LABEL = 253, 63
_HEX = "[0-9a-fA-F]"
_CARD = (
    "4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
    r"3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35\d{3})\d{11}"
)
_SHADE = r"\s*([01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])\s*"
_UNITS = "ns|us|µs|ms|[smhdw]|nano|nanosecond|micro|microsecond|milli|millisecond"
_LONG_UNITS = "sec|second|min|minute|hr|hour|day|week|wk"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})"


def _by(pattern: str) -> Callable[[str], bool]:
    # Compiled when it is first asked for: most servers never see a schema.
    return lambda text: re.fullmatch(pattern, text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _by(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if len(text) > LONGEST_HOST_NAME or len(labels) < 2 or len(labels[-1]) < 2:
        return False
    return all(
        0 < len(label) <= LONGEST_HOST_LABEL
        and label.replace("-", "a").replace("_", "-").isalnum()
        and not label.startswith("-")
        and not label.endswith("-")
        for label in labels
    )


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    try:
        return bool(slash) and ip_network(f"{_without_zeros(address)}/{length}", strict=False) is not None
    except ValueError:
        return False


def _is_address(text: str, version: int) -> bool:
    try:
        address = ip_address(_without_zeros(text))
    except ValueError:
        return False
    is_mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    return "%" not in text and (address.version == version or (version == 4 and is_mapped))


def _without_zeros(address: str) -> str:
    """Kubernetes reads `01.2.3.4` here."""
    return ".".join(part.lstrip("0") or "0" for part in address.split(".")) if "." in address else address


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    day, letter, time = text[:10], text[10:11], text[11:]
    return _is_date(day) and letter in ("t", "T") and re.fullmatch(_TIME, time) is not None


def _is_isbn(text: str, length: int) -> bool:
    digits = re.sub("[ -]", "", text)
    if length == 10:
        if not re.fullmatch("[0-9]{9}[0-9X]", digits):
            return False
        values = [10 if letter == "X" else int(letter) for letter in digits]
        return sum((i + 1) * value for i, value in enumerate(values)) % 11 == 0
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(letter) * (3 if i % 2 else 1) for i, letter in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not re.fullmatch(_CARD, digits):
        return False
    doubled = [int(one) * (2 if i % 2 else 1) for i, one in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_email(text: str) -> bool:
    found = re.fullmatch(r"(?:[^<>@]*<([^<>]*)>|([^<>]*))", text.strip())
    address = (found[1] or found[2] or "") if found else ""
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and not re.search(r"[\s,;:@()\\\"]", local + domain.strip("[]"))


def _is_uri(text: str) -> bool:
    try:
        url = parsed_url(text.partition("#")[0])
    except ValueError:
        return False
    return bool(url.scheme) or text.startswith("/")


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _by(f"{_HEX}{{24}}"),
    "byte": _by(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_time,
    "duration": _by(rf"\s*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(({_UNITS})|({_LONG_UNITS})s?)\s*)+"),
    "email": _is_email,
    "hexcolor": _by(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_address(text, 4),
    "ipv6": lambda text: _is_address(text, 6),
    "isbn": lambda text: _is_isbn(text, 10) or _is_isbn(text, 13),
    "isbn10": lambda text: _is_isbn(text, 10),
    "isbn13": lambda text: _is_isbn(text, 13),
    "k8s-long-name": lambda text: not names.dns1123_subdomain(text),
    "k8s-short-name": lambda text: not names.dns1123_label(text),
    "mac": _by(
        rf"({_HEX}{{2}}([:-]){_HEX}{{2}}(\2{_HEX}{{2}}){{4}}((\2{_HEX}{{2}}){{2}}|(\2{_HEX}{{2}}){{14}})?)|"
        rf"({_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}(\.{_HEX}{{4}}|(\.{_HEX}{{4}}){{7}})?)"
    ),
    "password": lambda text: True,
    "rgbcolor": _by(rf"rgb\({_SHADE},{_SHADE},{_SHADE}\)"),
    "ssn": _by(r"\d{3}[- ]?\d{2}[- ]\d{4}"),
    "uri": _is_uri,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}
FORMATS = frozenset((*_CHECKS, "date-time"))
"""Those of strings. Any other is allowed and not checked."""


def is_known(form: str, type_: str) -> bool:
    """Whether Kubernetes knows the format for a field of the type."""
    return form in OF_NUMBERS[type_] if type_ in OF_NUMBERS else type_ in ("", "string") and form in FORMATS


def is_of_format(form: str, text: str) -> bool:
    """`form` is one of FORMATS."""
    return _CHECKS["datetime" if form == "date-time" else form](text)
