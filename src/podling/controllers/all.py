"""Which controllers run, in three lists: those of the API server itself, those that the first pod needs, and
the rest, which start once the node is ready (docs/decisions/013).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informer, Informers
from podling.controllers.addresses import AddressRepair, DefaultRange, ServiceRanges
from podling.controllers.api_services import Availability, FaultOf, LocalServices
from podling.controllers.autoscaling.autoscaler import Autoscalers
from podling.controllers.bootstrap_tokens import INFO, BootstrapSigner, ClusterInfo, TokenCleaner
from podling.controllers.certificates import CertificateApprover, CertificateCleaner, CertificateSigner
from podling.controllers.certificates_rules import CertificateAuthority
from podling.controllers.controller import Accounts, Controller
from podling.controllers.custom_resources import CustomResourceNames
from podling.controllers.disruption import TELLER, DisruptionBudgets
from podling.controllers.disruption_scale import Scales
from podling.controllers.endpoint_slices import EndpointMirror, EndpointSlices
from podling.controllers.endpoints import EndpointsController
from podling.controllers.flow_control import FlowControl
from podling.controllers.garbage import GarbageCollector, PodGC
from podling.controllers.kubernetes_service import KubernetesService, Servers
from podling.controllers.load_balancers import RECORDER, LoadBalancers, Taken
from podling.controllers.namespaces import Namespaces, RootCA, ServiceAccounts
from podling.controllers.node_addresses import NodeAddresses
from podling.controllers.node_certificates import JoinedNodeApprover, Others, ServingApprover
from podling.controllers.nodes import (
    EVICTION_TELLER,
    LEASES,
    NODE_TELLER,
    USUAL,
    Monitoring,
    NodeLifecycle,
    TaintEviction,
)
from podling.controllers.policy_types import PolicyTypes, TypeCheck
from podling.controllers.protection import AttributesClassProtection, ClaimProtection, VolumeProtection
from podling.controllers.quotas import ResourceQuotas
from podling.controllers.roles import ClusterRoleAggregation
from podling.controllers.selection import Selection
from podling.controllers.storage.attachments import ATTACHER, Attachments
from podling.controllers.storage.binder import BINDER, VolumeBinder
from podling.controllers.storage.ephemeral import EPHEMERAL, EphemeralVolumes
from podling.controllers.system import (
    BELIEVED,
    BelievedClients,
    SystemNamespaces,
    SystemPriorityClasses,
)
from podling.controllers.workloads.claims import Owned
from podling.controllers.workloads.cron_jobs import CronJobs
from podling.controllers.workloads.daemon_sets import DaemonSets
from podling.controllers.workloads.deployments import Deployments
from podling.controllers.workloads.finished_jobs import FinishedJobs
from podling.controllers.workloads.job_orphans import TrackedPods
from podling.controllers.workloads.jobs import Jobs
from podling.controllers.workloads.replicas import CONTROLLERS, SETS, Replicas
from podling.controllers.workloads.stateful_sets import StatefulSets
from podling.model.rules import bootstrap_tokens
from podling.model.time import Clock
from podling.model.types.admissionregistration import ValidatingAdmissionPolicy
from podling.model.types.apiextensions import CustomResourceDefinition
from podling.model.types.apiregistration import APIService
from podling.model.types.apps import ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet
from podling.model.types.autoscaling import HorizontalPodAutoscaler
from podling.model.types.batch import CronJob, Job
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.coordination import Lease
from podling.model.types.core import ConfigMap, Namespace, Secret, ServiceAccount
from podling.model.types.discovery import EndpointSlice
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.rbac import ClusterRole
from podling.model.types.replication_controller import ReplicationController
from podling.model.types.service import Endpoints, Service
from podling.model.types.storage import StorageClass, VolumeAttributesClass

WORKERS = {
    "daemonset": 5,
    "deployment": 5,
    "endpoint": 5,
    "endpointslice": 5,
    "endpointslicemirroring": 5,
    "job": 5,
    "replicaset": 5,
    "replicationmanager": 5,
    "statefulset": 5,
}
"""Controllers that reconcile several keys at a time, since each waits for many writes."""


def of_the_server(
    client: Client, informers: Informers, clock: Clock, servers: Servers, port: int, cidr: str
) -> list[Controller[Any]]:
    """The controllers that kube-apiserver runs in itself. Pods reach the API servers at `port` of `servers`;
    services get their addresses from `cidr`."""
    namespaces, ranges = informers.of(Namespace), informers.of(ServiceCIDR)
    return [
        DefaultRange(client, ranges, clock, cidr),
        SystemNamespaces(client, namespaces),
        SystemPriorityClasses(client),
        KubernetesService(client, namespaces, informers.of(Service), ranges, servers, port, cidr),
    ]


def rest_of_the_server(
    client: Client,
    informers: Informers,
    events: EventRecorder,
    clock: Clock,
    fault_of: FaultOf,
    believed: Mapping[str, Sequence[str]],
    server: str,
    ca: str,
    *,
    measures: bool = False,
) -> list[Controller[Any]]:
    """The controllers of kube-apiserver that no pod waits for. `events` tells of repairs, as REPAIRED.
    `measures`: whether the server has metrics.k8s.io; `fault_of` asks the servers behind APIServices, which
    are told who is `believed` (BelievedClients). Machines that join reach the API server at the URL `server`
    and trust `ca`, in PEM."""
    services, addresses, namespaces = informers.of(Service), informers.of(IPAddress), informers.of(Namespace)

    def one_map(namespace: str, name: str) -> Informer[ConfigMap]:
        return informers.of(ConfigMap, namespace, field_selector=f"metadata.name={name}")

    return [
        BelievedClients(client, namespaces, one_map(*BELIEVED), believed, clock),
        ClusterInfo(client, namespaces, one_map(*INFO), server, ca),
        AddressRepair(client, services, addresses, informers.of(ServiceCIDR), events, clock),
        *extensions(client, informers, clock, fault_of, measures=measures),
        FlowControl(client, informers.of(FlowSchema), informers.of(PriorityLevelConfiguration), clock),
        JoinedNodeApprover(client, informers.of(CertificateSigningRequest)),
    ]


def extensions(
    client: Client, informers: Informers, clock: Clock, fault_of: FaultOf, *, measures: bool
) -> list[Controller[Any]]:
    """Those of kube-apiserver for what clients add to it."""
    return [
        CustomResourceNames(client, informers.of(CustomResourceDefinition), clock),
        LocalServices(client, measures=measures),
        Availability(
            client,
            informers.of(APIService),
            informers.of(Service),
            informers.of(EndpointSlice),
            clock,
            fault_of,
        ),
    ]


def first(
    accounts: Accounts,
    informers: Informers,
    events: EventRecorder,
    clock: Clock,
    ca: str,
    monitoring: Monitoring = USUAL,
) -> list[Controller[Any]]:
    """The controllers that the first pod needs, each with its account. `ca` is the certificate authority, in
    PEM, that pods trust; how nodes are watched is `monitoring`."""
    namespaces, leases = informers.of(Namespace), informers.of(Lease, LEASES)
    return [
        ServiceAccounts(accounts("service-account-controller"), namespaces, informers.of(ServiceAccount)),
        RootCA(accounts("root-ca-cert-publisher"), namespaces, informers.of(ConfigMap), ca),
        NodeLifecycle(
            accounts("node-controller"),
            informers.of(Node),
            leases,
            informers.of(Pod),
            events.by(NODE_TELLER),
            clock,
            monitoring,
        ),
    ]


def rest(
    accounts: Accounts,
    informers: Informers,
    events: EventRecorder,
    clock: Clock,
    authority: CertificateAuthority | None,
    check: TypeCheck,
) -> list[Controller[Any]]:
    """`authority` signs the certificates that are asked for; without one they wait for another signer.
    `check` finds what does not fit in policies."""
    pods, nodes, services = informers.of(Pod), informers.of(Node), informers.of(Service)
    requests, certificates = informers.of(CertificateSigningRequest), accounts("certificate-controller")
    claims, volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
    selection = Selection(services, pods)
    chosen = f"type={bootstrap_tokens.SECRET_TYPE}"
    tokens = informers.of(Secret, bootstrap_tokens.NAMESPACE, field_selector=chosen)
    return [
        Namespaces(accounts("namespace-controller"), informers.of(Namespace), pods, claims, clock),
        GarbageCollector(accounts("generic-garbage-collector"), informers),
        ClusterRoleAggregation(accounts("clusterrole-aggregation-controller"), informers.of(ClusterRole)),
        ResourceQuotas(accounts("resourcequota-controller"), informers),
        EndpointsController(accounts("endpoint-controller"), selection, informers.of(Endpoints)),
        EndpointSlices(accounts("endpointslice-controller"), selection, informers.of(EndpointSlice), nodes),
        EndpointMirror(
            accounts("endpointslicemirroring-controller"),
            services,
            informers.of(Endpoints),
            informers.of(EndpointSlice),
        ),
        PolicyTypes(
            accounts("validatingadmissionpolicy-status-controller"),
            informers.of(ValidatingAdmissionPolicy),
            check,
        ),
        PodGC(accounts("pod-garbage-collector"), nodes, pods, clock),
        TaintEviction(accounts("node-controller"), nodes, pods, events.by(EVICTION_TELLER), clock),
        DisruptionBudgets(
            accounts("disruption-controller"),
            informers.of(PodDisruptionBudget),
            pods,
            Scales(informers),
            events.by(TELLER),
            clock,
        ),
        CertificateApprover(certificates, requests),
        *([CertificateSigner(certificates, requests, authority, clock)] if authority else []),
        CertificateCleaner(certificates, requests, clock),
        ClaimProtection(accounts("pvc-protection-controller"), claims, pods),
        VolumeProtection(accounts("pv-protection-controller"), volumes),
        AttributesClassProtection(
            accounts("volumeattributesclass-protection-controller"),
            informers.of(VolumeAttributesClass),
            claims,
            volumes,
        ),
        VolumeBinder(
            accounts("persistent-volume-binder"),
            claims,
            volumes,
            informers.of(StorageClass),
            pods,
            events.by(BINDER),
        ),
        Attachments(accounts("attachdetach-controller"), informers, events.by(ATTACHER), clock),
        EphemeralVolumes(accounts("ephemeral-volume-controller"), pods, claims, events.by(EPHEMERAL)),
        ServiceRanges(
            accounts("service-cidrs-controller"), informers.of(ServiceCIDR), informers.of(IPAddress), clock
        ),
        BootstrapSigner(accounts("bootstrap-signer"), informers.of(ConfigMap), tokens, clock),
        TokenCleaner(accounts("token-cleaner"), tokens, clock),
    ]


def workloads(
    accounts: Accounts, informers: Informers, events: EventRecorder, clock: Clock
) -> list[Controller[Any]]:
    """What makes pods of templates, and says how many."""
    pods, sets, controllers = (
        informers.of(Pod),
        informers.of(ReplicaSet),
        informers.of(ReplicationController),
    )
    owned, jobs = Owned(pods), informers.of(Job)
    return [
        Replicas(SETS, accounts("replicaset-controller"), sets, pods, owned, events, clock),
        Replicas(CONTROLLERS, accounts("replication-controller"), controllers, pods, owned, events, clock),
        Deployments(
            accounts("deployment-controller"),
            informers.of(Deployment),
            sets,
            pods,
            owned,
            events,
            clock,
        ),
        Jobs(accounts("job-controller"), jobs, pods, events, clock),
        TrackedPods(accounts("job-controller"), jobs, pods),
        Autoscalers(
            accounts("horizontal-pod-autoscaler"),
            informers.of(HorizontalPodAutoscaler),
            pods,
            events,
            clock,
        ),
        CronJobs(accounts("cronjob-controller"), informers.of(CronJob), jobs, events, clock),
        FinishedJobs(accounts("ttl-after-finished-controller"), jobs, clock),
        *_with_revisions(accounts, informers, owned, events, clock),
    ]


def _with_revisions(
    accounts: Accounts, informers: Informers, owned: Owned[Pod], events: EventRecorder, clock: Clock
) -> list[Controller[Any]]:
    pods, revisions = informers.of(Pod), informers.of(ControllerRevision)
    owned_revisions = Owned(revisions)
    return [
        StatefulSets(
            accounts("statefulset-controller"),
            informers.of(StatefulSet),
            pods,
            owned,
            informers.of(PersistentVolumeClaim),
            owned_revisions,
            events,
            clock,
        ),
        DaemonSets(
            accounts("daemon-set-controller"),
            informers.of(DaemonSet),
            informers.of(Node),
            pods,
            owned,
            revisions,
            owned_revisions,
            events,
            clock,
        ),
    ]


def of_nodes(
    accounts: Accounts,
    server: Client,
    informers: Informers,
    events: EventRecorder,
    cluster_cidr: str,
    services: str,
    others: Others,
) -> list[Controller[Any]]:
    """What machines that join wait for: the subnets of their pods, in a cluster whose services have
    `services`, and the certificates of their kubelets, which `server` approves, but for what is of
    `others`."""
    nodes = informers.of(Node)
    return [
        NodeAddresses(accounts("node-controller"), nodes, events, cluster_cidr, services),
        ServingApprover(server, informers.of(CertificateSigningRequest), nodes, others),
    ]


def load_balancers(
    accounts: Accounts, informers: Informers, events: EventRecorder, taken: Taken
) -> LoadBalancers:
    """What a cloud has in Kubernetes' place. `events` tells as RECORDER."""
    services, slices = informers.of(Service), informers.of(EndpointSlice)
    return LoadBalancers(accounts(RECORDER), services, slices, informers.of(Node), events, taken)
