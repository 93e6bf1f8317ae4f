"""Why a container or sandbox cannot be started, and a runtime's errors as events and statuses word them."""

from __future__ import annotations

from podling.cri.interface import UNAVAILABLE, RuntimeFault


class StartError(Exception):
    """A container or sandbox could not be started. `reason` is the waiting reason in the container's
    status."""

    def __init__(self, reason: str, message: str, *, counts: bool = True, instance: str = "") -> None:
        """`counts` for the back-off: not if the runtime was unavailable. `instance` is the id of a container
        that was created and could not be started."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.counts = counts
        self.instance = instance


class ConfigError(Exception):
    """A container that cannot be configured: waiting reason CreateContainerConfigError, with this message."""


def refused(reason: str, message: str, fault: RuntimeFault, *, instance: str = "") -> StartError:
    """The StartError for a runtime's fault in a call that creates or starts something."""
    return StartError(reason, message, counts=fault.code != UNAVAILABLE, instance=instance)


def rpc_text(fault: RuntimeFault) -> str:
    """The fault as Go prints a gRPC error: `rpc error: code = NotFound desc = …`."""
    code = "".join(part.capitalize() for part in fault.code.split("_"))
    return f"rpc error: code = {code} desc = {fault.message}"
