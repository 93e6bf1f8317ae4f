"""Why a container or sandbox cannot be started, and a runtime's errors as events and statuses word them."""

from __future__ import annotations

from podling.cri.interface import UNAVAILABLE, RuntimeFault


class StartError(Exception):
    """A container or sandbox could not be brought up. `reason` is the waiting reason its status shows. One
    that does not count says nothing about the pod: its runtime went away. `instance` is the container that
    was made and could not be started."""

    def __init__(self, reason: str, message: str, *, counts: bool = True, instance: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.counts = counts
        self.instance = instance


class ConfigError(Exception):
    """A container that cannot be configured: waiting reason CreateContainerConfigError, with this message."""


def refused(reason: str, message: str, fault: RuntimeFault, *, instance: str = "") -> StartError:
    """By the runtime, in a call that makes or starts something."""
    return StartError(reason, message, counts=fault.code != UNAVAILABLE, instance=instance)


def rpc_text(fault: RuntimeFault) -> str:
    """As a gRPC error is written by every kubelet: `rpc error: code = NotFound desc = …`."""
    code = "".join(part.capitalize() for part in fault.code.split("_"))
    return f"rpc error: code = {code} desc = {fault.message}"
