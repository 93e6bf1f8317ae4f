"""The port a probe or a hook names: a number, or one of the container's ports by its name."""

from __future__ import annotations

from podling.kubelet.probes.outcome import ProbeError
from podling.model.container import EphemeralContainerCommon

LAST_PORT = 65535


def port_number(port: int | str, container: EphemeralContainerCommon) -> int:
    """Raises ProbeError when the container has no such port."""
    number = _number(port, container)
    if not 0 < number <= LAST_PORT:
        raise ProbeError(f"invalid port number: {number}")
    return number


def _number(port: int | str, container: EphemeralContainerCommon) -> int:
    if isinstance(port, int):
        return port
    for named in container.ports:
        if named.name == port:
            return named.container_port
    if port.isdecimal():
        return int(port)
    raise ProbeError(f"port {port} not found")
