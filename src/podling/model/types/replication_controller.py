"""core/v1: ReplicationController, which apps/v1 ReplicaSet replaces."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_MAP, Int32, Int64, Part, Time, always, by, null
from podling.model.types.meta import KubeObject
from podling.model.types.pod import PodTemplateSpec


class ReplicationControllerSpec(Part):
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class ReplicationControllerStatus(Part):
    replicas: Int32 = always(int)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: Annotated[list[ReplicationControllerCondition], by("type")] = []


class ReplicationController(KubeObject):
    KIND: ClassVar[str] = "ReplicationController"
    API_VERSION: ClassVar[str] = "v1"

    spec: ReplicationControllerSpec = always(ReplicationControllerSpec)
    status: ReplicationControllerStatus = always(ReplicationControllerStatus)
