"""What of devices needs more than the object itself: since when a device is tainted, and who may look into
devices that others use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles
from podling.apiserver.kinds.devices import ResourceClaims, ResourceClaimTemplates
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.request.context import Find
from podling.apiserver.rules import field
from podling.apiserver.rules.devices.claim_status import drop_deallocated, validate_claim_status
from podling.model.errors import Cause, invalid
from podling.model.time import Clock, rfc3339
from podling.model.types.core import Namespace
from podling.model.types.meta import KubeObject
from podling.model.types.resource import ResourceClaimObject, ResourceClaimTemplate, ResourceSlice

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


class AllocatedAdminAccess:
    """Refuses allocations with admin access outside of such namespaces, and tells of what else is wrong with
    them."""

    handles: ClassVar[Handles] = {f"{CLAIMS}/status": ("UPDATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 422."""
        if faults := list(admin_faults(self._find, attributes, _allocated(new), _allocated(old))):
            faults += validate_claim_status(new, old)
            raise invalid(attributes.resource.kind, new.metadata.name, faults, attributes.resource.group)


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
