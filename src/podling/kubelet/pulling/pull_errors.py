"""Why an image could not be pulled, as statuses and events word it. Pure.

Runtimes name two causes at the beginning of their message; any other failure is ErrImagePull.
"""

from __future__ import annotations

from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.faults import StartError, rpc_text

NAMED = {
    "RegistryUnavailable": "the registry is unavailable",
    "SignatureValidationFailed": "the signature validation failed",
}


def pull_error(image: str, fault: RuntimeFault) -> StartError:
    text = pull_text(fault)
    for reason, cause in NAMED.items():
        if text.startswith(reason):
            details = text.removeprefix(reason)
            return StartError(reason, f"image pull failed for {image} because {cause}{details}")
    return StartError("ErrImagePull", text)


def pull_text(fault: RuntimeFault) -> str:
    """A code that says nothing is left out."""
    return fault.message if fault.code == "UNKNOWN" else rpc_text(fault)
