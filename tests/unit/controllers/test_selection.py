"""Services and the pods they select, as both come, change and go."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from podling.controllers.selection import Selection, selects
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod
from podling.model.types.service import Service, ServiceSpec


class Collection:
    """An informer that is told by the test."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self._handlers: list[Callable[[Any, Any], None]] = []

    def of_namespace(self, namespace: str) -> dict[str, Any]:
        return self.objects.get(namespace, {})

    def subscribe(self, handler: Callable[[Any, Any], None]) -> None:
        self._handlers.append(handler)

    def put(self, namespace: str, name: str, new: Any) -> None:
        there = self.objects.setdefault(namespace, {})
        old = there.pop(name, None)
        if new is not None:
            new.metadata.namespace, new.metadata.name = namespace, name
            there[name] = new
        if old is not None or new is not None:
            for handler in self._handlers:
                handler(old, new)

    def all(self) -> list[Any]:
        return [one for named in self.objects.values() for one in named.values()]


def test_it_is_what_a_look_at_everything_finds() -> None:
    services, pods, random = Collection(), Collection(), Random(1)
    selection = Selection(services, pods)  # type: ignore[arg-type]

    def labels() -> dict[str, str]:
        return {name: random.choice("xy") for name in random.sample("abc", random.randrange(4))}

    for _ in range(2000):
        at = random.choice("mn"), random.choice("123456")
        is_gone = random.random() < 0.3
        if random.random() < 0.3:
            services.put(*at, None if is_gone else Service(spec=ServiceSpec(selector=labels())))
        else:
            pods.put(*at, None if is_gone else Pod(metadata=ObjectMeta(labels=labels())))
        for service in services.all():
            there = pods.of_namespace(service.metadata.namespace).values()
            assert {pod.metadata.name for pod in selection.pods_of(service)} == {
                pod.metadata.name for pod in there if selects(service, pod)
            }
        for pod in pods.all():
            offered = services.of_namespace(pod.metadata.namespace).values()
            assert sorted(selection.services_of(pod)) == sorted(
                (one.metadata.namespace, one.metadata.name) for one in offered if selects(one, pod)
            )
    for collection in (services, pods):
        for one in collection.all():
            collection.put(one.metadata.namespace, one.metadata.name, None)
    assert not selection._pods_with and not selection._services_by


def test_only_what_may_be_selected_is_looked_at() -> None:
    services, pods = Collection(), Collection()
    selection = Selection(services, pods)  # type: ignore[arg-type]
    for n in range(1000):
        services.put("ns", f"s{n}", Service(spec=ServiceSpec(selector={"app": str(n)})))
        pods.put("ns", f"p{n}", Pod(metadata=ObjectMeta(labels={"app": str(n), "all": "alike"})))
    looked: list[str] = []

    class Noted(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            looked.append(name)
            return super().__getitem__(name)

    for collection in (services, pods):
        collection.objects["ns"] = Noted(collection.objects["ns"])
    assert [*selection.services_of(dict(pods.objects["ns"])["p7"])] == [("ns", "s7")]
    both = Service(
        metadata=ObjectMeta(namespace="ns"), spec=ServiceSpec(selector={"all": "alike", "app": "8"})
    )
    assert [pod.metadata.name for pod in selection.pods_of(both)] == ["p8"]
    assert set(looked) == {"s7", "p8"}
