"""Which controllers run, in three lists: those of the API server itself, those that the first pod needs, and
the rest, which start once the node is ready (docs/decisions/013).
"""

from __future__ import annotations

from typing import Any

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.controllers.addresses import AddressRepair, DefaultRange, ServiceRanges
from podling.controllers.api_services import LocalServices
from podling.controllers.certificates import CertificateApprover, CertificateCleaner, CertificateSigner
from podling.controllers.certificates_rules import CertificateAuthority
from podling.controllers.controller import Controller
from podling.controllers.custom_resources import CustomResourceNames
from podling.controllers.disruption import DisruptionBudgets
from podling.controllers.endpoint_slices import EndpointMirror, EndpointSlices
from podling.controllers.endpoints import EndpointsController
from podling.controllers.flow_control import FlowControl
from podling.controllers.garbage import GarbageCollector, PodGC
from podling.controllers.namespaces import Namespaces, RootCA, ServiceAccounts
from podling.controllers.nodes import NodeLifecycle, TaintEviction
from podling.controllers.protection import AttributesClassProtection, ClaimProtection, VolumeProtection
from podling.controllers.quotas import ResourceQuotas
from podling.controllers.roles import ClusterRoleAggregation, NamespaceRoles, SystemRoles
from podling.controllers.system import KubernetesService, SystemNamespaces, SystemPriorityClasses
from podling.model.time import Clock
from podling.model.types.apiextensions import CustomResourceDefinition
from podling.model.types.certificates import CertificateSigningRequest
from podling.model.types.coordination import Lease
from podling.model.types.core import ConfigMap, Namespace, ServiceAccount
from podling.model.types.discovery import EndpointSlice
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.networking import IPAddress, ServiceCIDR
from podling.model.types.node import Node
from podling.model.types.persistent_volume import PersistentVolume, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.policy import PodDisruptionBudget
from podling.model.types.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podling.model.types.service import Endpoints, Service
from podling.model.types.storage import VolumeAttributesClass


def of_the_server(
    client: Client, informers: Informers, clock: Clock, host: str, port: int, cidr: str
) -> list[Controller[Any]]:
    """The controllers that kube-apiserver runs in itself. Pods reach the API server at `host` and `port`;
    services get their addresses from `cidr`."""
    namespaces, ranges = informers.of(Namespace), informers.of(ServiceCIDR)
    return [
        DefaultRange(client, ranges, clock, cidr),
        SystemNamespaces(client, namespaces),
        SystemPriorityClasses(client),
        KubernetesService(client, namespaces, informers.of(Service), ranges, host, port, cidr),
    ]


def rest_of_the_server(
    client: Client, informers: Informers, events: EventRecorder, clock: Clock
) -> list[Controller[Any]]:
    """The controllers of kube-apiserver that no pod waits for. `events` tells of repairs, as REPAIRED."""
    services, addresses = informers.of(Service), informers.of(IPAddress)
    return [
        *roles(client, informers),
        AddressRepair(client, services, addresses, informers.of(ServiceCIDR), events, clock),
        *extensions(client, informers, clock),
        FlowControl(client, informers.of(FlowSchema), informers.of(PriorityLevelConfiguration), clock),
    ]


def roles(client: Client, informers: Informers) -> list[Controller[Any]]:
    """The controllers of the default roles and bindings."""
    every = informers.of(ClusterRole)
    return [
        SystemRoles(client, every, informers.of(ClusterRoleBinding)),
        NamespaceRoles(client, informers.of(Namespace), informers.of(Role), informers.of(RoleBinding)),
        ClusterRoleAggregation(client, every),
    ]


def extensions(client: Client, informers: Informers, clock: Clock) -> list[Controller[Any]]:
    """Those of kube-apiserver for what clients add to it."""
    return [
        CustomResourceNames(client, informers.of(CustomResourceDefinition), clock),
        LocalServices(client),
    ]


def first(client: Client, informers: Informers, ca: str) -> list[Controller[Any]]:
    """The controllers that the first pod needs. `ca` is the certificate authority, in PEM, that pods
    trust."""
    namespaces = informers.of(Namespace)
    return [
        ServiceAccounts(client, namespaces, informers.of(ServiceAccount)),
        RootCA(client, namespaces, informers.of(ConfigMap), ca),
    ]


def rest(
    client: Client,
    informers: Informers,
    events: EventRecorder,
    clock: Clock,
    authority: CertificateAuthority | None,
) -> list[Controller[Any]]:
    """`authority` signs the certificates that are asked for; without one they wait for another signer."""
    pods, nodes, services = informers.of(Pod), informers.of(Node), informers.of(Service)
    requests = informers.of(CertificateSigningRequest)
    claims, volumes = informers.of(PersistentVolumeClaim), informers.of(PersistentVolume)
    return [
        Namespaces(client, informers.of(Namespace), pods, claims, clock),
        GarbageCollector(client, informers),
        ResourceQuotas(client, informers),
        EndpointsController(client, services, pods, informers.of(Endpoints)),
        EndpointSlices(client, services, pods, informers.of(EndpointSlice)),
        EndpointMirror(client, services, informers.of(Endpoints), informers.of(EndpointSlice)),
        PodGC(client, nodes, pods, clock),
        NodeLifecycle(client, nodes, informers.of(Lease), pods, events, clock),
        TaintEviction(client, nodes, pods, events, clock),
        DisruptionBudgets(client, informers.of(PodDisruptionBudget), pods, clock),
        CertificateApprover(client, requests),
        *([CertificateSigner(client, requests, authority, clock)] if authority else []),
        CertificateCleaner(client, requests, clock),
        ClaimProtection(client, claims, pods),
        VolumeProtection(client, volumes),
        AttributesClassProtection(client, informers.of(VolumeAttributesClass), claims, volumes),
        ServiceRanges(client, informers.of(ServiceCIDR), informers.of(IPAddress), clock),
    ]
