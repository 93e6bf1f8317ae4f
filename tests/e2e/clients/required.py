"""What the API always sets and the models of clients call optional."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def required(value: T | None) -> T:
    assert value is not None
    return value
