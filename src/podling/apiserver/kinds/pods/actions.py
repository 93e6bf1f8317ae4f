"""Actions on a pod: `binding`, which assigns it to a node, and `eviction`, which deletes it if its budget
allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from podling.apiserver.kinds.kind import Action, Deletion
from podling.apiserver.rules import field
from podling.model.errors import conflict, invalid
from podling.model.rules.status import with_condition
from podling.model.time import rfc3339
from podling.model.types.meta import DeleteOptions
from podling.model.types.pod import Binding, Eviction, Pod
from podling.model.types.pod_status import PodCondition

TARGET = "DisruptionTarget"
"""The condition of a pod that somebody other than its node ends."""
BREAKING = "ignoreStoreReadErrorWithClusterBreakingPotential"


class BindingAction(Action[Pod]):
    name = "binding"
    body = Binding

    def effect(self, obj: Pod, body: Binding, now: datetime) -> Pod:
        """Raises StatusError 422 for a bad target, 409 for a pod that is not there to be bound."""
        causes = []
        if body.target.kind not in ("", "Node"):
            causes.append(field.not_supported("target.kind", body.target.kind, ("Node", "<empty>")))
        if not body.target.name:
            causes.append(field.required("target.name"))
        if causes:
            raise invalid("Binding", body.metadata.name, causes)
        _check_bindable(obj, body)
        node = body.target.name
        meta = msgspec.structs.replace(
            obj.metadata,
            annotations={**obj.metadata.annotations, **body.metadata.annotations},
            labels={**obj.metadata.labels, **body.metadata.labels},
        )
        scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=rfc3339(now))
        return msgspec.structs.replace(
            obj,
            metadata=meta,
            spec=msgspec.structs.replace(obj.spec, node_name=node),
            status=msgspec.structs.replace(
                obj.status,
                conditions=with_condition(obj.status.conditions, scheduled),
                nominated_node_name="",
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

    def dry_run(self, body: Eviction) -> Sequence[str]:
        return body.delete_options.dry_run if body.delete_options else ()

    def effect(self, obj: Pod, body: Eviction, now: datetime) -> Deletion:
        """Raises StatusError 422 for an option that no eviction has."""
        options = body.delete_options or DeleteOptions()
        if options.ignore_store_read_error_with_cluster_breaking_potential:
            why = "can not be set for pod eviction, try after removing the option"
            cause = field.invalid(f"deleteOptions.{BREAKING}", True, why)
            raise invalid("Eviction", body.metadata.name, [cause], "policy")
        return Deletion(options, lambda pod: _mark_evicted(pod, now))


def _mark_evicted(pod: Pod, now: datetime) -> None:
    known = [c.observed_generation for c in pod.status.conditions if c.type == TARGET]
    evicted = PodCondition(
        type=TARGET,
        observed_generation=known[0] if known else 0,
        status="True",
        last_transition_time=rfc3339(now),
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    pod.status.conditions = with_condition(pod.status.conditions, evicted)
