"""What to do next for one pod: desired + observed + now → actions. Pure; R-INIT and R-EPH are decided here.

Read `plan` from top to bottom. A pod that must end is torn down; a pod whose sandbox will not do gets
another; else its ephemeral containers, then its init containers in order, then, all at once, its app
containers are given what they need.
"""

from __future__ import annotations

from datetime import datetime

from podling.kubelet.container_types import ContainerType
from podling.kubelet.observed import ObservedPod
from podling.kubelet.planning.container_plan import keep
from podling.kubelet.planning.dead_containers import remove_all_dead, remove_dead
from podling.kubelet.planning.draft import Draft
from podling.kubelet.planning.ending import Ending, deadline, ending
from podling.kubelet.planning.ephemeral_plan import plan_ephemeral
from podling.kubelet.planning.init_plan import initialize
from podling.kubelet.planning.past import with_past
from podling.kubelet.planning.resize_plan import plan_resize
from podling.kubelet.planning.rounds import end_earlier_round, in_round
from podling.kubelet.planning.sandbox_plan import clear_old_sandboxes, needs_new_sandbox, replace_sandbox
from podling.kubelet.planning.teardown import tear_down
from podling.kubelet.pod_actions import Finish, Plan, RecordInitialized, RemoveContainer, RemoveSandbox
from podling.kubelet.pod_state import PodState, furthest
from podling.kubelet.reporting.waiting import status_changes_at
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.pod import Pod


def plan(pod: Pod, observed: ObservedPod, now: datetime, gates: Gates = DEFAULT_GATES) -> Plan:
    """The actions that may start now. `pod.status` is the newest status known of the pod: what this kubelet
    last made of it, else what the API has."""
    observed = with_past(pod, in_round(pod, observed))
    draft = Draft(observed, now)
    end = ending(pod, observed, now)
    if end:
        return _end(draft, pod, end)
    draft.wake(deadline(pod, observed))
    if needs_new_sandbox(pod, observed, gates):
        replace_sandbox(draft, pod)
    elif not draft.in_flight(("create-sandbox", "stop-sandbox:")):
        _run(draft, pod, gates)
    draft.wake(status_changes_at(pod, observed, now))
    return draft.plan(PodState.SYNCING)


def _run(draft: Draft, pod: Pod, gates: Gates) -> None:
    plan_ephemeral(draft, pod, gates)
    if end_earlier_round(draft, pod):
        return
    if initialize(draft, pod):
        _record_initialized(draft, pod)
        for container in pod.spec.containers:
            keep(draft, pod, ContainerType.REGULAR, container)
    plan_resize(draft, pod)
    remove_dead(draft, pod)
    clear_old_sandboxes(draft)


def _record_initialized(draft: Draft, pod: Pod) -> None:
    sandbox = draft.observed.sandbox
    beginning = draft.observed.beginning
    if sandbox and pod.spec.init_containers and beginning not in draft.observed.initialized_sandboxes:
        draft.add(RecordInitialized(beginning))


def _end(draft: Draft, pod: Pod, end: Ending) -> Plan:
    if not tear_down(draft, pod, end):
        return draft.plan(furthest(PodState.TERMINATING, draft.observed.state))
    if not end.deleted and draft.observed.cleared:
        remove_all_dead(draft)
    elif not end.deleted:
        remove_dead(draft, pod)
        clear_old_sandboxes(draft)
    elif not _remove_all(draft):
        draft.add(Finish())
    return draft.plan(PodState.TERMINATED)


def _remove_all(draft: Draft) -> bool:
    """Whether anything of the pod is left in the runtime. A sandbox takes its containers with it."""
    sandboxes = {s.id for s in draft.observed.sandboxes}
    for sandbox_id in sandboxes:
        draft.add(RemoveSandbox(sandbox_id))
    orphans = [c for c in draft.observed.containers if c.sandbox_id not in sandboxes]
    for container in orphans:
        draft.add(RemoveContainer(container.id, container.name))
    return bool(sandboxes or orphans)
