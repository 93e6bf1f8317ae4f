"""Numbers of data that was patched become those of a type as in Go."""

from __future__ import annotations

import pytest

from podling.model.codec.unstructured import decode_unstructured
from podling.model.errors import StatusError
from podling.model.types.apps import Deployment
from podling.model.types.policy import PodDisruptionBudget


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2147483648", -(1 << 31)), ("4294967298", 2), ("-2147483649", (1 << 31) - 1), ("3.0", 3),
        ("1e10", 1410065408), ("9223372036854775808", 0), ("1e300", 0),
    ],
)  # fmt: skip
def test_an_integer_keeps_its_lowest_bits(sent: str, kept: int) -> None:
    data = f'{{"metadata":{{}},"spec":{{"replicas":{sent}}}}}'.encode()
    assert decode_unstructured(data, Deployment).spec.replicas == kept


@pytest.mark.parametrize("sent", ["1.5", '"1"', "true"])
def test_what_is_no_integer_is_refused(sent: str) -> None:
    with pytest.raises(StatusError, match="cannot unmarshal"):
        decode_unstructured(f'{{"spec":{{"replicas":{sent}}}}}'.encode(), Deployment)


def test_an_integer_or_string_is_not_cut() -> None:
    whole = decode_unstructured(b'{"spec":{"maxUnavailable":1e2}}', PodDisruptionBudget)
    assert whole.spec.max_unavailable == 100
    with pytest.raises(StatusError, match="cannot unmarshal"):
        decode_unstructured(b'{"spec":{"maxUnavailable":4294967298}}', PodDisruptionBudget)
