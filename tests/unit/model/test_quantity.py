"""Quantities parse, print and compare as Kubernetes' do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.model.quantity import Quantity

CANONICAL = {
    # written: canonical
    "0": "0",
    "0Ki": "0",
    "1": "1",
    "1.0": "1",
    "1.000": "1",
    "0.001": "1m",
    "1.5k": "1500",
    "08Gi": "8Gi",
    "+8Gi": "8Gi",
    "-1": "-1",
    "1000m": "1",
    "0.5": "500m",
    ".5": "500m",
    "1.5": "1500m",
    "100": "100",
    "1000": "1k",
    "1100": "1100",
    "12000M": "12G",
    "1024Mi": "1Gi",
    "1024": "1024",
    "1.5Gi": "1536Mi",
    "0.5Mi": "512Ki",
    "1000Ki": "1000Ki",
    "512": "512",
    "0.1Gi": "107374182400m",
    "1Ki": "1Ki",
    "0.5Ki": "512",
    "1e3": "1e3",
    "1000e3": "1e6",
    "1e1": "10",
    "1.5e3": "1500",
    "1.5e-1": "150e-3",
    "5e-3": "5e-3",
    "1n": "1n",
    "0.1n": "1n",
    "-0.1n": "-1n",
    "1u": "1u",
    "1000n": "1u",
    "1E": "1E",
    "1Ei": "1Ei",
    "8Ei": "9223372036854775807",
    "-9Ei": "-9223372036854775807",
    "9.3E": "9300P",
    "10000000000000000000": "10E",
    "99999999999999999999": "99999999999999999999",
    "9223372036854775807.5": "9223372036854775807500m",
    "1e19": "10e18",
    "1000E": "1e21",
    "9999E": "9999E",
    "-9999E": "-9999E",
    "1e999999999": "10e99",
    "-1e999999999": "-10e99",
    f"{'1' * 200}E": "10e99",
    "1e-999999999": "1e-9",
    " 1 ": "1",
    # Without a digit it is zero.
    ".": "0",
    "-": "0",
    "+.Ki": "0",
    "E3": "0",
}


KEPT = [
    "+1", "01", "00001", "5.", "+5.", "1.m", "01m", "1.500", "123.456", "1.234567891", "123456789.123456789",
    "1e0", "1e-0", "1e+3", "1E3", "1e03", "01e-9", "1.5e4", "01Gi", "7.Gi", "+9Gi", "1500.m",
]  # fmt: skip
"""Spellings that Kubernetes takes for canonical."""


@pytest.mark.parametrize("written", KEPT)
def test_some_spellings_are_kept(written: str) -> None:
    assert str(Quantity(written)) == written
    assert str(Quantity(written) + Quantity()) != written


@pytest.mark.parametrize(("written", "canonical"), CANONICAL.items())
def test_canonical_form(written: str, canonical: str) -> None:
    assert str(Quantity(written)) == canonical


@pytest.mark.parametrize(
    "text", ["", " ", "..", "aoeu", "1.1.M", "1+1.0M", "0.1am", "1 0", "1k0x", "1\n", "\uff11"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        Quantity(text)


@pytest.mark.parametrize(
    "text", ["1i", "i", "e", "--1", "+-1", ".5i", "0.1mi", "-3.01e-", "1mm", "1Kii", "1KiK", "1ee3"]
)
def test_an_unknown_suffix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="suffix"):
        Quantity(text)


def test_numbers_are_taken_as_written() -> None:
    assert str(Quantity(2)) == "2"
    assert str(Quantity(0.1)) == "100m"


def test_value_and_milli_value_round_up() -> None:
    assert Quantity("1500m").value() == 2
    assert Quantity("1u").milli_value() == 1
    assert Quantity("64Mi").value() == 64 << 20


def test_values_are_int64() -> None:
    assert Quantity("10E").value() == Quantity("1e99").milli_value() == (1 << 63) - 1
    assert Quantity("-10E").value() == -((1 << 63) - 1)


def test_resources_are_counted_in_milli() -> None:
    for written, milli in {"1u": "1m", "-1u": "-1m", "1.0001": "1001m", "1e-9": "1e-3", "01m": "01m"}.items():
        assert str(Quantity(written).in_milli()) == milli


def test_equality_is_by_value_not_by_spelling() -> None:
    assert Quantity("1Ki") == Quantity("1024")
    assert len({Quantity("1Gi"), Quantity("1024Mi"), Quantity("1073741824")}) == 1
    assert Quantity("1") != 1


def test_a_sum_is_spelled_like_its_first_operand_that_is_not_zero() -> None:
    assert str(Quantity("1Ki") + Quantity("1024")) == "2Ki"
    assert str(Quantity("0") + Quantity("1Ki")) == "1Ki"
    assert str(Quantity("1") - Quantity("1500m")) == "-500m"


def test_bytes_are_spelled_in_binary() -> None:
    assert str(Quantity.of_bytes(64 << 20)) == "64Mi"


SUFFIXES: dict[str, Fraction | int] = {
    "": 1,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 1000,
    "M": 10**6,
    "G": 10**9,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "e3": 1000,
    "E-2": Fraction(1, 100),
}
numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**6), max_value=10**6, places=4)
written = st.tuples(numbers, st.sampled_from(list(SUFFIXES)))


def exactly(number: Decimal, suffix: str) -> Fraction:
    return Fraction(number) * SUFFIXES[suffix]


@given(written)
def test_the_value_is_exact_or_rounded_away_from_zero_at_a_nano(pair: tuple[Decimal, str]) -> None:
    number, suffix = pair
    nanos, exact = Quantity(f"{number:f}{suffix}").nanos, exactly(number, suffix) * 10**9
    assert abs(exact) <= abs(nanos) < abs(exact) + 1
    assert nanos * exact >= 0


@given(written)
def test_canonical_text_reads_back_as_the_same_quantity(pair: tuple[Decimal, str]) -> None:
    quantity = Quantity(f"{pair[0]:f}{pair[1]}")
    again = Quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(written, written)
def test_order_is_that_of_the_numbers(one: tuple[Decimal, str], other: tuple[Decimal, str]) -> None:
    a, b = (Quantity(f"{number:f}{suffix}") for number, suffix in (one, other))
    assert (a < b) == (a.nanos < b.nanos) == (not a >= b)
    assert (a > b) == (b < a)
    assert (a <= b) == (a < b or a == b)


@given(st.text(max_size=12))
def test_only_value_error_escapes(text: str) -> None:
    try:
        Quantity(text)
    except ValueError:
        return
    assert Quantity(str(Quantity(text))) == Quantity(text)


DIGITS = st.text("0123456789", min_size=1, max_size=400)
UNITS: dict[str, Fraction | int] = {
    "": 1,
    "n": Fraction(1, 10**9),
    "Ki": 1 << 10,
    "Ei": 1 << 60,
    "e-30": Fraction(1, 10**30),
    "e300": 10**300,
}


@given(DIGITS, DIGITS, st.sampled_from(list(UNITS)))
def test_digits_that_are_not_read_do_not_matter(whole: str, fraction: str, suffix: str) -> None:
    exact = Fraction(int(whole + fraction), 10 ** len(fraction)) * UNITS[suffix] * 10**9
    largest = 2**63 - 1 if suffix.endswith("i") else 10**100
    assert Quantity(f"{whole}.{fraction}{suffix}").nanos == min(math.ceil(exact), largest * 10**9)


@pytest.mark.parametrize("exponent", ["9223372036854775808", "-9223372036854775808", "1" * 10_000])
def test_an_exponent_beyond_64_bits_is_no_suffix(exponent: str) -> None:
    with pytest.raises(ValueError, match="suffix"):
        Quantity(f"1e{exponent}")
