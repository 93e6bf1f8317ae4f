"""Formats of strings that a schema may ask for (`kube-openapi/pkg/validation/strfmt` of Kubernetes)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv6Address, ip_address, ip_network
from string import digits
from unicodedata import category

from podling.apiserver.cel.urls import requested_url
from podling.model import names

OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
"""The formats of numbers by type."""
LONGEST_HOST_NAME, LONGEST_HOST_LABEL = 255, 63
_HEX = "[0-9a-fA-F]"
_CARD = (
    "4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|"
    r"3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35\d{3})\d{11}"
)
_SHADE = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"
_GO_DURATION = r"[+-]?(0|(?>(([0-9]++(\.[0-9]*+)?|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h))+))"
_NANOSECONDS = {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 6e10, "h": 3.6e12}
_AMOUNT = r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]++)"
_UNITS = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_LONG_UNITS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
"""What the name of a unit may begin with."""
MOST_DIGITS, LARGEST = 19, (1 << 63) - 1
"""Of an amount that is read."""
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})"
_LETTERS = r"!#-'*+\-/-9=?A-Z^-~\u0080-\U0010ffff"
_NAME = rf"[{_LETTERS}]++(?>(?:\.[{_LETTERS}]++)*)"
_QUOTED = r'"(?>(?:[\t !#-\[\]-~\u0080-\U0010ffff]|\\[\t -~\u0080-\U0010ffff])+)"'
_SPEC = rf"[\t ]*+(?:{_NAME}|{_QUOTED})@[\t ]*+(?:{_NAME}|\[(?P<address>[!-Z^-~]*+)\])"
_PHRASE = rf"(?>(?:[{_LETTERS}.\t ]|{_QUOTED})*)"
_COMMENTS = r"[\t ]*+(?>(?:\([^()\\]*+\)[\t ]*+)*)"


def _by(pattern: str) -> Callable[[str], bool]:
    # Compiled when it is first asked for: most servers never see a schema.
    return lambda text: re.fullmatch(pattern, text, re.ASCII) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _by(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


def _is_hostname(text: str) -> bool:
    """A name without dots may end with the only dash in it. The last of several is of letters."""
    *above, last = text.split(".")
    longest = max(len(name.encode()) for name in (*above, last))
    if len(text.encode()) > LONGEST_HOST_NAME or longest > LONGEST_HOST_LABEL:
        return False
    if not above:
        return _are_of_host(last[:1]) and (last[1:] in ("", "-") or _are_of_host(last[1:].removeprefix("-")))
    return (
        all(_are_of_host(f"{name[:1]}{name[-1:]}") and _are_of_host(name.replace("-", "a")) for name in above)
        and len(last) > 1
        and all(category(letter)[0] == "L" for letter in last)
    )


def _are_of_host(letters: str) -> bool:
    """Letters, digits and symbols, at least one."""
    return bool(letters) and all(one in digits or category(one)[0] in "LS" for one in letters)


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
    # Kubernetes knows a year 0, which has as many days as this.
    known = f"2000{text[4:]}" if text[:4] == "0000" else text
    try:
        return bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and bool(date.fromisoformat(known))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    """What comes after a second `t` is not looked at."""
    day, *rest = text.lower().split("t")
    return _is_date(day) and bool(rest) and re.fullmatch(_TIME, rest[0]) is not None


def _is_duration(text: str) -> bool:
    """One of Go's, or a text with an amount of any unit that is known in it."""
    if re.fullmatch(_GO_DURATION, text):
        amounts = re.findall("([0-9.]++)([a-zµμ]++)", text)
        if sum(float(amount) * _NANOSECONDS[unit] for amount, unit in amounts) <= LARGEST:
            return True
    found = re.findall(_AMOUNT, text)
    return all(_is_amount(digits) for digits, _ in found) and any(
        unit.lower() in _UNITS or unit.lower().startswith(_LONG_UNITS) for _, unit in found
    )


def _is_amount(text: str) -> bool:
    figures = text.lstrip("0")
    return len(figures) <= MOST_DIGITS and int(figures or "0") <= LARGEST


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
    found = re.fullmatch(rf"{_SPEC}{_COMMENTS}", text) or re.fullmatch(
        rf"{_PHRASE}<{_SPEC}>{_COMMENTS}", text
    )
    if found is None or found["address"] is None:
        return found is not None
    try:
        return "%" not in found["address"] and bool(ip_address(found["address"]))
    except ValueError:
        return False


def _is_uri(text: str) -> bool:
    try:
        requested_url(text)
    except ValueError:
        return False
    return True


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _by(f"{_HEX}{{24}}"),
    "byte": _by(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_time,
    "duration": _is_duration,
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
        rf"({_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}(\.{_HEX}{{4}}|(\.{_HEX}{{4}}){{7}})?)|"
        rf"{_HEX}{{12}}|{_HEX}{{16}}|{_HEX}{{40}}"
    ),
    "password": lambda text: True,
    "rgbcolor": _by(rf"rgb\({_SHADE},{_SHADE},{_SHADE}\)"),
    "ssn": _by("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
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
