"""R-SYS-8: what clients say of who manages what is taken, put right or left out as by Kubernetes, and what
later writes make of it: every field of an entry, odd and missing, pairs of entries, and many of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

MAPS = "/api/v1/namespaces/{ns}/configmaps"
SETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
MERGED, PATCHED, APPLIED = ({"Content_Type": sort} for sort in (MERGE_PATCH, JSON_PATCH, APPLY))
GONE = object()


def entry(**fields: Any) -> dict[str, Any]:
    made = {
        "manager": "a",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:x": {}}},
        **fields,
    }
    return {name: value for name, value in made.items() if value is not GONE}


def numbered(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [entry(manager=f"m{number}", **fields) for number in range(count)]


SETS_OF_FIELDS: list[Any] = [
    *(GONE, None, {}, [], "x", 1),
    {"f:data": None},
    {"f:data": {}},
    {"f:data": 1},
    {"f:data": {".": {}, "f:x": {}}},
    {"f:data": {"f:x": {}, "f:x ": {}}},
    {"f:a": {"f:b": {"f:c": {}}}},
    *({element: {}} for element in ("x", "f:", ".", "k:{}", 'k:{"a":1}', "v:1", "v:x", "i:0", "i:x")),
]
VALUES: dict[str, list[Any]] = {
    "manager": [GONE, "", None, "b", "x" * 128, "x" * 129, "a b", "é", "a\x07", 1],
    "operation": [GONE, "", None, "Apply", "update", "Create", 1],
    "apiVersion": [GONE, "", None, "v2", "apps/v1", "a/b/c", "V1", 1],
    "time": [
        *(GONE, None, "", "x", 1),
        "2026-01-02T03:04:05.123Z",
        "2026-01-02T03:04:05+02:00",
        "0001-01-01T00:00:00Z",
    ],
    "fieldsType": [GONE, "", None, "FieldsV2", 1],
    "fieldsV1": SETS_OF_FIELDS,
    "subresource": ["", None, "status", "scale", "x", "a/b", "x" * 256, "x" * 257, 1],
    "unknown": [1],
}
LATER: dict[str, Any] = {"time": "2026-02-02T03:04:05Z"}
OTHER: dict[str, Any] = {"fieldsV1": {"f:data": {"f:y": {}}}}
BY_APPLY: dict[str, Any] = {"operation": "Apply"}
NUMBER: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
STATUS: dict[str, Any] = {"f:status": {"f:replicas": {}}}
LABELS: dict[str, Any] = {"f:metadata": {"f:labels": {}}}
LISTS: list[Any] = [
    *([entry(**{field: value})] for field, values in VALUES.items() for value in values),
    *(
        [entry(), entry(**more)]
        for more in ({}, LATER, {"time": GONE}, OTHER, BY_APPLY, {"apiVersion": "v2"})
    ),
    [entry(**LATER), entry()],
    [entry(), entry(subresource="status")],
    *(
        [entry(**BY_APPLY), entry(**BY_APPLY, **more)]
        for more in (OTHER, {"apiVersion": "v2"}, {"subresource": "status"})
    ),
    [entry(manager="b"), entry()],
    [entry(), {}],
    *([], [{}], [{}, {}], None, {}, "x", [1], [None]),
    [entry(manager=f"m{number}", time=f"2026-01-02T03:04:{number:02}Z") for number in range(14)],
    numbered(14),
    [entry(manager="ancient-changes"), *numbered(11)],
    [*numbered(6), *numbered(6, apiVersion="v2"), *numbered(6, **BY_APPLY)],
    [entry(manager="before-first-apply"), entry(manager="b", **BY_APPLY)],
    [entry(manager="kubectl-client-side-apply"), entry(manager="kubectl", **BY_APPLY)],
]


def made(number: int, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"m{number}", **metadata}, "data": {"x": "1", "y": "2"}}


def applied(number: int, data: dict[str, str], query: str) -> Ask:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
    return Ask("PATCH", f"{MAPS}/m{number}?{query}", body, APPLIED)


def created() -> Iterator[Ask]:
    for number, said in enumerate(LISTS):
        what = repr(said)[:300]
        yield Ask("POST", f"{MAPS}?fieldManager=me", made(number, managedFields=said), what=what)
        yield Ask("PATCH", f"{MAPS}/m{number}?fieldManager=me", {"data": {"x": "3"}}, MERGED)


def put() -> Iterator[Ask]:
    for number, said in enumerate(LISTS):
        what = repr(said)[:300]
        yield Ask("POST", f"{MAPS}?fieldManager=first", made(number))
        for data in ({"x": "1", "y": "2"}, {"x": "3", "y": "2"}, {"x": "3"}):
            body = {**made(number, managedFields=said), "data": data}
            yield Ask("PUT", f"{MAPS}/m{number}?fieldManager=me", body, what=what)
            yield applied(number, {"y": "2"}, "fieldManager=a&force=true")


def patched() -> Iterator[Ask]:
    for number, said in enumerate(LISTS):
        item, what = f"{MAPS}/m{number}?fieldManager=me", repr(said)[:300]
        replaced = [{"op": "replace", "path": "/metadata/managedFields", "value": said}]
        yield Ask("POST", f"{MAPS}?fieldManager=first", made(number))
        yield Ask("PATCH", item, replaced, PATCHED, what)
        yield Ask("PATCH", item, {"metadata": {"managedFields": said}, "data": {"x": "9"}}, MERGED, what)
        yield applied(number, {"x": "2"}, "fieldManager=a")
        yield applied(number, {"x": "2"}, "fieldManager=z&force=true")
        yield Ask("PUT", item, {**made(number), "data": {"x": "3", "y": "2"}})


def in_parts() -> Iterator[Ask]:
    """Of an object with a status and a scale."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    for at, (fields, part, operation) in enumerate(
        product(
            (NUMBER, STATUS, {**NUMBER, **STATUS}, LABELS),
            (GONE, "status", "scale", "x"),
            ("Update", "Apply"),
        )
    ):
        said = [entry(apiVersion="apps/v1", fieldsV1=fields, subresource=part, operation=operation)]
        item, what = f"{SETS}/s{at}", repr(said)
        replaced = [{"op": "replace", "path": "/metadata/managedFields", "value": said}]
        body = {"metadata": {"name": f"s{at}", "managedFields": said}, "spec": spec}
        yield Ask("POST", f"{SETS}?fieldManager=first", body, what=what)
        for subresource in ("", "/status", "/scale"):
            yield Ask("PATCH", f"{item}{subresource}?fieldManager=b", replaced, PATCHED, what)
            yield Ask("GET", item)
        yield Ask("PATCH", f"{item}/scale?fieldManager=b", {"spec": {"replicas": 3}}, MERGED)
        yield Ask("GET", item)
        yield Ask("PATCH", f"{item}/status?fieldManager=b", {"status": {"replicas": 3}}, MERGED)
        for query, more in (
            ("?fieldManager=a", {"spec": {"replicas": 4}}),
            ("?fieldManager=a&force=true", {"spec": {"replicas": 5}}),
            ("?fieldManager=a&force=true&dryRun=All", {"metadata": {}}),
            ("?fieldManager=a&force=true&dryRun=All", {"metadata": None}),
            ("?fieldManager=a&force=true&dryRun=All", {"metadata": {"labels": {"x": "y"}}}),
            ("?fieldManager=a&force=true&dryRun=All", {"metadata": {"labels": {}}}),
            ("?fieldManager=a&force=true", {}),
            ("?fieldManager=a&force=true", {"metadata": {"name": f"s{at}"}}),
            # Last: beside another who applied in an earlier second, who says the same again gets a new time.
            ("/status?fieldManager=c&force=true", {"status": {"replicas": 4}}),
        ):
            sent: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **more}
            yield Ask("PATCH", f"{item}{query}", sent, APPLIED, what)


SEQUENCES = [Compared(each.__name__, list(each()), apart=True) for each in (created, put, patched, in_parts)]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_managed_fields(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    found = unnamed(differences(sequence, f"managed-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
