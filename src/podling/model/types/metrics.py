"""metrics.k8s.io/v1beta1: NodeMetrics and PodMetrics, what nodes and containers use."""

from typing import ClassVar

from podling.model.codec.fields import Part, Time, always, null
from podling.model.quantity import Quantity
from podling.model.types.meta import KubeObject


class ContainerMetrics(Part):
    name: str = always(str)
    usage: dict[str, Quantity] = always(dict)


class NodeMetrics(KubeObject):
    """`window` is a duration as Go writes it."""

    KIND: ClassVar[str] = "NodeMetrics"
    API_VERSION: ClassVar[str] = "metrics.k8s.io/v1beta1"

    timestamp: Time | None = null()
    window: str = always(str)
    usage: dict[str, Quantity] = always(dict)


class PodMetrics(KubeObject):
    """`window` is a duration as Go writes it."""

    KIND: ClassVar[str] = "PodMetrics"
    API_VERSION: ClassVar[str] = "metrics.k8s.io/v1beta1"

    timestamp: Time | None = null()
    window: str = always(str)
    containers: list[ContainerMetrics] = always(list)
