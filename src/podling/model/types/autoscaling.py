"""autoscaling/v1 and v2: HorizontalPodAutoscaler, and Scale, a subresource of what is scaled."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import Int32, Int64, Part, Time, always, by, null
from podling.model.quantity import Quantity
from podling.model.types.meta import KubeObject, LabelSelector


class CrossVersionObjectReferenceV1(Part):
    ATOMIC: ClassVar[bool] = True
    GO_NAME: ClassVar[str] = "CrossVersionObjectReference"

    kind: str = always(str)
    name: str = always(str)
    api_version: str = ""


class HorizontalPodAutoscalerSpecV1(Part):
    GO_NAME: ClassVar[str] = "HorizontalPodAutoscalerSpec"

    scale_target_ref: CrossVersionObjectReferenceV1 = always(CrossVersionObjectReferenceV1)
    min_replicas: Int32 | None = None
    max_replicas: Int32 = always(int)
    target_cpu_utilization_percentage: Int32 | None = None


class HorizontalPodAutoscalerStatusV1(Part):
    GO_NAME: ClassVar[str] = "HorizontalPodAutoscalerStatus"

    observed_generation: Int64 | None = None
    last_scale_time: Time = ""
    current_replicas: Int32 = always(int)
    desired_replicas: Int32 = always(int)
    current_cpu_utilization_percentage: Int32 | None = None


class HorizontalPodAutoscalerV1(KubeObject):
    GO_NAME: ClassVar[str] = "HorizontalPodAutoscaler"
    KIND: ClassVar[str] = "HorizontalPodAutoscaler"
    API_VERSION: ClassVar[str] = "autoscaling/v1"

    spec: HorizontalPodAutoscalerSpecV1 = always(HorizontalPodAutoscalerSpecV1)
    status: HorizontalPodAutoscalerStatusV1 = always(HorizontalPodAutoscalerStatusV1)


class ScaleSpec(Part):
    replicas: Int32 = 0


class ScaleStatus(Part):
    replicas: Int32 = always(int)
    selector: str = ""


class Scale(KubeObject):
    KIND: ClassVar[str] = "Scale"
    API_VERSION: ClassVar[str] = "autoscaling/v1"

    spec: ScaleSpec = always(ScaleSpec)
    status: ScaleStatus = always(ScaleStatus)


class CrossVersionObjectReference(Part):
    kind: str = always(str)
    name: str = always(str)
    api_version: str = ""


class MetricTarget(Part):
    type: str = always(str)
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class MetricIdentifier(Part):
    name: str = always(str)
    selector: LabelSelector | None = None


class ObjectMetricSource(Part):
    described_object: CrossVersionObjectReference = always(CrossVersionObjectReference)
    target: MetricTarget = always(MetricTarget)
    metric: MetricIdentifier = always(MetricIdentifier)


class PodsMetricSource(Part):
    metric: MetricIdentifier = always(MetricIdentifier)
    target: MetricTarget = always(MetricTarget)


class ResourceMetricSource(Part):
    name: str = always(str)
    target: MetricTarget = always(MetricTarget)


class ContainerResourceMetricSource(Part):
    name: str = always(str)
    target: MetricTarget = always(MetricTarget)
    container: str = always(str)


class ExternalMetricSource(Part):
    metric: MetricIdentifier = always(MetricIdentifier)
    target: MetricTarget = always(MetricTarget)


class MetricSpec(Part):
    type: str = always(str)
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None


class HPAScalingPolicy(Part):
    type: str = always(str)
    value: Int32 = always(int)
    period_seconds: Int32 = always(int)


class HPAScalingRules(Part):
    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: list[HPAScalingPolicy] | None = None
    """Kubernetes tells none from an empty list, which is refused."""
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Part):
    scale_up: HPAScalingRules | None = None
    scale_down: HPAScalingRules | None = None


class HorizontalPodAutoscalerSpec(Part):
    scale_target_ref: CrossVersionObjectReference = always(CrossVersionObjectReference)
    min_replicas: Int32 | None = None
    max_replicas: Int32 = always(int)
    metrics: list[MetricSpec] = []
    behavior: HorizontalPodAutoscalerBehavior | None = None


class MetricValueStatus(Part):
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int32 | None = None


class ObjectMetricStatus(Part):
    metric: MetricIdentifier = always(MetricIdentifier)
    current: MetricValueStatus = always(MetricValueStatus)
    described_object: CrossVersionObjectReference = always(CrossVersionObjectReference)


class PodsMetricStatus(Part):
    metric: MetricIdentifier = always(MetricIdentifier)
    current: MetricValueStatus = always(MetricValueStatus)


class ResourceMetricStatus(Part):
    name: str = always(str)
    current: MetricValueStatus = always(MetricValueStatus)


class ContainerResourceMetricStatus(Part):
    name: str = always(str)
    current: MetricValueStatus = always(MetricValueStatus)
    container: str = always(str)


class ExternalMetricStatus(Part):
    metric: MetricIdentifier = always(MetricIdentifier)
    current: MetricValueStatus = always(MetricValueStatus)


class MetricStatus(Part):
    type: str = always(str)
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HorizontalPodAutoscalerCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class HorizontalPodAutoscalerStatus(Part):
    observed_generation: Int64 | None = None
    last_scale_time: Time = ""
    current_replicas: Int32 = 0
    desired_replicas: Int32 = always(int)
    current_metrics: list[MetricStatus] = always(list)
    conditions: Annotated[list[HorizontalPodAutoscalerCondition], by("type")] = []


class HorizontalPodAutoscaler(KubeObject):
    KIND: ClassVar[str] = "HorizontalPodAutoscaler"
    API_VERSION: ClassVar[str] = "autoscaling/v2"

    spec: HorizontalPodAutoscalerSpec = always(HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = always(HorizontalPodAutoscalerStatus)
