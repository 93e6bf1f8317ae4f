"""Where expressions are checked, and that hostile ones end."""

from __future__ import annotations

import pytest

from podling.apiserver.cel import checker
from podling.apiserver.cel.checker import LONG, MANY, Expression, faults
from podling.model.errors import StatusError


def test_only_those_with_faults_are_told() -> None:
    asked = {"a": Expression("true", ("bool",)), "b": Expression("1", ("bool",))}
    assert faults(asked) == {"b": "must evaluate to bool but got int"}


def test_long_ones_are_checked_in_a_process_of_their_own() -> None:
    long = " && ".join(["true"] * LONG)
    variables = {f"v{i}": Expression(f"{i}", variable=f"v{i}", composed=True) for i in range(MANY)}
    asked = {
        "long": Expression(long, ("bool",)),
        **variables,
        "sum": Expression("variables.v0 + 'a'", composed=True),
    }
    told = faults(asked)
    assert list(told) == ["sum"]
    assert "'_+_' applied to '(int, string)'" in told["sum"]


def test_a_process_that_is_lost_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "PATIENCE", 0)
    with pytest.raises(StatusError, match="too many or too long to be compiled"):
        faults({"a": Expression(" " * LONG + "true")})


@pytest.mark.parametrize(
    "text",
    [
        *("(" * 5_000, "[" * 5_000, "!" * 5_000, "-" * 5_000 + "1", "@" * 5_000, "'" * 5_000, "a b " * 1_000),
        *("o" + ".a" * 5_000, "1" + "+1" * 5_000, "[1].map(x," * 500, "\x00", "\ud800x"[1:], "Object{" * 300),
    ],
)
def test_hostile_ones_are_refused(text: str) -> None:
    told = faults({"a": Expression(text, ("bool",), mutates=True)})
    assert told["a"]
    assert len(told["a"]) < 300_000
