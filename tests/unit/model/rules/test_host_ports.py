from __future__ import annotations

import pytest

from podling.model.rules.placement import HostPort, collide


@pytest.mark.parametrize(
    ("wanted", "used", "expected"),
    [
        (("TCP", "", 80), ("TCP", "", 80), True),
        (("TCP", "", 80), ("TCP", "127.0.0.1", 80), True),
        (("TCP", "127.0.0.1", 80), ("TCP", "", 80), True),
        (("TCP", "127.0.0.1", 80), ("TCP", "127.0.0.2", 80), False),
        (("TCP", "", 80), ("UDP", "", 80), False),
        (("TCP", "", 80), ("TCP", "", 81), False),
    ],
)
def test_two_ports(wanted: HostPort, used: HostPort, expected: bool) -> None:
    assert collide({wanted}, {used}) is expected
