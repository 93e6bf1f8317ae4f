"""What is found out about the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from podling.cri.containerd.containerd import cgroups_writable, has_capability


@pytest.mark.parametrize(
    ("effective", "has"),
    [("000001ffffffffff", True), ("000001fffeffffff", False), ("0000000000000000", False)],
)
def test_a_capability_is_read_from_the_effective_set(effective: str, has: bool) -> None:
    """Without CAP_SYS_RESOURCE (24) runc cannot lower OOM scores and no container starts."""
    status = f"Name:\tpodling\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t000001ffffffffff\n"
    assert has_capability(status, 24) is has


def test_cgroups_may_be_writable_although_their_mount_is_not(tmp_path: Path) -> None:
    assert not cgroups_writable(tmp_path / "absent")
    (tmp_path / "memory").mkdir()
    assert not cgroups_writable(tmp_path)
    (tmp_path / "memory" / "cgroup.procs").touch()
    assert cgroups_writable(tmp_path)
