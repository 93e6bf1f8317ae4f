"""What stops a container from starting, and what a runtime's refusal looks like in events and statuses."""

from __future__ import annotations

from podling.cri.interface import RuntimeFault

NOT_FOUND = "NOT_FOUND"


class StartError(Exception):
    """A container or sandbox could not be brought up. `reason` is the waiting reason its status shows."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def rpc_text(fault: RuntimeFault) -> str:
    """As a gRPC error is written by every kubelet: `rpc error: code = NotFound desc = …`."""
    code = "".join(part.capitalize() for part in fault.code.split("_"))
    return f"rpc error: code = {code} desc = {fault.message}"
