"""The plugins that hold a namespace to its state and its limits.

NamespaceLifecycle: no object is created in a namespace that does not exist or is terminating.

LimitRanger gives containers the default limits and requests of the namespace, and keeps them, pods and claims
within its bounds: one LimitRange after the other.

ResourceQuota refuses objects that would exceed what is left of a namespace's quota. What an object uses is
added to the quota's status before the object is stored, so that objects created at the same time cannot
exceed it together. If the object is then not stored, the quota controller corrects the status.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

from podling.apiserver.admission.plugin import ANY, Attributes, Handles, Objects
from podling.apiserver.request.context import Find
from podling.model.errors import Cause, not_found
from podling.model.quantity import Quantity
from podling.model.rules.defaults import default_pod
from podling.model.rules.quota import (
    Usage,
    in_scope,
    is_terminating,
    limited,
    listed,
    unsaid,
    usage,
)
from podling.model.rules.resources import pod_limits, pod_requests
from podling.model.types.core import LimitRange, LimitRangeItem, Namespace, ResourceQuota
from podling.model.types.persistent_volume import PersistentVolumeClaim
from podling.model.types.pod import Pod

KEPT = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that must not be deleted."""
ANNOTATION = "kubernetes.io/limit-ranger"
ZERO = Quantity()
UNCOUNTED = frozenset({"events", "events.events.k8s.io"})

Amounts = Mapping[str, Quantity]


class NamespaceLifecycle:
    handles: ClassVar[Handles] = {
        ANY: ("CREATE", "UPDATE", "CONNECT"),
        "namespaces": ("DELETE",),
        # Who may do what is told of namespaces that are not there, too.
        "localsubjectaccessreviews.authorization.k8s.io": (),
    }

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403, 404."""
        name = attributes.namespace
        if attributes.operation == "DELETE" and attributes.name in KEPT:
            raise attributes.forbidden("this namespace may not be deleted")
        if not name or not attributes.resource.namespaced:
            return
        namespace = self._find(Namespace, "", name)
        if namespace is None:
            raise not_found("namespaces", name)
        ending = namespace.metadata.deletion_timestamp or namespace.status.phase == "Terminating"
        if ending and attributes.operation == "CREATE":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            refused = attributes.forbidden(why)
            ends = f"namespace {name} is being terminated"
            refused.causes = (Cause("NamespaceTerminating", ends, "metadata.namespace"),)
            raise refused


class LimitRanger:
    """Of pods, as they are created and resized: else their containers cannot change."""

    handles: ClassVar[Handles] = {"pods": ("CREATE",), "pods/resize": ("UPDATE",)}

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if old is None or not old.metadata.deletion_timestamp:
            ranges = self._objects.all(LimitRange, attributes.namespace)
            filled = [_fill_in(new, one.spec.limits) for one in ranges]
            if any(filled):
                default_pod(new)


class LimitRangerCheck:
    """Keeps the bounds, of what is otherwise valid."""

    handles: ClassVar[Handles] = {
        "pods": ("CREATE",),
        "pods/resize": ("UPDATE",),
        "persistentvolumeclaims": ("CREATE", "UPDATE"),
    }

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403, with the faults that the first LimitRange finds."""
        if old is not None and old.metadata.deletion_timestamp:
            return
        find = _faults_of_pod if isinstance(new, Pod) else _faults_of_claim
        for limits in self._objects.all(LimitRange, attributes.namespace):
            if faults := list(dict.fromkeys(find(new, limits.spec.limits))):
                raise attributes.forbidden(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _fill_in(pod: Pod, items: list[LimitRangeItem]) -> bool:
    """Fill in unset requests and limits from the defaults, and record in an annotation which were; whether
    any was."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in items:
        if item.type == "Container":
            requests, limits = {**requests, **item.default_request}, {**limits, **item.default}
    said = []
    spec = pod.spec
    for what, containers in (("container", spec.containers), ("init container", spec.init_containers)):
        for container in containers:
            resources = container.resources
            sides = (("request", requests, resources.requests), ("limit", limits, resources.limits))
            for side, defaults, own in sides:
                if missing := sorted(defaults.keys() - own.keys()):
                    own.update((name, defaults[name]) for name in missing)
                    said.append(f"{', '.join(missing)} {side} for {what} {container.name}")
    if said:
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        pod.metadata.annotations = {**pod.metadata.annotations, ANNOTATION: text}
    return bool(said)


def _faults_of_claim(claim: PersistentVolumeClaim, items: list[LimitRangeItem]) -> Iterator[str]:
    requests = claim.spec.resources.requests
    for item in items:
        if item.type == "PersistentVolumeClaim":
            yield from _below(item, requests, {})
            yield from _request_above(item, requests)


def _faults_of_pod(pod: Pod, items: list[LimitRangeItem]) -> Iterator[str]:
    for item in items:
        if item.type == "Pod":
            yield from _out_of_bounds(item, pod_requests(pod), pod_limits(pod))
        elif item.type == "Container":
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                yield from _out_of_bounds(item, container.resources.requests, container.resources.limits)


def _request_above(item: LimitRangeItem, requests: Amounts) -> Iterator[str]:
    """Of claims, which have requests alone."""
    for name, most in sorted(item.max.items()):
        request = requests.get(name)
        bound = f"maximum {name} usage per {item.type} is {most}"
        if request is None:
            yield f"{bound}.  No request is specified"
        elif request > most:
            yield f"{bound}, but request is {request}"


def _below(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(item.min.items()):
        request, limit = requests.get(name), limits.get(name)
        bound = f"minimum {name} usage per {item.type} is {least}"
        if request is None:
            yield f"{bound}.  No request is specified"
        elif request < least:
            yield f"{bound}, but request is {request}"
        elif limit is not None and limit < least:
            yield f"{bound}, but limit is {limit}"


def _out_of_bounds(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _below(item, requests, limits)
    for name, most in sorted(item.max.items()):
        request, limit = requests.get(name), limits.get(name)
        bound = f"maximum {name} usage per {item.type} is {most}"
        if limit is None:
            yield f"{bound}.  No limit is specified"
        elif limit > most:
            yield f"{bound}, but limit is {limit}"
        elif request is not None and request > most:
            yield f"{bound}, but request is {request}"
    for name, ratio in sorted(item.max_limit_request_ratio.items()):
        request, limit = requests.get(name), limits.get(name)
        bound = f"{name} max limit to request ratio per {item.type} is {ratio}"
        if not request:
            yield f"{bound}, but no request is specified or request is 0"
        elif not limit:
            yield f"{bound}, but no limit is specified or limit is 0"
        elif limit.nanos * 10**9 > ratio.nanos * request.nanos:
            yield f"{bound}, but provided ratio is {limit.nanos / request.nanos:f}"


class ResourceQuotaPlugin:
    handles: ClassVar[Handles] = {
        ANY: ("CREATE",),
        "pods": ("CREATE", "UPDATE"),
        "pods/resize": ("UPDATE",),
        "services": ("CREATE", "UPDATE"),
        "persistentvolumeclaims": ("CREATE", "UPDATE"),
        "persistentvolumeclaims/status": ("UPDATE",),
        "resourceclaims.resource.k8s.io": ("CREATE", "UPDATE"),
    }

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        if not attributes.namespace or attributes.target in UNCOUNTED:
            return
        if attributes.subresource and attributes.operation == "CREATE":
            return
        if attributes.target == "pods" and old is not None and is_terminating(old) == is_terminating(new):
            return
        concerned = []
        for quota in self._objects.all(ResourceQuota, attributes.namespace):
            names = limited(attributes.resource, quota.status.hard)
            if names and in_scope(quota.spec, new):
                _check(attributes, quota, names, new)
                concerned.append((quota, names))
        if not concerned:
            return
        after, before = usage(new), usage(old) if old is not None else {}
        charged = []
        for quota, names in concerned:
            charge = Charge(attributes, names, after, before if old and in_scope(quota.spec, old) else {})
            charge.check(quota)
            charged.append((quota.metadata.name, charge))
        # Nothing is charged to one quota of what another refuses.
        for name, charge in charged:
            if charge.amounts:
                namespace, dry = attributes.namespace, attributes.dry_run
                await self._objects.change(ResourceQuota, namespace, name, charge.add, dry_run=dry)


def _check(attributes: Attributes, quota: ResourceQuota, names: Collection[str], new: Any) -> None:
    """Whether the object can be charged: a pod must set each request and limit that the quota counts. Raises
    StatusError 403."""
    if isinstance(new, Pod) and (missing := unsaid(new, names)):
        said = "; ".join(f"{key} for: {','.join(whose)}" for key, whose in missing.items())
        raise attributes.forbidden(f"failed quota: {quota.metadata.name}: must specify {said}")
    if not quota.status.used.keys() >= set(names):
        unknown = ",".join(sorted(names))
        raise attributes.forbidden(f"status unknown for quota: {quota.metadata.name}, resources: {unknown}")


class Charge:
    """What a write uses more than before of that which a quota limits, by `names`."""

    def __init__(self, attributes: Attributes, names: Collection[str], after: Usage, before: Usage) -> None:
        self._attributes = attributes
        # A status tells what is so already: it is charged and not refused.
        self._is_bound = attributes.subresource != "status"
        grown = {name: after.get(name, ZERO) - before.get(name, ZERO) for name in names}
        self.amounts = {name: amount for name, amount in grown.items() if amount > ZERO}

    def check(self, quota: ResourceQuota) -> None:
        """Raises StatusError 403."""
        hard, used, more = quota.status.hard, quota.status.used, self.amounts
        over = [name for name in more if used[name] + more[name] > hard[name]]
        if over and self._is_bound:
            requested, has, limit = ({name: of[name] for name in over} for of in (more, used, hard))
            raise self._attributes.forbidden(
                f"exceeded quota: {quota.metadata.name}, requested: {listed(requested)}, "
                f"used: {listed(has)}, limited: {listed(limit)}"
            )

    def add(self, quota: ResourceQuota) -> None:
        """Raises StatusError 403."""
        self.check(quota)
        used = quota.status.used
        quota.status.used = {**used, **{name: used[name] + more for name, more in self.amounts.items()}}
