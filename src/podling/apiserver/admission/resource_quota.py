"""ResourceQuota: nothing is created that would use more of a namespace's quota than is left.

What an object uses is written into the quota's status before the object is stored, so that objects created at
once never pass together. The quota controller sets right what was written for an object that then was not
stored.
"""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.plugin import Attributes, Objects
from podling.model.errors import StatusError
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.quota import Usage, in_scope, listed, unsaid, usage
from podling.model.resource_quota import ResourceQuota

ZERO = Quantity()
UNCOUNTED = frozenset({"events", "events.events.k8s.io"})


class ResourceQuotas:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.subresource or attributes.operation not in ("CREATE", "UPDATE"):
            return
        if not attributes.namespace or attributes.resource.qualified in UNCOUNTED:
            return
        quotas = list(self._objects.all(ResourceQuota, attributes.namespace))
        if not quotas:
            return
        more = _more(usage(new), usage(old) if old is not None else {})
        for quota in quotas:
            if not in_scope(quota.spec, new):
                continue
            if isinstance(new, Pod) and old is None:
                _refuse_if_unsaid(attributes, quota, new)
            if more.keys() & quota.status.hard.keys():
                await self._use(attributes, quota.metadata.name, more)

    async def _use(self, attributes: Attributes, name: str, more: Usage) -> None:
        def take(standing: ResourceQuota) -> None:
            status = standing.status
            wanted = {key: more[key] for key in more.keys() & status.hard.keys()}
            _check(attributes, standing, wanted)
            status.used = {**status.used, **{key: status.used[key] + wanted[key] for key in wanted}}

        await self._objects.change(
            ResourceQuota, attributes.namespace, name, take, dry_run=attributes.dry_run
        )


def _refuse_if_unsaid(attributes: Attributes, quota: ResourceQuota, pod: Pod) -> None:
    """Raises StatusError 403 for a pod that leaves open what the quota limits."""
    missing = unsaid(pod, quota.status.hard)
    if missing:
        said = "; ".join(f"{resource} for: {','.join(names)}" for resource, names in missing.items())
        raise attributes.forbidden(f"failed quota: {quota.metadata.name}: must specify {said}")


def _more(now: Usage, before: Usage) -> Usage:
    """What is used now and was not before."""
    grown = {name: amount - before.get(name, ZERO) for name, amount in now.items()}
    return {name: amount for name, amount in grown.items() if amount > ZERO}


def _check(attributes: Attributes, quota: ResourceQuota, wanted: Usage) -> None:
    """Raises StatusError 403."""
    name, hard, used = quota.metadata.name, quota.status.hard, quota.status.used
    unknown = sorted(wanted.keys() - used.keys())
    if unknown:
        raise attributes.forbidden(f"status unknown for quota: {name}, resources: {','.join(unknown)}")
    over = [key for key in wanted if used[key] + wanted[key] > hard[key]]
    if over:
        raise _exceeded(attributes, quota, {key: wanted[key] for key in over})


def _exceeded(attributes: Attributes, quota: ResourceQuota, wanted: Usage) -> StatusError:
    used = {key: quota.status.used[key] for key in wanted}
    limited = {key: quota.status.hard[key] for key in wanted}
    return attributes.forbidden(
        f"exceeded quota: {quota.metadata.name}, requested: {listed(wanted)}, used: {listed(used)}, "
        f"limited: {listed(limited)}"
    )
