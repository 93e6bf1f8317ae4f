"""When the runtime and the pod's cgroup are told of resources that were given to the pod. What must restart
for it is stopped by `container_plan.py`."""

from __future__ import annotations

from podling.kubelet.planning.backoff import retry_at
from podling.kubelet.planning.draft import Draft
from podling.kubelet.planning.resize import limits_meanwhile, restart_required, unactuated
from podling.kubelet.pod_actions import ResizePod
from podling.model.pod import Pod


def plan_resize(draft: Draft, pod: Pod) -> None:
    observed = draft.observed
    differing = list(unactuated(pod, observed))
    if not any(not restart_required(pod, container, running) for container, running in differing):
        restart_awaited = differing and limits_meanwhile(pod, observed) == observed.pod_limits
        if observed.limits_settled or restart_awaited:
            return
    failure = observed.resize_failure
    at = retry_at(failure) if failure else draft.now
    if draft.now < at:
        draft.wake(at)
    else:
        draft.add(ResizePod())
