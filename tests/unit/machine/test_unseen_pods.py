"""R-SYS-2: pods of an older podling, on a bridge, are told of when policies do not hold between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.machine.network import unseen_pods


@pytest.mark.parametrize(
    ("ports", "filtered", "is_told"),
    [(0, "", False), (1, "", False), (2, "", True), (2, "0", True), (2, "1", False)],
)
def test_pods_on_a_bridge_are_unseen(ports: int, filtered: str, is_told: bool, tmp_path: Path) -> None:
    for number in range(ports):
        (tmp_path / f"sys/class/net/old/brif/veth{number}").mkdir(parents=True)
    setting = tmp_path / "proc/sys/net/bridge/bridge-nf-call-iptables"
    if filtered:
        setting.parent.mkdir(parents=True)
        setting.write_text(f"{filtered}\n")
    told = unseen_pods("old", tmp_path)
    assert bool(told) == is_told
    assert "br_netfilter" in told or not is_told
