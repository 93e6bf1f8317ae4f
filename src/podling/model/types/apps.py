"""apps/v1: the controllers of pods, and the revisions they keep."""

from typing import Annotated, Any, ClassVar

from podling.model.codec.fields import (
    RETAIN_KEYS,
    Int32,
    Int64,
    IntOrString,
    NotConvertibleError,
    Part,
    Time,
    always,
    by,
    null,
)
from podling.model.integers import parse_int64
from podling.model.types.meta import KubeObject, LabelSelector
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import PodTemplateSpec

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
"""The annotation that counts the changes of a DaemonSet's template."""


class ControllerRevision(KubeObject):
    KIND: ClassVar[str] = "ControllerRevision"
    API_VERSION: ClassVar[str] = "apps/v1"

    data: Any = None
    revision: Int64 = always(int)


class RollingUpdateDaemonSet(Part):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DaemonSetUpdateStrategy(Part):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Part):
    selector: LabelSelector | None = null()
    template: PodTemplateSpec = always(PodTemplateSpec)
    update_strategy: DaemonSetUpdateStrategy = always(DaemonSetUpdateStrategy)
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class DaemonSetStatus(Part):
    current_number_scheduled: Int32 = always(int)
    number_misscheduled: Int32 = always(int)
    desired_number_scheduled: Int32 = always(int)
    number_ready: Int32 = always(int)
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: Annotated[list[DaemonSetCondition], by("type")] = []


class DaemonSet(KubeObject):
    KIND: ClassVar[str] = "DaemonSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: DaemonSetSpec = always(DaemonSetSpec)
    status: DaemonSetStatus = always(DaemonSetStatus)

    def __post_init__(self) -> None:
        """Raises NotConvertibleError for an annotation that is no number: Kubernetes has it as a field."""
        super().__post_init__()
        try:
            parse_int64(self.metadata.annotations.get(TEMPLATE_GENERATION, "0"))
        except ValueError as error:
            raise NotConvertibleError(str(error)) from error


class RollingUpdateDeployment(Part):
    max_unavailable: IntOrString | None = None
    max_surge: IntOrString | None = None


class DeploymentStrategy(Part):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Part):
    replicas: Int32 | None = None
    selector: LabelSelector | None = null()
    template: PodTemplateSpec = always(PodTemplateSpec)
    strategy: Annotated[DeploymentStrategy, RETAIN_KEYS] = always(DeploymentStrategy)
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_update_time: Time | None = null()
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class DeploymentStatus(Part):
    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: Annotated[list[DeploymentCondition], by("type")] = []
    collision_count: Int32 | None = None


class Deployment(KubeObject):
    KIND: ClassVar[str] = "Deployment"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: DeploymentSpec = always(DeploymentSpec)
    status: DeploymentStatus = always(DeploymentStatus)


class ReplicaSetSpec(Part):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = null()
    template: PodTemplateSpec = always(PodTemplateSpec)


class ReplicaSetCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class ReplicaSetStatus(Part):
    replicas: Int32 = always(int)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: Annotated[list[ReplicaSetCondition], by("type")] = []


class ReplicaSet(KubeObject):
    KIND: ClassVar[str] = "ReplicaSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: ReplicaSetSpec = always(ReplicaSetSpec)
    status: ReplicaSetStatus = always(ReplicaSetStatus)


class RollingUpdateStatefulSetStrategy(Part):
    partition: Int32 | None = None
    max_unavailable: IntOrString | None = None


class StatefulSetUpdateStrategy(Part):
    type: str = ""
    rolling_update: RollingUpdateStatefulSetStrategy | None = None


class StatefulSetPersistentVolumeClaimRetentionPolicy(Part):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetOrdinals(Part):
    start: Int32 = always(int)


class StatefulSetSpec(Part):
    replicas: Int32 | None = None
    selector: LabelSelector | None = null()
    template: PodTemplateSpec = always(PodTemplateSpec)
    volume_claim_templates: list[PersistentVolumeClaim] = []
    service_name: str = always(str)
    pod_management_policy: str = ""
    update_strategy: StatefulSetUpdateStrategy = always(StatefulSetUpdateStrategy)
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    ordinals: StatefulSetOrdinals | None = None


class StatefulSetCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class StatefulSetStatus(Part):
    observed_generation: Int64 = 0
    replicas: Int32 = always(int)
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: Annotated[list[StatefulSetCondition], by("type")] = []
    available_replicas: Int32 = always(int)


class StatefulSet(KubeObject):
    KIND: ClassVar[str] = "StatefulSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: StatefulSetSpec = always(StatefulSetSpec)
    status: StatefulSetStatus = always(StatefulSetStatus)
