"""The plugins that are always on, in the order in which Kubernetes asks them."""

from __future__ import annotations

from podling.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from podling.apiserver.admission.disruption_budgets import DisruptionBudgets
from podling.apiserver.admission.limit_ranger import LimitRanger
from podling.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from podling.apiserver.admission.node_declared_features import NodeDeclaredFeatures
from podling.apiserver.admission.plugin import Chain, Objects
from podling.apiserver.admission.priority import Priority
from podling.apiserver.admission.resource_quota import ResourceQuotas
from podling.apiserver.admission.runtime_class import RuntimeClasses
from podling.apiserver.admission.service_account import ServiceAccount
from podling.apiserver.admission.service_addresses import ServiceAddresses
from podling.model.time import Clock


def built_in(objects: Objects, clock: Clock, *, mount_tokens: bool = False) -> Chain:
    return Chain(
        (
            NamespaceLifecycle(objects.find),
            LimitRanger(objects),
            ServiceAccount(objects.find, mount_tokens=mount_tokens),
            Priority(objects),
            DefaultTolerationSeconds(),
            RuntimeClasses(objects),
            ServiceAddresses(objects),
        ),
        (
            NodeDeclaredFeatures(objects.find),
            DisruptionBudgets(objects, clock),
            ResourceQuotas(objects),
        ),
    )
