"""RuntimeClass: what a pod's runtime class costs and where it runs becomes part of the pod."""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.admission.plugin import Attributes, Objects
from podling.model.pod import PodSpec
from podling.model.runtime_class import RuntimeClass, Scheduling


class RuntimeClasses:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if not attributes.is_for("pods", "CREATE"):
            return
        spec: PodSpec = new.spec
        of = self._class(attributes, spec.runtime_class_name)
        _set_overhead(attributes, spec, of)
        if of is not None and of.scheduling is not None:
            _set_scheduling(attributes, spec, of.scheduling)

    def _class(self, attributes: Attributes, name: str | None) -> RuntimeClass | None:
        """Raises StatusError 403 when there is no class of that name."""
        if not name:
            return None
        found = self._objects.find(RuntimeClass, "", name)
        if found is None:
            raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _set_overhead(attributes: Attributes, spec: PodSpec, of: RuntimeClass | None) -> None:
    if of is None or of.overhead is None:
        if spec.overhead:
            raise attributes.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        return
    if spec.overhead and spec.overhead != of.overhead.pod_fixed:
        raise attributes.forbidden(
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        )
    spec.overhead = dict(of.overhead.pod_fixed)


def _set_scheduling(attributes: Attributes, spec: PodSpec, scheduling: Scheduling) -> None:
    for key, value in scheduling.node_selector.items():
        own = spec.node_selector.get(key, value)
        if own != value:
            raise attributes.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own}"
            )
    spec.node_selector = {**spec.node_selector, **scheduling.node_selector}
    known = set(map(msgspec.structs.astuple, spec.tolerations))
    spec.tolerations = [
        *spec.tolerations,
        *(one for one in scheduling.tolerations if msgspec.structs.astuple(one) not in known),
    ]
