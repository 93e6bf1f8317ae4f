"""The kinds Pod and PodTemplate, from the rules of a pod: update, status, resize, ephemeral containers,
warnings and table are in the files beside this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from podling.apiserver.kinds.columns import NAME, joined, labels_text
from podling.apiserver.kinds.kind import PROXY_VERBS, Column, Connect, Kind, Subresource
from podling.apiserver.kinds.pods.actions import BindingAction, EvictionAction
from podling.apiserver.kinds.pods.ephemeral import (
    DebugContainers,
    EphemeralContainers,
    OneEphemeralContainer,
    drop_new_ephemeral,
)
from podling.apiserver.kinds.pods.resize import Resize
from podling.apiserver.kinds.pods.status import PodStatusPart, join_addresses
from podling.apiserver.kinds.pods.table import COLUMNS, ENDED, pod_row
from podling.apiserver.kinds.pods.update import (
    adopt_app_armor_annotations,
    drop_alpha_fields,
    validate_pod_update,
)
from podling.apiserver.kinds.pods.warnings import pod_warnings, template_warnings
from podling.apiserver.rules import metadata
from podling.apiserver.rules.pod.spec import (
    validate_around_spec,
    validate_new_pod,
    validate_pod,
    validate_pod_template,
)
from podling.apiserver.rules.scheduling import complete_selectors
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.defaults import default_pod, default_pod_spec
from podling.model.rules.resources import qos_class
from podling.model.rules.status import is_mirror, is_terminal
from podling.model.scheme import resource_of
from podling.model.time import moved, parse_time, rfc3339
from podling.model.types.meta import DeleteOptions, ObjectMeta
from podling.model.types.pod import Pod, PodTemplate
from podling.model.types.pod_status import PodCondition, PodStatus


class PodTemplates(Kind[PodTemplate]):
    resource = resource_of(PodTemplate)
    judges_prefix_again = False
    returns_deleted = True
    has_generation = True
    columns = (
        NAME,
        Column("Containers", description="Names of its containers."),
        Column("Images", description="Images of its containers."),
        Column("Pod Labels", description="Labels of the pods made from it."),
    )

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def default(self, obj: PodTemplate) -> None:
        default_pod_spec(obj.template.spec)

    def prepare_create(self, obj: PodTemplate, now: datetime) -> None:
        drop_alpha_fields(obj.template.spec, None, self._gates)

    def prepare_update(self, new: PodTemplate, old: PodTemplate) -> None:
        drop_alpha_fields(new.template.spec, old.template.spec, self._gates)

    def validate(self, obj: PodTemplate) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata),
            *validate_pod_template(obj.template, "template", self._gates),
        ]

    def warnings(self, obj: PodTemplate) -> list[str]:
        return template_warnings(obj.template, "template")

    def update_warnings(self, obj: PodTemplate, old: PodTemplate) -> list[str]:
        return self.warnings(obj) if obj.template != old.template else []

    def row(self, obj: PodTemplate, now: datetime) -> list[Any]:
        containers = obj.template.spec.containers
        return [
            obj.metadata.name,
            joined(container.name for container in containers),
            joined(container.image for container in containers),
            labels_text(obj.template.metadata.labels),
        ]


class Pods(Kind[Pod]):
    resource = resource_of(Pod)
    has_generation = True
    has_grace = True
    returns_deleted = True
    columns = COLUMNS
    selectable_fields = {
        "spec.nodeName": lambda pod: pod.spec.node_name,
        "spec.restartPolicy": lambda pod: pod.spec.restart_policy,
        "spec.schedulerName": lambda pod: pod.spec.scheduler_name,
        "spec.serviceAccountName": lambda pod: pod.spec.service_account_name,
        "spec.hostNetwork": lambda pod: str(pod.spec.host_network).lower(),
        "status.phase": lambda pod: pod.status.phase,
        "status.podIP": lambda pod: pod.status.pod_ips[0].ip if pod.status.pod_ips else pod.status.pod_ip,
        "status.podIPs": lambda pod: pod.status.pod_ips[0].ip if pod.status.pod_ips else pod.status.pod_ip,
        "status.nominatedNodeName": lambda pod: pod.status.nominated_node_name,
    }

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates
        self._takes_ephemeral = gates.enabled("EphemeralContainers")
        self.subresources = {one.name: one for one in _subresources(gates)}

    def default(self, obj: Pod) -> None:
        default_pod(obj)
        join_addresses(obj.status)

    def prepare_create(self, obj: Pod, now: datetime) -> None:
        # Of all that is said of its status Kubernetes keeps this alone.
        obj.status = PodStatus(phase="Pending", qos_class=obj.status.qos_class or qos_class(obj))
        if obj.spec.scheduling_gates:
            obj.status.conditions = [
                PodCondition(
                    type="PodScheduled",
                    status="False",
                    last_transition_time=rfc3339(now),
                    reason="SchedulingGated",
                    message="Scheduling is blocked due to non-empty scheduling gates",
                )
            ]
        complete_selectors(obj.spec, obj.metadata.labels)
        adopt_app_armor_annotations(obj)
        self._drop_disabled(obj, None)

    def prepare_update(self, new: Pod, old: Pod) -> None:
        new.status = old.status
        self._drop_disabled(new, old)

    def _drop_disabled(self, new: Pod, old: Pod | None) -> None:
        """Fields behind a disabled gate are dropped silently, as kube-apiserver does."""
        if not self._takes_ephemeral:
            drop_new_ephemeral(new, old)
        drop_alpha_fields(new.spec, old.spec if old else None, self._gates)

    def validate(self, obj: Pod) -> list[Cause]:
        return validate_pod(obj, self._gates)

    def validate_create(self, obj: Pod) -> list[Cause]:
        return validate_pod(obj, self._gates) + validate_new_pod(obj, self._gates)

    def validate_changed(self, new: Pod, old: Pod) -> list[Cause]:
        """An unchanged spec is not validated again: it was valid under the rules and gates of its time, and
        must not keep a label from being changed."""
        is_judged = new.spec == old.spec and is_mirror(new) == is_mirror(old)
        return validate_around_spec(new) if is_judged else self.validate(new)

    def validate_update(self, new: Pod, old: Pod) -> list[Cause]:
        return validate_pod_update(new, old)

    def warnings(self, obj: Pod) -> list[str]:
        return pod_warnings(obj)

    def update_warnings(self, obj: Pod, old: Pod) -> list[str]:
        """None: pods are updated often, and by others than their authors."""
        return []

    def row(self, obj: Pod, now: datetime) -> list[Any]:
        return pod_row(obj, now)

    def row_conditions(self, obj: Pod) -> Sequence[Mapping[str, str]]:
        return ENDED.get(obj.status.phase, ())

    def graceful_delete(self, obj: Pod, options: DeleteOptions, now: datetime) -> bool:
        """A pod on a node gets its grace period, which a later deletion may only shorten."""
        asked = options.grace_period_seconds
        if obj.metadata.deletion_timestamp:
            return _hasten(obj.metadata, asked)
        grace = asked if asked is not None else obj.spec.termination_grace_period_seconds
        grace = 1 if grace is not None and grace < 0 else grace or 0
        if not obj.spec.node_name or is_terminal(obj):
            # It runs nowhere.
            grace = 0
        obj.metadata.deletion_timestamp = rfc3339(_later(now, grace))
        obj.metadata.deletion_grace_period_seconds = grace
        return grace > 0


def _subresources(gates: Gates) -> Iterator[Subresource]:
    ephemeral = gates.enabled("EphemeralContainers")
    makes_container = ephemeral and gates.enabled("ExecEphemeralContainer")
    rules = partial(OneEphemeralContainer, path="", gates=gates) if makes_container else None
    yield Connect("attach", "PodAttachOptions", container_rules=rules)
    yield BindingAction()
    if ephemeral:
        yield EphemeralContainers(gates, removal=gates.enabled("EphemeralContainerRemoval"))
    yield EvictionAction()
    if ephemeral and gates.enabled("DebugSubresource"):
        yield DebugContainers(gates)
    yield Connect("exec", "PodExecOptions", container_rules=rules)
    yield Connect("log", "Pod", ("get",), is_read=True)
    yield Connect("portforward", "PodPortForwardOptions")
    yield Connect("proxy", "PodProxyOptions", PROXY_VERBS, has_path=True)
    yield PodStatusPart(gates)
    if gates.enabled("InPlacePodVerticalScaling"):
        yield Resize(gates)


def _later(when: datetime, seconds: int) -> datetime:
    """What goes beyond 64 bits of nanoseconds wraps around, as in Kubernetes."""
    nanos = (seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)
    return moved(when, timedelta(microseconds=nanos // 1000))


def _hasten(meta: ObjectMeta, asked: int | None) -> bool:
    """Shorten the grace period of a pod being deleted. True if it still has to be waited for."""
    standing = meta.deletion_grace_period_seconds
    if standing is None or asked is None or asked >= standing:
        return standing is not None
    begun = _later(parse_time(meta.deletion_timestamp), -standing)
    meta.deletion_timestamp = rfc3339(_later(begun, asked))
    meta.deletion_grace_period_seconds = max(asked, 0)
    return asked > 0
