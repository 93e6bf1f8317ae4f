"""How an object counts against a ResourceQuota, and which objects a quota counts. Pure.

Admission refuses what exceeds a quota, and the quota controller counts what exists; both use this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from podling.model.quantity import Quantity
from podling.model.rules.resources import BEST_EFFORT, pod_limits, pod_requests, qos_class
from podling.model.rules.status import is_terminal
from podling.model.scheme import Resource, resource_of
from podling.model.types.core import ResourceQuotaSpec, ScopedResourceSelectorRequirement
from podling.model.types.meta import KubeObject
from podling.model.types.persistent_volume import STORAGE_CLASS, PersistentVolumeClaim
from podling.model.types.pod import Pod
from podling.model.types.resource import DeviceRequest, ResourceClaimObject
from podling.model.types.service import Service

Usage = dict[str, Quantity]

ONE, ZERO = Quantity("1"), Quantity()
OF_CLASS = ".storageclass.storage.k8s.io/"
"""Follows the name of a StorageClass, before what is counted of its claims."""
DEVICES = ".deviceclass.resource.k8s.io/devices"
"""Follows the name of a DeviceClass."""
IMPLIED = "requests.deviceclass.resource.kubernetes.io/"
"""Before the name of a DeviceClass: its devices as a resource that containers may ask for, too."""
COMPUTE = ("cpu", "memory", "ephemeral-storage")
OF_PODS = frozenset(("pods", *(f"{side}{name}" for side in ("", "requests.", "limits.") for name in COMPUTE)))
HUGE_PAGES = ("hugepages-", "requests.hugepages-")
OF_SERVICES = frozenset(("services", "services.nodeports", "services.loadbalancers"))
OF_CLAIMS = frozenset(("persistentvolumeclaims", "requests.storage"))
MOST_DEVICES = 32
"""Of one request: as many as a claim that asks for all may get."""
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
    elif isinstance(obj, ResourceClaimObject):
        for name, amount in _devices(obj.spec.devices.requests):
            used[name] = used.get(name, ZERO) + amount
    return used


def counted(resource: Resource) -> str:
    """The quota resource name that counts objects: `count/pods`, `count/leases.coordination.k8s.io`."""
    return f"count/{resource.qualified}"


def limited(resource: Resource, hard: Iterable[str]) -> set[str]:
    """What of that a quota limits objects of `resource` can use."""
    return {name for name in hard if _can_use(resource, name)}


def _can_use(resource: Resource, name: str) -> bool:
    if name == counted(resource):
        return True
    match resource.qualified:
        case "pods":
            of_maker = name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name
            return name in OF_PODS or name.startswith((*HUGE_PAGES, IMPLIED)) or of_maker
        case "services":
            return name in OF_SERVICES
        case "persistentvolumeclaims":
            return name.rpartition(OF_CLASS)[2] in OF_CLAIMS
        case "resourceclaims.resource.k8s.io":
            return name.endswith(DEVICES) or name.startswith(IMPLIED)
    return name == resource.qualified and name in OBJECTS


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


def _devices(requests: Iterable[DeviceRequest]) -> Iterator[tuple[str, Quantity]]:
    """Of each class the most that a request may get: it gets one of those that it asks for in turn."""
    for request in requests:
        most: dict[str, int] = {}
        for one in (*([request.exactly] if request.exactly else ()), *request.first_available):
            number = {"ExactCount": one.count, "All": MOST_DEVICES}.get(one.allocation_mode, 0)
            most[one.device_class_name] = max(number, most.get(one.device_class_name, 0))
        for name, number in most.items():
            for said in (f"{name}{DEVICES}", f"{IMPLIED}{name}"):
                yield said, Quantity(str(number))


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
    """Whether `obj` is in the quota's scopes, which are of pods, or of claims."""
    wanted = [ScopedResourceSelectorRequirement(scope_name=scope, operator="Exists") for scope in spec.scopes]
    if spec.scope_selector is not None:
        wanted += spec.scope_selector.match_expressions
    if isinstance(obj, Pod):
        return all(_has_pod(requirement, obj) for requirement in wanted)
    if isinstance(obj, PersistentVolumeClaim):
        return all(_has_claim(requirement, obj) for requirement in wanted)
    return not wanted


def is_terminating(pod: Pod) -> bool:
    """By the scope of that name: it ends by itself."""
    return pod.spec.active_deadline_seconds is not None


def _has_pod(requirement: ScopedResourceSelectorRequirement, pod: Pod) -> bool:
    match requirement.scope_name:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return qos_class(pod) == BEST_EFFORT
        case "NotBestEffort":
            return qos_class(pod) != BEST_EFFORT
        case "PriorityClass":
            name = pod.spec.priority_class_name
            return _has_any(requirement, [name] if name else [])
        case "CrossNamespacePodAffinity":
            return _looks_abroad(pod)
    return False


def _has_claim(requirement: ScopedResourceSelectorRequirement, claim: PersistentVolumeClaim) -> bool:
    status = claim.status
    modified = status.modify_volume_status
    names = (
        claim.spec.volume_attributes_class_name,
        status.current_volume_attributes_class_name,
        modified.target_volume_attributes_class_name if modified else "",
    )
    has = requirement.scope_name == "VolumeAttributesClass"
    return has and _has_any(requirement, [name for name in names if name])


def _has_any(requirement: ScopedResourceSelectorRequirement, names: Collection[str]) -> bool:
    """Whether one of the names is selected, or that there is none."""
    match requirement.operator:
        case "In":
            return any(name in requirement.values for name in names)
        case "NotIn":
            return not names or any(name not in requirement.values for name in names)
    return bool(names) == (requirement.operator == "Exists")


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
