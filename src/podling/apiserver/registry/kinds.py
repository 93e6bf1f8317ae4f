"""All resources an API server serves, under the feature gates it is given. Adding one is adding its file, and
its name here.
"""

from __future__ import annotations

from typing import Any

from podling.apiserver.registry.access_reviews import (
    LocalSubjectAccessReviews,
    SelfSubjectAccessReviews,
    SubjectAccessReviews,
)
from podling.apiserver.registry.cluster_role_bindings import ClusterRoleBindings
from podling.apiserver.registry.cluster_roles import ClusterRoles
from podling.apiserver.registry.config_maps import ConfigMaps
from podling.apiserver.registry.custom_resource_definitions import CustomResourceDefinitions
from podling.apiserver.registry.disruption_budgets import PodDisruptionBudgets
from podling.apiserver.registry.endpoint_slices import EndpointSlices
from podling.apiserver.registry.endpoints import Endpoints
from podling.apiserver.registry.events import Events, EventsEvents
from podling.apiserver.registry.kind import Kind
from podling.apiserver.registry.leases import Leases
from podling.apiserver.registry.limit_ranges import LimitRanges
from podling.apiserver.registry.namespaces import Namespaces
from podling.apiserver.registry.nodes import Nodes
from podling.apiserver.registry.pod_templates import PodTemplates
from podling.apiserver.registry.pods import Pods
from podling.apiserver.registry.priority_classes import PriorityClasses
from podling.apiserver.registry.resource_quotas import ResourceQuotas
from podling.apiserver.registry.role_bindings import RoleBindings
from podling.apiserver.registry.roles import Roles
from podling.apiserver.registry.rules_reviews import SelfSubjectRulesReviews
from podling.apiserver.registry.runtime_classes import RuntimeClasses
from podling.apiserver.registry.secrets import Secrets
from podling.apiserver.registry.self_subject_reviews import SelfSubjectReviews
from podling.apiserver.registry.service_accounts import ServiceAccounts
from podling.apiserver.registry.services import Services
from podling.apiserver.registry.token_reviews import TokenReviews
from podling.model.gates import DEFAULT_GATES, Gates


def kinds(gates: Gates) -> tuple[Kind[Any], ...]:
    return (
        ConfigMaps(),
        Endpoints(),
        Events(),
        LimitRanges(),
        Namespaces(),
        Nodes(),
        Pods(gates),
        PodTemplates(gates),
        ResourceQuotas(),
        Secrets(),
        ServiceAccounts(),
        Services(),
        Leases(),
        EventsEvents(),
        EndpointSlices(),
        PriorityClasses(),
        RuntimeClasses(),
        PodDisruptionBudgets(),
        Roles(),
        RoleBindings(),
        ClusterRoles(),
        ClusterRoleBindings(),
        CustomResourceDefinitions(),
        TokenReviews(),
        SelfSubjectReviews(),
        SubjectAccessReviews(),
        LocalSubjectAccessReviews(),
        SelfSubjectAccessReviews(),
        SelfSubjectRulesReviews(),
    )


KINDS = kinds(DEFAULT_GATES)
