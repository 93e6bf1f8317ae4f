"""What a runtime's refusal looks like in events and statuses."""

from __future__ import annotations

from podling.cri.interface import RuntimeFault

NOT_FOUND = "NOT_FOUND"


def rpc_text(fault: RuntimeFault) -> str:
    """As a gRPC error is written by every kubelet: `rpc error: code = NotFound desc = …`."""
    code = "".join(part.capitalize() for part in fault.code.split("_"))
    return f"rpc error: code = {code} desc = {fault.message}"
