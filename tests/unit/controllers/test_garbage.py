"""Owners and dependents: background, foreground, orphan (R-SYS-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.garbage import GarbageCollector
from podling.model.errors import StatusError
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import KubeObject, ObjectMeta, OwnerReference

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster


@pytest.fixture
async def started(cluster: Cluster) -> Cluster:
    await cluster.run(GarbageCollector(cluster.account("generic-garbage-collector"), cluster.informers))
    return cluster


def owned_by(*owners: KubeObject, blocking: bool = False) -> dict[str, Any]:
    references = [
        {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            **({"blockOwnerDeletion": True} if blocking else {}),
        }
        for owner in owners
    ]
    return {"ownerReferences": references}


async def test_what_belongs_to_nobody_any_more_goes(started: Cluster) -> None:
    owner = await started.make(ConfigMap, "owner")
    child = await started.make(Secret, "child", metadata=owned_by(owner))
    await started.make(ConfigMap, "grandchild", metadata=owned_by(child))
    await started.settle()
    assert await started.names(Secret, "ns") == ["child"]
    await started.client.delete(ConfigMap, "owner", "ns")
    await started.settle()
    assert await started.names(Secret, "ns") == []
    assert await started.names(ConfigMap, "ns") == []


async def test_one_owner_is_enough_to_stay(started: Cluster) -> None:
    one, other = await started.make(ConfigMap, "one"), await started.make(ConfigMap, "other")
    await started.make(Secret, "child", metadata=owned_by(one, other))
    await started.client.delete(ConfigMap, "one", "ns")
    await started.settle()
    child = await started.client.get(Secret, "child", "ns")
    assert [ref.name for ref in child.metadata.owner_references] == ["other"]


async def test_an_owner_that_never_was_is_no_owner(started: Cluster) -> None:
    owner = ConfigMap()
    owner.metadata.name, owner.metadata.uid = "owner", "u"
    await started.make(ConfigMap, "owner")
    await started.make(Secret, "child", metadata=owned_by(owner))
    await started.settle()
    assert await started.names(Secret, "ns") == []


async def test_an_owner_of_an_unknown_kind_keeps_its_dependents(started: Cluster) -> None:
    reference = {"apiVersion": "x.io/v1", "kind": "Gadget", "name": "g", "uid": "u"}
    await started.make(Secret, "child", metadata={"ownerReferences": [reference]})
    await started.settle()
    assert await started.names(Secret, "ns") == ["child"]


async def test_orphans_are_let_go(started: Cluster) -> None:
    owner = await started.make(ConfigMap, "owner")
    await started.make(Secret, "child", metadata=owned_by(owner))
    await started.settle()
    await started.client.delete(ConfigMap, "owner", "ns", propagation="Orphan")
    assert await started.names(ConfigMap, "ns") == ["owner"]
    await started.settle()
    assert await started.names(ConfigMap, "ns") == []
    assert (await started.client.get(Secret, "child", "ns")).metadata.owner_references == []


async def test_in_the_foreground_the_owner_goes_last(started: Cluster) -> None:
    owner = await started.make(ConfigMap, "owner")
    held = {**owned_by(owner, blocking=True), "finalizers": ["x.io/held"]}
    await started.make(Secret, "child", metadata=held)
    await started.settle()
    await started.client.delete(ConfigMap, "owner", "ns", propagation="Foreground")
    await started.settle()
    child = await started.client.get(Secret, "child", "ns")
    assert child.metadata.deletion_timestamp
    assert await started.names(ConfigMap, "ns") == ["owner"]
    await started.client.patch(Secret, "child", "ns", {"metadata": {"finalizers": None}})
    await started.settle()
    assert await started.names(Secret, "ns") == []
    assert await started.names(ConfigMap, "ns") == []


async def own(cluster: Cluster, *edges: str) -> None:
    """`a>b`: config map a is owned by b, and holds it while it is deleted in the foreground; `a-b` does not.
    A letter in upper case is held by somebody's finalizer."""
    letters = sorted({letter for edge in edges for letter in (edge[0], edge[2])})
    made = {}
    for letter in letters:
        held = {"finalizers": ["x.io/hold"]} if letter.isupper() else {}
        made[letter] = await cluster.make(ConfigMap, letter.lower(), metadata=held)
    for letter in letters:
        owners = [(made[edge[2]], edge[1] == ">") for edge in edges if edge[0] == letter]
        references = [
            reference
            for owner, blocking in owners
            for reference in owned_by(owner, blocking=blocking)["ownerReferences"]
        ]
        await cluster.client.patch(
            ConfigMap, letter.lower(), "ns", {"metadata": {"ownerReferences": references}}
        )
    await cluster.settle()


async def left(cluster: Cluster) -> dict[str, tuple[bool, list[str]]]:
    """Whether what is left is being deleted, and what holds it."""
    found = (await cluster.client.list(ConfigMap, "ns")).items
    return {o.metadata.name: (bool(o.metadata.deletion_timestamp), o.metadata.finalizers) for o in found}


async def delete_in_the_foreground(cluster: Cluster, name: str) -> None:
    await cluster.client.delete(ConfigMap, name, "ns", propagation="Foreground")
    await asyncio.wait_for(cluster.settle(), 10)


@pytest.mark.parametrize(
    "edges",
    [
        ["a>b", "b>a"],
        ["a>b", "b>c", "c>a"],
        ["a>b", "b>c", "c>d", "d>a"],
        ["a>b", "b>a", "c>a", "c>b", "a>c"],
    ],
)
async def test_a_circle_in_the_foreground_goes(started: Cluster, edges: list[str]) -> None:
    await own(started, *edges)
    await delete_in_the_foreground(started, "a")
    assert await left(started) == {}


async def test_what_holds_itself_stays_as_in_kubernetes(started: Cluster) -> None:
    await own(started, "a>a")
    await delete_in_the_foreground(started, "a")
    assert await left(started) == {"a": (True, ["foregroundDeletion"])}


async def test_a_circle_that_is_held_from_outside_waits_as_in_kubernetes(started: Cluster) -> None:
    await own(started, "A>b", "b>C", "C>A")
    await delete_in_the_foreground(started, "a")
    assert await left(started) == {
        "a": (True, ["x.io/hold", "foregroundDeletion"]),
        "b": (False, []),
        "c": (True, ["x.io/hold"]),
    }
    b = await started.client.get(ConfigMap, "b", "ns")
    assert [ref.block_owner_deletion for ref in b.metadata.owner_references] == [False]
    for name in ("c", "a"):
        await started.client.patch(ConfigMap, name, "ns", {"metadata": {"finalizers": None}})
        await started.settle()
    assert await left(started) == {}


async def test_a_dependent_that_lets_go_frees_its_owner(started: Cluster) -> None:
    await own(started, "B>a")
    await delete_in_the_foreground(started, "a")
    assert (await left(started))["a"][0]
    b = await started.client.get(ConfigMap, "b", "ns")
    await started.client.patch(ConfigMap, "b", "ns", {"metadata": owned_by(await owner_of(started, b))})
    await started.settle()
    assert sorted(await left(started)) == ["b"]


async def owner_of(cluster: Cluster, obj: KubeObject) -> ConfigMap:
    owner: ConfigMap = await cluster.client.get(ConfigMap, obj.metadata.owner_references[0].name, "ns")
    return owner


class Absent:
    """A server that has nothing; counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        raise StatusError(404, "NotFound", "gone")

    get = delete = patch = ask


class Told:
    """Informers that are told by hand, of config maps."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], KubeObject] = {}
        self._handler: Any = None

    def of(self, type_: type[KubeObject]) -> Any:
        return self if type_ is ConfigMap else Told()

    def subscribe(self, handler: Any) -> None:
        self._handler = handler

    def get(self, namespace: str, name: str) -> KubeObject | None:
        return self._objects.get((namespace, name))

    def put(self, name: str, *owners: str, finalizers: Sequence[str] = (), deleted: bool = False) -> None:
        references = [OwnerReference("v1", "ConfigMap", o, o, block_owner_deletion=True) for o in owners]
        meta = ObjectMeta(name=name, namespace="ns", uid=name, owner_references=references)
        meta.finalizers = list(finalizers)
        meta.deletion_timestamp = "2026-01-02T03:04:05Z" if deleted else ""
        old, new = self._objects.get(("ns", name)), ConfigMap(metadata=meta)
        self._objects["ns", name] = new
        self._handler(old, new)


async def reconciled(collector: GarbageCollector) -> int:
    """How many keys there were."""
    count = 0
    while len(collector.queue):
        key = await collector.queue.get()
        await collector.reconcile(key)
        collector.queue.done(key)
        count += 1
    return count


@pytest.mark.parametrize("number", [100, 200])
async def test_work_is_linear_in_dependents(number: int) -> None:
    told, server = Told(), Absent()
    collector = GarbageCollector(server, told)  # type: ignore[arg-type]
    told.put("owner")
    for i in range(number):
        told.put(f"child{i}", "owner")
    assert await reconciled(collector) == number
    told.put("owner", finalizers=["foregroundDeletion"], deleted=True)
    assert await reconciled(collector) == number + 1
    assert server.asked == number
    for i in range(number):
        told.put(f"child{i}", "owner", deleted=True)
        assert await reconciled(collector) == 0, "the owner is not looked at again for each"
    for _ in range(10):
        told.put("owner", finalizers=["foregroundDeletion"], deleted=True)
        assert await reconciled(collector) == 1, "not its dependents, each time it changes"


async def test_two_thousand_owners_are_looked_up_once() -> None:
    told, server = Told(), Absent()
    collector = GarbageCollector(server, told)  # type: ignore[arg-type]
    told.put("child", *map(str, range(2_000)))
    assert await reconciled(collector) == 1
    assert server.asked == 2_000 + 1
    for i in range(2_000):
        told.put(str(i))
    assert await reconciled(collector) == 0
    told.put("child", "0")
    assert await reconciled(collector) == 2_000, "what it names, and those it names no more"
    assert server.asked == 2_000 + 1
