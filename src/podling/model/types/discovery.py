"""discovery.k8s.io/v1: EndpointSlice."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import SET, Int32, Part, always
from podling.model.types.meta import KubeObject
from podling.model.types.references import ObjectReference


class EndpointConditions(Part):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(Part):
    name: str = always(str)


class ForNode(Part):
    name: str = always(str)


class EndpointHints(Part):
    for_zones: list[ForZone] = []
    for_nodes: list[ForNode] = []


class Endpoint(Part):
    addresses: Annotated[list[str], SET] = always(list)
    conditions: EndpointConditions = always(EndpointConditions)
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    deprecated_topology: dict[str, str] = {}
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class SlicePort(Part):
    """Kubernetes calls it EndpointPort, as it calls another type of the core group."""

    ATOMIC: ClassVar[bool] = True

    name: str | None = None
    protocol: str | None = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(KubeObject):
    KIND: ClassVar[str] = "EndpointSlice"
    API_VERSION: ClassVar[str] = "discovery.k8s.io/v1"

    address_type: str = always(str)
    endpoints: list[Endpoint] = always(list)
    ports: list[SlicePort] = always(list)
