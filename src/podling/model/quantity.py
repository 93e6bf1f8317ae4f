"""Resource quantities (`500m`, `1Gi`, `1e3`): exact numbers that keep their suffix family.

Decoding canonicalizes as Kubernetes does on write: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. The
smallest unit is a nano; a finer number is rounded away from zero.
"""

from __future__ import annotations

import re

from podling.model.remembered import remembered

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
# Possessive (`*+`): what one part took it does not give back, or digits would be tried in every part.
_SYNTAX = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?+(?:([KMGTPE]i)|[eE]([+-]?[0-9]++)|([numkMGTPE]?))"
)
_SHAPE = re.compile(r"[+-]?(?=\.?[0-9])[0-9]*+\.?[0-9]*+[eEinumkKMGTP]*+[-+]?[0-9]*+")
_BAD_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BAD_SUFFIX = "unable to parse quantity's suffix"
_NANO = 10**9
_LARGEST = (1 << 63) - 1
"""In nanos. Larger numbers are capped to it, as Kubernetes does."""
_KEPT = 128
"""Digits of a number that can matter. A value below the largest has 19 before the point; where nanos of a
binary unit begin is told by 69 behind it. Of what follows it matters only whether it is zero."""

DECIMAL_SI, DECIMAL_EXPONENT, BINARY_SI = "DecimalSI", "DecimalExponent", "BinarySI"


class Quantity:
    """An immutable number of nanos. Equality, order and hash go by value alone: `1` equals `1000m`."""

    __slots__ = ("format", "nanos")

    nanos: int
    format: str

    def __new__(cls, text: str | int | float = "0") -> Quantity:
        """Raises ValueError when `text` is not a quantity."""
        return _parse(text if isinstance(text, str) else repr(text))

    @classmethod
    def of_nanos(cls, nanos: int, format: str = DECIMAL_SI) -> Quantity:
        made = object.__new__(cls)
        made.nanos, made.format = nanos, format
        return made

    @classmethod
    def of_milli(cls, milli: int) -> Quantity:
        return cls.of_nanos(milli * 10**6)

    @classmethod
    def of_bytes(cls, count: int) -> Quantity:
        return cls.of_nanos(count * _NANO, BINARY_SI)

    def value(self) -> int:
        """In whole units, rounded up."""
        return -(-self.nanos // _NANO)

    def milli_value(self) -> int:
        """In thousandths, rounded up."""
        return -(-self.nanos // 10**6)

    def __str__(self) -> str:
        return _text(self.nanos, self.format)

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

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    __copy__ = __deepcopy__


@remembered(4096)
def _parse(text: str) -> Quantity:
    match = _SYNTAX.fullmatch(text.strip(" \t\r\n"))
    if match is None:
        raise ValueError(_BAD_SUFFIX if _SHAPE.fullmatch(text) else _BAD_FORMAT)
    sign, whole, fraction, binary, exponent, suffix = match.groups(default="")
    power = _power(exponent) if exponent else _DECIMAL[suffix] if not binary else 0
    magnitude = _nanos(f"{whole}{fraction}", _BINARY.get(binary, 1), power - len(fraction))
    form = BINARY_SI if binary else DECIMAL_EXPONENT if exponent else DECIMAL_SI
    return Quantity.of_nanos(-magnitude if sign == "-" else magnitude, form)


def _power(exponent: str) -> int:
    """Raises ValueError for what is no int64."""
    digits = exponent.lstrip("+-").lstrip("0")
    if len(digits) > 19 or int(digits or "0") > _LARGEST:
        raise ValueError(_BAD_SUFFIX)
    return int(f"-{digits}" if exponent[0] == "-" else digits or "0")


def _nanos(digits: str, unit: int, power: int) -> int:
    """Nanos of `digits` x `unit` x 10^`power`, rounded up, and cut to the largest number a quantity holds.

    Python converts digits in quadratic time, so no more are converted than matter.
    """
    digits = digits.lstrip("0")
    if not digits:
        return 0
    if beyond := digits[_KEPT:]:
        digits = f"{digits[:_KEPT]}{'1' if beyond.strip('0') else '0'}"
        power += len(beyond) - 1
    # A power beyond these is past either end; computing it would only burn time.
    scale = max(min(9 + power, 64), -640)
    numerator: int = int(digits) * unit * 10 ** max(scale, 0)
    denominator: int = 10 ** max(-scale, 0)
    return min(-(-numerator // denominator), _LARGEST * _NANO)


def _text(nanos: int, form: str) -> str:
    if nanos == 0:
        return "0"
    sign, size = ("-", -nanos) if nanos < 0 else ("", nanos)
    if form == BINARY_SI and size >= 1024 * _NANO and size % _NANO == 0:
        return sign + _binary_text(size // _NANO)
    return sign + _decimal_text(size, exponent_form=form == DECIMAL_EXPONENT)


def _binary_text(units: int) -> str:
    shift = min((units & -units).bit_length() - 1, 60) // 10
    suffix = ("", *_BINARY)[shift]
    return f"{units >> (10 * shift)}{suffix}"


def _decimal_text(nanos: int, *, exponent_form: bool) -> str:
    exponent = -9
    while exponent < 18 and nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if exponent_form:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_SUFFIX_OF[exponent]}"
