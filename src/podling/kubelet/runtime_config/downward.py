"""Facts about a pod for its own containers: fieldRef and resourceFieldRef, as environment variables have
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from podling.kubelet.container_types import all_containers
from podling.model.container import EphemeralContainerCommon
from podling.model.pod import Pod
from podling.model.quantity import Quantity
from podling.model.references import ResourceFieldSelector

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_ONE = Quantity("1")


def field_value(pod: Pod, path: str, pod_ips: Sequence[str], host_ips: Sequence[str]) -> str:
    """Raises ValueError for a path no environment variable can have."""
    if match := _SUBSCRIPT.fullmatch(path):
        values = pod.metadata.labels if match[1] == "labels" else pod.metadata.annotations
        return values.get(match[2], "")
    plain: Mapping[str, Callable[[], str]] = {
        "metadata.name": lambda: pod.metadata.name,
        "metadata.namespace": lambda: pod.metadata.namespace,
        "metadata.uid": lambda: pod.metadata.uid,
        "spec.nodeName": lambda: pod.spec.node_name,
        "spec.serviceAccountName": lambda: pod.spec.service_account_name,
        "status.hostIP": lambda: next(iter(host_ips), ""),
        "status.hostIPs": lambda: ",".join(host_ips),
        "status.podIP": lambda: next(iter(pod_ips), ""),
        "status.podIPs": lambda: ",".join(pod_ips),
    }
    if path not in plain:
        raise ValueError(f"unsupported fieldPath: {path}")
    return plain[path]()


def resource_value(
    pod: Pod, selector: ResourceFieldSelector, own_name: str, allocatable: Mapping[str, Quantity]
) -> str:
    """A request or limit in units of the divisor, rounded up; a limit that is not set is what the node can
    give. Raises ValueError when there is no such container or resource.
    """
    container = _named(pod, selector.container_name or own_name)
    side, _, resource = selector.resource.partition(".")
    if side not in ("limits", "requests") or not resource:
        raise ValueError(f"unsupported container resource : {selector.resource}")
    given = container.resources.limits if side == "limits" else container.resources.requests
    value = given.get(resource) or (allocatable.get(resource) if side == "limits" else None) or Quantity("0")
    divisor = selector.divisor or _ONE
    return str(-(-value.nanos // divisor.nanos))


def _named(pod: Pod, name: str) -> EphemeralContainerCommon:
    for _, container in all_containers(pod):
        if container.name == name:
            return container
    raise ValueError(f"container {name} not found")
