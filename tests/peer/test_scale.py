"""R-SYS-8: who manages how many pods an object has, whether that was said of the object or of its scale, is
told as by Kubernetes after every request, and so are the conflicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

APPS, CORE = "/apis/apps/v1/namespaces/{ns}", "/api/v1/namespaces/{ns}"
ITEMS = {
    "ReplicaSet": f"{APPS}/replicasets",
    "Deployment": f"{APPS}/deployments",
    "StatefulSet": f"{APPS}/statefulsets",
    "ReplicationController": f"{CORE}/replicationcontrollers",
}
APPLIED, MERGED = {"Content_Type": APPLY}, {"Content_Type": MERGE_PATCH}
NOT_TRACKED: Any = {"metadata": {"managedFields": [{}]}}


def made(name: str, replicas: int | None = 2, kind: str = "ReplicaSet") -> Ask:
    """By the manager `one`."""
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    selector: Any = {"a": "b"} if kind == "ReplicationController" else {"matchLabels": {"a": "b"}}
    spec = {"selector": selector, "template": template, "replicas": replicas}
    return Ask("POST", f"{ITEMS[kind]}?fieldManager=one", {"metadata": {"name": name}, "spec": spec})


class Writer:
    """Writes to one object, and looks at who manages it then."""

    def __init__(self, name: str, kind: str = "ReplicaSet") -> None:
        self._kind, self._item = kind, f"{ITEMS[kind]}/{name}"

    def seen(self, ask: Ask) -> Iterator[Ask]:
        yield ask
        yield Ask("GET", self._item)

    def applies(self, manager: str, replicas: Any, query: str = "&force=true", **more: Any) -> Iterator[Ask]:
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}, **more}
        target = f"{self._item}/scale?fieldManager={manager}{query}"
        return self.seen(Ask("PATCH", target, body, APPLIED, f"{manager} {replicas} {more}"))

    def patches(self, manager: str, replicas: Any, part: str = "/scale") -> Iterator[Ask]:
        body = {"spec": {"replicas": replicas}}
        return self.seen(Ask("PATCH", f"{self._item}{part}?fieldManager={manager}", body, MERGED))

    def puts(self, manager: str, replicas: Any, **metadata: Any) -> Iterator[Ask]:
        named = {"name": self._item.rpartition("/")[2], **metadata}
        body = {"metadata": named, "spec": {"replicas": replicas}}
        return self.seen(Ask("PUT", f"{self._item}/scale?fieldManager={manager}", body))

    def applies_object(self, manager: str, fields: Any, query: str = "&force=true") -> Iterator[Ask]:
        version = "v1" if self._kind == "ReplicationController" else "apps/v1"
        body = {"apiVersion": version, "kind": self._kind, **fields}
        return self.seen(Ask("PATCH", f"{self._item}?fieldManager={manager}{query}", body, APPLIED))

    def patches_object(self, manager: str, body: Any, part: str = "") -> Iterator[Ask]:
        return self.seen(Ask("PATCH", f"{self._item}{part}?fieldManager={manager}", body, MERGED))


def turns(kind: str) -> Iterator[Ask]:
    """All do all of it, one after the other, and no two at once are in conflict with another: in which order
    they are told is by chance."""
    by = Writer("t", kind)
    yield made("t", 2, kind)
    yield from by.applies("two", 2)
    yield from by.applies("two", 2)
    yield from by.patches("three", 2)
    yield from by.patches("three", 3)
    yield from by.patches("one", 3)
    yield from by.applies("four", 4, "")
    yield from by.applies("two", 3, "")
    yield from by.applies("four", 4)
    yield from by.applies("two", 3, "")
    yield from by.applies_object("five", {"spec": {"replicas": 4}}, "")
    yield from by.applies_object("five", {"spec": {"replicas": 5}}, "")
    yield from by.applies_object("five", {"spec": {"replicas": 5}})
    yield from by.puts("six", 5)
    yield from by.puts("six", 6, labels={"a": "b"})
    yield from by.puts("six", 6, labels={"c": "d"})
    yield from by.patches("seven", 7, "")
    yield from by.patches("seven", None)
    yield from by.applies("eight", None)
    yield from by.applies("eight", 7)
    yield from by.applies_object("eight", {})


def one_writer_twice() -> Iterator[Ask]:
    """Who has two entries, told apart by nothing but their times, keeps the later one."""
    afters: tuple[Callable[[Writer], Iterator[Ask]], ...] = (
        lambda by: by.applies("two", 2),
        lambda by: by.applies("three", 2),
        lambda by: by.patches("z", 2),
        lambda by: by.patches_object("z", {"metadata": {"labels": {"a": "b"}}}),
        lambda by: by.patches_object("one", {"metadata": {"labels": {"a": "b"}}}),
        lambda by: by.patches_object("z", {"status": {"observedGeneration": 7}}, "/status"),
        lambda by: by.patches_object("z", {"metadata": {}}),
        lambda by: by.applies_object("z", {"metadata": {"labels": {"a": "b"}}}),
        lambda by: by.patches("one", 3, ""),
        lambda by: by.puts("one", 2),
    )
    for number, after in enumerate(afters):
        by = Writer(f"twice-{number}")
        yield made(f"twice-{number}")
        yield from by.applies("two", 2)
        yield from after(by)
        yield from after(by)


def none() -> Iterator[Ask]:
    """A scale of nothing shows no number: who applies none takes it from those who had it."""
    by = Writer("none")
    yield made("none", 0)
    yield from by.applies("two", 0, "")
    yield from by.patches("two", 0)
    yield from by.applies("two", 0)
    yield from by.applies("three", 0, "")
    yield from by.applies("three", 0)
    yield from by.patches("four", 1)
    yield from by.patches("five", 0)
    yield from by.puts("six", 0)


def untracked() -> Iterator[Ask]:
    by = Writer("untracked")
    yield made("untracked")
    yield from by.patches_object("one", NOT_TRACKED)
    yield from by.patches("two", 3)
    yield from by.puts("two", 4)
    yield from by.applies("three", 4)
    yield from by.applies("three", 5, "")
    yield from by.patches_object("one", NOT_TRACKED)
    yield from by.applies("three", 6, "")
    yield from by.applies("three", 6)


def at_fault() -> Iterator[Ask]:
    """A conflict is told of before any other fault."""
    by = Writer("fault")
    yield made("fault")
    for replicas, metadata, query in product(
        (0, 2, 3, -1, "x"),
        ({}, {"name": "fault"}, {"name": "other"}, {"name": "fault", "resourceVersion": "1"}),
        ("&dryRun=All", "&dryRun=All&force=true"),
    ):
        for manager in ("one", "two"):
            yield from by.applies(manager, replicas, query, metadata=metadata)
    applied: tuple[Any, ...] = ({"labels": {"a b": "c"}}, {"uid": "x"}, {"managedFields": []}, None)
    for said in applied:
        yield from by.applies("two", 3, "", metadata=said)
        yield from by.applies("two", 3, metadata=said)
    for strict in ("", "&fieldValidation=Strict"):
        yield from by.applies("two", 3, f"&dryRun=All&force=true{strict}", unknown=1)
    put: tuple[Any, ...] = (
        {"resourceVersion": "1"},
        {"uid": "x"},
        {"labels": {"a b": "c"}},
        {"namespace": "other"},
    )
    for said in put:
        yield from by.puts("two", -1, **said)
        yield from by.puts("two", 3, **said)


SEQUENCES = [
    *(Compared(kind, list(turns(kind)), apart=True) for kind in ITEMS),
    *(
        Compared(each.__name__, list(each()), apart=True)
        for each in (one_writer_twice, none, untracked, at_fault)
    ),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_scale(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"scale-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
