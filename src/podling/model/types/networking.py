"""networking.k8s.io/v1: ingresses, network policies, and the addresses given to services."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import Int32, IntOrString, Part, Telling, always, by, null
from podling.model.types.meta import Condition, KubeObject, LabelSelector
from podling.model.types.references import TypedLocalObjectReference


class ServiceBackendPort(Part):
    ATOMIC: ClassVar[bool] = True

    name: str = ""
    number: Int32 = 0


class IngressServiceBackend(Part):
    name: str = always(str)
    port: ServiceBackendPort = always(ServiceBackendPort)


class IngressBackend(Part):
    service: IngressServiceBackend | None = None
    resource: TypedLocalObjectReference | None = None


class IngressTLS(Part):
    hosts: list[str] = []
    secret_name: str = ""


class HTTPIngressPath(Part):
    path: str = ""
    path_type: str | None = null()
    backend: IngressBackend = always(IngressBackend)


class HTTPIngressRuleValue(Part):
    paths: list[HTTPIngressPath] = always(list)


class IngressRule(Part):
    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressSpec(Part):
    ingress_class_name: str | None = None
    default_backend: IngressBackend | None = None
    tls: list[IngressTLS] = []
    rules: list[IngressRule] = []


class IngressPortStatus(Part):
    port: Int32 = always(int)
    protocol: str = always(str)
    error: str | None = None


class IngressLoadBalancerIngress(Part):
    ip: str = ""
    hostname: str = ""
    ports: list[IngressPortStatus] = []


class IngressLoadBalancerStatus(Part):
    ingress: list[IngressLoadBalancerIngress] = []


class IngressStatus(Part):
    load_balancer: IngressLoadBalancerStatus = always(IngressLoadBalancerStatus)


class Ingress(KubeObject):
    KIND: ClassVar[str] = "Ingress"
    API_VERSION: ClassVar[str] = "networking.k8s.io/v1"

    spec: IngressSpec = always(IngressSpec)
    status: IngressStatus = always(IngressStatus)


class IngressClassParametersReference(Part):
    api_group: str | None = None
    kind: str = always(str)
    name: str = always(str)
    scope: str | None = null()
    namespace: str | None = None


class IngressClassSpec(Part):
    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(KubeObject):
    KIND: ClassVar[str] = "IngressClass"
    API_VERSION: ClassVar[str] = "networking.k8s.io/v1"

    spec: IngressClassSpec = always(IngressClassSpec)


class ParentReference(Part):
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class IPAddressSpec(Part):
    parent_ref: ParentReference | None = None


class IPAddress(KubeObject):
    KIND: ClassVar[str] = "IPAddress"
    API_VERSION: ClassVar[str] = "networking.k8s.io/v1"

    spec: IPAddressSpec = always(IPAddressSpec)


class NetworkPolicyPort(Part):
    protocol: str | None = None
    port: IntOrString | None = None
    end_port: Int32 | None = None


class IPBlock(Telling):
    TELLS = ("except",)

    cidr: str = always(str)
    except_: list[str] = []


class NetworkPolicyPeer(Telling):
    TELLS = (
        "podSelector.matchLabels",
        "podSelector.matchExpressions",
        "namespaceSelector.matchLabels",
        "namespaceSelector.matchExpressions",
    )

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IPBlock | None = None


class NetworkPolicyIngressRule(Telling):
    TELLS = ("ports", "from")

    ports: list[NetworkPolicyPort] = []
    from_: list[NetworkPolicyPeer] = []


class NetworkPolicyEgressRule(Telling):
    TELLS = ("ports", "to")

    ports: list[NetworkPolicyPort] = []
    to: list[NetworkPolicyPeer] = []


class NetworkPolicySpec(Telling):
    TELLS = ("podSelector.matchLabels", "podSelector.matchExpressions", "ingress", "egress")

    pod_selector: LabelSelector = always(LabelSelector)
    ingress: list[NetworkPolicyIngressRule] = []
    egress: list[NetworkPolicyEgressRule] = []
    policy_types: list[str] = []


class NetworkPolicy(KubeObject):
    KIND: ClassVar[str] = "NetworkPolicy"
    API_VERSION: ClassVar[str] = "networking.k8s.io/v1"

    spec: NetworkPolicySpec = always(NetworkPolicySpec)


class ServiceCIDRSpec(Part):
    cidrs: list[str] = []


class ServiceCIDRStatus(Part):
    conditions: Annotated[list[Condition], by("type")] = []


class ServiceCIDR(KubeObject):
    KIND: ClassVar[str] = "ServiceCIDR"
    API_VERSION: ClassVar[str] = "networking.k8s.io/v1"

    spec: ServiceCIDRSpec = always(ServiceCIDRSpec)
    status: ServiceCIDRStatus = always(ServiceCIDRStatus)
