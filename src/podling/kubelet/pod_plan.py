"""What to do next for one pod: desired + observed + now → actions. Pure; every rule of R-INIT and R-EPH is decided here."""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.gates import DEFAULT_GATES, Gates
from podling.kubelet.observed import ObservedPod
from podling.kubelet.pod_actions import Plan
from podling.model.pod import Pod


def plan(pod: Pod, observed: ObservedPod, now: datetime, gates: Gates = DEFAULT_GATES) -> Plan:
    """The actions that may start now. `pod.status` is the newest status known of the pod: what this kubelet last made
    of it, else what the API has."""
    raise NotImplementedError
