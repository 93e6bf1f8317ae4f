"""The admission plugins, which are always on, in Kubernetes' order."""

from __future__ import annotations

from podling.apiserver.admission.chain import Chain, Objects
from podling.apiserver.admission.disruption import DisruptionBudgets
from podling.apiserver.admission.limits import LimitRanger, ResourceQuotas
from podling.apiserver.admission.namespaces import NamespaceLifecycle
from podling.apiserver.admission.pods import (
    DefaultTolerationSeconds,
    NodeDeclaredFeatures,
    Priority,
    RuntimeClasses,
    ServiceAccountPlugin,
)
from podling.apiserver.admission.services import ServiceAddresses
from podling.model.time import Clock


def built_in(objects: Objects, clock: Clock, *, mount_tokens: bool = False) -> Chain:
    return Chain(
        (
            NamespaceLifecycle(objects.find),
            LimitRanger(objects),
            ServiceAccountPlugin(objects.find, mount_tokens=mount_tokens),
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
