"""The status of CustomResourceDefinitions and their deletion, as by kube-apiserver's own controllers.

A definition gets names in its group, and is told whether it has its approval.
podling serves no custom resources, so Established stays False (docs/decisions/042), and a definition that is
deleted has none that would have to go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podling.client.client import Client
from podling.client.informer import Informer
from podling.client.workqueue import WorkQueue
from podling.controllers.controller import LAG, Created, Key, gone_is_done
from podling.model.codec import json
from podling.model.errors import joined
from podling.model.rules.custom_resources import CLEANUP, approval, is_protected, set_condition
from podling.model.time import Clock
from podling.model.types.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
)

ACCEPTED = ("NoConflicts", "no conflicts found")
NOT_SERVED = ("NotServed", "podling does not serve custom resources")
NOT_ACCEPTED = ("NotAccepted", "not all names are accepted")
GONE = ("InstanceDeletionCompleted", "removed all instances")
APPROVED = {"Approved": "True"}
"""The status of the condition; False for every other state."""


class CustomResourceNames:
    """Names are accepted one definition after the other. What a definition frees, others of its group get."""

    name = "custom-resource-names"

    def __init__(self, client: Client, definitions: Informer[CustomResourceDefinition], clock: Clock) -> None:
        self.queue: WorkQueue[Key] = WorkQueue()
        self._client, self._definitions, self._clock = client, definitions, clock
        self._written = Created(definitions)
        definitions.subscribe(self._changed)

    async def reconcile(self, key: Key) -> None:
        found = self._definitions.get(*key)
        if found is None:
            return
        obj = json.decode(json.encode(found), CustomResourceDefinition)
        with gone_is_done():
            if obj.metadata.deletion_timestamp:
                await self._delete(obj)
                return
            group = ("", obj.spec.group)
            if self._written.is_behind(group):
                # Names that were just accepted are not seen yet.
                self.queue.add_after(key, LAG)
                return
            self._decide(obj)
            if obj.status != found.status:
                self._written.add(group, await self._client.update(obj, subresource="status"))

    async def _delete(self, obj: CustomResourceDefinition) -> None:
        if CLEANUP in obj.metadata.finalizers:
            obj.metadata.finalizers.remove(CLEANUP)
            self._set(obj, "Terminating", "False", GONE)
            obj = await self._client.update(obj, subresource="status")
        if not obj.metadata.finalizers:
            await self._client.delete(CustomResourceDefinition, obj.metadata.name, uid=obj.metadata.uid)

    def _decide(self, obj: CustomResourceDefinition) -> None:
        taken = list(self._others(obj))
        conflict = _accept(obj, taken)
        self._set(obj, "NamesAccepted", "False" if conflict else "True", conflict or ACCEPTED)
        self._set(obj, "Established", "False", NOT_ACCEPTED if conflict else NOT_SERVED)
        if is_protected(obj.spec.group):
            state, message = approval(obj.metadata.annotations)
            status = APPROVED.get(state, "False")
            self._set(obj, "KubernetesAPIApprovalPolicyConformant", status, (f"{state}Annotation", message))

    def _others(self, obj: CustomResourceDefinition) -> Iterator[CustomResourceDefinitionNames]:
        """The names that the others of its group have."""
        for other in self._definitions.items():
            if other.spec.group == obj.spec.group and other.metadata.name != obj.metadata.name:
                yield other.status.accepted_names

    def _set(self, obj: CustomResourceDefinition, type_: str, status: str, said: tuple[str, str]) -> None:
        condition = CustomResourceDefinitionCondition(type_, status, None, *said)
        set_condition(obj, condition, self._clock.now())

    def _changed(self, old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        if new is not None:
            self.queue.add(("", new.metadata.name))
        if old is None or (new is not None and new.status.accepted_names == old.status.accepted_names):
            return
        for other in self._definitions.items():
            if other.spec.group == old.spec.group:
                self.queue.add(("", other.metadata.name))


def _accept(
    obj: CustomResourceDefinition, taken: Iterable[CustomResourceDefinitionNames]
) -> tuple[str, str] | None:
    """Give `obj` all names that nobody has taken. Reason and message of the last conflict."""
    wanted, has = obj.spec.names, obj.status.accepted_names
    resources, kinds = set[str](), set[str]()
    for names in taken:
        resources.update((names.plural, names.singular, *names.short_names))
        kinds.update((names.kind, names.list_kind))
    conflict: tuple[str, str] | None = None
    for reason, attribute, used in (
        ("PluralConflict", "plural", resources),
        ("SingularConflict", "singular", resources),
        ("ShortNamesConflict", "short_names", resources),
        ("KindConflict", "kind", kinds),
        ("ListKindConflict", "list_kind", kinds),
    ):
        value, standing = getattr(wanted, attribute), getattr(has, attribute)
        many = value if isinstance(value, list) else [value]
        mine = frozenset(standing if isinstance(standing, list) else [standing])
        busy = [f'"{name}" is already in use' for name in many if name not in mine and name in used]
        if busy:
            conflict = (reason, joined(busy))
        else:
            setattr(has, attribute, value)
    has.categories = wanted.categories
    return conflict
