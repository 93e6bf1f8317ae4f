"""What is found out about the machine."""

from __future__ import annotations

import pytest

from podling.cri.host_facts import has_capability


@pytest.mark.parametrize(
    ("effective", "has"),
    [("000001ffffffffff", True), ("000001fffeffffff", False), ("0000000000000000", False)],
)
def test_a_capability_is_read_from_the_effective_set(effective: str, has: bool) -> None:
    """Without CAP_SYS_RESOURCE (24) runc cannot lower OOM scores and no container starts."""
    status = f"Name:\tpodling\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t000001ffffffffff\n"
    assert has_capability(status, 24) is has
