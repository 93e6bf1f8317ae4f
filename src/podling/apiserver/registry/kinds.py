"""All resources this API server serves. Adding one is adding its file, and its name here."""

from __future__ import annotations

from typing import Any

from podling.apiserver.registry.config_maps import ConfigMaps
from podling.apiserver.registry.custom_resource_definitions import CustomResourceDefinitions
from podling.apiserver.registry.endpoints import Endpoints
from podling.apiserver.registry.events import Events, EventsEvents
from podling.apiserver.registry.kind import Kind
from podling.apiserver.registry.leases import Leases
from podling.apiserver.registry.namespaces import Namespaces
from podling.apiserver.registry.nodes import Nodes
from podling.apiserver.registry.pod_templates import PodTemplates
from podling.apiserver.registry.pods import Pods
from podling.apiserver.registry.secrets import Secrets
from podling.apiserver.registry.service_accounts import ServiceAccounts
from podling.apiserver.registry.services import Services

KINDS: tuple[Kind[Any], ...] = (
    ConfigMaps(),
    Endpoints(),
    Events(),
    Namespaces(),
    Nodes(),
    Pods(),
    PodTemplates(),
    Secrets(),
    ServiceAccounts(),
    Services(),
    Leases(),
    EventsEvents(),
    CustomResourceDefinitions(),
)
