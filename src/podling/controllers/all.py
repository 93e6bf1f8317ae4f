"""The lists of controllers: the API server's own, those the first pod waits for, and the rest, which start
once podling is ready.
"""

from __future__ import annotations

from typing import Any

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informers import Informers
from podling.controllers.controller import Controller
from podling.controllers.disruption import DisruptionBudgets
from podling.controllers.endpoint_mirror import EndpointMirror
from podling.controllers.endpoint_slices import EndpointSlices
from podling.controllers.endpoints import EndpointsController
from podling.controllers.garbage import GarbageCollector
from podling.controllers.namespaces import Namespaces
from podling.controllers.node_lifecycle import NodeLifecycle
from podling.controllers.pod_gc import PodGC
from podling.controllers.resource_quotas import ResourceQuotas
from podling.controllers.root_ca import RootCA
from podling.controllers.service_accounts import ServiceAccounts
from podling.controllers.system_namespaces import SystemNamespaces
from podling.controllers.system_objects import KubernetesService, SystemPriorityClasses
from podling.controllers.system_roles import ClusterRoleAggregation, NamespaceRoles, SystemRoles
from podling.controllers.taint_eviction import TaintEviction
from podling.model.config import ConfigMap
from podling.model.disruption_budget import PodDisruptionBudget
from podling.model.endpoint_slice import EndpointSlice
from podling.model.lease import Lease
from podling.model.namespace import Namespace
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.rbac import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from podling.model.service import Endpoints, Service
from podling.model.service_account import ServiceAccount
from podling.model.time import Clock


def of_the_server(client: Client, informers: Informers, host: str, port: int) -> list[Controller[Any]]:
    """Those that Kubernetes' API server runs itself. `host` and `port` are where pods reach it."""
    namespaces = informers.of(Namespace)
    return [
        SystemNamespaces(client, namespaces),
        SystemPriorityClasses(client),
        KubernetesService(client, namespaces, informers.of(Service), host, port),
    ]


def roles(client: Client, informers: Informers) -> list[Controller[Any]]:
    """Whoever may do what by default; nobody waits for it."""
    every = informers.of(ClusterRole)
    return [
        SystemRoles(client, every, informers.of(ClusterRoleBinding)),
        NamespaceRoles(client, informers.of(Namespace), informers.of(Role), informers.of(RoleBinding)),
        ClusterRoleAggregation(client, every),
    ]


def first(client: Client, informers: Informers, ca: str) -> list[Controller[Any]]:
    """`ca` is the certificate authority that pods are to trust, in PEM."""
    namespaces = informers.of(Namespace)
    return [
        ServiceAccounts(client, namespaces, informers.of(ServiceAccount)),
        RootCA(client, namespaces, informers.of(ConfigMap), ca),
    ]


def rest(client: Client, informers: Informers, events: EventRecorder, clock: Clock) -> list[Controller[Any]]:
    pods, nodes, services = informers.of(Pod), informers.of(Node), informers.of(Service)
    return [
        Namespaces(client, informers.of(Namespace), pods, clock),
        GarbageCollector(client, informers),
        ResourceQuotas(client, informers),
        EndpointsController(client, services, pods, informers.of(Endpoints)),
        EndpointSlices(client, services, pods, informers.of(EndpointSlice)),
        EndpointMirror(client, services, informers.of(Endpoints), informers.of(EndpointSlice)),
        PodGC(client, nodes, pods, clock),
        NodeLifecycle(client, nodes, informers.of(Lease), pods, events, clock),
        TaintEviction(client, nodes, pods, events, clock),
        DisruptionBudgets(client, informers.of(PodDisruptionBudget), pods, clock),
    ]
