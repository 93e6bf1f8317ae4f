"""What of devices needs more than the object itself: since when a device is tainted, who may look into
devices that others use, and who may say which devices a claim has and how they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles, May
from podling.apiserver.authz.authorizers import Decision, refusal, settled
from podling.apiserver.authz.impersonation import NODE_NAME, account_of
from podling.apiserver.kinds.devices import ResourceClaims, ResourceClaimTemplates
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.request.context import Find
from podling.apiserver.request.request import RequestInfo, User
from podling.apiserver.rules import field
from podling.apiserver.rules.devices.claim_status import (
    device_id,
    drop_deallocated,
    validate_claim_status,
)
from podling.model import names
from podling.model.errors import Cause, invalid
from podling.model.time import Clock, rfc3339
from podling.model.types.core import Namespace
from podling.model.types.meta import KubeObject
from podling.model.types.pod import NodeSelectorRequirement, NodeSelectorTerm
from podling.model.types.resource import (
    ResourceClaimObject,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)

CLAIMS = "resourceclaims.resource.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
NEEDS_LABEL = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"


class DeviceTaintTimes:
    """Writes into each taint that says no time that it is there since now."""

    handles: ClassVar[Handles] = {SLICES: ("CREATE", "UPDATE")}

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def admit(self, attributes: Attributes, new: ResourceSlice, old: Any) -> None:
        for device in new.spec.devices:
            for taint in device.taints:
                taint.time_added = taint.time_added or rfc3339(self._clock.now())


class DeallocatedDevices:
    """Forgets what was said of devices that a claim no longer has. Who said so is still recorded."""

    handles: ClassVar[Handles] = {f"{CLAIMS}/status": ("UPDATE",)}

    async def admit(self, attributes: Attributes, new: ResourceClaimObject, old: ResourceClaimObject) -> None:
        drop_deallocated(new.status, old.status)


class DeviceAdminAccess:
    """Refuses claims with admin access outside of namespaces that are labelled for it, and tells of what else
    is wrong with them."""

    handles: ClassVar[Handles] = {CLAIMS: ("CREATE",), TEMPLATES: ("CREATE",)}
    KINDS: ClassVar[Mapping[type[KubeObject], Kind[Any]]] = {
        ResourceClaimObject: ResourceClaims(),
        ResourceClaimTemplate: ResourceClaimTemplates(),
    }

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 422."""
        if faults := list(admin_faults(self._find, attributes, _asked(new), iter(()))):
            faults += self.KINDS[type(new)].validate_create(new)
            raise invalid(attributes.resource.kind, new.metadata.name, faults, attributes.resource.group)


class ClaimStatusAccess:
    """Refuses allocations with admin access outside of such namespaces, and changes of a status by who may
    write it, but not that part: what is allocated and reserved is for who may write `resourceclaims/binding`,
    what is said of devices for who may write `resourceclaims/driver` of their drivers. Tells of what else is
    wrong with the status."""

    handles: ClassVar[Handles] = {f"{CLAIMS}/status": ("UPDATE",)}

    def __init__(self, find: Find, may: May) -> None:
        self._find, self._may = find, may

    async def admit(self, attributes: Attributes, new: ResourceClaimObject, old: ResourceClaimObject) -> None:
        """Raises StatusError 422."""
        faults = list(admin_faults(self._find, attributes, _allocated(new), _allocated(old)))
        status, stood = new.status, old.status
        if (status.allocation, status.reserved_for) != (stood.allocation, stood.reserved_for):
            verb = attributes.verb
            if why := await settled(lambda: self._refusal(attributes, [verb], "binding", "", "")):
                what = 'status.allocation or status.reservedFor requires resource="resourceclaims/binding"'
                faults.append(field.forbidden("status.allocation", f'changing {what}, verb="{verb}" {why}'))
        verbs = [f"arbitrary-node:{attributes.verb}"]
        if is_on_allocated_node(attributes.user, status):
            verbs.insert(0, f"associated-node:{attributes.verb}")
        for driver in changed_drivers(status, stood):
            ask = partial(self._refusal, attributes, verbs, "driver", attributes.namespace, driver)
            if why := await settled(ask):
                what = 'status.devices requires resource="resourceclaims/driver"'
                told = f'changing {what}, verb="[{" ".join(verbs)}]" {why}'
                faults.append(field.forbidden("status.devices", told))
        if faults:
            faults += validate_claim_status(new, old)
            raise invalid(attributes.resource.kind, new.metadata.name, faults, attributes.resource.group)

    def _refusal(
        self, attributes: Attributes, verbs: Sequence[str], subresource: str, namespace: str, name: str
    ) -> str:
        """Why the user may do none of the verbs; empty if one is allowed. Raises Unanswered."""
        of, first = attributes.resource, ""
        for verb in verbs:
            asked = RequestInfo(
                verb, "", True, of.group, of.version, namespace, of.plural, subresource=subresource, name=name
            )
            opinion = self._may(attributes.user, asked)
            if opinion.decision is Decision.ALLOW:
                return ""
            reason = ": ".join(part for part in (opinion.error, opinion.reason) if part)
            first = first or refusal(attributes.user, asked, reason).message
        return f"permission: {first}"


def changed_drivers(new: ResourceClaimStatus, old: ResourceClaimStatus) -> list[str]:
    """The drivers of the devices of which something else is said than before, in order. None of a claim
    without devices: whoever takes them away takes away what is said of them."""
    if new.allocation is None:
        return []
    stood = {device_id(device): device for device in old.devices}
    changed = {device.driver for device in new.devices if stood.pop(device_id(device), None) != device}
    return sorted(changed.union(device.driver for device in stood.values()))


def is_on_allocated_node(user: User, status: ResourceClaimStatus) -> bool:
    """Whether it is a service account whose token is bound to the one node that the devices are for."""
    selector = status.allocation.node_selector if status.allocation is not None else None
    if selector is None or account_of(user.name) is None:
        return False
    match selector.node_selector_terms:
        case [NodeSelectorTerm([], [NodeSelectorRequirement("metadata.name", "In", [node])])]:
            return not names.dns1123_subdomain(node) and dict(user.extra).get(NODE_NAME, ()) == (node,)
    return False


def admin_faults(
    find: Find, attributes: Attributes, now: Iterator[str], before: Iterator[str]
) -> Iterator[Cause]:
    """Of the first of the paths `now`, unless there was one before."""
    where = next(now, "")
    if not where or next(before, ""):
        return
    namespace = find(Namespace, "", attributes.namespace)
    if namespace is None or namespace.metadata.labels.get(ADMIN_LABEL) != "true":
        yield field.forbidden(where, NEEDS_LABEL)


def _asked(obj: ResourceClaimObject | ResourceClaimTemplate) -> Iterator[str]:
    """The paths of requests with admin access, as Kubernetes calls them: those of an older version."""
    spec = obj.spec.spec if isinstance(obj, ResourceClaimTemplate) else obj.spec
    for i, request in enumerate(spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            yield f"spec.devices.requests[{i}].adminAccess"


def _allocated(claim: ResourceClaimObject) -> Iterator[str]:
    if claim.status.allocation is not None:
        for i, result in enumerate(claim.status.allocation.devices.results):
            if result.admin_access:
                yield f"status.allocation.devices.results[{i}].adminAccess"
