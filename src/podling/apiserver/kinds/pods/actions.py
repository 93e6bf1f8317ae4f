"""Actions on a pod: `binding`, which assigns it to a node, and `eviction`, which deletes it if its budget
allows.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from podling.apiserver.kinds.kind import Action, Deletion
from podling.apiserver.rules.field import not_supported, required
from podling.model.errors import conflict, invalid
from podling.model.time import rfc3339
from podling.model.types.meta import DeleteOptions
from podling.model.types.pod import Binding, Eviction, Pod
from podling.model.types.pod_status import PodCondition


class BindingAction(Action[Pod]):
    name = "binding"
    body = Binding

    def effect(self, obj: Pod, body: Binding, now: datetime) -> Pod:
        """Raises StatusError 422 for a bad target, 409 for a pod that is not there to be bound."""
        causes = []
        if body.target.kind not in ("", "Node"):
            causes.append(not_supported("target.kind", body.target.kind, ("Node", "<empty>")))
        if not body.target.name:
            causes.append(required("target.name"))
        if causes:
            raise invalid("Binding", body.metadata.name, causes)
        _check_bindable(obj, body)
        node = body.target.name
        meta = msgspec.structs.replace(
            obj.metadata,
            annotations={**obj.metadata.annotations, **body.metadata.annotations},
            labels={**obj.metadata.labels, **body.metadata.labels},
        )
        others = [c for c in obj.status.conditions if c.type != "PodScheduled"]
        scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=rfc3339(now))
        return msgspec.structs.replace(
            obj,
            metadata=meta,
            spec=msgspec.structs.replace(obj.spec, node_name=node),
            status=msgspec.structs.replace(
                obj.status, conditions=[*others, scheduled], nominated_node_name=""
            ),
        )


def _check_bindable(pod: Pod, binding: Binding) -> None:
    name, asked, standing = pod.metadata.name, binding.metadata, pod.metadata
    for what, said, is_ in (
        ("UID", asked.uid, standing.uid),
        ("ResourceVersion", asked.resource_version, standing.resource_version),
    ):
        if said and said != is_:
            why = f"Precondition failed: {what} in precondition: {said}, {what} in object meta: {is_}"
            raise conflict("pods", name, why)
    if pod.metadata.deletion_timestamp:
        raise conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if pod.spec.node_name:
        raise conflict("pods/binding", name, f'pod {name} is already assigned to node "{pod.spec.node_name}"')
    if pod.spec.scheduling_gates:
        raise conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


class EvictionAction(Action[Pod]):
    """Disruption budgets are checked by admission."""

    name = "eviction"
    body = Eviction

    def effect(self, obj: Pod, body: Eviction, now: datetime) -> Deletion:
        return Deletion(body.delete_options or DeleteOptions(), lambda pod: _mark_evicted(pod, now))


def _mark_evicted(pod: Pod, now: datetime) -> None:
    known = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    others = [c for c in pod.status.conditions if c is not known]
    began = known.last_transition_time if known and known.status == "True" else rfc3339(now)
    evicted = PodCondition(
        type="DisruptionTarget",
        observed_generation=pod.metadata.generation,
        status="True",
        last_transition_time=began,
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    pod.status.conditions = [*others, evicted]
