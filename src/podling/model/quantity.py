"""Resource quantities (`500m`, `1Gi`, `1e3`): exact numbers that keep their suffix family.

Decoding canonicalizes as Kubernetes does on write: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`; some
spellings stay as they are (`_keeps_spelling`). The smallest unit is a nano; a finer number is rounded away
from zero. `tests/peer/test_quantities.py` asks the real server about hundreds of spellings.
"""

from __future__ import annotations

import re

from podling.model.remembered import remembered

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
# Behind the digits. Possessive (`*+`): what one part took it does not give back, or digits would be tried in
# every part.
_SUFFIX = re.compile(r"([KMGTPE]i)|[eE]([+-]?[0-9]++)|([numkMGTPE]?)")
_SHAPE = re.compile(r"[eEinumkKMGTP]*+[-+]?[0-9]*+")
_DIGITS = re.compile(r"[0-9]*+")
_BAD_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_NANO, _MILLI = 10**9, 10**6
_LARGEST = (1 << 63) - 1
"""Binary quantities are capped to it, as in Kubernetes, and so is what is counted in whole units."""
_LARGEST_DECIMAL = 10**100
"""Others are capped to it. Kubernetes has no bound, and never answers a request that says `1e2147483647`."""
_AT_ONCE = 1 << 14
"""Digits that are looked at in one call, which keeps Python's lock: 0.05 ms."""
_KEPT = 128
"""Digits of a number that can matter. A decimal has 101 before the point and 9 behind it. Where nanos of a
binary unit begin is told by 69. Of what follows it matters only whether it is zero."""

DECIMAL_SI, DECIMAL_EXPONENT, BINARY_SI = "DecimalSI", "DecimalExponent", "BinarySI"


class Quantity:
    """An immutable number of nanos. Equality, order and hash go by value alone: `1` equals `1000m`."""

    __slots__ = ("format", "nanos", "text")

    nanos: int
    format: str
    text: str
    """As it was written, if that spelling is kept; else empty."""

    def __new__(cls, text: str | int | float = "0") -> Quantity:
        """Raises ValueError when `text` is not a quantity."""
        return _parse(text if isinstance(text, str) else repr(text))

    @classmethod
    def of_nanos(cls, nanos: int, format: str = DECIMAL_SI, text: str = "") -> Quantity:
        made = object.__new__(cls)
        made.nanos, made.format, made.text = nanos, format, text
        return made

    @classmethod
    def of_bytes(cls, count: int) -> Quantity:
        return cls.of_nanos(count * _NANO, BINARY_SI)

    def value(self) -> int:
        """In whole units, rounded away from zero, as far as an int64 goes."""
        return self._in(_NANO)

    def milli_value(self) -> int:
        """In thousandths, rounded away from zero, as far as an int64 goes."""
        return self._in(_MILLI)

    def _in(self, unit: int) -> int:
        size = min(-(-abs(self.nanos) // unit), _LARGEST)
        return size if self.nanos > 0 else -size

    def in_milli(self) -> Quantity:
        """Rounded away from zero to thousandths, the finest that resources are counted in."""
        if self.nanos % _MILLI == 0:
            return self
        size = -(-abs(self.nanos) // _MILLI) * _MILLI
        return Quantity.of_nanos(size if self.nanos > 0 else -size, self.format)

    def __str__(self) -> str:
        if self.text or not self.nanos:
            return self.text or "0"
        sign, size = ("-", -self.nanos) if self.nanos < 0 else ("", self.nanos)
        if self.format == BINARY_SI and size >= 1024 * _NANO and size % _NANO == 0:
            units = size // _NANO
            shift = min((units & -units).bit_length() - 1, 60) // 10
            return f"{sign}{units >> (10 * shift)}{('', *_BINARY)[shift]}"
        exponent = -9
        while size % 1000 == 0:
            size //= 1000
            exponent += 3
        if self.format != DECIMAL_EXPONENT and exponent in _SUFFIX_OF:
            return f"{sign}{size}{_SUFFIX_OF[exponent]}"
        return f"{sign}{size}e{exponent}" if exponent else f"{sign}{size}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        """A sum takes its suffixes from the first operand that is not zero."""
        return Quantity.of_nanos(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity.of_nanos(self.nanos - other.nanos, self.format if self.nanos else other.format)


@remembered(4096)
def _parse(text: str) -> Quantity:
    # Of what JSON can hold in a string; Kubernetes reads no escapes in it.
    text = text.strip(" ")
    sign = text[:1] if text[:1] in ("+", "-") else ""
    # Without any digit a number is zero.
    point = _end_of_digits(text, len(sign))
    whole, fraction, end = text[len(sign) : point], "", point
    if text[point : point + 1] == ".":
        end = _end_of_digits(text, point + 1)
        fraction = text[point + 1 : end]
    match = _SUFFIX.fullmatch(text, end)
    if match is None or not text:
        raise ValueError(_BAD_SUFFIX if text and _SHAPE.fullmatch(text, end) else _BAD_FORMAT)
    binary, exponent, suffix = match.groups(default="")
    power = _DECIMAL.get(suffix, 0)
    if exponent:
        size_of_power = exponent.lstrip("+-0") or "0"
        if len(size_of_power) > 19 or int(size_of_power) > _LARGEST:
            raise ValueError(_BAD_SUFFIX)
        power = -int(size_of_power) if exponent[0] == "-" else int(size_of_power)
    power -= len(fraction)
    digits = f"{whole.lstrip('0') or '0'}{fraction}"
    size = _nanos(digits, _BINARY.get(binary, 1), power)
    form = BINARY_SI if binary else DECIMAL_EXPONENT if exponent else DECIMAL_SI
    largest = _NANO * (_LARGEST if binary else _LARGEST_DECIMAL)
    keeps = size <= largest and _keeps_spelling(digits, fraction, binary, power)
    size = min(size, largest)
    return Quantity.of_nanos(-size if sign == "-" else size, form, text if keeps else "")


def _end_of_digits(text: str, at: int) -> int:
    while True:
        found = _DIGITS.match(text, at, at + _AT_ONCE)
        end = found.end() if found else at
        if end < at + _AT_ONCE:
            return end
        at = end


def _keeps_spelling(digits: str, fraction: str, binary: str, power: int) -> bool:
    """Kubernetes takes the spelling of a short number for canonical without making the canonical one, though
    it may have a sign, zeros or a point too many (`ParseQuantity`)."""
    if binary:
        unit = _BINARY[binary].bit_length() - 1
        return not fraction and len(digits) + unit * 3 // 10 < 15 and int(digits) % 8 != 0
    is_short = len(digits) <= 18 and power >= -9
    return is_short and power % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _nanos(digits: str, unit: int, power: int) -> int:
    """Nanos of `digits` x `unit` x 10^`power`, rounded up; where that is past `_LARGEST_DECIMAL`, anything
    that is.

    Python converts digits in quadratic time, so no more are converted than matter.
    """
    digits = digits.lstrip("0")
    if not digits:
        return 0
    if beyond := digits[_KEPT:]:
        digits = f"{digits[:_KEPT]}{'1' if beyond.strip('0') else '0'}"
        power += len(beyond) - 1
    # A power beyond these is past either end; computing it would only burn time.
    scale = max(min(9 + power, 128), -640)
    numerator: int = int(digits) * unit * 10 ** max(scale, 0)
    denominator: int = 10 ** max(-scale, 0)
    return -(-numerator // denominator)
