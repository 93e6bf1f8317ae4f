"""The chain that asks all admission plugins, and those that are always on, in Kubernetes' order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from podling.apiserver.admission.certificates import (
    CertificateApproval,
    CertificateRequests,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from podling.apiserver.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from podling.apiserver.admission.devices import DeallocatedDevices, DeviceAdminAccess, DeviceTaintTimes
from podling.apiserver.admission.namespaces import LimitRanger, NamespaceLifecycle, ResourceQuotaPlugin
from podling.apiserver.admission.plugin import ANY, Attributes, May, Objects, Operation, Plugin
from podling.apiserver.admission.pods import (
    DefaultTolerationSeconds,
    DisruptionBudgets,
    NodeDeclaredFeatures,
    Priority,
    RuntimeClassOverhead,
    RuntimeClassPlugin,
    ServiceAccountPlugin,
)
from podling.apiserver.admission.services import ServiceAddresses
from podling.apiserver.admission.volumes import (
    DataSources,
    PersistentVolumeClaimResize,
    PhaseTransitions,
    StorageObjectInUseProtection,
)
from podling.model.time import Clock


class Chain:
    """All plugins: those that may change an object, asked before it is validated, and then those that only
    refuse or that charge limited resources, so that an invalid object is never charged."""

    def __init__(self, changing: Sequence[Plugin], taking: Sequence[Plugin] = ()) -> None:
        self._changing = _asked(changing)
        self._taking = _asked(taking)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._changing(attributes.target, attributes.operation):
            await plugin.admit(attributes, new, old)

    async def validate(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._taking(attributes.target, attributes.operation):
            await plugin.admit(attributes, new, old)


def _asked(plugins: Sequence[Plugin]) -> Callable[[str, Operation], tuple[Plugin, ...]]:
    """Which of the plugins handle an operation on a target. Targets are those that the server serves."""

    @cache
    def asked(target: str, operation: Operation) -> tuple[Plugin, ...]:
        return tuple(one for one in plugins if operation in one.handles.get(target, one.handles.get(ANY, ())))

    return asked


def built_in(objects: Objects, clock: Clock, may: May, *, mount_tokens: bool = False) -> Chain:
    """`may`: the authorizers, for plugins that ask them for more than the request itself needs."""
    return Chain(
        (
            NamespaceLifecycle(objects.find),
            LimitRanger(objects),
            ServiceAccountPlugin(objects.find, mount_tokens=mount_tokens),
            Priority(objects),
            DefaultTolerationSeconds(),
            RuntimeClassPlugin(objects),
            DefaultStorageClass(objects),
            StorageObjectInUseProtection(),
            PhaseTransitions(clock),
            DataSources(),
            DefaultIngressClass(objects),
            ServiceAddresses(objects),
            CertificateRequests(clock),
            DeviceTaintTimes(clock),
            DeallocatedDevices(),
        ),
        (
            CertificateApproval(may),
            CertificateSigning(may),
            PersistentVolumeClaimResize(objects),
            CertificateSubjectRestriction(),
            DeviceAdminAccess(objects.find),
            NodeDeclaredFeatures(objects.find),
            RuntimeClassOverhead(objects.find),
            DisruptionBudgets(objects, clock),
            ResourceQuotaPlugin(objects),
        ),
    )
