"""When a status is worth a write of its own. Pure.

A pod that comes up changes with every call to the runtime, and the next change is milliseconds away: written
one by one they would cost the pod more of the processor than all else the kubelet does for it (decision 028).
"""

from __future__ import annotations

from collections.abc import Set

from podling.kubelet.pod_actions import BRINGS_UP
from podling.kubelet.reporting.pod_phase import PENDING
from podling.model.pod_status import PodStatus


def is_about_to_change(told: PodStatus, status: PodStatus, in_flight: Set[str]) -> bool:
    """Whether `status`, which follows `told`, may wait for the outcome of what is in flight.

    The first word on a pod's containers is for those who wait for the kubelet to take the pod, and a new
    phase for everybody: neither waits. Nor does anything of a pod that has run, since traffic may depend on
    it.
    """
    coming_up = told.phase == status.phase == PENDING and bool(told.container_statuses)
    return coming_up and any(key.startswith(BRINGS_UP) for key in in_flight)
