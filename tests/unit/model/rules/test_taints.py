"""Which toleration is for which taint."""

from __future__ import annotations

import pytest

from podling.model.rules.placement import tolerates
from podling.model.types.node import Taint
from podling.model.types.pod import Toleration

TAINT = Taint(key="k", value="v", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="v", effect="NoExecute"), True),
        (Toleration(key="k", value="other"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
        (Toleration(), False),
    ],
)
def test_tolerates(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected
