"""Priority: a pod's number is that of its class, never one of its own choosing.

A pod that names no class is of the default one, if there is one. The two system classes are known even before
they are stored.
"""

from __future__ import annotations

from typing import Any

from podling.apiserver.admission.plugin import Attributes, Objects
from podling.model.pod import Pod
from podling.model.priority_class import SYSTEM_CLASSES, PriorityClass

DEFAULT_PRIORITY = 0
PREEMPTION_POLICY = "PreemptLowerPriority"


class Priority:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        if attributes.is_for("pods", "CREATE"):
            self._set(attributes, new)
        elif attributes.is_for("pods", "UPDATE"):
            _keep(new, old)
        elif attributes.is_about("scheduling.k8s.io", "priorityclasses"):
            if new is not None:
                self._refuse_second_default(attributes, new)
            elif attributes.name in SYSTEM_CLASSES:
                raise attributes.forbidden("this is a system priority class and cannot be deleted")

    def _set(self, attributes: Attributes, pod: Pod) -> None:
        spec = pod.spec
        of = self._class(attributes, spec.priority_class_name)
        priority = of.value if of else DEFAULT_PRIORITY
        policy = (of.preemption_policy if of else None) or PREEMPTION_POLICY
        if spec.priority not in (None, priority):
            raise attributes.forbidden(
                f"the integer value of priority ({spec.priority}) must not be provided in pod spec; "
                f"priority admission controller computed {priority} from the given PriorityClass name"
            )
        if spec.preemption_policy not in (None, policy):
            raise attributes.forbidden(
                f"the string value of PreemptionPolicy ({spec.preemption_policy}) must not be provided in "
                f"pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            )
        spec.priority_class_name = of.metadata.name if of else ""
        spec.priority, spec.preemption_policy = priority, policy

    def _class(self, attributes: Attributes, name: str) -> PriorityClass | None:
        """The named class, or the default one. Raises StatusError when there is no class of that name."""
        if not name:
            return self._default()
        found = self._objects.find(PriorityClass, "", name)
        if found is not None:
            return found
        if name not in SYSTEM_CLASSES:
            raise attributes.forbidden(f"no PriorityClass with name {name} was found")
        system = PriorityClass(value=SYSTEM_CLASSES[name][0])
        system.metadata.name = name
        return system

    def _default(self) -> PriorityClass | None:
        defaults = [one for one in self._objects.all(PriorityClass) if one.global_default]
        return min(defaults, key=lambda one: one.value, default=None)

    def _refuse_second_default(self, attributes: Attributes, new: PriorityClass) -> None:
        standing = self._default() if new.global_default else None
        if standing is not None and standing.metadata.name != new.metadata.name:
            name = standing.metadata.name
            raise attributes.forbidden(
                f"PriorityClass {name} is already marked as default. Only one default can exist"
            )


def _keep(new: Pod, old: Pod) -> None:
    """An update may leave out what admission added."""
    if new.spec.priority is None:
        new.spec.priority = old.spec.priority
    if new.spec.preemption_policy is None:
        new.spec.preemption_policy = old.spec.preemption_policy
