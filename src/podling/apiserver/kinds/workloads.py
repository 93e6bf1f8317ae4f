"""The kinds that make pods from a template: Deployments, ReplicaSets, DaemonSets, StatefulSets and
ReplicationControllers, and the ControllerRevisions that DaemonSets and StatefulSets keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar

from podling.apiserver.kinds.columns import AGE, NAME, age, joined, labels_text, or_none, selector_text
from podling.apiserver.kinds.kind import Column, Controlled, Kind, Status, Subresource
from podling.apiserver.kinds.pods.update import drop_alpha_fields
from podling.apiserver.kinds.pods.warnings import claim_warnings, name_warnings, template_warnings
from podling.apiserver.kinds.scale import SCALING
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import IMMUTABLE, at_least, invalid, required
from podling.apiserver.rules.workloads import (
    ROLLING,
    Bounds,
    default_claims,
    drop_unavailable,
    validate_collisions,
    validate_daemon_set_spec,
    validate_deployment_spec,
    validate_replica_set_spec,
    validate_replication_controller_spec,
    validate_stateful_change,
    validate_stateful_set_spec,
    validate_status,
)
from podling.model import names
from podling.model.codec import json
from podling.model.errors import Cause
from podling.model.gates import DEFAULT_GATES, Gates
from podling.model.rules.defaults import default_pod_spec
from podling.model.scheme import resource_of
from podling.model.types.apps import (
    TEMPLATE_GENERATION,
    ControllerRevision,
    DaemonSet,
    Deployment,
    ReplicaSet,
    RollingUpdateDaemonSet,
    RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
)
from podling.model.types.pod import PodSpec
from podling.model.types.replication_controller import ReplicationController

KEEPS_ALL = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
    "a value >= 0 is recommended"
)
DESIRED = Column("Desired", "integer", description="How many pods are wanted.")
CURRENT = Column("Current", "integer", description="How many pods there are.")
READY = Column("Ready", "integer", description="How many pods are ready.")
UP_TO_DATE = Column("Up-to-date", "integer", description="How many pods are of the newest template.")
AVAILABLE = Column("Available", "integer", description="How many pods have been ready for long enough.")
CONTAINERS = Column("Containers", description="Names of the containers of its pods.", priority=1)
IMAGES = Column("Images", description="Images of the containers of its pods.", priority=1)
SELECTOR = Column("Selector", description="Which pods are its own.", priority=1)

REPLICAS = Bounds(
    (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ),
    (
        ("fullyLabeledReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ),
)
SET_REPLICAS = REPLICAS._replace(counts=(*REPLICAS.counts, "terminatingReplicas"))


def container_cells(spec: PodSpec) -> list[str]:
    """The cells of `CONTAINERS` and `IMAGES`."""
    return [
        joined(container.name for container in spec.containers),
        joined(container.image for container in spec.containers),
    ]


class _Templated(Controlled[Any]):
    """A kind with a pod template in its spec."""

    judges_prefix_again = False
    warns_of_changes = True
    warns_of_names: ClassVar[bool] = True
    unattended = "podling has no controller for it: no pods are made unless another controller manager runs"

    def __init__(self, gates: Gates = DEFAULT_GATES) -> None:
        self._gates = gates

    def prepare_create(self, obj: Any, now: datetime) -> None:
        super().prepare_create(obj, now)
        drop_alpha_fields(obj.spec.template.spec, None, self._gates)

    def prepare_update(self, new: Any, old: Any) -> None:
        super().prepare_update(new, old)
        drop_alpha_fields(new.spec.template.spec, old.spec.template.spec, self._gates)

    def validate(self, obj: Any) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *self.validate_spec(obj)]

    def validate_spec(self, obj: Any) -> Iterator[Cause]:
        raise NotImplementedError

    def validate_update(self, new: Any, old: Any) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *self._validate_selector(new, old),
        ]

    def _validate_selector(self, new: Any, old: Any) -> Iterator[Cause]:
        if new.spec.selector != old.spec.selector:
            yield invalid("spec.selector", new.spec.selector, IMMUTABLE)

    def warnings(self, obj: Any) -> list[str]:
        return template_warnings(obj.spec.template, "spec.template")

    def create_warnings(self, obj: Any) -> list[str]:
        of_name = name_warnings(obj.metadata.name) if self.warns_of_names else []
        return [*of_name, *super().create_warnings(obj)]


def _status(bounds: Bounds, *, keeps_labels: bool = False, sort: type[Status] = Status) -> Status:
    def validate(new: Any, old: Any) -> Iterator[Cause]:
        yield from validate_status(new.status, bounds)
        if "collisionCount" in bounds.counts:
            yield from validate_collisions(new.status.collision_count, old.status.collision_count)

    return sort(validate, keeps_labels=keeps_labels)


class Deployments(_Templated):
    resource = resource_of(Deployment)
    subresources: Mapping[str, Subresource] = {
        "scale": SCALING,
        "status": _status(
            Bounds(
                (
                    "observedGeneration",
                    "replicas",
                    "updatedReplicas",
                    "readyReplicas",
                    "availableReplicas",
                    "unavailableReplicas",
                    "terminatingReplicas",
                    "collisionCount",
                ),
                (
                    ("updatedReplicas", "replicas", "status.replicas"),
                    ("readyReplicas", "replicas", "status.replicas"),
                    ("availableReplicas", "replicas", "status.replicas"),
                    ("availableReplicas", "readyReplicas", "readyReplicas"),
                ),
            ),
            keeps_labels=True,
        ),
    }
    columns = (
        NAME,
        Column("Ready", description="How many pods are ready, of those wanted."),
        # These two are numbers, and Kubernetes calls them strings.
        UP_TO_DATE._replace(type="string"),
        AVAILABLE._replace(type="string"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    )

    def prepare_update(self, new: Deployment, old: Deployment) -> None:
        super().prepare_update(new, old)
        if new.metadata.annotations != old.metadata.annotations:
            new.metadata.generation = old.metadata.generation + 1

    def default(self, obj: Deployment) -> None:
        spec, strategy = obj.spec, obj.spec.strategy
        default_pod_spec(spec.template.spec)
        spec.replicas = 1 if spec.replicas is None else spec.replicas
        strategy.type = strategy.type or ROLLING
        if strategy.type == ROLLING:
            rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDeployment()
            rolling.max_unavailable = "25%" if rolling.max_unavailable is None else rolling.max_unavailable
            rolling.max_surge = "25%" if rolling.max_surge is None else rolling.max_surge
        if spec.revision_history_limit is None:
            spec.revision_history_limit = 10
        if spec.progress_deadline_seconds is None:
            spec.progress_deadline_seconds = 600

    def validate_spec(self, obj: Deployment) -> Iterator[Cause]:
        return validate_deployment_spec(obj.spec, "spec", self._gates)

    def row(self, obj: Deployment, now: datetime) -> list[Any]:
        spec, status = obj.spec, obj.status
        return [
            obj.metadata.name,
            f"{status.ready_replicas}/{spec.replicas or 0}",
            status.updated_replicas,
            status.available_replicas,
            age(obj.metadata.creation_timestamp, now),
            *container_cells(spec.template.spec),
            selector_text(spec.selector),
        ]


class ReplicaSets(_Templated):
    resource = resource_of(ReplicaSet)
    subresources: Mapping[str, Subresource] = {"scale": SCALING, "status": _status(SET_REPLICAS)}
    columns = (NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR)

    def default(self, obj: ReplicaSet) -> None:
        default_pod_spec(obj.spec.template.spec)
        obj.spec.replicas = 1 if obj.spec.replicas is None else obj.spec.replicas

    def validate_spec(self, obj: ReplicaSet) -> Iterator[Cause]:
        return validate_replica_set_spec(obj.spec, "spec", self._gates)

    def row(self, obj: ReplicaSet, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.spec.replicas or 0,
            obj.status.replicas,
            obj.status.ready_replicas,
            age(obj.metadata.creation_timestamp, now),
            *container_cells(obj.spec.template.spec),
            selector_text(obj.spec.selector),
        ]


class ReplicationControllers(_Templated):
    resource = resource_of(ReplicationController)
    orphans = True
    selectable_fields = {"status.replicas": lambda obj: str(obj.status.replicas)}
    subresources: Mapping[str, Subresource] = {"scale": SCALING, "status": _status(REPLICAS)}
    columns = ReplicaSets.columns

    def default(self, obj: ReplicationController) -> None:
        spec, meta = obj.spec, obj.metadata
        if spec.template is not None:
            default_pod_spec(spec.template.spec)
            labels = spec.template.metadata.labels
            spec.selector = spec.selector or dict(labels)
            meta.labels = meta.labels or dict(labels)
        spec.replicas = 1 if spec.replicas is None else spec.replicas

    def prepare_create(self, obj: ReplicationController, now: datetime) -> None:
        obj.status = type(obj.status)()
        if obj.spec.template is not None:
            drop_alpha_fields(obj.spec.template.spec, None, self._gates)

    def prepare_update(self, new: ReplicationController, old: ReplicationController) -> None:
        new.status = old.status
        if new.spec.template is not None and old.spec.template is not None:
            drop_alpha_fields(new.spec.template.spec, old.spec.template.spec, self._gates)

    def validate(self, obj: ReplicationController) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.long_name, prefix="unjudged"),
            *self.validate_spec(obj),
        ]

    def validate_spec(self, obj: ReplicationController) -> Iterator[Cause]:
        return validate_replication_controller_spec(obj.spec, "spec", self._gates)

    def validate_update(self, new: ReplicationController, old: ReplicationController) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def warnings(self, obj: ReplicationController) -> list[str]:
        template = obj.spec.template
        return template_warnings(template, "spec.template") if template is not None else []

    def update_warnings(self, obj: ReplicationController, old: ReplicationController) -> list[str]:
        # Of what it was, as in Kubernetes.
        return super().update_warnings(old, obj)

    def row(self, obj: ReplicationController, now: datetime) -> list[Any]:
        spec = obj.spec
        return [
            obj.metadata.name,
            spec.replicas or 0,
            obj.status.replicas,
            obj.status.ready_replicas,
            age(obj.metadata.creation_timestamp, now),
            *container_cells(spec.template.spec if spec.template else PodSpec()),
            labels_text(spec.selector),
        ]


class _DaemonSetStatus(Status):
    """Whoever writes the status does not count the changes of the template."""

    def prepare_update(self, new: DaemonSet, old: DaemonSet) -> None:
        super().prepare_update(new, old)
        kept = old.metadata.annotations[TEMPLATE_GENERATION]
        new.metadata.annotations = {**new.metadata.annotations, TEMPLATE_GENERATION: kept}


class DaemonSets(_Templated):
    resource = resource_of(DaemonSet)
    warns_of_names = False
    subresources: Mapping[str, Subresource] = {
        "status": _status(
            Bounds(
                (
                    "currentNumberScheduled",
                    "numberMisscheduled",
                    "desiredNumberScheduled",
                    "numberReady",
                    "observedGeneration",
                    "updatedNumberScheduled",
                    "numberAvailable",
                    "numberUnavailable",
                    "collisionCount",
                )
            ),
            sort=_DaemonSetStatus,
        )
    }
    columns = (
        NAME,
        DESIRED,
        CURRENT,
        READY,
        UP_TO_DATE,
        AVAILABLE,
        Column("Node Selector", description="The nodes that get a pod."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    )

    def default(self, obj: DaemonSet) -> None:
        spec, strategy = obj.spec, obj.spec.update_strategy
        annotations = obj.metadata.annotations
        annotations[TEMPLATE_GENERATION] = str(int(annotations.get(TEMPLATE_GENERATION, "0")))
        default_pod_spec(spec.template.spec)
        strategy.type = strategy.type or ROLLING
        if strategy.type == ROLLING:
            rolling = strategy.rolling_update = strategy.rolling_update or RollingUpdateDaemonSet()
            rolling.max_unavailable = 1 if rolling.max_unavailable is None else rolling.max_unavailable
        elif strategy.rolling_update is not None:
            rolling = strategy.rolling_update
            rolling.max_unavailable = 0 if rolling.max_unavailable is None else rolling.max_unavailable
        if strategy.rolling_update is not None and strategy.rolling_update.max_surge is None:
            strategy.rolling_update.max_surge = 0
        if spec.revision_history_limit is None:
            spec.revision_history_limit = 10

    def prepare_create(self, obj: DaemonSet, now: datetime) -> None:
        super().prepare_create(obj, now)
        said = int(obj.metadata.annotations[TEMPLATE_GENERATION])
        obj.metadata.annotations = {**obj.metadata.annotations, TEMPLATE_GENERATION: str(max(said, 1))}

    def prepare_update(self, new: DaemonSet, old: DaemonSet) -> None:
        super().prepare_update(new, old)
        counted = int(old.metadata.annotations[TEMPLATE_GENERATION])
        counted += new.spec.template != old.spec.template
        new.metadata.annotations = {**new.metadata.annotations, TEMPLATE_GENERATION: str(counted)}

    def update_warnings(self, obj: DaemonSet, old: DaemonSet) -> list[str]:
        counts = (one.metadata.annotations[TEMPLATE_GENERATION] for one in (obj, old))
        return self.warnings(obj) if len({*counts}) > 1 else []

    def validate_spec(self, obj: DaemonSet) -> Iterator[Cause]:
        return validate_daemon_set_spec(obj.spec, "spec", self._gates)

    def validate_changed(self, new: DaemonSet, old: DaemonSet) -> list[Cause]:
        return [
            *metadata.validate(new.metadata),
            *self._validate_selector(new, old),
            *self.validate_spec(new),
        ]

    def validate_update(self, new: DaemonSet, old: DaemonSet) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: DaemonSet, now: datetime) -> list[Any]:
        spec, status = obj.spec, obj.status
        return [
            obj.metadata.name,
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.number_ready,
            status.updated_number_scheduled,
            status.number_available,
            labels_text(spec.template.spec.node_selector),
            age(obj.metadata.creation_timestamp, now),
            *container_cells(spec.template.spec),
            selector_text(spec.selector),
        ]


class StatefulSets(_Templated):
    resource = resource_of(StatefulSet)
    warns_of_names = False
    subresources: Mapping[str, Subresource] = {
        "scale": SCALING,
        "status": _status(
            Bounds(
                (
                    "replicas",
                    "readyReplicas",
                    "currentReplicas",
                    "updatedReplicas",
                    "observedGeneration",
                    "collisionCount",
                    "availableReplicas",
                ),
                (
                    ("readyReplicas", "replicas", "status.replicas"),
                    ("currentReplicas", "replicas", "status.replicas"),
                    ("updatedReplicas", "replicas", "status.replicas"),
                    ("availableReplicas", "replicas", "status.replicas"),
                    ("availableReplicas", "readyReplicas", "status.readyReplicas"),
                ),
            )
        ),
    }
    columns = (
        NAME,
        Column("Ready", description="How many pods are ready, of those wanted."),
        AGE,
        CONTAINERS,
        IMAGES,
    )

    def default(self, obj: StatefulSet) -> None:
        spec, strategy = obj.spec, obj.spec.update_strategy
        default_pod_spec(spec.template.spec)
        spec.pod_management_policy = spec.pod_management_policy or "OrderedReady"
        if not strategy.type:
            strategy.type = ROLLING
            strategy.rolling_update = strategy.rolling_update or RollingUpdateStatefulSetStrategy()
        rolling = strategy.rolling_update
        if strategy.type == ROLLING and rolling is not None and rolling.partition is None:
            rolling.partition = 0
        retention = spec.persistent_volume_claim_retention_policy
        retention = retention or StatefulSetPersistentVolumeClaimRetentionPolicy()
        retention.when_deleted = retention.when_deleted or "Retain"
        retention.when_scaled = retention.when_scaled or "Retain"
        spec.persistent_volume_claim_retention_policy = retention
        spec.replicas = 1 if spec.replicas is None else spec.replicas
        if spec.revision_history_limit is None:
            spec.revision_history_limit = 10
        default_claims(spec)

    def prepare_create(self, obj: StatefulSet, now: datetime) -> None:
        super().prepare_create(obj, now)
        drop_unavailable(obj.spec)

    def prepare_update(self, new: StatefulSet, old: StatefulSet) -> None:
        super().prepare_update(new, old)
        drop_unavailable(new.spec)

    def validate(self, obj: StatefulSet) -> list[Cause]:
        return [
            *metadata.validate(obj.metadata, name_rule=names.dns1123_label),
            *self.validate_spec(obj),
        ]

    def validate_spec(self, obj: StatefulSet) -> Iterator[Cause]:
        return validate_stateful_set_spec(obj.spec, "spec", self._gates)

    def validate_changed(self, new: StatefulSet, old: StatefulSet) -> list[Cause]:
        spec = validate_stateful_set_spec(new.spec, "spec", self._gates, changed=True)
        return [*metadata.validate(new.metadata), *spec]

    def create_warnings(self, obj: StatefulSet) -> list[str]:
        return [*super().create_warnings(obj), *_own_warnings(obj, "resources")]

    def update_warnings(self, obj: StatefulSet, old: StatefulSet) -> list[str]:
        # Kubernetes names the field so where it is an update.
        return [*super().update_warnings(obj, old), *_own_warnings(obj, "Spec.resources")]

    def validate_update(self, new: StatefulSet, old: StatefulSet) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_stateful_change(new.spec, old.spec, "spec"),
        ]

    def row(self, obj: StatefulSet, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            f"{obj.status.ready_replicas}/{obj.spec.replicas or 0}",
            age(obj.metadata.creation_timestamp, now),
            *container_cells(obj.spec.template.spec),
        ]


def _own_warnings(obj: StatefulSet, resources: str) -> list[str]:
    """Those that are not of the pods. `resources`: what the field of a claim is called."""
    limit, told = obj.spec.revision_history_limit, list[str]()
    for i, claim in enumerate(obj.spec.volume_claim_templates):
        told += claim_warnings(claim.spec, f"spec.volumeClaimTemplates[{i}].{resources}")
    return [*told, KEEPS_ALL] if limit is not None and limit < 0 else told


class ControllerRevisions(Kind[ControllerRevision]):
    resource = resource_of(ControllerRevision)
    columns = (
        NAME,
        Column("Controller", description="The object whose revision it is."),
        Column("Revision", description="Its number; the newest has the greatest."),
        AGE,
    )

    def validate(self, obj: ControllerRevision) -> list[Cause]:
        causes = [*metadata.validate(obj.metadata), *at_least("revision", obj.revision, 0)]
        if obj.data is None:
            causes.append(required("data", "data is mandatory"))
        elif not isinstance(obj.data, dict):
            causes.append(required("data", "data must be a valid JSON object"))
        return causes

    def validate_changed(self, new: ControllerRevision, old: ControllerRevision) -> list[Cause]:
        # Its data may not change, and are judged as a change.
        return [*metadata.validate(new.metadata), *at_least("revision", new.revision, 0)]

    def validate_update(self, new: ControllerRevision, old: ControllerRevision) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        # By how it is written, too: 1 is not 1.0.
        if json.encode(new.data) != json.encode(old.data):
            causes.append(invalid("data", new.data, IMMUTABLE))
        return causes

    def row(self, obj: ControllerRevision, now: datetime) -> list[Any]:
        owner = next((one for one in obj.metadata.owner_references if one.controller), None)
        controller = ""
        if owner is not None:
            group = owner.api_version.rpartition("/")[0]
            plural = owner.kind.lower()
            controller = f"{plural}.{group}/{owner.name}" if group else f"{plural}/{owner.name}"
        return [
            obj.metadata.name,
            or_none(controller),
            obj.revision,
            age(obj.metadata.creation_timestamp, now),
        ]
