"""How an object counts against a ResourceQuota, and which objects a quota counts. Pure.

Admission refuses what exceeds a quota, and the quota controller counts what exists; both use this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from podling.model.quantity import Quantity
from podling.model.rules.resources import BEST_EFFORT, pod_limits, pod_requests, qos_class
from podling.model.rules.status import is_terminal
from podling.model.scheme import Resource, resource_of
from podling.model.types.core import ResourceQuotaSpec, ScopedResourceSelectorRequirement
from podling.model.types.meta import KubeObject
from podling.model.types.persistent_volume import STORAGE_CLASS, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.service import Service

Usage = dict[str, Quantity]

ONE, ZERO = Quantity("1"), Quantity()
OF_CLASS = ".storageclass.storage.k8s.io/"
"""Follows the name of a StorageClass, before what is counted of its claims."""
COMPUTE = ("cpu", "memory", "ephemeral-storage")
OBJECTS = frozenset(
    (
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    )
)
"""Core resources that a quota may also count without the prefix `count/`."""


def usage(obj: KubeObject) -> Usage:
    """What `obj` uses of every resource name that a quota may limit."""
    resource = resource_of(type(obj))
    used = {counted(resource): ONE}
    if not resource.group and resource.plural in OBJECTS:
        used[resource.plural] = ONE
    if isinstance(obj, Pod):
        used.update({} if is_terminal(obj) else _pod_usage(obj))
    elif isinstance(obj, Service):
        used.update(_service_usage(obj))
    elif isinstance(obj, PersistentVolumeClaim):
        wanted, given = obj.spec.resources.requests, obj.status.allocated_resources
        size = max(wanted.get("storage", ZERO), given.get("storage", ZERO))
        class_name = obj.metadata.annotations.get(STORAGE_CLASS, obj.spec.storage_class_name)
        for of in ("", f"{class_name}{OF_CLASS}") if class_name else ("",):
            # In whole bytes.
            used[f"{of}requests.storage"] = Quantity.of_bytes(size.value())
            used[f"{of}{resource.plural}"] = ONE
    return used


def counted(resource: Resource) -> str:
    """The quota resource name that counts objects: `count/pods`, `count/leases.coordination.k8s.io`."""
    return f"count/{resource.qualified}"


def usable(resource: Resource, hard: Collection[str]) -> bool:
    """Whether an object of `resource` can use anything that a quota with these `hard` limits limits."""
    if resource.qualified == "pods":
        # Everything but what counts objects is what pods use.
        of_objects = [name for name in hard if name.startswith("count/") or name.split(".")[0] in OBJECTS]
        return "count/pods" in of_objects or len(of_objects) < len(hard)
    names = {counted(resource), resource.qualified}
    of_claims = resource.type is PersistentVolumeClaim
    return any(
        name in names
        or name.split(".")[0] == resource.qualified
        or (of_claims and (OF_CLASS in name or name == "requests.storage"))
        for name in hard
    )


def total(usages: Iterable[Usage], names: Iterable[str]) -> Usage:
    """The sum of `usages` for `names` only; a name that nobody uses is 0."""
    sums = dict.fromkeys(names, Quantity())
    for one in usages:
        for name in sums.keys() & one.keys():
            sums[name] += one[name]
    return sums


def _pod_usage(pod: Pod) -> Usage:
    used = {"pods": ONE}
    for name, amount in pod_requests(pod).items():
        used[f"requests.{name}"] = amount
        if name in COMPUTE or name.startswith("hugepages-"):
            used[name] = amount
    for name, amount in pod_limits(pod).items():
        if name in COMPUTE:
            used[f"limits.{name}"] = amount
    return used


def _service_usage(service: Service) -> Usage:
    used = {}
    if service.spec.type == "LoadBalancer":
        used["services.loadbalancers"] = ONE
    if service.spec.type in ("LoadBalancer", "NodePort"):
        open_ports = len(service.spec.ports)
        if service.spec.allocate_load_balancer_node_ports is False:
            open_ports = sum(1 for port in service.spec.ports if port.node_port)
        used["services.nodeports"] = Quantity(str(open_ports))
    return used


def unsaid(pod: Pod, hard: Iterable[str]) -> dict[str, list[str]]:
    """Resources that a quota limits and containers do not set: resource → names of those containers."""
    if pod.spec.resources is not None:
        return {}
    missing: dict[str, list[str]] = {}
    for name in sorted(hard):
        side, _, resource = name.rpartition(".")
        if resource not in ("cpu", "memory"):
            continue
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            said = container.resources.limits if side == "limits" else container.resources.requests
            if resource not in said:
                missing.setdefault(name, []).append(container.name)
    return missing


def in_scope(spec: ResourceQuotaSpec, obj: KubeObject) -> bool:
    """Whether `obj` is in the quota's scopes. A quota with scopes counts only pods."""
    wanted = [ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists") for scope in spec.scopes]
    if spec.scope_selector is not None:
        wanted += spec.scope_selector.match_expressions
    if not wanted:
        return True
    return isinstance(obj, Pod) and all(_matches(requirement, obj) for requirement in wanted)


def _matches(requirement: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    match requirement.scope_name:
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "BestEffort":
            return qos_class(pod) == BEST_EFFORT
        case "NotBestEffort":
            return qos_class(pod) != BEST_EFFORT
        case "PriorityClass":
            name = pod.spec.priority_class_name
            match requirement.operator:
                case "In":
                    return name in requirement.values
                case "NotIn":
                    return name not in requirement.values
            return bool(name) == (requirement.operator == "Exists")
        case "CrossNamespacePodAffinity":
            return _looks_abroad(pod)
    return False


def _looks_abroad(pod: Pod) -> bool:
    """Whether a pod (anti-)affinity term selects pods of other namespaces."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(
        term.namespaces or term.namespace_selector is not None
        for side in sides
        if side is not None
        for term in (
            *side.required_during_scheduling_ignored_during_execution,
            *(one.pod_affinity_term for one in side.preferred_during_scheduling_ignored_during_execution),
        )
    )


def listed(amounts: Mapping[str, Quantity]) -> str:
    """`cpu=1,pods=2`, as messages of the quota admission plugin list amounts."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
