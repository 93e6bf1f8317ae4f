"""Why an image could not be pulled, as statuses and events word it. Pure.

Runtimes name two causes at the beginning of their message; any other failure is ErrImagePull.
"""

from __future__ import annotations

from datetime import timedelta

from podling.cri.interface import RuntimeFault
from podling.kubelet.pod.faults import StartError, rpc_text
from podling.kubelet.pulling.image_reference import place_of
from podling.kubelet.reporting.durations import milliseconds_text

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


def stuck(image: str, deadline: timedelta) -> RuntimeFault:
    """A pull that made no progress for that long."""
    what = f"pulling {image} made no progress for {milliseconds_text(deadline)}"
    advice = f"{_silent(image)}, or raise --image-pull-progress-deadline"
    return RuntimeFault("DEADLINE_EXCEEDED", f"{what}: {advice}")


def given_up_by_runtime(image: str) -> RuntimeFault:
    """Nobody else cancels a pull somebody waits for: the runtime has a deadline of its own."""
    what = f"the container runtime gave up pulling {image}, which made no progress"
    return RuntimeFault("DEADLINE_EXCEEDED", f"{what}: {_silent(image)}")


def _silent(image: str) -> str:
    registry = f"registry {place_of(image).registry}, or its mirror, does not answer or sends nothing"
    return f"{registry}; see whether this node can reach it"
