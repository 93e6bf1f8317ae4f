"""PodTolerationRestriction: what the pods of a namespace tolerate without saying so, and all that they may.
A namespace says both in annotations; the configuration of the plugin says it for those that do not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from msgspec.structs import astuple

from podling.apiserver.admission.plugin import Attributes, Handles, Objects
from podling.apiserver.admission.plugin_options import TolerationOptions
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.rules.resources import BEST_EFFORT, qos_class
from podling.model.types.core import Namespace
from podling.model.types.pod import Toleration

DEFAULT, WHITELIST = (
    f"scheduler.alpha.kubernetes.io/{name}" for name in ("defaultTolerations", "tolerationsWhitelist")
)
MEMORY_PRESSURE = Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule")
EQUAL = ("", "Equal")
Place = tuple[str, str, str | None]
"""Key, effect, and value: None of one that is for any value."""
REFUSED = "pod tolerations (possibly merged with namespace default tolerations) conflict with its"


class PodTolerationRestriction:
    handles: ClassVar[Handles] = {"pods": ("CREATE", "UPDATE")}

    def __init__(self, objects: Objects, options: TolerationOptions) -> None:
        self._objects, self._options = objects, options

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        """Raises StatusError 500, as Kubernetes does."""
        own: Sequence[Toleration] = new.spec.tolerations
        if attributes.operation == "CREATE":
            default = self._said(attributes.namespace, DEFAULT)
            default = self._options.default if default is None else default
            own = merged((*own, *default)) if default and own else default or own
        if qos_class(new) != BEST_EFFORT:
            own = merged((*own, MEMORY_PRESSURE))
        new.spec.tolerations = list(own)
        self.judge(attributes, new)

    def judge(self, attributes: Attributes, pod: Any) -> None:
        own = self._said(attributes.namespace, WHITELIST)
        allowed = self._options.whitelist if own is None else own
        cover = Cover(allowed)
        if allowed and not all(map(cover.has, pod.spec.tolerations)):
            whose = "cluster" if own is None else "namespace"
            raise StatusError(500, "", f"{REFUSED} {whose} whitelist")

    def _said(self, namespace: str, annotation: str) -> Sequence[Toleration] | None:
        found = self._objects.find(Namespace, "", namespace)
        text = found.metadata.annotations.get(annotation) if found is not None else None
        if text is None:
            return None
        return json.decode(text.encode(), list[Toleration]) if text else []


class PodTolerationCheck:
    """The same, of the pod as it is stored."""

    handles: ClassVar[Handles] = PodTolerationRestriction.handles

    def __init__(self, restriction: PodTolerationRestriction) -> None:
        self._restriction = restriction

    async def admit(self, attributes: Attributes, new: Any, old: Any) -> None:
        self._restriction.judge(attributes, new)


class Cover:
    """What tolerations tolerate, so that whether they cover another one is a few look-ups, however many they
    are."""

    def __init__(self, tolerations: Iterable[Toleration] = ()) -> None:
        self._same: set[tuple[Any, ...]] = set()
        self._longest: dict[Place, list[tuple[float, Toleration]]] = {}
        """Of each place the two that tolerate for the most seconds."""
        for one in tolerations:
            self.add(one)

    def add(self, one: Toleration) -> None:
        self._same.add(astuple(one))
        if one.operator in ("Exists", *EQUAL):
            place = one.key, one.effect, None if one.operator == "Exists" else one.value
            limited = one.effect == "NoExecute" and one.toleration_seconds is not None
            found = self._longest.setdefault(place, [])
            if all(other != one for _, other in found):
                found.append(((one.toleration_seconds or 0.0) if limited else math.inf, one))
                found.sort(key=lambda entry: -entry[0])
                del found[2:]

    def has(self, one: Toleration, *, besides: bool = False) -> bool:
        """Whether one of them tolerates whatever `one` does; `besides`: one that is not the same."""
        if not besides and astuple(one) in self._same:
            return True
        values = (None, one.value) if one.operator == "Equal" else (None,)
        places = [(one.key, effect, value) for effect in ("", one.effect) for value in values]
        places += [("", effect, None) for effect in ("", one.effect)]
        seconds = one.toleration_seconds
        return any(
            longest == math.inf or (seconds is not None and seconds <= longest)
            for place in places
            for longest, wider in self._longest.get(place, ())
            if not (besides and wider == one)
        )


def merged(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Without those that another one covers; of equal ones the first stays."""
    later, kept = Cover(), Cover()
    covered = []
    for one in reversed(tolerations):
        covered.append(later.has(one, besides=True))
        later.add(one)
    found = []
    for one, is_covered in zip(tolerations, reversed(covered), strict=True):
        if not is_covered and not kept.has(one):
            kept.add(one)
            found.append(one)
    return found
