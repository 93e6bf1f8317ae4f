"""The chain that asks all admission plugins, and those that are always on, in Kubernetes' order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from time import monotonic
from typing import Any, ClassVar, TypeVar

from podling.apiserver.admission.certificates import (
    CertificateApproval,
    CertificateRequests,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from podling.apiserver.admission.default_classes import DefaultIngressClass, DefaultStorageClass
from podling.apiserver.admission.devices import (
    ClaimStatusAccess,
    DeallocatedDevices,
    DeviceAdminAccess,
    DeviceTaintTimes,
)
from podling.apiserver.admission.escalation import BindingEscalation, RoleEscalation, RolesAndBindings
from podling.apiserver.admission.event_limits import EventRateLimit
from podling.apiserver.admission.forms import Form
from podling.apiserver.admission.image_policy import ImagePolicyWebhook
from podling.apiserver.admission.namespaces import (
    LimitRanger,
    LimitRangerCheck,
    NamespaceLifecycle,
    ResourceQuotaPlugin,
)
from podling.apiserver.admission.node_restriction import NodeRestriction
from podling.apiserver.admission.nodes import NodeDeclaredFeatures, PodResizeValidator, TaintNodesByCondition
from podling.apiserver.admission.optional import (
    DenyEverything,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    NamespaceAutoProvision,
    NamespaceExists,
    OwnerReferencesPermissionEnforcement,
    PodNodeSelector,
    PodNodeSelectorCheck,
)
from podling.apiserver.admission.parameters import BindingParameters, PolicyParameters
from podling.apiserver.admission.plugin import (
    ANY,
    Attributes,
    Handles,
    May,
    Objects,
    Operation,
    Outside,
    Plugin,
)
from podling.apiserver.admission.plugin_options import NO_PLUGIN_OPTIONS, PluginOptions
from podling.apiserver.admission.pod_security_plugin import PodSecurity
from podling.apiserver.admission.pods import (
    AlwaysPullImages,
    DefaultTolerationSeconds,
    DisruptionBudgets,
    PodTopologyLabels,
    Priority,
    RuntimeClassOverhead,
    RuntimeClassPlugin,
    ServiceAccountCheck,
    ServiceAccountPlugin,
)
from podling.apiserver.admission.services import (
    DenyServiceExternalIPs,
    ServiceAddresses,
    TakenPorts,
    nobody_has_ports,
)
from podling.apiserver.admission.tolerations import PodTolerationCheck, PodTolerationRestriction
from podling.apiserver.admission.volumes import (
    DataSources,
    PersistentVolumeClaimResize,
    PhaseTransitions,
    StorageObjectInUseProtection,
)
from podling.apiserver.admission.webhook_plugins import Webhooks
from podling.model.rules.admission_plugins import DEFAULT_PLUGINS
from podling.model.time import Clock
from podling.model.types.admissionregistration import (
    MutatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBinding,
)
from podling.model.types.meta import KubeObject
from podling.process.waits import apart

T = TypeVar("T")


class Chain:
    """All plugins, in the order in which a write comes to them.

    `changing` may change what was sent, and come first; if one of them (a webhook, a policy) asks for it, all
    look again, once. `settling` decide what only the server knows, such as addresses, of what is otherwise
    prepared to be stored. `taking` see the valid object as it would be stored, and only refuse, or charge
    limited resources, so that what is invalid or refused is never charged.
    """

    def __init__(
        self,
        changing: Sequence[Plugin],
        settling: Sequence[Plugin] = (),
        taking: Sequence[Plugin] = (),
        outside: Sequence[Outside] = (),
    ) -> None:
        self._changing = _asked(changing)
        self._settling = _asked(settling)
        self._taking = _asked(taking)
        self._outside = outside

    def waits(self, forms: Sequence[Form], subresource: str, operation: Operation) -> bool:
        """Whether such a write may wait for somebody outside of the server."""
        return any(ask.waits(forms, subresource, operation) for ask in self._outside)

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        plugins = self._changing(attributes.target, attributes.operation)
        for plugin in plugins:
            await plugin.admit(attributes, new, old)
        if attributes.changed:
            attributes.again = True
            attributes.forget()
            for plugin in plugins:
                await plugin.admit(attributes, new, old)

    def settles(self, target: str, operation: Operation) -> bool:
        """Whether there is anything to decide of such a write."""
        return bool(self._settling(target, operation))

    async def settle(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._settling(attributes.target, attributes.operation):
            await plugin.admit(attributes, new, old)

    async def validate(self, attributes: Attributes, new: Any, old: Any) -> None:
        for plugin in self._taking(attributes.target, attributes.operation):
            await plugin.admit(attributes, new, old)


class WhileThereAre:
    """A plugin that is made when there are objects of a type, and asked while there are any: without them it
    costs a comparison."""

    handles: ClassVar[Handles] = {ANY: ("CREATE", "UPDATE", "DELETE", "CONNECT")}

    def __init__(self, type: type[KubeObject], objects: Objects, make: Callable[[], Plugin]) -> None:
        self._type, self._objects, self._make = type, objects, make
        self._plugin: Plugin | None = None
        self._changes, self._there_are = -1, False

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        changes = self._objects.changes(self._type)
        if changes != self._changes:
            self._changes = changes
            self._there_are = any(True for _ in self._objects.all(self._type))
        if self._there_are:
            if self._plugin is None:
                self._plugin = await apart(self._make)
            await self._plugin.admit(attributes, new, old)


def _asked(plugins: Sequence[Plugin]) -> Callable[[str, Operation], tuple[Plugin, ...]]:
    """Which of the plugins handle an operation on a target. Targets are those that the server serves."""

    @cache
    def asked(target: str, operation: Operation) -> tuple[Plugin, ...]:
        return tuple(one for one in plugins if operation in one.handles.get(target, one.handles.get(ANY, ())))

    return asked


def built_in(
    objects: Objects,
    clock: Clock,
    may: May,
    roles: RolesAndBindings,
    webhooks: Webhooks,
    pod_security: PodSecurity,
    options: PluginOptions = NO_PLUGIN_OPTIONS,
    *,
    mount_tokens: bool = False,
    plugins: Collection[str] = DEFAULT_PLUGINS,
    families: Sequence[str] = ("IPv4",),
    taken_ports: TakenPorts = nobody_has_ports,
) -> Chain:
    """`may`: the authorizers, for plugins that ask them for more than the request itself needs; `roles`: what
    nobody may give away who does not have it; `options`: what a file tells some of the plugins; `plugins`:
    those that are on, by Kubernetes' names; `families`: those of the addresses of services; `taken_ports`: as
    `ServiceAddresses` says."""

    def on(*rows: tuple[str, T]) -> list[T]:
        return [plugin for name, plugin in rows if not name or name in plugins]

    # Only who has policies pays for the engine of expressions: 0.1 s of importing, and 14 MB.
    def mutating_policies() -> Plugin:
        from podling.apiserver.admission.policy_plugins import MutatingPolicies

        return MutatingPolicies(objects, may)

    def validating_policies() -> Plugin:
        from podling.apiserver.admission.policy_plugins import ValidatingPolicies

        return ValidatingPolicies(objects, may)

    node_selector = PodNodeSelector(objects, options.node_selectors)
    tolerations = PodTolerationRestriction(objects, options.tolerations)
    image_policy = options.image_policy and ImagePolicyWebhook(options.image_policy, monotonic)
    images = [image_policy] if image_policy and "ImagePolicyWebhook" in plugins else []
    mutating = WhileThereAre(MutatingAdmissionPolicyBinding, objects, mutating_policies)
    validating = WhileThereAre(ValidatingAdmissionPolicyBinding, objects, validating_policies)
    return Chain(
        on(
            ("NamespaceAutoProvision", NamespaceAutoProvision(objects)),
            ("NamespaceLifecycle", NamespaceLifecycle(objects.find)),
            ("LimitRanger", LimitRanger(objects)),
            ("ServiceAccount", ServiceAccountPlugin(objects.find, mount_tokens=mount_tokens)),
            ("NodeRestriction", NodeRestriction(objects.find, may)),
            ("TaintNodesByCondition", TaintNodesByCondition()),
            ("AlwaysPullImages", AlwaysPullImages()),
            ("PodNodeSelector", node_selector),
            ("Priority", Priority(objects)),
            ("DefaultTolerationSeconds", DefaultTolerationSeconds()),
            ("PodTolerationRestriction", tolerations),
            ("ExtendedResourceToleration", ExtendedResourceToleration()),
            ("RuntimeClass", RuntimeClassPlugin(objects)),
            ("DefaultStorageClass", DefaultStorageClass(objects)),
            ("StorageObjectInUseProtection", StorageObjectInUseProtection()),
            ("DefaultIngressClass", DefaultIngressClass(objects)),
            ("PodTopologyLabels", PodTopologyLabels(objects.find)),
            ("MutatingAdmissionPolicy", mutating),
            ("MutatingAdmissionWebhook", webhooks.mutating),
            ("AlwaysDeny", DenyEverything()),
        ),
        (
            PhaseTransitions(clock),
            DataSources(),
            ServiceAddresses(objects, families, taken_ports),
            CertificateRequests(clock),
            DeviceTaintTimes(clock),
            DeallocatedDevices(),
            DeviceAdminAccess(objects.find),
            ClaimStatusAccess(objects.find, may),
            # Kubernetes asks as it stores, after admission may have changed the object.
            RoleEscalation(may, roles),
            BindingEscalation(may, roles),
        ),
        on(
            # Those without a name are no plugins in Kubernetes.
            ("", PolicyParameters(may)),
            ("", BindingParameters(objects.find, may)),
            ("NamespaceExists", NamespaceExists(objects)),
            ("LimitPodHardAntiAffinityTopology", LimitPodHardAntiAffinityTopology()),
            ("LimitRanger", LimitRangerCheck(objects)),
            ("ServiceAccount", ServiceAccountCheck(objects.find)),
            *(("", one) for one in images),
            ("PodSecurity", pod_security),
            ("PodNodeSelector", PodNodeSelectorCheck(node_selector)),
            ("PodTolerationRestriction", PodTolerationCheck(tolerations)),
            ("EventRateLimit", EventRateLimit(options.event_limits, monotonic)),
            ("OwnerReferencesPermissionEnforcement", OwnerReferencesPermissionEnforcement(may)),
            ("CertificateApproval", CertificateApproval(may)),
            ("CertificateSigning", CertificateSigning(may)),
            ("PersistentVolumeClaimResize", PersistentVolumeClaimResize(objects)),
            ("CertificateSubjectRestriction", CertificateSubjectRestriction()),
            ("DenyServiceExternalIPs", DenyServiceExternalIPs()),
            ("NodeDeclaredFeatureValidator", NodeDeclaredFeatures(objects.find)),
            ("PodResizeValidator", PodResizeValidator(objects.find)),
            ("RuntimeClass", RuntimeClassOverhead(objects.find)),
            ("", DisruptionBudgets(objects, clock)),
            ("ValidatingAdmissionPolicy", validating),
            ("ValidatingAdmissionWebhook", webhooks.validating),
            ("ResourceQuota", ResourceQuotaPlugin(objects)),
        ),
        [
            *on(
                ("MutatingAdmissionWebhook", webhooks.mutating),
                ("ValidatingAdmissionWebhook", webhooks.validating),
            ),
            *images,
        ],
    )
