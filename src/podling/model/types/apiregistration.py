"""apiregistration.k8s.io/v1: APIService."""

from typing import Annotated, ClassVar

from podling.model.codec.fields import ATOMIC_LIST, Int32, Part, Time, always, by, null
from podling.model.types.meta import KubeObject

AUTO_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
"""The label of those that the server makes: `onstart` for its own groups."""
PRIORITIES = {
    ("", "v1"): (18000, 1),
    ("apps", "v1"): (17800, 15),
    ("events.k8s.io", "v1"): (17750, 15),
    ("authentication.k8s.io", "v1"): (17700, 15),
    ("authorization.k8s.io", "v1"): (17600, 15),
    ("autoscaling", "v2"): (17500, 30),
    ("autoscaling", "v1"): (17500, 15),
    ("batch", "v1"): (17400, 15),
    ("certificates.k8s.io", "v1"): (17300, 15),
    ("networking.k8s.io", "v1"): (17200, 15),
    ("policy", "v1"): (17100, 15),
    ("rbac.authorization.k8s.io", "v1"): (17000, 15),
    ("storage.k8s.io", "v1"): (16800, 15),
    ("admissionregistration.k8s.io", "v1"): (16700, 15),
    ("apiextensions.k8s.io", "v1"): (16700, 15),
    ("scheduling.k8s.io", "v1"): (16600, 15),
    ("coordination.k8s.io", "v1"): (16500, 15),
    ("node.k8s.io", "v1"): (16300, 15),
    ("discovery.k8s.io", "v1"): (16200, 15),
    ("resource.k8s.io", "v1"): (16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1"): (16100, 21),
    ("metrics.k8s.io", "v1beta1"): (100, 100),
}
"""Of the groups and versions of Kubernetes, and of its metrics server: the least priority of the group, and
the place of the version."""


class APIServiceReference(Part):
    namespace: str = ""
    name: str = ""
    port: Int32 | None = None


class APIServiceSpec(Part):
    service: APIServiceReference | None = None
    group: str = ""
    version: str = ""
    insecure_skip_tls_verify: bool = False
    ca_bundle: Annotated[bytes, ATOMIC_LIST] = b""
    group_priority_minimum: Int32 = always(int)
    version_priority: Int32 = always(int)


class APIServiceCondition(Part):
    type: str = always(str)
    status: str = always(str)
    last_transition_time: Time | None = null()
    reason: str = ""
    message: str = ""


class APIServiceStatus(Part):
    conditions: Annotated[list[APIServiceCondition], by("type")] = []


class APIService(KubeObject):
    KIND: ClassVar[str] = "APIService"
    API_VERSION: ClassVar[str] = "apiregistration.k8s.io/v1"

    spec: APIServiceSpec = always(APIServiceSpec)
    status: APIServiceStatus = always(APIServiceStatus)
