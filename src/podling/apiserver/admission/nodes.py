"""The plugins that know nodes.

TaintNodesByCondition keeps pods away from a new node until the node lifecycle controller has found it ready.
NodeDeclaredFeatureValidator lets a running pod change only in ways that its node declares to support, and
PodResizeValidator lets it grow only as far as its node could hold it alone.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podling.apiserver.admission.plugin import Attributes, Handles
from podling.apiserver.request.context import Find
from podling.model.errors import Cause, StatusError
from podling.model.quantity import Quantity
from podling.model.rules.placement import NO_SCHEDULE, NOT_READY, needed_to_change
from podling.model.rules.resources import pod_requests
from podling.model.types.node import Node, Taint
from podling.model.types.pod import Pod

LINUX = "linux"
OS_LABEL = "kubernetes.io/os"
ZERO = Quantity()


class TaintNodesByCondition:
    handles: ClassVar[Handles] = {"nodes": ("CREATE",)}

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        taints: list[Taint] = new.spec.taints
        if all((taint.key, taint.effect) != (NOT_READY, NO_SCHEDULE) for taint in taints):
            new.spec.taints = [*taints, Taint(key=NOT_READY, effect=NO_SCHEDULE)]


class NodeDeclaredFeatures:
    handles: ClassVar[Handles] = {"pods": ("UPDATE",), "pods/resize": ("UPDATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        name = new.spec.node_name
        needed = needed_to_change(new.spec, old.spec) if name else frozenset()
        if not needed:
            return
        node = self._find(Node, "", name)
        if node is None:
            raise attributes.forbidden(f'node "{name}" not found')
        if missing := sorted(needed - set(node.status.declared_features)):
            listed = ", ".join(missing)
            why = f'pod update requires features {listed} which are not available on node "{name}"'
            raise attributes.forbidden(why)


class PodResizeValidator:
    handles: ClassVar[Handles] = {"pods/resize": ("UPDATE",)}

    def __init__(self, find: Find) -> None:
        self._find = find

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 403."""
        name = new.spec.node_name
        if not name or new.spec == old.spec:
            return
        node = self._find(Node, "", name)
        if node is None:
            raise attributes.forbidden(f'node "{name}" not found')
        system = node.metadata.labels.get(OS_LABEL, LINUX)
        if system != LINUX:
            why = f'pod resize is only supported on linux nodes, node "{name}" is "{system}"'
            raise _refused(attributes, "UnsupportedPlatform", why)
        if lacking := lacks(node, new):
            why = f"node didn't have enough allocatable resources: {lacking}"
            raise _refused(attributes, "NodeCapacity", why)


def lacks(node: Node, pod: Pod) -> str:
    """What the node could not give the pod even if it ran nothing else; empty if nothing."""
    requests, allocatable = pod_requests(pod), node.status.allocatable
    counted = (("cpu", Quantity.milli_value), ("memory", Quantity.value))
    found = (
        (name, count(requests.get(name, ZERO)), count(allocatable.get(name, ZERO))) for name, count in counted
    )
    return "; ".join(
        f"{name}, requested: {asked}, allocatable: {most}" for name, asked, most in found if asked > most
    )


def _refused(attributes: Attributes, reason: str, why: str) -> StatusError:
    refused = attributes.forbidden(why)
    refused.causes = (Cause(reason, ""),)
    return refused
