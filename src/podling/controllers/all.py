"""The list of controllers: those the first pod waits for, and the rest, which start once podling is ready."""

from __future__ import annotations

from typing import Any

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informers import Informers
from podling.controllers.controller import Controller
from podling.controllers.disruption import DisruptionBudgets
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
from podling.controllers.taint_eviction import TaintEviction
from podling.model.config import ConfigMap
from podling.model.disruption_budget import PodDisruptionBudget
from podling.model.endpoint_slice import EndpointSlice
from podling.model.lease import Lease
from podling.model.namespace import Namespace
from podling.model.node import Node
from podling.model.pod import Pod
from podling.model.service import Endpoints, Service
from podling.model.service_account import ServiceAccount
from podling.model.time import Clock


def first(client: Client, informers: Informers, ca: str) -> list[Controller[Any]]:
    """`ca` is the certificate authority that pods are to trust, in PEM."""
    namespaces = informers.of(Namespace)
    return [
        SystemNamespaces(client, namespaces),
        ServiceAccounts(client, namespaces, informers.of(ServiceAccount)),
        RootCA(client, namespaces, informers.of(ConfigMap), ca),
    ]


def rest(
    client: Client, informers: Informers, events: EventRecorder, clock: Clock, host: str, port: int
) -> list[Controller[Any]]:
    """`host` and `port` are where pods reach the API server."""
    pods, nodes, services = informers.of(Pod), informers.of(Node), informers.of(Service)
    return [
        Namespaces(client, informers.of(Namespace), pods, clock),
        SystemPriorityClasses(client),
        KubernetesService(client, services, host, port),
        GarbageCollector(client, informers),
        ResourceQuotas(client, informers),
        EndpointsController(client, services, pods, informers.of(Endpoints)),
        EndpointSlices(client, services, pods, informers.of(EndpointSlice)),
        PodGC(client, nodes, pods, clock),
        NodeLifecycle(client, nodes, informers.of(Lease), pods, events, clock),
        TaintEviction(client, nodes, pods, events, clock),
        DisruptionBudgets(client, informers.of(PodDisruptionBudget), pods, clock),
    ]
