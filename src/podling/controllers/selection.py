"""Which pods services select, and which services select a pod, without a look at all of a namespace: with
thousands of each that would be most of what endpoints cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from podling.client.informer import Informer
from podling.controllers.controller import Key
from podling.model.types.pod import Pod
from podling.model.types.service import Service


class Label(NamedTuple):
    namespace: str
    name: str
    value: str


def selects(service: Service, pod: Pod) -> bool:
    selector = service.spec.selector
    return bool(selector) and selector.items() <= pod.metadata.labels.items()


class Selection:
    """Subscribes to both: who subscribes to them behind it finds it up to date."""

    def __init__(self, services: Informer[Service], pods: Informer[Pod]) -> None:
        self.services, self.pods = services, pods
        self._pods_with: defaultdict[Label, dict[str, None]] = defaultdict(dict)
        """The names of pods, by each of their labels."""
        self._services_by: defaultdict[Label, dict[str, None]] = defaultdict(dict)
        """The names of services, by one label of their selector."""
        services.subscribe(self._service_changed)
        pods.subscribe(self._pod_changed)

    def pods_of(self, service: Service) -> list[Pod]:
        """In any order."""
        namespace, selector = service.metadata.namespace, service.spec.selector
        if not selector:
            return []
        candidates = min(
            (self._pods_with.get(Label(namespace, *item), {}) for item in selector.items()), key=len
        )
        there = self.pods.of_namespace(namespace)
        return [there[name] for name in candidates if selects(service, there[name])]

    def services_of(self, pod: Pod) -> Iterator[Key]:
        """Their keys."""
        namespace = pod.metadata.namespace
        there = self.services.of_namespace(namespace)
        for item in pod.metadata.labels.items():
            for name in self._services_by.get(Label(namespace, *item), {}):
                if selects(there[name], pod):
                    yield namespace, name

    def _service_changed(self, old: Service | None, new: Service | None) -> None:
        before, after = ([] if one is None else _labels(one, one.spec.selector)[:1] for one in (old, new))
        _move(self._services_by, (old or new or Service()).metadata.name, before, after)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old.metadata.labels == new.metadata.labels:
            return
        before, after = ([] if one is None else _labels(one, one.metadata.labels) for one in (old, new))
        _move(self._pods_with, (old or new or Pod()).metadata.name, before, after)


def _labels(one: Service | Pod, labels: Mapping[str, str]) -> list[Label]:
    return [Label(one.metadata.namespace, *item) for item in labels.items()]


def _move(
    index: defaultdict[Label, dict[str, None]], name: str, before: list[Label], after: list[Label]
) -> None:
    for label in before:
        if label not in after:
            del index[label][name]
            if not index[label]:
                del index[label]
    for label in after:
        index[label][name] = None
