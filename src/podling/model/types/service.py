"""core/v1: Service and Endpoints."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_MAP, Int32, IntOrString, Part, always, by
from podling.model.types.meta import Condition, KubeObject
from podling.model.types.references import ObjectReference


class ServicePort(Part):
    name: str = ""
    protocol: str = ""
    app_protocol: str | None = None
    port: Int32 = always(int)
    target_port: IntOrString = always(int)
    node_port: Int32 = 0


class ClientIPConfig(Part):
    timeout_seconds: Int32 | None = None


class SessionAffinityConfig(Part):
    client_ip: ClientIPConfig | None = None


class ServiceSpec(Part):
    ports: Annotated[list[ServicePort], by("port", keys=("port", "protocol"))] = []
    selector: Annotated[dict[str, str], ATOMIC_MAP] = {}
    cluster_ip: str = ""
    cluster_ips: list[str] = []
    type: str = ""
    external_ips: list[str] = []
    session_affinity: str = ""
    load_balancer_ip: str = ""
    load_balancer_source_ranges: list[str] = []
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: Int32 = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: list[str] = []
    ip_family_policy: str | None = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: str | None = None
    traffic_distribution: str | None = None


class PortStatus(Part):
    port: Int32 = always(int)
    protocol: str = always(str)
    error: str | None = None


class LoadBalancerIngress(Part):
    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: list[PortStatus] = []


class LoadBalancerStatus(Part):
    ingress: list[LoadBalancerIngress] = []


class ServiceStatus(Part):
    load_balancer: LoadBalancerStatus = always(LoadBalancerStatus)
    conditions: Annotated[list[Condition], by("type")] = []


class Service(KubeObject):
    KIND: ClassVar[str] = "Service"
    API_VERSION: ClassVar[str] = "v1"

    spec: ServiceSpec = always(ServiceSpec)
    status: ServiceStatus = always(ServiceStatus)


class EndpointAddress(Part):
    ATOMIC: ClassVar[bool] = True

    ip: str = always(str)
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    port: Int32 = always(int)
    protocol: str = ""
    app_protocol: str | None = None


class EndpointSubset(Part):
    addresses: list[EndpointAddress] = []
    not_ready_addresses: list[EndpointAddress] = []
    ports: list[EndpointPort] = []


class Endpoints(KubeObject):
    KIND: ClassVar[str] = "Endpoints"
    API_VERSION: ClassVar[str] = "v1"

    subsets: list[EndpointSubset] = []
