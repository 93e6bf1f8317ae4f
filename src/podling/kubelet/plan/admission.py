"""Pod admission on the node: whether it can run the pod, and which pods a critical one preempts. Pure.

The scheduler checked resources, ports and taints with what it knew then, and a pod may name its node without
a scheduler. A pod that is refused fails with Kubernetes' reason: OutOfcpu, OutOfpods, NodeAffinity, NodePorts
... So does one whose AppArmor profile, groups policy or sysctls the node cannot or may not enforce.

As few pods as possible are preempted: Guaranteed ones only for what all others cannot free, then Burstable,
then BestEffort.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from podling.kubelet.pod.containers import all_containers
from podling.model.quantity import Quantity
from podling.model.rules.placement import NO_EXECUTE, ports_collide, selects, tolerates
from podling.model.rules.resources import BEST_EFFORT, BURSTABLE, GUARANTEED, pod_requests, qos_class
from podling.model.rules.status import MIRROR
from podling.model.types.container import ResourceList
from podling.model.types.node import Node
from podling.model.types.pod import Pod, PodSecurityContext

PODS = "pods"
OS_LABEL = "kubernetes.io/os"
CONFIG_SOURCE, API_SOURCE = "kubernetes.io/config.source", "api"
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
PREEMPTING = "Preempting"
PREEMPTION_MESSAGE = "Preempted in order to admit critical pod"
SYSCTL_FORBIDDEN = "SysctlForbidden"
SAFE = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)
"""Sysctls that are namespaced and affect only the pod."""
_IPC = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_NETWORK = "net."
_ZERO = Quantity("0")
_OF_KUBERNETES = (PODS, "cpu", "memory", "ephemeral-storage")
"""The resources that shortages are told of first, in this order."""
_NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
_NOT_TOLERATED = "node(s) had taints that the pod didn't tolerate"
_NOT_THIS_NODE = "node(s) didn't match the requested node name"
_PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"

Amounts = Mapping[str, int]
"""Resource → amount: milli-CPUs, bytes or numbers."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a pod is refused. `by_labels`: because of labels or taints of the Node, of which the API may have
    newer ones than the kubelet."""

    reason: str
    message: str
    by_labels: bool = False


class Shortage(msgspec.Struct, frozen=True):
    """A resource of which less is left than the pod requests; CPU in milli-CPUs."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        return self.requested - (self.capacity - self.used)

    @property
    def refusal(self) -> Refusal:
        message = (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )
        return Refusal(f"OutOf{self.resource}", message)


def unfit(pod: Pod) -> Refusal | None:
    """Refuse a pod for another operating system."""
    if pod.metadata.labels.get(OS_LABEL, "linux") != "linux":
        message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", message)
    if pod.spec.os is not None and pod.spec.os.name != "linux":
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def misplaced(pod: Pod, node: Node, others: Iterable[Pod], *, again: bool) -> Iterator[Refusal]:
    """Check node affinity, node name, host ports and NoExecute taints, with the words of the scheduler's
    plugins. `again`: an earlier kubelet admitted
    the pod, so labels and taints that changed since do not count."""
    if not again and not selects(pod, node):
        yield _predicate("NodeAffinity", _NOT_SELECTED, by_labels=True)
    if pod.spec.node_name != node.metadata.name:
        yield _predicate("NodeName", _NOT_THIS_NODE)
    if ports_collide(pod, others):
        yield _predicate("NodePorts", _PORTS_TAKEN)
    repelled = any(
        taint.effect == NO_EXECUTE and not any(tolerates(t, taint) for t in pod.spec.tolerations)
        for taint in node.spec.taints
    )
    if repelled and not again and not is_static(pod):
        yield _predicate("TaintToleration", _NOT_TOLERATED, by_labels=True)


def shortages(wanted: Amounts, used: Amounts, allocatable: ResourceList) -> Iterator[Shortage]:
    """The resources of which too little is left. Extended resources that the node does not have are ignored,
    as in Kubernetes."""
    known = {resource: rank for rank, resource in enumerate(_OF_KUBERNETES)}
    for resource in sorted(wanted, key=lambda name: (known.get(name, len(known)), name)):
        if not wanted[resource] or ("/" in resource and resource not in allocatable):
            continue
        capacity = amount(resource, allocatable.get(resource, _ZERO))
        found = Shortage(resource, wanted[resource], used.get(resource, 0), capacity)
        if found.missing > 0:
            yield found


def amounts(pod: Pod) -> Amounts:
    """What a pod takes of the node: its requests, and 1 of `pods`."""
    return {PODS: 1, **amounts_of(pod_requests(pod))}


def amounts_of(resources: ResourceList) -> Amounts:
    return {name: amount(name, quantity) for name, quantity in resources.items()}


def amount(resource: str, quantity: Quantity) -> int:
    """Milli-CPUs for CPU, else the value."""
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def is_static(pod: Pod) -> bool:
    """The pod comes from a manifest file of the node, not from the API."""
    return pod.metadata.annotations.get(CONFIG_SOURCE, API_SOURCE) != API_SOURCE


def is_critical(pod: Pod) -> bool:
    """Whether room is made for it: Kubernetes' `IsCriticalPod`."""
    important = (pod.spec.priority or 0) >= SYSTEM_CRITICAL_PRIORITY
    return is_static(pod) or MIRROR in pod.metadata.annotations or important


def _predicate(name: str, why: str, *, by_labels: bool = False) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}", by_labels)


class Enforcers(msgspec.Struct, frozen=True):
    """`app_armor`: the kernel has AppArmor; `groups_policy`: the runtime supports
    supplementalGroupsPolicy."""

    app_armor: bool
    groups_policy: bool


def unenforceable(pod: Pod, by: Enforcers) -> Refusal | None:
    """Refuse a pod with an AppArmor profile or groups policy that this node cannot enforce."""
    contexts = [pod.spec.security_context, *(c.security_context for _, c in all_containers(pod))]
    profiles = [context.app_armor_profile for context in contexts if context and context.app_armor_profile]
    if not by.app_armor and any(profile.type != "Unconfined" for profile in profiles):
        return Refusal("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
    policy = (pod.spec.security_context or PodSecurityContext()).supplemental_groups_policy
    if policy == "Strict" and not by.groups_policy:
        message = f"SupplementalGroupsPolicy={policy} is not supported in this node"
        return Refusal("SupplementalGroupsPolicyNotSupported", message)
    return None


def victims(pod: Pod, others: Iterable[Pod], missing: Amounts) -> list[Pod] | None:
    """The pods to preempt for `pod` (Kubernetes' `getPodsToPreempt`); None if even all candidates would not
    free `missing`."""
    classes: dict[str, list[Pod]] = {BEST_EFFORT: [], BURSTABLE: [], GUARANTEED: []}
    for other in others:
        if preemptable(pod, other):
            classes[qos_class(other)].append(other)
    best_effort, burstable, guaranteed = classes.values()
    if _less(missing, (*best_effort, *burstable, *guaranteed)):
        return None
    last = _fewest(guaranteed, _less(missing, (*best_effort, *burstable)))
    middle = _fewest(burstable, _less(missing, (*best_effort, *last)))
    first = _fewest(best_effort, _less(missing, (*middle, *last)))
    return [*first, *middle, *last]


def preemptable(pod: Pod, other: Pod) -> bool:
    """Whether `other` may have to go for `pod` (Kubernetes' `Preemptable`)."""
    if is_critical(pod) and not is_critical(other):
        return True
    return (pod.spec.priority or 0) > (other.spec.priority or 0)


def _fewest(pods: Iterable[Pod], missing: Amounts) -> list[Pod]:
    """Choose repeatedly the pod that frees most of what is still missing; of equal ones the smaller."""

    def order(pod: Pod) -> tuple[float, int, int]:
        of = amounts(pod)
        return _distance(pod, missing), of.get("memory", 0), of.get("cpu", 0)

    left, chosen = list(pods), []
    while missing:
        best = min(left, key=order)
        left.remove(best)
        chosen.append(best)
        missing = _less(missing, (best,))
    return chosen


def _distance(pod: Pod, missing: Amounts) -> float:
    """0 when the pod gives all that is missing; each resource counts the same."""
    return sum((_less({name: need}, (pod,)).get(name, 0) / need) ** 2 for name, need in missing.items())


def _less(missing: Amounts, pods: Iterable[Pod]) -> Amounts:
    """What is missing still when these have gone."""
    given = [amounts(pod) for pod in pods]
    left = {name: need - sum(of.get(name, 0) for of in given) for name, need in missing.items()}
    return {name: need for name, need in left.items() if need > 0}


def forbidden_sysctl(pod: Pod, allowed: Sequence[str]) -> Refusal | None:
    """Refuse a pod with an unsafe sysctl. Safe ones are namespaced and affect only the pod; `allowed` are the
    names and prefixes (`kernel.shm*`) of allowedUnsafeSysctls."""
    if pod.spec.security_context is None:
        return None
    prefixes = tuple(pattern[:-1] for pattern in allowed if pattern.endswith("*"))
    for sysctl in pod.spec.security_context.sysctls:
        # A slash separates its parts as well as a dot.
        name = sysctl.name.replace("/", ".")
        if not (name in SAFE or name in allowed or name.startswith(prefixes)):
            why = "not allowlisted"
        elif name.startswith(_NETWORK) and pod.spec.host_network:
            why = "not allowed with host Net enabled"
        elif name.startswith(_IPC) and pod.spec.host_ipc:
            why = "not allowed with host IPC enabled"
        else:
            continue
        return Refusal(SYSCTL_FORBIDDEN, f'forbidden sysctl: "{sysctl.name}" {why}')
    return None
