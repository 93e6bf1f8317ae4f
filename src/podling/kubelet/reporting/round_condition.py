"""AllContainersRestarting: what is said of a pod whose containers are all being restarted (`rounds.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from podling.kubelet.observed import ObservedPod
from podling.kubelet.planning.rounds import ender
from podling.kubelet.reporting.conditions import RESTARTING, Judgement, condition_maker
from podling.model.pod import Pod
from podling.model.pod_status import PodCondition


def round_condition(pod: Pod, observed: ObservedPod, now: datetime) -> Iterator[PodCondition]:
    """True until the last container of the earlier round has gone; none where there never was another."""
    make = condition_maker(pod, now)
    if ended := ender(observed):
        why = f"Container {ended.name} exited with code {ended.exit_code}, triggering pod restart"
        yield make(RESTARTING, Judgement(True, "ContainerExited", why))
    elif observed.round or any(condition.type == RESTARTING for condition in pod.status.conditions):
        yield make(RESTARTING, Judgement(False))
