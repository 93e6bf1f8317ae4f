"""Kernel settings a pod asks for that this node does not let it have. Pure.

Safe ones belong to one of the pod's own namespaces and harm nobody else; others have to be allowed on the
node by name or by prefix (`kernel.shm*`).
"""

from __future__ import annotations

from collections.abc import Sequence

from podling.kubelet.planning.admission import Refusal
from podling.model.pod import Pod

REASON = "SysctlForbidden"
SAFE = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)
_IPC = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_NETWORK = "net."


def forbidden_sysctl(pod: Pod, allowed: Sequence[str]) -> Refusal | None:
    """The first one that is. `allowed` are the node's own exceptions."""
    if pod.spec.security_context is None:
        return None
    for sysctl in pod.spec.security_context.sysctls:
        # A slash separates its parts as well as a dot.
        if why := _objection(pod, sysctl.name.replace("/", "."), allowed):
            return Refusal(REASON, f'forbidden sysctl: "{sysctl.name}" {why}')
    return None


def _objection(pod: Pod, name: str, allowed: Sequence[str]) -> str:
    if name not in SAFE and not any(_allows(pattern, name) for pattern in allowed):
        return "not allowlisted"
    if name.startswith(_NETWORK) and pod.spec.host_network:
        return "not allowed with host Net enabled"
    if name.startswith(_IPC) and pod.spec.host_ipc:
        return "not allowed with host IPC enabled"
    return ""


def _allows(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
