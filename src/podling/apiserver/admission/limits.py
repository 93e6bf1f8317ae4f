"""LimitRanger, which gives containers the default limits and requests of the namespace and keeps them within
its bounds, and ResourceQuota, which refuses objects that would exceed what is left of a namespace's quota.

What an object uses is added to the quota's status before the object is stored, so that objects created at the
same time cannot exceed it together. If the object is then not stored, the quota controller corrects the
status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podling.apiserver.admission.chain import Attributes, Objects
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.rules.quota import Usage, in_scope, listed, unsaid, usage
from podling.model.rules.resources import pod_limits, pod_requests, qos_class
from podling.model.types.container import Container
from podling.model.types.core import LimitRange, LimitRangeItem, ResourceQuota
from podling.model.types.pod import Pod

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
    """Raises StatusError 403 for a pod that does not set a request or limit that the quota counts."""
    missing = unsaid(pod, quota.status.hard)
    if missing:
        said = "; ".join(f"{resource} for: {','.join(names)}" for resource, names in missing.items())
        raise attributes.forbidden(f"failed quota: {quota.metadata.name}: must specify {said}")


def _more(now: Usage, before: Usage) -> Usage:
    """What `new` uses more than `old`."""
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


ANNOTATION = "kubernetes.io/limit-ranger"

Amounts = Mapping[str, Quantity]


class LimitRanger:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if not attributes.is_for("pods", "CREATE"):
            return
        items = [
            item
            for limits in self._objects.all(LimitRange, attributes.namespace)
            for item in limits.spec.limits
        ]
        if not items:
            return
        _fill_in(new, items)
        faults = [fault for item in items for fault in _faults(new, item)]
        if faults:
            raise attributes.forbidden(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
        new.status.qos_class = qos_class(new)


def _fill_in(pod: Pod, items: list[LimitRangeItem]) -> None:
    """Fill in unset requests and limits from the defaults, and record in an annotation which were."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in items:
        if item.type == "Container":
            requests, limits = {**item.default_request, **requests}, {**item.default, **limits}
    said = [
        text
        for what, containers in (
            ("container", pod.spec.containers),
            ("init container", pod.spec.init_containers),
        )
        for container in containers
        for text in _fill_in_container(container, what, requests, limits)
    ]
    if said:
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        pod.metadata.annotations = {**pod.metadata.annotations, ANNOTATION: text}


def _fill_in_container(container: Container, what: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    resources = container.resources
    for side, defaults, own in (
        ("request", requests, resources.requests),
        ("limit", limits, resources.limits),
    ):
        missing = sorted(defaults.keys() - own.keys())
        own.update((name, defaults[name]) for name in missing)
        if missing:
            yield f"{', '.join(missing)} {side} for {what} {container.name}"


def _faults(pod: Pod, item: LimitRangeItem) -> Iterator[str]:
    if item.type == "Pod":
        yield from _out_of_bounds(item, pod_requests(pod), pod_limits(pod))
    elif item.type == "Container":
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            yield from _out_of_bounds(item, container.resources.requests, container.resources.limits)


def _out_of_bounds(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(item.min.items()):
        yield from _below(
            f"minimum {name} usage per {item.type} is {least}", least, requests.get(name), limits.get(name)
        )
    for name, most in sorted(item.max.items()):
        yield from _above(
            f"maximum {name} usage per {item.type} is {most}", most, requests.get(name), limits.get(name)
        )
    for name, ratio in sorted(item.max_limit_request_ratio.items()):
        allowed = f"{name} max limit to request ratio per {item.type} is {ratio}"
        yield from _too_wide(allowed, ratio, requests.get(name), limits.get(name))


def _below(bound: str, least: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if request is None:
        yield f"{bound}.  No request is specified"
    elif request < least:
        yield f"{bound}, but request is {request}"
    elif limit is not None and limit < least:
        yield f"{bound}, but limit is {limit}"


def _above(bound: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    if limit is None:
        yield f"{bound}.  No limit is specified"
    elif limit > most:
        yield f"{bound}, but limit is {limit}"
    elif request is not None and request > most:
        yield f"{bound}, but request is {request}"


def _too_wide(
    allowed: str, ratio: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    if not request:
        yield f"{allowed}, but no request is specified or request is 0"
    elif not limit:
        yield f"{allowed}, but no limit is specified or limit is 0"
    elif limit.nanos * 10**9 > ratio.nanos * request.nanos:
        yield f"{allowed}, but provided ratio is {limit.nanos / request.nanos:f}"
