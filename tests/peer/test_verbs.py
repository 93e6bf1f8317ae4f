"""R-SYS-8: the verbs of pods, services, configmaps and secrets, with all options and sorts of patches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from peer.named_differences import unnamed
from peer.sequence import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Ask,
    Compared,
    Found,
    differences,
    shown,
)
from peer.server import Server

WORDS = r"^body\.message$|^body\.details\.causes(\[\d+\]\.message)?$"
"""How something is refused is compared by status, reason and fields: the words are those of Go's decoders."""
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class Sample(NamedTuple):
    """An object, a change of it that may be made, and one that may not."""

    kind: str
    plural: str
    fields: Mapping[str, Any]
    change: Mapping[str, Any]
    refused: Mapping[str, Any]

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/{{ns}}/{self.plural}"

    @property
    def item(self) -> str:
        return f"{self.collection}/x"

    def body(self, name: str = "x", **metadata: Any) -> dict[str, Any]:
        labels = {"app": "a", "tier": "one"}
        meta = {"name": name, "labels": labels, **metadata}
        return {"apiVersion": "v1", "kind": self.kind, "metadata": meta, **self.fields}


CONTAINER = {"name": "c", "image": "i"}
SAMPLES = (
    Sample("ConfigMap", "configmaps", {"data": {"a": "b"}}, {"data": {"a": "c"}}, {"data": {"no key": "x"}}),
    Sample("Secret", "secrets", {"data": {"a": "Yg=="}}, {"data": {"a": "Yw=="}}, {"type": "other"}),
    Sample(
        "Service",
        "services",
        {"spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"app": "a"}}},
        {"spec": {"selector": {"app": "b"}}},
        {"spec": {"sessionAffinity": "Sometimes"}},
    ),
    Sample(
        "Pod",
        "pods",
        {"spec": {"containers": [CONTAINER], "automountServiceAccountToken": False}},
        {"spec": {"containers": [{"name": "c", "image": "j"}]}},
        {"spec": {"nodeName": "n"}},
    ),
)


def merged(fields: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **fields,
        **{
            key: {**fields.get(key, {}), **value} if isinstance(value, dict) else value
            for key, value in change.items()
        },
    }


def created(sample: Sample) -> Iterator[Ask]:
    items, body = sample.collection, sample.body()
    yield Ask("POST", f"{items}?dryRun=All", body)
    yield Ask("POST", items, body)
    yield Ask("POST", items, body)
    yield Ask("POST", items, sample.body("y", labels={"app": "b"}))
    for options in (
        "dryRun=Some",
        "dryRun=All&dryRun=Some",
        "fieldManager=%07",
        f"fieldManager={'f' * 129}",
        "fieldValidation=Loud",
        "dryRun=All&fieldManager=f",
        "dryRun=All&pretty=1",
    ):
        yield Ask("POST", f"{items}?{options}", sample.body("z"))
    for validation in ("Strict", "Warn", "Ignore"):
        query = f"{items}?dryRun=All&fieldValidation={validation}"
        yield Ask("POST", query, {**sample.body("z"), "unknown": 1})
        yield Ask("POST", query, b'{"metadata": {"name": "z", "name": "y"}}')
    for wrong in (
        sample.body(""),
        sample.body("A_B"),
        sample.body("z", namespace="other"),
        {**sample.body("z"), "kind": "Node"},
        {**sample.body("z"), "kind": "Nothing"},
        {**sample.body("z"), "apiVersion": "v2"},
        {**sample.body("z"), "apiVersion": "apps/v1"},
        sample.body("z", labels={"a b": "c"}),
        sample.body("z", annotations={"a b": "c"}),
        sample.body("z", finalizers=["nothing"]),
        sample.body("z", labels=[]),
        sample.body("z", labels={"a": 1}),
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        {**sample.body("z"), **sample.refused},
    ):
        yield Ask("POST", f"{items}?dryRun=All", wrong)
    yield Ask("POST", items, b"x", {"Content_Type": "text/plain"})
    yield Ask("POST", items, sample.body("z", resourceVersion="1"))


def read(sample: Sample) -> Iterator[Ask]:
    items, item = sample.collection, sample.item
    yield Ask("POST", items, sample.body())
    yield Ask("POST", items, sample.body("y", labels={"app": "b"}))
    for target in (
        item,
        f"{items}/none",
        f"{item}?resourceVersion=0",
        f"{item}?resourceVersionMatch=Exact",
        items,
    ):
        yield Ask("GET", target)
    for accept in (TABLE, METADATA, METADATA_LIST, "text/html", f"text/html,{TABLE}", "*/*"):
        yield Ask("GET", item, None, {"Accept": accept})
    for accept in (METADATA_LIST, METADATA, "text/html"):
        yield Ask("GET", items, None, {"Accept": accept})
    for selector in (
        "app=a",
        "app!=a",
        "app in (a,c)",
        "app notin (a)",
        "tier",
        "!tier",
        "app=a,tier=one",
        "app==b",
        "app=a=b",
        "a b",
        "app in a",
        "app>1",
        "app>x",
        ",",
        "=",
        "app=",
    ):
        yield Ask("GET", f"{items}?labelSelector={selector.replace(' ', '%20')}")
    for selector in (
        "metadata.name=x",
        "metadata.name!=x",
        "metadata.namespace={ns}",
        "nothing=x",
        "metadata.name",
        "a=b=c",
    ):
        yield Ask("GET", f"{items}?fieldSelector={selector}")
    for options in (
        "limit=1",
        "limit=0",
        "limit=-1",
        "limit=x",
        "continue=x",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=No",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "resourceVersion=1&resourceVersionMatch=",
        "sendInitialEvents=true",
        "timeoutSeconds=x",
        "watch=1&timeoutSeconds=1&resourceVersionMatch=Exact&resourceVersion=1",
        "watch=1&sendInitialEvents=true&timeoutSeconds=1",
        "allowWatchBookmarks=x&limit=1",
        "watch=1&continue=x&timeoutSeconds=1",
    ):
        yield Ask("GET", f"{items}?{options}")


def updated(sample: Sample) -> Iterator[Ask]:
    items, item = sample.collection, sample.item
    yield Ask("POST", items, sample.body())
    changed = {**sample.body(), **merged(sample.fields, sample.change)}
    for options in (
        "dryRun=All",
        "dryRun=Some",
        "fieldManager=f&dryRun=All",
        "fieldValidation=Loud",
        "force=true",
    ):
        yield Ask("PUT", f"{item}?{options}", changed)
    for validation in ("Strict", "Warn", "Ignore"):
        yield Ask("PUT", f"{item}?dryRun=All&fieldValidation={validation}", {**changed, "unknown": {"a": 1}})
    for wrong in (
        {**changed, "kind": "Node"},
        {**changed, "apiVersion": "v2"},
        b"",
        b"{",
        b"[]",
        {**changed, **merged(sample.fields, sample.refused)},
        sample.body(labels={"a b": "c"}),
        sample.body(finalizers=["a/b"]),
        sample.body(generateName="x"),
        sample.body(deletionTimestamp="2026-01-01T00:00:00Z"),
        sample.body(creationTimestamp="2026-01-01T00:00:00Z"),
        sample.body(generation=9),
        sample.body(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]),
    ):
        yield Ask("PUT", f"{item}?dryRun=All", wrong)
    yield Ask("PUT", item, changed)
    yield Ask("PUT", item, changed)
    yield Ask("PUT", f"{items}/none", sample.body("none"))
    yield Ask("GET", item)


def patched(sample: Sample) -> Iterator[Ask]:
    items, item = sample.collection, sample.item
    yield Ask("POST", items, sample.body())
    label = {"metadata": {"labels": {"tier": "two"}}}
    bodies: Mapping[str, list[Any]] = {
        JSON_PATCH: [
            [{"op": "replace", "path": "/metadata/labels/tier", "value": "two"}],
            [],
            [{"op": "test", "path": "/metadata/labels/tier", "value": "no"}],
            [{"op": "remove", "path": "/nothing"}],
            [{"op": "add", "path": "/unknown", "value": 1}],
            [{"op": "nothing", "path": "/a"}],
            {},
            b"",
            b"x",
            [1],
            [{"op": "add", "path": "/metadata/labels", "value": 1}],
            [{"op": "replace", "path": "/kind", "value": "Node"}],
        ],
        MERGE_PATCH: [
            label,
            {},
            {"metadata": {"labels": None}},
            {"unknown": 1},
            sample.change,
            sample.refused,
            [],
            b"",
            b"x",
            b"null",
            {"kind": "Node"},
            {"metadata": {"labels": 1}},
        ],
        STRATEGIC_PATCH: [
            label,
            {},
            {"metadata": {"labels": {"$patch": "replace", "z": "y"}}},
            {"unknown": 1},
            sample.change,
            sample.refused,
            [],
            b"",
            b"x",
            {"metadata": {"labels": {"tier": None}}},
            {"metadata": {"finalizers": ["a/b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}},
        ],
        APPLY: [
            {"apiVersion": "v1", "kind": sample.kind, **label},
            {"apiVersion": "v1", "kind": sample.kind, "unknown": 1},
            {"apiVersion": "v1", "kind": "Node"},
            {"kind": sample.kind},
            {},
            b"",
            b"x: [",
            b"null",
            {"apiVersion": "v1", "kind": sample.kind, **sample.change},
        ],
    }
    for sort, sent in bodies.items():
        for body in sent:
            for options in (
                "dryRun=All&fieldManager=peer",
                "dryRun=All&fieldManager=peer&fieldValidation=Strict",
            ):
                yield Ask("PATCH", f"{item}?{options}", body, {"Content_Type": sort})
        for options in (
            "dryRun=Some",
            "force=true",
            "force=true&dryRun=All&fieldManager=peer",
            "fieldManager=%07",
            "",
        ):
            yield Ask("PATCH", f"{item}?{options}", sent[0], {"Content_Type": sort})
        yield Ask("PATCH", f"{items}/none?fieldManager=peer&dryRun=All", sent[0], {"Content_Type": sort})
    yield Ask("PATCH", item, label)
    yield Ask("PATCH", item, label, {"Content_Type": "text/plain"})
    yield Ask("GET", item)


def deleted(sample: Sample) -> Iterator[Ask]:
    items, item = sample.collection, sample.item
    for name in "xyz":
        yield Ask("POST", items, sample.body(name, labels={"app": name}))
    for options in (
        "dryRun=All",
        "dryRun=Some",
        "propagationPolicy=Never",
        "propagationPolicy=Orphan&orphanDependents=true",
        "gracePeriodSeconds=-1&dryRun=All",
        "gracePeriodSeconds=x",
    ):
        yield Ask("DELETE", f"{item}?{options}")
    for body in (
        {"dryRun": ["All"]},
        {"dryRun": ["Some"]},
        {"propagationPolicy": "Never"},
        {"gracePeriodSeconds": -1, "dryRun": ["All"]},
        {"preconditions": {"uid": "u"}},
        {"kind": "Pod", "apiVersion": "v1"},
        {"unknown": 1, "dryRun": ["All"]},
        b"{",
        b"[]",
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": "1"}},
    ):
        yield Ask("DELETE", item, body)
    yield Ask("DELETE", f"{items}/none")
    yield Ask("DELETE", f"{items}?labelSelector=app%3Dy&dryRun=All")
    yield Ask("DELETE", f"{items}?labelSelector=app%3Dy")
    yield Ask("DELETE", f"{items}?labelSelector=a%20b")
    yield Ask("DELETE", f"{items}?fieldSelector=metadata.name%3Dz")
    yield Ask("DELETE", f"{item}?propagationPolicy=Background")
    yield Ask("DELETE", item)
    yield Ask("GET", items)


VERBS = (created, read, updated, patched, deleted)
SEQUENCES = [
    Compared(f"{sample.plural} {verb.__name__}", list(verb(sample))) for sample in SAMPLES for verb in VERBS
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_a_verb_is_answered_as_by_kubernetes(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"verbs-{SEQUENCES.index(sequence)}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    meant = [one for one in found if not re.search(WORDS, one.path) and not _by_chance(sequence, one)]
    assert not meant, f"\n{shown(sequence, meant)}"


def _by_chance(sequence: Compared, found: Found) -> bool:
    """Whether it is the version of a list, since others write meanwhile, or an age."""
    if found.path == "body.metadata.resourceVersion":
        return "/x" not in sequence.asks[found.step].target
    return all(re.fullmatch(r"\d+s", str(said)) for said in (found.kubernetes, found.podling))
