"""The table of resources that podling knows: group, version, kind, names, and the type each decodes to."""

from __future__ import annotations

import msgspec

from podling.model.types.admissionregistration import (
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingWebhookConfiguration,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)
from podling.model.types.apiextensions import CustomResourceDefinition
from podling.model.types.apiregistration import APIService
from podling.model.types.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podling.model.types.authentication import SelfSubjectReview, TokenReview
from podling.model.types.authorization import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from podling.model.types.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerV1
from podling.model.types.batch import CronJob, Job
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.coordination import Lease
from podling.model.types.core import (
    ComponentStatus,
    ConfigMap,
    Event,
    EventsEvent,
    LimitRange,
    Namespace,
    ResourceQuota,
    Secret,
    ServiceAccount,
)
from podling.model.types.discovery import EndpointSlice
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.meta import KubeObject
from podling.model.types.metrics import NodeMetrics, PodMetrics
from podling.model.types.networking import Ingress, IngressClass, IPAddress, NetworkPolicy, ServiceCIDR
from podling.model.types.node import Node
from podling.model.types.node_k8s_io import RuntimeClass
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Binding, Pod, PodTemplate
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podling.model.types.replication_controller import ReplicationController
from podling.model.types.resource import (
    DeviceClass,
    ResourceClaimObject,
    ResourceClaimTemplate,
    ResourceSlice,
)
from podling.model.types.scheduling import PriorityClass
from podling.model.types.service import Endpoints, Service
from podling.model.types.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)


class Resource(msgspec.Struct, frozen=True):
    """A resource. `group` is empty for the core group."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    type: type[KubeObject]
    stored: bool = True
    """False for what is answered and never stored, such as reviews."""
    view: bool = False
    """True for another version of objects, which are stored as another resource of this table."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name used in messages: `pods`, `leases.coordination.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _resource(
    type: type[KubeObject],
    plural: str,
    *short_names: str,
    namespaced: bool = True,
    categories: tuple[str, ...] = (),
    stored: bool = True,
    view: bool = False,
) -> Resource:
    group, _, version = type.API_VERSION.rpartition("/")
    singular = type.KIND.lower()
    return Resource(
        group,
        version,
        type.KIND,
        plural,
        singular,
        namespaced,
        short_names,
        categories,
        type,
        stored,
        view,
    )


RESOURCES: tuple[Resource, ...] = (
    _resource(Binding, "bindings", stored=False),
    _resource(ComponentStatus, "componentstatuses", "cs", namespaced=False, stored=False),
    _resource(ConfigMap, "configmaps", "cm"),
    _resource(Endpoints, "endpoints", "ep"),
    _resource(Event, "events", "ev"),
    _resource(LimitRange, "limitranges", "limits"),
    _resource(Namespace, "namespaces", "ns", namespaced=False),
    _resource(Node, "nodes", "no", namespaced=False),
    _resource(PersistentVolume, "persistentvolumes", "pv", namespaced=False),
    _resource(PersistentVolumeClaim, "persistentvolumeclaims", "pvc"),
    _resource(Pod, "pods", "po", categories=("all",)),
    _resource(PodTemplate, "podtemplates"),
    _resource(ReplicationController, "replicationcontrollers", "rc", categories=("all",)),
    _resource(ResourceQuota, "resourcequotas", "quota"),
    _resource(Secret, "secrets"),
    _resource(ServiceAccount, "serviceaccounts", "sa"),
    _resource(Service, "services", "svc", categories=("all",)),
    _resource(
        MutatingAdmissionPolicy, "mutatingadmissionpolicies", namespaced=False, categories=("api-extensions",)
    ),
    _resource(
        MutatingAdmissionPolicyBinding,
        "mutatingadmissionpolicybindings",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        MutatingWebhookConfiguration,
        "mutatingwebhookconfigurations",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        ValidatingAdmissionPolicy,
        "validatingadmissionpolicies",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        ValidatingAdmissionPolicyBinding,
        "validatingadmissionpolicybindings",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        ValidatingWebhookConfiguration,
        "validatingwebhookconfigurations",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(ControllerRevision, "controllerrevisions"),
    _resource(DaemonSet, "daemonsets", "ds", categories=("all",)),
    _resource(Deployment, "deployments", "deploy", categories=("all",)),
    _resource(ReplicaSet, "replicasets", "rs", categories=("all",)),
    _resource(StatefulSet, "statefulsets", "sts", categories=("all",)),
    _resource(HorizontalPodAutoscaler, "horizontalpodautoscalers", "hpa", categories=("all",)),
    _resource(HorizontalPodAutoscalerV1, "horizontalpodautoscalers", "hpa", categories=("all",), view=True),
    _resource(CronJob, "cronjobs", "cj", categories=("all",)),
    _resource(Job, "jobs", categories=("all",)),
    _resource(CertificateSigningRequest, "certificatesigningrequests", "csr", namespaced=False),
    _resource(Lease, "leases"),
    _resource(EventsEvent, "events", "ev", view=True),
    _resource(EndpointSlice, "endpointslices"),
    _resource(FlowSchema, "flowschemas", namespaced=False),
    _resource(PriorityLevelConfiguration, "prioritylevelconfigurations", namespaced=False),
    _resource(Ingress, "ingresses", "ing"),
    _resource(IngressClass, "ingressclasses", namespaced=False),
    _resource(IPAddress, "ipaddresses", "ip", namespaced=False),
    _resource(NetworkPolicy, "networkpolicies", "netpol"),
    _resource(ServiceCIDR, "servicecidrs", namespaced=False),
    _resource(PriorityClass, "priorityclasses", "pc", namespaced=False),
    _resource(RuntimeClass, "runtimeclasses", namespaced=False),
    _resource(PodDisruptionBudget, "poddisruptionbudgets", "pdb"),
    _resource(Role, "roles"),
    _resource(RoleBinding, "rolebindings"),
    _resource(ClusterRole, "clusterroles", namespaced=False),
    _resource(ClusterRoleBinding, "clusterrolebindings", namespaced=False),
    _resource(DeviceClass, "deviceclasses", namespaced=False),
    _resource(ResourceClaimObject, "resourceclaims"),
    _resource(ResourceClaimTemplate, "resourceclaimtemplates"),
    _resource(ResourceSlice, "resourceslices", namespaced=False),
    _resource(CSIDriver, "csidrivers", namespaced=False),
    _resource(CSINode, "csinodes", namespaced=False),
    _resource(CSIStorageCapacity, "csistoragecapacities"),
    _resource(StorageClass, "storageclasses", "sc", namespaced=False),
    _resource(VolumeAttachment, "volumeattachments", namespaced=False),
    _resource(VolumeAttributesClass, "volumeattributesclasses", "vac", namespaced=False),
    _resource(
        CustomResourceDefinition,
        "customresourcedefinitions",
        "crd",
        "crds",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(APIService, "apiservices", namespaced=False, categories=("api-extensions",)),
    _resource(TokenReview, "tokenreviews", namespaced=False, stored=False),
    _resource(SelfSubjectReview, "selfsubjectreviews", namespaced=False, stored=False),
    _resource(SubjectAccessReview, "subjectaccessreviews", namespaced=False, stored=False),
    _resource(LocalSubjectAccessReview, "localsubjectaccessreviews", stored=False),
    _resource(SelfSubjectAccessReview, "selfsubjectaccessreviews", namespaced=False, stored=False),
    _resource(SelfSubjectRulesReview, "selfsubjectrulesreviews", namespaced=False, stored=False),
)

MEASURED: tuple[Resource, ...] = (
    _resource(NodeMetrics, "nodes", namespaced=False, stored=False),
    _resource(PodMetrics, "pods", stored=False),
)
"""Those of metrics.k8s.io, for which Kubernetes has an API server apart."""

_BY_TYPE = {r.type: r for r in (*RESOURCES, *MEASURED)}
_BY_KIND = {(r.api_version, r.kind): r for r in RESOURCES}


def resource_of(type: type[KubeObject]) -> Resource:
    """A type that has less of an object than the stored one is found by its kind. Raises KeyError for a type
    that is not a stored resource."""
    return _BY_TYPE.get(type) or _BY_KIND[type.API_VERSION, type.KIND]


def by_kind(api_version: str, kind: str) -> Resource | None:
    return _BY_KIND.get((api_version, kind))
