"""R-SYS-8: configurations of several managers, applied to an object of every kind, with their conflicts.

The objects are those of `tests/e2e/samples.yaml`; who manages what is compared after every request.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from peer.fields import variations, with_unknown
from peer.mutations import GONE
from peer.named_differences import OWN_FIELDS, UNREADABLE, unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_fields import METADATA, SAMPLES, has_status, items_of, plain
from podling.model.codec.fields import fields_of, shape_of
from podling.model.scheme import Resource, by_kind

Body = dict[str, Any]
MOST_FIELDS = 12
"""Fields of a kind that are applied by two managers; of more, they are taken evenly."""
MOST = 24
"""Requests about null, and about fields that are not known: of more, they are taken evenly."""
NULLS: tuple[Any, ...] = (None, [None], {"a": None})
NOTES = {"annotations": {"note": "one"}}
OTHER_NOTES = {"annotations": {"note": "other"}}


def applied(target: str, manager: str, body: Any, query: str = "", what: str = "") -> Ask:
    return Ask("PATCH", f"{target}?fieldManager={manager}{query}", body, {"Content_Type": APPLY}, what)


def named(base: Body, **metadata: Any) -> Body:
    """A configuration that names the object, and nothing of it but this metadata."""
    identity = {"name": base["metadata"]["name"], **metadata}
    return {"apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": identity}


def managed(base: Body, *operations: str) -> list[Body]:
    """What kubectl writes when it takes over what it managed before server-side apply."""
    return [
        {
            "manager": "upgraded",
            "operation": operation,
            "apiVersion": base["apiVersion"],
            "time": "2026-01-02T03:04:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:note": {}}}},
        }
        for operation in operations
    ]


def by_two_managers(item: str, base: Body) -> Iterator[Ask]:
    labels = {"labels": {"a": "c"}}
    yield applied(item, "one", base, "&dryRun=All")
    yield applied(item, "one", base, what="created")
    yield applied(item, "one", base, what="nothing changes")
    yield applied(item, "two", base, what="both manage all")
    yield applied(item, "two", named(base, **labels, **NOTES), what="a conflict")
    yield applied(item, "two", named(base, **labels, **NOTES), "&force=true&dryRun=All")
    yield applied(item, "two", named(base, **labels, **NOTES), "&force=true")
    yield applied(item, "one", base, what="a conflict the other way")
    yield applied(item, "one", named(base), what="the first gives up all")
    yield applied(item, "two", named(base, **NOTES), what="a label goes")
    patch = {"metadata": {**labels, **OTHER_NOTES}}
    yield Ask("PATCH", f"{item}?fieldManager=three", patch, {"Content_Type": MERGE_PATCH})
    yield applied(item, "two", named(base, **NOTES), what="a conflict with an update")
    yield applied(item, "two", named(base, **NOTES), "&force=true")
    yield Ask(
        "PATCH", f"{item}?fieldManager=upgraded", {"metadata": OTHER_NOTES}, {"Content_Type": MERGE_PATCH}
    )
    for operations in (("Apply",), ("Update",), ("Apply", "Update"), ("Odd",)):
        patches = [{"op": "replace", "path": "/metadata/managedFields", "value": managed(base, *operations)}]
        yield Ask("PATCH", item, patches, {"Content_Type": JSON_PATCH}, f"managed by {operations}")
        yield applied(item, "upgraded", named(base), "&dryRun=All")
    yield applied(item, "upgraded", named(base, **NOTES))
    yield Ask("PATCH", item, {"metadata": {"managedFields": [{}]}}, {"Content_Type": MERGE_PATCH})
    yield applied(item, "upgraded", base)
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def refused(item: str, base: Body) -> Iterator[Ask]:
    """Whether there is such an object, or not."""
    for made in (False, True):
        if made:
            yield applied(item, "one", base)
        for sent in (
            {**base, "metadata": {}},
            {**base, "metadata": {"name": "other"}},
            {**base, "metadata": {**base["metadata"], "namespace": "elsewhere"}},
            {**base, "metadata": {**base["metadata"], "generateName": "x"}},
            {**base, "apiVersion": "v9"},
            {**base, "apiVersion": ""},
            {**base, "kind": "Nothing"},
            {**base, "kind": ""},
            {key: value for key, value in base.items() if key != "apiVersion"},
            {key: value for key, value in base.items() if key != "kind"},
            named(base, managedFields=[]),
            named(base, managedFields=None),
            named(base, managedFields=[{}]),
            {**base, "metadata": {**base["metadata"], "uid": "11111111-1111-1111-1111-111111111111"}},
            named(base, labels=None),
            named(base, labels=[]),
            named(base, labels={"a": 1}),
            named(base, labels={"a b": "c"}),
            named(base, finalizers=["example.test/a", "example.test/a"]),
            {**base, "unknown": 1},
            b"[]",
            b"",
            b"null",
        ):
            yield applied(item, "one", sent, "&dryRun=All")
        for query in ("", "fieldManager=", f"fieldManager={'f' * 129}", "force=true"):
            yield Ask("PATCH", f"{item}?dryRun=All&{query}", base, {"Content_Type": APPLY})
        for query in ("force=x", "force=false", "fieldValidation=Strict", "fieldValidation=Warn", "dryRun=x"):
            yield applied(item, "one", {**base, "unknown": 1}, f"&dryRun=All&{query}")
        yield applied(item, "one", base, "&dryRun=All", what="as it is")
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def each_field(item: str, base: Body, resource: Resource) -> Iterator[Ask]:
    """A field is applied by one, by another with another value, forced, and applied no more."""
    values: dict[str, list[tuple[Any, Body]]] = {}
    for path, value, body in variations(resource.type, base):
        skipped = path.startswith((*METADATA, *OWN_FIELDS.what, "status", *UNREADABLE.what))
        if not skipped and value not in (None, GONE, [], {}, "") and not isinstance(value, float):
            values.setdefault(path, []).append((value, body))
    paths = list(values)
    yield applied(item, "one", base)
    for path in paths[:: -(-len(paths) // MOST_FIELDS) or 1]:
        first, *others = values[path]
        second = others[0] if others else first
        yield applied(item, "one", first[1], what=f"{path} = {first[0]!r:.100}")
        yield applied(item, "two", second[1], what=f"{path} = {second[0]!r:.100}")
        yield applied(item, "two", second[1], "&force=true", what=f"{path} = {second[0]!r:.100}")
        yield applied(item, "one", base, "&force=true", what=f"{path} goes")
        yield applied(item, "two", named(base), what=f"{path} goes")
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def nulls(item: str, base: Body, resource: Resource) -> Iterator[Ask]:
    """Fields, keys of items, and items that are null: who manages them, since when, and what conflicts."""
    asks = [
        applied(item, "two", body, f"&dryRun=All{force}", what=f"{path} = {value!r}")
        for path, value, body in variations(resource.type, base)
        if value in NULLS and not path.startswith((*METADATA, *OWN_FIELDS.what, "status", *UNREADABLE.what))
        for force in ("", "&force=true")
    ]
    yield applied(item, "one", base)
    # An odd step has both those that are forced and those that are not.
    yield from asks[:: -(-len(asks) // MOST) | 1]
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def unknown(item: str, base: Body, resource: Resource) -> Iterator[Ask]:
    """At every depth, also of what is one value to its managers."""
    asks = [
        applied(item, "two", body, "&dryRun=All", what=path)
        for path, _, body in with_unknown(shape_of(resource.type), base)
        if not path.removeprefix(".").startswith((*METADATA, *OWN_FIELDS.what))
    ]
    yield applied(item, "one", base)
    yield from asks[:: -(-len(asks) // MOST)]
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def status(item: str, base: Body, resource: Resource) -> Iterator[Ask]:
    type_ = fields_of(resource.type)["status"].shape.struct
    assert type_
    yield from status_of_none(item, base)
    yield applied(item, "one", base)
    for path, value, said in variations(type_, {}, deep=False):
        if value in (None, GONE, [], {}, "") or path.startswith("debugContainerStatuses"):
            continue
        body = {**named(base), "status": said}
        yield applied(f"{item}/status", "one", body, "&dryRun=All", what=f"{path} = {value!r:.100}")
    yield applied(f"{item}/status", "one", {**base, "status": {}}, what="with a spec")
    yield applied(item, "one", {**base, "status": {}}, what="in the object itself")
    yield applied(f"{item}/status", "two", named(base, labels={"x": "y"}))
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


def status_of_none(item: str, base: Body) -> Iterator[Ask]:
    """Of a kind whose objects may be made by an update, also by one of the status."""
    for sent in (
        base,
        named(base),
        {**base, "kind": "Nothing"},
        {**base, "metadata": {**base["metadata"], "name": "other"}},
        {**base, "metadata": {**base["metadata"], "uid": "11111111-1111-1111-1111-111111111111"}},
        {**base, "metadata": {**base["metadata"], "resourceVersion": "1"}},
        {**base, "unknown": 1},
        named(base, managedFields=[{}]),
        b"[",
    ):
        yield applied(f"{item}/status", "one", sent, "&dryRun=All", "there is none")
        yield Ask("PUT", f"{item}/status?dryRun=All", sent, what="there is none")
    for sort in (MERGE_PATCH, JSON_PATCH):
        yield Ask(
            "PATCH", f"{item}/status?dryRun=All", [] if sort == JSON_PATCH else {}, {"Content_Type": sort}
        )
    yield applied(f"{item}/status", "one", base, what="there is none")
    yield applied(item, "one", base, "&dryRun=All", "after its status")
    yield Ask("DELETE", f"{item}?gracePeriodSeconds=0&propagationPolicy=Background")


NAMED_BY_RULE = "IPAddress"
SORTS = ("two managers", "refused", "fields", "nulls", "unknown", "status")
CASES = [(sample, sort) for sample in SAMPLES for sort in SORTS if sort != "status" or has_status(sample)]


def asked(sample: Body, sort: str) -> list[Ask]:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    base = plain(copy.deepcopy(sample), resource)
    if sample["kind"] not in NAMED_BY_RULE:
        # Of its own: a finalizer may keep it when the sequence ends.
        base["metadata"]["name"] = f"sample-{sort.replace(' ', '-')}"
    item = f"{items_of(resource)}/{base['metadata']['name']}"
    made = {
        "two managers": lambda: by_two_managers(item, base),
        "refused": lambda: refused(item, base),
        "fields": lambda: each_field(item, base, resource),
        "nulls": lambda: nulls(item, base, resource),
        "unknown": lambda: unknown(item, base, resource),
        "status": lambda: status(item, base, resource),
    }
    return list(made[sort]())


@pytest.mark.parametrize(
    ("sample", "sort"),
    CASES,
    ids=lambda part: part if isinstance(part, str) else f"{part['kind']}.{part['apiVersion']}",
)
def test_apply(sample: Body, sort: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(sort, asked(sample, sort), apart=True)
    found = unnamed(differences(sequence, "apply", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
