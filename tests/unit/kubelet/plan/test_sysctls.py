"""Kernel settings a pod may have (R-SYS-5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from podling.kubelet.plan.admission import forbidden_sysctl
from podling.model.types.pod import PodSecurityContext, Sysctl

if TYPE_CHECKING:
    from unit.kubelet.conftest import Scene

WITH_HOST = "not allowed with host {} enabled"
TABLE = [
    # name                          spec                      allowed on the node   why not
    ("kernel.shm_rmid_forced",      {},                       (),                   None),
    ("net/ipv4/tcp_syncookies",     {},                       (),                   None),
    ("kernel.msgmax",               {},                       (),                   "not allowlisted"),
    ("kernel.msgmax",               {},                       ("kernel.msg*",),     None),
    ("kernel.msgmax",               {},                       ("kernel.msgmax",),   None),
    ("kernel.msgmax",               {"host_ipc": True},       ("kernel.msg*",),     WITH_HOST.format("IPC")),
    ("net.ipv4.tcp_syncookies",     {"host_network": True},   (),                   WITH_HOST.format("Net")),
    ("kernel.shm_rmid_forced",      {"host_network": True},   (),                   None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spec", "allowed", "why"), TABLE)
def test_a_sysctl(
    scene: type[Scene], name: str, spec: dict[str, Any], allowed: tuple[str, ...], why: str | None
) -> None:
    context = PodSecurityContext(sysctls=[Sysctl(name=name, value="1")])
    refusal = forbidden_sysctl(scene.pod("a", security_context=context, **spec), allowed)
    if why is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.reason, refusal.message) == ("SysctlForbidden", f'forbidden sysctl: "{name}" {why}')


def test_a_pod_that_asks_for_none(scene: type[Scene]) -> None:
    assert forbidden_sysctl(scene.pod("a"), ()) is None
