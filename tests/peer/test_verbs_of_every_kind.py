"""R-SYS-8: every verb of every kind and subresource, with all options and forms of bodies and answers.

What is asked follows from the kind: `tests/e2e/samples.yaml` has an object of each. What is stored is removed
at the end, so that the kinds of the cluster can be asked one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import pytest
import yaml

from peer.every_kind import PROTECTED, SELECTED, Sample, removal, samples
from peer.named_differences import CLAIMS, unnamed
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from podling.apiserver.kinds.kind import Connect, Posted
from podling.apiserver.kinds.kinds import KINDS

META = "g=meta.k8s.io"
TABLE = f"application/json;as=Table;v=v1;{META}"
METADATA = f"application/json;as=PartialObjectMetadata;v=v1;{META}"
METADATA_LIST = f"application/json;as=PartialObjectMetadataList;v=v1;{META}"
YAML, CBOR = "application/yaml", "application/cbor"
FORMS = (
    TABLE, METADATA, METADATA_LIST, YAML, CBOR, "text/html", f"text/html,{TABLE};q=0.5", "*/*",
    "application/*",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    f"application/json;as=Nothing;v=v1;{META}, application/json",
    f"application/yaml;as=Table;v=v1;{META}", f"application/yaml;as=PartialObjectMetadata;v=v1;{META}",
)  # fmt: skip
"""What a client may want to be answered with."""
VALIDATIONS = ("Strict", "Warn", "Ignore")
OTHER = "11111111-1111-1111-1111-111111111111"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
METADATA_FAULTS: Sequence[Mapping[str, Any]] = (
    {"name": None}, {"name": "A_B"}, {"name": "a/b"}, {"namespace": "elsewhere"}, {"labels": {"a b": "c"}},
    {"labels": {"a": "-"}}, {"labels": []}, {"labels": {"a": 1}}, {"annotations": {"a b": "c"}},
    {"finalizers": ["nothing"]}, {"finalizers": ["a/b", "a/b"]}, {"generateName": "x-"},
    {"generateName": "X-"},
    {"generateName": "x" * 60}, {"name": None, "generateName": "generated-"}, {"selfLink": "/here"},
    {"selfLink": 1}, {"uid": OTHER}, {"resourceVersion": "1"}, {"resourceVersion": "x"}, {"generation": 9},
    {"generation": -1}, {"creationTimestamp": "2026-01-02T03:04:05Z"}, {"creationTimestamp": "soon"},
    {"deletionTimestamp": "2026-01-02T03:04:05Z"}, {"deletionGracePeriodSeconds": 5},
    {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1"}]},
    {"managedFields": [{"manager": "m", "operation": "Burn"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]},
    {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
    "controller": True}] * 2},
    {"unknown": 1},
)  # fmt: skip


TWO_FAULTS = ("fieldValidation=Loud", "fieldManager=%07")
"""Beside a body of a sort that nobody reads."""


def made(sample: Sample) -> Iterator[Ask]:
    items, body = sample.items, sample.body()
    dry = f"{items}?dryRun=All"
    for form in ("application/json", *FORMS):
        yield Ask("POST", dry, body, {"Accept": form})
    written = _yaml(body)
    for sort, sent in (
        (YAML, written), (f"{YAML};charset=utf-8", written), (CBOR, b"\xd9\xd9\xf7\xa0"), ("text/plain",
        b"x"),
        ("application/json;charset=utf-8", body), ("", body), ("nonsense", body), ("application/xml",
        b"<a/>"),
        ("application/x-www-form-urlencoded", b"a=b"), (MERGE_PATCH, body), (YAML, b"a: ["), (YAML, b"- a"),
        ("application/json", written), ("application/vnd.kubernetes.protobuf", b"k8s\0x"),
    ):  # fmt: skip
        yield Ask("POST", dry, sent, {"Content_Type": sort})
    for option in TWO_FAULTS:
        yield Ask("POST", f"{dry}&{option}", body, {"Content_Type": "text/plain"})
    yield from _validated("POST", dry, body)
    for options in (
        "dryRun=Some", "dryRun=All&dryRun=Some", "dryRun=", "dryRun=all", "dryRun=All&fieldManager=%07",
        f"dryRun=All&fieldManager={'f' * 129}", "dryRun=All&fieldManager=f",
        "dryRun=All&fieldValidation=Loud",
        "dryRun=All&fieldValidation=", "dryRun=All&pretty=1", "dryRun=All&nothing=1",
    ):  # fmt: skip
        yield Ask("POST", f"{items}?{options}", body)
    for fault in METADATA_FAULTS:
        yield Ask("POST", dry, sample.body(**fault))
    yield from (Ask("POST", dry, wrong) for wrong in _no_bodies(body))
    yield Ask("POST", items, body)
    yield Ask("POST", items, body)
    yield Ask("POST", dry, body)
    yield from removal(sample)


def read(sample: Sample) -> Iterator[Ask]:
    items, item, every = sample.items, sample.item(), sample.collection
    for letter, tier in zip("xyz", ("one", "two", "two"), strict=True):
        yield Ask("POST", items, sample.body(letter, labels={"peer": "every-kind", "tier": tier}))
    for form in ("application/json", *FORMS):
        yield Ask("GET", item, None, {"Accept": form})
        yield Ask("GET", f"{items}?{SELECTED}", None, {"Accept": form})
    for include in ("None", "Metadata", "Object", "Nothing", ""):
        for target in (item, f"{items}?{SELECTED}"):
            query = f"{'&' if '?' in target else '?'}includeObject={include}"
            yield Ask("GET", f"{target}{query}", None, {"Accept": TABLE})
    for options in (
        "resourceVersion=0", "resourceVersion=x", "resourceVersion=-1", "resourceVersionMatch=Exact",
        "pretty=true",
        "resourceVersion=$0.metadata.resourceVersion", "nothing=1", "watch=false", "limit=x",
    ):  # fmt: skip
        yield Ask("GET", f"{item}?{options}")
    missing = [sample.item("n"), f"{item}/nothing", f"{item}/status/nothing", f"{item}/"]
    if sample.resource.namespaced:
        missing.append(f"{items}/")
    for target in missing:
        yield Ask("GET", target)
    version = "resourceVersion=$1.metadata.resourceVersion"
    for options in (
        "limit=1", "limit=2", "limit=0", "limit=-1", "limit=x", "continue=x", "limit=1&continue=x",
        "resourceVersion=0", "resourceVersion=1&limit=-1", "resourceVersion=0&limit=1", "resourceVersion=x",
        version, f"{version}&limit=1",
        f"{version}&resourceVersionMatch=Exact", f"{version}&resourceVersionMatch=Exact&limit=1",
        f"{version}&resourceVersionMatch=NotOlderThan",
        f"{version}&resourceVersionMatch=NotOlderThan&limit=1",
        f"{version}&resourceVersionMatch=Nothing", "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "resourceVersion=1&resourceVersionMatch=", "sendInitialEvents=true", "sendInitialEvents=false",
        "timeoutSeconds=x", "timeoutSeconds=-1", "allowWatchBookmarks=true", "watch=0",
        f"continue=x&{version}", "continue=x&resourceVersionMatch=Exact",
    ):  # fmt: skip
        yield Ask("GET", f"{items}?{SELECTED}&{options}")
    for selector in (
        "tier=one", "tier==two", "tier!=one", "tier in (one,three)", "tier notin (one)", "!tier", "tier>1",
        "tier>x",
        "a=b=c", "a b", ",", "tier in ()", "a b=c", f"{'a' * 64}=b",
    ):  # fmt: skip
        yield Ask("GET", f"{items}?labelSelector=peer%3Devery-kind,{_escaped(selector)}")
    for selector in (
        f"metadata.name={sample.called('y')}", f"metadata.name!={sample.called('y')}",
        "metadata.namespace={ns}",
        "metadata.namespace=other", "nothing=x", "status.phase=x", "spec.nodeName=x", "metadata.name",
        "a=b=c", ",",
        "metadata.uid=$0.metadata.uid",
    ):  # fmt: skip
        yield Ask("GET", f"{items}?{SELECTED}&fieldSelector={_escaped(selector)}")
    yield Ask("GET", f"{every}?{SELECTED}&fieldSelector=metadata.namespace%3D{{ns}}")
    for letter in "xyz":
        yield from removal(sample, letter)


def updated(sample: Sample) -> Iterator[Ask]:
    items, item, body = (
        sample.items,
        sample.item(),
        sample.body(resourceVersion="$0.metadata.resourceVersion"),
    )
    yield Ask("POST", items, sample.body())
    dry = f"{item}?dryRun=All"
    changed = {**body, "metadata": {**body["metadata"], "annotations": {"a": "b"}}}
    for form in FORMS:
        yield Ask("PUT", dry, changed, {"Accept": form})
    written = _yaml(sample.body())
    for sort, sent in (
        (YAML, written), (CBOR, b"\xa0"), ("text/plain", b"x"), ("application/json;charset=utf-8", changed),
        (MERGE_PATCH, changed), ("application/vnd.kubernetes.protobuf", b"k8s\0x"),
    ):  # fmt: skip
        yield Ask("PUT", dry, sent, {"Content_Type": sort})
    for option in TWO_FAULTS:
        yield Ask("PUT", f"{dry}&{option}", changed, {"Content_Type": "text/plain"})
    yield from _validated("PUT", dry, body)
    for options in (
        "dryRun=Some", "dryRun=All&fieldManager=%07", "dryRun=All&fieldManager=f", "dryRun=All&force=true",
        "dryRun=All&fieldValidation=Loud",
    ):  # fmt: skip
        yield Ask("PUT", f"{item}?{options}", changed)
    for fault in METADATA_FAULTS:
        yield Ask("PUT", dry, {**body, "metadata": {**body["metadata"], **fault}})
    yield from (Ask("PUT", dry, wrong) for wrong in _no_bodies(body))
    yield Ask("PUT", dry, sample.body())
    yield Ask("PUT", dry, sample.body(resourceVersion="1"))
    yield Ask("PUT", dry, sample.body(resourceVersion=""))
    yield Ask("PUT", item, changed)
    yield Ask("PUT", item, changed)
    yield Ask("PUT", item, {**changed, "metadata": {**changed["metadata"], "resourceVersion": ""}})
    yield Ask("PUT", f"{sample.item('n')}?dryRun=All", sample.body("n"))
    yield Ask("PUT", f"{sample.item('n')}?dryRun=All", sample.body("n", resourceVersion="1"))
    yield Ask("GET", item)
    yield from removal(sample)


def patched(sample: Sample) -> Iterator[Ask]:
    items, item = sample.items, sample.item()
    yield Ask("POST", items, sample.body())
    for option in TWO_FAULTS:
        yield Ask("PATCH", f"{item}?dryRun=All&{option}", {}, {"Content_Type": "application/json"})
    yield from _patched(sample, item)
    yield from (
        Ask(
            "PATCH",
            f"{sample.item('n')}?dryRun=All&fieldManager=peer",
            _patches(sample)[sort],
            {"Content_Type": sort},
        )
        for sort in PATCHES
    )
    for sort in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        yield Ask("PATCH", f"{item}?fieldManager=f", _patches(sample)[sort], {"Content_Type": sort})
    taken = {**_patches(sample)[APPLY], "metadata": {"labels": {"tier": "three"}, "name": sample.called("x")}}
    for options in (
        "fieldManager=g",
        "fieldManager=g&force=true",
        "fieldManager=g&force=false",
        "force=true",
    ):
        yield Ask("PATCH", f"{item}?{options}", taken, {"Content_Type": APPLY})
    yield Ask("PATCH", f"{item}?fieldManager=g", _patches(sample)[APPLY], {"Content_Type": APPLY})
    yield Ask("GET", item)
    whole = {**sample.body("y"), "metadata": {"name": sample.called("y"), "labels": {"peer": "every-kind"}}}
    for form in ("application/json", TABLE, METADATA):
        query = "dryRun=All&fieldManager=g"
        yield Ask("PATCH", f"{sample.item('y')}?{query}", whole, {"Content_Type": APPLY, "Accept": form})
    yield Ask("PATCH", f"{sample.item('y')}?fieldManager=g", whole, {"Content_Type": APPLY})
    yield Ask("PATCH", f"{sample.item('y')}?fieldManager=g", whole, {"Content_Type": APPLY})
    yield from removal(sample)
    yield from removal(sample, "y")


def by_parts(sample: Sample) -> Iterator[Ask]:
    """Subresources."""
    yield Ask("POST", sample.items, sample.body())
    for name, subresource in sorted(BY_RESOURCE[sample.resource].subresources.items()):
        target = f"{sample.item()}/{name}"
        if isinstance(subresource, Connect) or (
            isinstance(subresource, Posted) and "create" in subresource.verbs
        ):
            continue  # These have tests of their own.
        if "get" in subresource.verbs:
            for form in ("application/json", *FORMS):
                yield Ask("GET", target, None, {"Accept": form})
            for options in ("resourceVersion=0", "resourceVersion=x", "pretty=1"):
                yield Ask("GET", f"{target}?{options}")
        yield Ask("GET", f"{sample.item('n')}/{name}")
        body = sample.body()
        if name == "scale":
            body = {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": body["metadata"],
                "spec": {"replicas": 2},
            }
        dry = f"{target}?dryRun=All"
        for form in ("application/json", *FORMS):
            yield Ask("PUT", dry, body, {"Accept": form})
        yield from _validated("PUT", dry, body)
        yield from (Ask("PUT", dry, wrong) for wrong in _no_bodies(body))
        for fault in METADATA_FAULTS:
            yield Ask("PUT", dry, {**body, "metadata": {**body["metadata"], **fault}})
        yield Ask(
            "PUT", f"{sample.item('n')}/{name}?dryRun=All", {**body, "metadata": {"name": sample.called("n")}}
        )
        if "patch" in subresource.verbs:
            yield from _patched(sample, target)
        yield Ask("PUT", target, body)
        yield Ask("GET", sample.item())
    yield from removal(sample)


def by_any_method(sample: Sample) -> Iterator[Ask]:
    items, item = sample.items, sample.item()
    yield Ask("POST", items, sample.body())
    parts = BY_RESOURCE[sample.resource].subresources.items()
    named = [f"{item}/{name}" for name, one in parts if not isinstance(one, Connect)]
    targets = [items, item, f"{item}/nothing", *named]
    if sample.resource.namespaced:
        targets += [sample.collection, f"{sample.collection}/{sample.called('x')}"]
    for target in targets:
        for method in METHODS:
            if (method, target) != ("DELETE", sample.collection):
                yield Ask(
                    method,
                    f"{target}?dryRun=All&{SELECTED}",
                    b"{}" if method in ("POST", "PUT", "PATCH") else None,
                )
    yield from removal(sample)


def deleted(sample: Sample) -> Iterator[Ask]:
    items, item = sample.items, sample.item()
    for letter in "wxyz":
        yield Ask("POST", items, sample.body(letter, labels={"peer": "every-kind", "letter": letter}))
    for form in ("application/json", *FORMS):
        yield Ask("DELETE", f"{item}?dryRun=All", None, {"Accept": form})
    for options in DELETE_QUERIES:
        yield Ask("DELETE", f"{item}?{options}")
        if "dryRun" in options:
            yield Ask("DELETE", f"{items}?{SELECTED},letter%3Dw&{options}")
    for body in DELETE_BODIES:
        yield Ask("DELETE", item, body)
    for sort in (YAML, CBOR, "text/plain", MERGE_PATCH):
        yield Ask("DELETE", item, b"dryRun: [All]\n", {"Content_Type": sort})
    yield Ask("DELETE", sample.item("n"))
    yield Ask("DELETE", f"{sample.item('n')}?dryRun=All")
    forms = ("application/json", TABLE, METADATA, METADATA_LIST, YAML, "text/html")
    for form in forms if "deletecollection" in BY_RESOURCE[sample.resource].verbs else ():
        yield Ask("DELETE", f"{items}?{SELECTED}&dryRun=All", None, {"Accept": form})
    for options in (
        "labelSelector=a%20b", "fieldSelector=nothing%3Dx", "fieldSelector=spec.no%3Dx%2Cspec.a%3Dy",
        f"{SELECTED}&limit=1&dryRun=All",
        f"{SELECTED}&continue=x", f"{SELECTED}&resourceVersionMatch=Exact",
        f"{SELECTED}&sendInitialEvents=true",
    ):  # fmt: skip
        yield Ask("DELETE", f"{items}?{options}")
    yield Ask("DELETE", f"{items}?{SELECTED},letter%3Dw")
    yield Ask("DELETE", f"{items}?{SELECTED}&fieldSelector=metadata.name%3D{sample.called('y')}")
    if sample.resource.kind == "CustomResourceDefinition":
        # It goes once a server has seen that there is nothing of its kind.
        for letter in "wy":
            yield Ask("GET", sample.item(letter), until=404)
    yield Ask("GET", f"{items}?{SELECTED}", None, {"Accept": METADATA_LIST})
    precise = {"uid": "$1.metadata.uid", "resourceVersion": "$1.metadata.resourceVersion"}
    yield Ask("DELETE", f"{item}", {"preconditions": precise})
    yield Ask("DELETE", item)
    held = {"metadata": {"finalizers": ["peer.test/keep"]}}
    yield Ask("PATCH", sample.item("z"), held, {"Content_Type": MERGE_PATCH})
    # Of a Namespace Kubernetes puts the finalizers in any order.
    policies = ("propagationPolicy=Foreground", "propagationPolicy=Orphan", "orphanDependents=false")
    for options in policies if sample.resource.kind != "Namespace" else ("gracePeriodSeconds=0",):
        yield Ask("DELETE", f"{sample.item('z')}?{options}")
    yield Ask(
        "PATCH",
        sample.item("z"),
        {"metadata": {"finalizers": ["peer.test/more"]}},
        {"Content_Type": MERGE_PATCH},
    )
    yield Ask("GET", sample.item("z"))
    yield Ask("PATCH", sample.item("z"), {"metadata": {"finalizers": None}}, {"Content_Type": MERGE_PATCH})
    yield Ask("GET", sample.item("z"))
    for letter in "wxyz" if sample.resource.kind in (*PROTECTED, "Namespace") else "":
        yield from removal(sample, letter)


DELETE_QUERIES = (
    "dryRun=All", "dryRun=Some", "propagationPolicy=Never&dryRun=All", "propagationPolicy=Orphan&dryRun=All",
    "propagationPolicy=Foreground&dryRun=All", "propagationPolicy=Background&dryRun=All",
    "propagationPolicy=Orphan&orphanDependents=true&dryRun=All", "orphanDependents=true&dryRun=All",
    "orphanDependents=false&dryRun=All", "orphanDependents=x&dryRun=All", "gracePeriodSeconds=-1&dryRun=All",
    "gracePeriodSeconds=x", "gracePeriodSeconds=0&dryRun=All", "gracePeriodSeconds=30&dryRun=All",
    "gracePeriodSeconds=99999999999999999999", "preconditions=x&dryRun=All", "propagationPolicy=&dryRun=All",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true", "dryRun=All&pretty=1",
)  # fmt: skip
DELETE_BODIES = (
    {"dryRun": ["All"]}, {"dryRun": ["Some"]}, {"dryRun": "All"}, {"propagationPolicy": "Never",
    "dryRun": ["All"]},
    {"propagationPolicy": "Orphan", "orphanDependents": False, "dryRun": ["All"]},
    {"gracePeriodSeconds": -1, "dryRun": ["All"]}, {"gracePeriodSeconds": "x"}, {"gracePeriodSeconds": 1.5},
    {"preconditions": {"uid": OTHER}}, {"preconditions": {"resourceVersion": "1"}},
    {"preconditions": {"uid": 1}},
    {"preconditions": {}, "dryRun": ["All"]}, {"kind": "Pod", "apiVersion": "v1"},
    {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
    {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    {"kind": "DeleteOptions", "apiVersion": "nothing/v9", "dryRun": ["All"]}, {"unknown": 1,
    "dryRun": ["All"]},
    b'{"dryRun": ["All"], "dryRun": ["All"]}', b"{", b"[]", b"null", b"1", b'"a"',
    {"ignoreStoreReadErrorWithClusterBreakingPotential": True}, {"orphanDependents": "x"},
)  # fmt: skip


def _validated(method: str, dry: str, body: Mapping[str, Any]) -> Iterator[Ask]:
    """Unknown fields, at the top and further in, and duplicate ones."""
    inner = next(
        (key for key, value in body.items() if isinstance(value, dict) and key != "metadata"), "metadata"
    )
    doubled = _json(body).replace('{"apiVersion"', '{"kind": "x", "apiVersion"', 1).encode()
    labels = _json(body).replace('"labels":{', '"labels":{"tier":"two",', 1).encode()
    for validation in VALIDATIONS:
        for wrong in (
            {**body, "unknown": {"a": 1}}, {**body, inner: {**body[inner], "unknown": 1}},
            {**body, "metadata": {**body["metadata"], "unknown": 1}}, doubled, labels,
        ):  # fmt: skip
            yield Ask(method, f"{dry}&fieldValidation={validation}", wrong)
        twice = _yaml(body) + b"unknown: 1\nkind: x\n"
        yield Ask(method, f"{dry}&fieldValidation={validation}", twice, {"Content_Type": YAML})


def _no_bodies(body: Mapping[str, Any]) -> Iterator[Any]:
    yield from (b"", b" ", b"{", b"[]", b"null", b"1", b'"a"', b"{}x", b"\xff", [body])
    changes: Sequence[Mapping[str, Any]] = (
        {"kind": "Node" if body["kind"] != "Node" else "Pod"}, {"kind": "Nothing"}, {"kind": ""}, {"kind": 1},
        {"apiVersion": "v9"}, {"apiVersion": "nothing/v1"}, {"apiVersion": ""}, {"apiVersion": "a/b/c"},
        {"apiVersion": None, "kind": None}, {"metadata": None}, {"metadata": []}, {"metadata": "a"},
    )  # fmt: skip
    yield from ({**body, **change} for change in changes)


def _patches(sample: Sample) -> dict[str, Any]:
    """The same change in each way to say it."""
    label = {"metadata": {"labels": {"tier": "two"}}}
    return {
        JSON_PATCH: [{"op": "replace", "path": "/metadata/labels/tier", "value": "two"}],
        MERGE_PATCH: label,
        STRATEGIC_PATCH: label,
        APPLY: {"apiVersion": sample.resource.api_version, "kind": sample.resource.kind, **label},
    }


def _patched(sample: Sample, target: str) -> Iterator[Ask]:
    """Each sort of patch, good and bad, none of which is stored."""
    whole = {"apiVersion": sample.resource.api_version, "kind": sample.resource.kind}
    if target.endswith("/scale"):
        whole = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    dry = f"{target}?dryRun=All&fieldManager=peer"
    for sort, good in _patches(sample).items():
        good = {**good, **whole} if sort == APPLY else good
        headers = {"Content_Type": sort}
        for form in ("application/json", TABLE, METADATA, METADATA_LIST, YAML, "text/html"):
            yield Ask("PATCH", dry, good, {**headers, "Accept": form})
        for body in (b"", b"x: [", b"null", b"[]", b"{}", b"1", b"\xff", *WRONG_PATCHES[sort]):
            sent = {**whole, **body} if sort == APPLY and isinstance(body, dict) else body
            for validation in VALIDATIONS if "unknown" in str(body) else ("Strict",):
                yield Ask("PATCH", f"{dry}&fieldValidation={validation}", sent, headers)
        for options in ("dryRun=Some", "dryRun=All&force=true", "dryRun=All&fieldManager=%07", "dryRun=All"):
            yield Ask("PATCH", f"{target}?{options}", good, headers)
    for sort in ("", "application/json", "text/plain", YAML, "application/apply-patch+cbor"):
        yield Ask("PATCH", dry, {}, {"Content_Type": sort})


_METADATA_PATCHES = tuple(
    {"metadata": fault} for fault in METADATA_FAULTS if list(fault) != ["managedFields"]
)
WRONG_PATCHES: Mapping[str, Sequence[Any]] = {
    JSON_PATCH: (
        [{"op": "test", "path": "/metadata/labels/tier", "value": "no"}], [{"op": "remove",
        "path": "/nothing"}],
        [{"op": "add", "path": "/unknown", "value": 1}], [{"op": "nothing", "path": "/a"}], [1],
        [{"op": "add", "path": "/metadata/labels", "value": 1}], [{"op": "replace", "path": "/kind",
        "value": "X"}],
        [{"op": "replace", "path": "/metadata/name", "value": "other"}], [{"op": "remove",
        "path": "/metadata/name"}],
        [{"op": "replace", "path": "", "value": {}}], [{"op": "copy", "from": "/nothing", "path": "/a"}],
        [{"op": "remove", "path": "/metadata"}], [{"op": "replace", "path": "/apiVersion", "value": "v9"}],
        [{"op": "move", "from": "/metadata/labels/tier", "path": "/metadata/labels/other"}],
        [{"op": "add", "path": "metadata", "value": 1}], [{"path": "/a"}], [{"op": "add",
        "path": "/metadata/-"}],
    ),
    MERGE_PATCH: (
        {"unknown": 1}, {"kind": "X"}, {"apiVersion": "v9"}, {"metadata": None}, {"metadata": 1},
        {"metadata": {"labels": None}}, *_METADATA_PATCHES,
    ),
    STRATEGIC_PATCH: (
        {"unknown": 1}, {"kind": "X"}, {"apiVersion": "v9"}, {"metadata": 1},
        {"metadata": {"labels": {"$patch": "replace", "z": "y"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {"$patch": "nothing"}}}, {"$retainKeys": ["metadata"]}, {"$patch": "delete"},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}},
        {"metadata": {"$setElementOrder/finalizers": ["b/c", "a/b"], "finalizers": ["a/b", "b/c"]}},
        {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "u"}]}},
        {"metadata": {"ownerReferences": [{"name": "no key"}]}},
    ),
    APPLY: (
        {"unknown": 1}, {"kind": "X"}, {"kind": None}, {"apiVersion": "v9"}, {"metadata": None},
        {"metadata": 1},
        {"metadata": {"managedFields": [{"manager": "m"}]}}, {"metadata": {"name": None, "unknown": 1}},
        *_METADATA_PATCHES,
    ),
}  # fmt: skip
"""Each is wrong, or means something special."""


def _yaml(body: Any) -> bytes:
    """Every string quoted: some are booleans otherwise."""
    return yaml.dump(dict(body), Dumper=_Quoting).encode()


class _Quoting(yaml.SafeDumper):
    pass


_Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


def _json(body: Any) -> str:
    return json.dumps(body, separators=(",", ":"))


def _escaped(selector: str) -> str:
    return selector.replace("=", "%3D").replace(" ", "%20").replace(">", "%3E")


BY_RESOURCE = {kind.resource: kind for kind in KINDS}
VERBS: Sequence[Callable[[Sample], Iterator[Ask]]] = (
    made, read, updated, patched, by_parts, by_any_method, deleted,
)  # fmt: skip
SHARES = 12
"""Of what changes nothing a kind is asked one part in so many, and the next kind the next part, so that each
question is asked of several kinds."""


def shared(asks: Iterator[Ask], turn: int) -> list[Ask]:
    return [ask for number, ask in enumerate(asks) if not _is_idle(ask) or number % SHARES == turn % SHARES]


def turn_of(sample: Sample) -> int:
    """The same whatever other kinds there are."""
    return crc32(sample.name.encode())


def _is_idle(ask: Ask) -> bool:
    return ask.method in ("GET", "HEAD") or "dryRun=All" in ask.target


SEQUENCES = [
    Compared(f"{sample.name} {verb.__name__}", shared(verb(sample), turn_of(sample)))
    for sample in samples()
    for verb in VERBS
    if verb is not patched or sample.resource.kind not in CLAIMS.what
]


@pytest.mark.usefixtures("no_ranges_left")
@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_every_verb_is_answered_as_by_kubernetes(
    sequence: Compared, kubernetes: Server, podling: Server
) -> None:
    found = unnamed(differences(sequence, f"every-{SEQUENCES.index(sequence)}", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
