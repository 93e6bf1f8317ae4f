"""All kinds that an API server serves with the given feature gates. A new kind is added here by its name."""

from __future__ import annotations

from typing import Any

from podling.apiserver.kinds.addresses import IPAddresses, ServiceCIDRs
from podling.apiserver.kinds.admission_registration import (
    MutatingAdmissionPolicies,
    MutatingAdmissionPolicyBindings,
    MutatingWebhookConfigurations,
    ValidatingAdmissionPolicies,
    ValidatingAdmissionPolicyBindings,
    ValidatingWebhookConfigurations,
)
from podling.apiserver.kinds.api_services import APIServices
from podling.apiserver.kinds.autoscaling import HorizontalPodAutoscalers, HorizontalPodAutoscalersV1
from podling.apiserver.kinds.batch import CronJobs, Jobs
from podling.apiserver.kinds.certificates import CertificateSigningRequests
from podling.apiserver.kinds.components import Bindings, ComponentStatuses
from podling.apiserver.kinds.config import ConfigMaps, Secrets
from podling.apiserver.kinds.custom_resources import CustomResourceDefinitions
from podling.apiserver.kinds.devices import (
    DeviceClasses,
    ResourceClaims,
    ResourceClaimTemplates,
    ResourceSlices,
)
from podling.apiserver.kinds.events import Events, EventsEvents
from podling.apiserver.kinds.flowcontrol import FlowSchemas, PriorityLevelConfigurations
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.kinds.namespaces import Namespaces
from podling.apiserver.kinds.networking import IngressClasses, Ingresses, NetworkPolicies
from podling.apiserver.kinds.nodes import Leases, Nodes, RuntimeClasses
from podling.apiserver.kinds.pods.pods import Pods, PodTemplates
from podling.apiserver.kinds.policy import PodDisruptionBudgets, PriorityClasses
from podling.apiserver.kinds.quotas import LimitRanges, ResourceQuotas
from podling.apiserver.kinds.rbac import ClusterRoleBindings, ClusterRoles, RoleBindings, Roles
from podling.apiserver.kinds.reviews import (
    LocalSubjectAccessReviews,
    SelfSubjectAccessReviews,
    SelfSubjectReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
    TokenReviews,
)
from podling.apiserver.kinds.service_accounts import ServiceAccounts
from podling.apiserver.kinds.services import Endpoints, EndpointSlices, Services
from podling.apiserver.kinds.storage import (
    CSIDrivers,
    CSINodes,
    CSIStorageCapacities,
    StorageClasses,
    VolumeAttachments,
    VolumeAttributesClasses,
)
from podling.apiserver.kinds.volumes import PersistentVolumeClaims, PersistentVolumes
from podling.apiserver.kinds.workloads import (
    ControllerRevisions,
    DaemonSets,
    Deployments,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
)
from podling.model.gates import DEFAULT_GATES, Gates


def kinds(gates: Gates, *, enforces_policies: bool = False) -> tuple[Kind[Any], ...]:
    """`enforces_policies`: whether network policies hold on the node of the same process."""
    return (
        Bindings(),
        ComponentStatuses(),
        ConfigMaps(),
        Endpoints(),
        Events(),
        LimitRanges(),
        Namespaces(),
        Nodes(),
        PersistentVolumes(),
        PersistentVolumeClaims(),
        Pods(gates),
        PodTemplates(gates),
        ReplicationControllers(gates),
        ResourceQuotas(),
        Secrets(),
        ServiceAccounts(),
        Services(),
        MutatingAdmissionPolicies(),
        MutatingAdmissionPolicyBindings(),
        MutatingWebhookConfigurations(),
        ValidatingAdmissionPolicies(),
        ValidatingAdmissionPolicyBindings(),
        ValidatingWebhookConfigurations(),
        ControllerRevisions(),
        DaemonSets(gates),
        Deployments(gates),
        ReplicaSets(gates),
        StatefulSets(gates),
        HorizontalPodAutoscalers(),
        HorizontalPodAutoscalersV1(),
        CronJobs(gates),
        Jobs(gates),
        CertificateSigningRequests(),
        Leases(),
        EventsEvents(),
        EndpointSlices(),
        FlowSchemas(),
        PriorityLevelConfigurations(),
        Ingresses(),
        IngressClasses(),
        IPAddresses(),
        NetworkPolicies(are_enforced=enforces_policies),
        ServiceCIDRs(),
        PriorityClasses(),
        RuntimeClasses(),
        PodDisruptionBudgets(),
        Roles(),
        RoleBindings(),
        ClusterRoles(),
        ClusterRoleBindings(),
        DeviceClasses(),
        ResourceClaims(),
        ResourceClaimTemplates(),
        ResourceSlices(),
        CSIDrivers(),
        CSINodes(),
        CSIStorageCapacities(),
        StorageClasses(),
        VolumeAttachments(),
        VolumeAttributesClasses(),
        CustomResourceDefinitions(),
        APIServices(),
        TokenReviews(),
        SelfSubjectReviews(),
        SubjectAccessReviews(),
        LocalSubjectAccessReviews(),
        SelfSubjectAccessReviews(),
        SelfSubjectRulesReviews(),
    )


KINDS = kinds(DEFAULT_GATES)
