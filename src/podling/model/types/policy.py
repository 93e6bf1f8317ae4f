"""policy/v1: PodDisruptionBudget."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import Int32, Int64, IntOrString, Merge, Part, Time, always, by
from podling.model.types.meta import Condition, KubeObject, LabelSelector


class PodDisruptionBudgetSpec(Part):
    min_available: IntOrString | None = None
    selector: Annotated[LabelSelector | None, Merge(("replace",))] = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Part):
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, Time | None] = {}
    """Since when; Go writes its zero time as null."""
    disruptions_allowed: Int32 = always(int)
    current_healthy: Int32 = always(int)
    desired_healthy: Int32 = always(int)
    expected_pods: Int32 = always(int)
    conditions: Annotated[list[Condition], by("type")] = []


class PodDisruptionBudget(KubeObject):
    KIND: ClassVar[str] = "PodDisruptionBudget"
    API_VERSION: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = always(PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = always(PodDisruptionBudgetStatus)
