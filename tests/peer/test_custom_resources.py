"""R-SYS-8: CustomResourceDefinitions are defaulted, validated, changed and shown as by Kubernetes.

What is created stays only on trial (`dryRun`), because controllers of both servers write the status of what
is stored, each in its own time. Those are asked once they are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from peer.mutations import GONE, changed
from peer.named_differences import unnamed
from peer.sequence import (
    APPLY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Ask,
    Compared,
    differences,
    shown,
)
from peer.server import Server

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
LOOKS = 2_000
"""At a definition until its controllers are done."""
LONG = "x" * 300
S, WHOLE, N, B = ({"type": type_} for type_ in ("string", "integer", "number", "boolean"))
KEEP = {"x-kubernetes-preserve-unknown-fields": True}


def obj(**fields: Any) -> dict[str, Any]:
    return {"type": "object", **fields}


def props(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def listed(items: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **fields}


def definition(plural: str = "widgets", group: str = "example.test", **schema: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {**props(a=S), **schema}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [version],
        },
    }


def rule(**fields: Any) -> dict[str, Any]:
    return props(a={**S, "x-kubernetes-validations": [{"rule": "true", **fields}]})


def keyed(
    keys: list[str], properties: Any, required: list[str] | None = None, **fields: Any
) -> dict[str, Any]:
    item = obj(properties=properties, required=required or [], **fields)
    return listed(item, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})


EITHER = [{"type": "integer"}, {"type": "string"}]
EMBEDDED = obj(**{"x-kubernetes-embedded-resource": True}, **KEEP)
FIELDS: list[Any] = [
    S,
    WHOLE,
    N,
    B,
    obj(),
    listed(S),
    {},
    {"type": "null"},
    {"type": "text"},
    {"type": ""},
    {"type": "array"},
    {"type": "array", "items": []},
    {"type": "array", "items": [S]},
    listed({}),
    listed(S, uniqueItems=True),
    listed(listed(S)),
    {**S, "nullable": True},
    {**S, "title": "t"},
    {**S, "id": "x"},
    {**S, "$schema": "x"},
    {**S, "$ref": "x"},
    {**S, "$ref": ""},
    {**S, "patternProperties": {"a": S}},
    {**S, "definitions": {"a": S}},
    {**S, "additionalItems": False},
    {**S, "additionalItems": S},
    {**S, "dependencies": {"a": ["b"]}},
    {**S, "dependencies": {"a": S, "b": None}},
    obj(additionalProperties=S),
    obj(additionalProperties=True),
    obj(additionalProperties=False),
    obj(additionalProperties={}),
    obj(additionalProperties=S, properties={"b": S}),
    obj(additionalProperties=True, properties={"b": S}),
    obj(additionalProperties=False, properties={"b": S}),
    {"anyOf": EITHER},
    {**S, "anyOf": EITHER},
    {"anyOf": EITHER, "x-kubernetes-int-or-string": True},
    {"allOf": [{"anyOf": EITHER}], "x-kubernetes-int-or-string": True},
    {"allOf": [{"anyOf": EITHER}, {"anyOf": EITHER}], "x-kubernetes-int-or-string": True},
    {"anyOf": [*EITHER, {"type": "boolean"}], "x-kubernetes-int-or-string": True},
    {"x-kubernetes-int-or-string": True, **KEEP},
    {"x-kubernetes-int-or-string": True, **EMBEDDED},
    KEEP,
    {"x-kubernetes-preserve-unknown-fields": False},
    EMBEDDED,
    {**EMBEDDED, "type": "string"},
    {"x-kubernetes-embedded-resource": True},
    obj(**{"x-kubernetes-embedded-resource": True}),
    obj(**{"x-kubernetes-embedded-resource": True}, additionalProperties=S),
    {**EMBEDDED, "properties": {"metadata": S}},
    {**EMBEDDED, "properties": {"kind": WHOLE}},
    {**EMBEDDED, "properties": {"apiVersion": WHOLE}},
    {**EMBEDDED, "properties": {"metadata": obj(properties={"labels": obj(additionalProperties=S)})}},
    *(
        {**S, "allOf": [{key: value}]}
        for key, value in {
            "type": "string",
            "default": "x",
            "title": "x",
            "description": "x",
            "nullable": True,
            "externalDocs": {"url": "x"},
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-int-or-string": True,
            "x-kubernetes-list-map-keys": ["a"],
            "x-kubernetes-list-type": "set",
            "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{"rule": "true"}],
            "additionalProperties": S,
            "maxLength": 3,
            "properties": {"metadata": {}},
            "items": {"type": "string"},
            "pattern": "(",
            "format": "date",
            "not": {"type": "string"},
            "anyOf": [{"nullable": True}],
            "oneOf": [{"minLength": 1}],
        }.items()
    ),
    {**S, "not": {"type": "string"}},
    {**S, "not": {"pattern": "a"}},
    {**S, "oneOf": [{"description": "x"}]},
    *(
        {**S, "pattern": pattern}
        for pattern in ("^[a-z]+$", "(", "a**", "[z-a]", "\\8", "(?=a)", "a{2000}", "\\", "é")
    ),
    {**S, "format": "date"},
    {**S, "format": "nonsense"},
    {**WHOLE, "format": "int32"},
    {**WHOLE, "format": "int8"},
    {**N, "format": "double"},
    {**S, "format": "date-time"},
    {**S, "format": "int-or-string"},
    {**WHOLE, "maximum": 5.0, "minimum": 1.5, "multipleOf": 0.5, "exclusiveMaximum": True},
    {**S, "maxLength": -1},
    {**S, "minLength": 2**40},
    {**S, "enum": ["a", 1, None, 2.0, {"a": [1.0]}]},
    {**S, "example": {"b": 1.0}},
    {**S, "example": None},
    {**S, "externalDocs": {"url": "http://x"}},
    {**S, "enum": []},
    {**obj(), "required": ["a", "a"]},
    {**obj(), "maxProperties": 0},
    *(listed(S, **{"x-kubernetes-list-type": kind}) for kind in ("atomic", "set", "map", "bag", "")),
    {**S, "x-kubernetes-list-type": "set"},
    {"x-kubernetes-list-type": "set", **KEEP},
    listed(obj(), **{"x-kubernetes-list-type": "set"}),
    listed(listed(S), **{"x-kubernetes-list-type": "set"}),
    listed(obj(**{"x-kubernetes-map-type": "atomic"}), **{"x-kubernetes-list-type": "set"}),
    listed(listed(S, **{"x-kubernetes-list-type": "set"}), **{"x-kubernetes-list-type": "set"}),
    listed({**S, "nullable": True}, **{"x-kubernetes-list-type": "set"}),
    {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    keyed(["k"], {"k": S}, ["k"]),
    keyed(["k"], {"k": S}),
    keyed(["k"], {"k": {**S, "default": "x"}}),
    keyed([], {"k": S}, ["k"]),
    keyed(["k", "k"], {"k": S}, ["k"]),
    keyed(["z"], {"k": S}, ["k"]),
    keyed(["k"], {"k": listed(S)}, ["k"]),
    keyed(["k"], {"k": {**S, "nullable": True}}, ["k"]),
    keyed(["k"], {"k": S}, ["k"], nullable=True),
    listed(S, **{"x-kubernetes-list-map-keys": ["k"]}),
    listed(S, **{"x-kubernetes-list-map-keys": ["k"], "x-kubernetes-list-type": "set"}),
    *(obj(**{"x-kubernetes-map-type": kind}) for kind in ("atomic", "granular", "set")),
    {**S, "x-kubernetes-map-type": "atomic"},
    {"x-kubernetes-map-type": "atomic", **KEEP},
    *(
        rule(**said)
        for said in (
            {},
            {"rule": ""},
            {"rule": " "},
            {"message": " "},
            {"message": "a\nb"},
            {"rule": "true ||\n true"},
            {"rule": "true ||\n true", "message": "m"},
            {"messageExpression": " "},
            {"reason": "FieldValueForbidden"},
            {"reason": "Nonsense"},
            {"fieldPath": " "},
            {"fieldPath": "\n.b"},
        )
    ),
    *(
        obj(
            properties={"b": obj(additionalProperties=S), "c d": S},
            **{"x-kubernetes-validations": [{"rule": "true", "fieldPath": path}]},
        )
        for path in (
            ".b",
            ".b.c",
            ".b['c']",
            "['c d']",
            ".x",
            "b",
            "['b",
            "[b]",
            ".b[",
            ".b['\\q']",
            ".b['c']x",
            ".",
            "['b']['c']",
        )
    ),
]
"""Schemas of a field."""
ROOTS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": ""},
    {"nullable": True},
    {"description": "d"},
    {"$schema": "x"},
    {"additionalProperties": S, "properties": {}},
    {"additionalProperties": True},
    KEEP,
    {"default": {"a": "x"}},
    {"anyOf": [{"properties": {"a": {"maxLength": 3}}}]},
    {"anyOf": [{"properties": {"z": {"maxLength": 3}}}]},
    {"allOf": [{"items": {"maxLength": 3}}]},
    {"oneOf": [{"properties": {"a": {"items": {"minLength": 1}}}}]},
    {"not": {"required": ["a"]}},
    {"x-kubernetes-embedded-resource": True},
    props(metadata=obj()),
    props(metadata=props(name={**S, "maxLength": 5})),
    props(metadata=props(labels=obj())),
    props(metadata=S),
    props(metadata=obj(description="x")),
    props(metadata=props(name={**S, "default": "x"})),
    props(kind=S),
    props(kind=WHOLE),
    props(kind={**S, "default": "x"}),
    props(apiVersion=B),
    props(metadata=EMBEDDED),
    props(metadata=obj(additionalProperties={**S, "default": "x"})),
    props(**{"a.b": S}),
    props(**{"": S}),
    {"x-kubernetes-validations": [{"rule": "has(self.a)", "fieldPath": ".a"}]},
    {"required": ["z"]},
]


def with_default(schema: dict[str, Any], *values: Any) -> list[dict[str, Any]]:
    return [{**schema, "default": value} for value in values]


DEFAULTS: list[Any] = [
    *with_default(S, "x", 5, True, None, [], {}, 1.5),
    *with_default(WHOLE, 1, 1.0, 1.5, "x", True, 2**63, 1e30, -1),
    *with_default(N, 1, 1.5, "x"),
    *with_default(B, True, "x", 0),
    *with_default(listed(S), [], ["a"], ["a", 1], {}, "x"),
    *with_default(obj(properties={"b": S}), {}, {"b": "x"}, {"b": 1}, {"c": 1}, {"b": None}, []),
    *with_default(obj(properties={"b": {**S, "nullable": True}}, required=["b", "c"]), {"b": None}, {}),
    *with_default(obj(properties={"b": {**S, "default": 1}}), {"b": "x"}),
    *with_default({**S, "enum": ["a", "b"]}, "a", "c"),
    *with_default({**WHOLE, "enum": [1, 2]}, 1, 3),
    *with_default({**N, "enum": [1.5]}, 1.5, 2.5),
    *with_default({**S, "maxLength": 2}, "ab", "abc", "éé"),
    *with_default({**S, "minLength": 2}, "a"),
    *with_default({**S, "pattern": "^a+$"}, "aa", "b", "a\n"),
    *with_default({**WHOLE, "maximum": 2}, 2, 3),
    *with_default({**WHOLE, "maximum": 2, "exclusiveMaximum": True}, 2),
    *with_default({**WHOLE, "minimum": 2}, 1),
    *with_default({**N, "minimum": 2.5, "exclusiveMinimum": True}, 2.5),
    *with_default({**N, "maximum": 1e6}, 1000001.5),
    *with_default({**WHOLE, "multipleOf": 2}, 4, 3),
    *with_default({**N, "multipleOf": 0.1}, 0.3, 0.35),
    *with_default({**N, "multipleOf": -1}, 1),
    *with_default({**N, "multipleOf": 0}, 1),
    *with_default(listed(S, maxItems=1), ["a", "b"]),
    *with_default(listed(S, minItems=2), ["a"]),
    *with_default(obj(additionalProperties=S, maxProperties=1), {"a": "b", "c": "d"}, {"a": 1}),
    *with_default(obj(additionalProperties=S, minProperties=2), {"a": "b"}),
    *with_default(obj(additionalProperties=False), {"a": "b"}),
    *with_default(obj(additionalProperties=True), {"a": "b"}, {"a": {"b": 1}}),
    *with_default({**WHOLE, "allOf": [{"maximum": 2}]}, 3),
    *with_default({**WHOLE, "allOf": [{"maximum": 2}, {"minimum": 1}]}, 3),
    *with_default({**WHOLE, "anyOf": [{"maximum": 2}, {"minimum": 9}]}, 1, 3, 9),
    *with_default({**WHOLE, "oneOf": [{"maximum": 2}, {"minimum": 1}]}, 2, 0, 3),
    *with_default({**WHOLE, "oneOf": [{"maximum": 1}]}, 2),
    *with_default({**WHOLE, "not": {"maximum": 2}}, 1, 3),
    *with_default({**obj(), **KEEP}, {"a": [1, {"b": None}]}),
    *with_default({"x-kubernetes-int-or-string": True}, 1, "x", 1.5, True),
    *with_default(obj(properties={"b": obj(properties={"c": WHOLE})}), {"b": {"c": "x"}}, {"b": {"d": 1}}),
    *with_default(listed(obj(properties={"b": WHOLE})), [{"b": 1}, {"b": "x"}], [{"c": 1}]),
    *with_default(listed(S, **{"x-kubernetes-list-type": "set"}), ["a", "a"]),
    *with_default(
        EMBEDDED,
        {},
        {"apiVersion": "v1", "kind": "A"},
        {"apiVersion": "a/b/c", "kind": "A"},
        {"apiVersion": "v1", "kind": "-"},
        {"apiVersion": 1, "kind": "A"},
        {"apiVersion": "v1", "kind": 1},
        {"apiVersion": "v1", "kind": "A", "metadata": {"name": ".."}},
        # One fault each: Kubernetes tells several in any order.
        {"apiVersion": "", "kind": "A"},
        {"apiVersion": "v1", "kind": ""},
        {"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": "-"}}},
    ),
    {**EMBEDDED, "properties": {"kind": {**S, "default": "-"}}},
    {**EMBEDDED, "properties": {"kind": {**S, "default": "A"}}},
    {**EMBEDDED, "properties": {"metadata": obj(properties={"name": {**S, "default": ".."}})}},
    {
        **EMBEDDED,
        "properties": {
            "metadata": obj(properties={"labels": obj(additionalProperties=S, default={"a": "-"})})
        },
    },
    *with_default({**S, "format": "date"}, "2020-01-01", "x"),
    *with_default({**S, "format": "nonsense"}, "x"),
    *with_default({**WHOLE, "format": "int32"}, 2**31, 5),
    *with_default({**S, "format": "ipv4"}, "1.2.3.4", "x"),
    *with_default({**S, "format": "byte"}, "QUJD", "!"),
    *with_default({**S, "format": "date-time"}, "2020-01-01T00:00:00Z", "x"),
    *with_default({**S, "format": "uri"}, "http://a", "x"),
    *with_default({**S, "format": "duration"}, "1h", "x"),
    *with_default({**S, "format": "email"}, "a@b", "x"),
    *with_default({**S, "format": "uuid"}, "x"),
    {"type": "array", "items": {**S, "default": 1}},
    obj(additionalProperties={**S, "default": 1}),
]
"""Schemas of a field with a default."""


def webhook(*versions: Any, **client: Any) -> Any:
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": [*versions]},
    }


def service(**fields: Any) -> Any:
    return webhook("v1", service={"name": "n", "namespace": "s", **fields})


def each(path: str, *values: Any) -> list[tuple[str, Any]]:
    return [(path, value) for value in values]


V = "spec.versions.0"
SPEC: list[tuple[str, Any]] = [
    ("metadata.name", "other.example.test"),
    ("metadata.name", "-"),
    ("metadata.labels", {"-": "a"}),
    *each("spec.group", GONE, "", "test", "A.b", LONG, "example.test."),
    *each("spec.scope", GONE, "", "Cluster", "Everywhere"),
    *each("spec.names.plural", "", "Widgets", "-", LONG),
    *each("spec.names.kind", "", "-", "Wid.get", "WIDGET", "widgetsList"),
    *each("spec.names.singular", "one", "One", ""),
    *each("spec.names.listKind", "Widgets", "L", "-", ""),
    *each("spec.names.shortNames", ["w"], ["W"], ["a", "a"], [""], []),
    *each("spec.names.categories", ["all"], ["A"], [""]),
    *each("spec.versions", GONE, [], None, [{}]),
    *each(f"{V}.name", "", "V1", "v1-", "a.b", "zz", LONG),
    *each(f"{V}.served", False, GONE),
    *each(f"{V}.storage", False, GONE),
    *each(f"{V}.schema", GONE, {}, {"openAPIV3Schema": {}}, {"openAPIV3Schema": None}),
    (f"{V}.deprecated", True),
    *each(f"{V}.deprecationWarning", "x", ""),
    *(
        (f"{V}.additionalPrinterColumns", [column])
        for column in (
            {},
            {"name": "a", "type": "string", "jsonPath": ".a"},
            {"name": "a", "type": "x", "jsonPath": ".a"},
            {"name": "a", "type": "date", "jsonPath": "a"},
            {"name": "a", "type": "integer", "format": "x", "jsonPath": "."},
            {
                "name": "a",
                "type": "string",
                "format": "date-time",
                "jsonPath": ".a[?(@.b==1)]",
                "priority": -1,
                "description": "d",
            },
        )
    ),
    *each(
        f"{V}.selectableFields",
        [{}],
        [{"jsonPath": ".a"}],
        [{"jsonPath": ".a"}, {"jsonPath": ".a"}],
        [{"jsonPath": ".z"}],
        [{"jsonPath": "a"}],
        [{"jsonPath": ".metadata.name"}],
        [{"jsonPath": ".a['b']"}],
        [{"jsonPath": "."}],
        [{"jsonPath": ".a.b"}],
    ),
    *each(
        f"{V}.subresources",
        {},
        {"status": {}},
        {"scale": {}},
        {"scale": {"specReplicasPath": "a", "statusReplicasPath": "b"}},
        {"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b", "labelSelectorPath": ".c"}},
        {
            "scale": {
                "specReplicasPath": ".spec.a",
                "statusReplicasPath": ".status.b",
                "labelSelectorPath": "x",
            }
        },
        {
            "scale": {
                "specReplicasPath": ".spec.a",
                "statusReplicasPath": ".status.b",
                "labelSelectorPath": "",
            },
            "status": None,
        },
    ),
    *each("spec.preserveUnknownFields", True, False, None),
    *each(
        "spec.conversion",
        None,
        {},
        {"strategy": ""},
        {"strategy": "None"},
        {"strategy": "Magic"},
        {"strategy": "None", "webhook": {}},
        {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
        {"strategy": "None", "webhook": {"clientConfig": {"url": "https://a"}}},
        {"strategy": "Webhook"},
        {"strategy": "Webhook", "webhook": {}},
        webhook("v1"),
        webhook(url="https://a"),
        webhook("v1", url="https://a"),
        webhook("v1", url="https://a", service={"name": "n", "namespace": "s"}),
        webhook("v2", url="https://a"),
        webhook("v1", "v1", url="https://a"),
        webhook("V1", url="https://a"),
        webhook("v1beta1", "x", url="https://a"),
        *(
            webhook("v1", url=url)
            for url in (
                "http://a",
                "https://",
                "https://u:p@a",
                "https://a?b#c",
                "",
                "%zz",
                "https://a/b",
            )
        ),
        webhook("v1", url="https://a", caBundle="QUJD"),
        service(),
        service(name=""),
        service(namespace=""),
        service(port=0),
        service(port=443),
        service(port=65536),
        *(service(path=path) for path in ("", "/", "//", "a", "/a", "/a/", "/a//b", "/A/b")),
    ),
    ("status", {"storedVersions": ["v9"], "conditions": [{"type": "Established", "status": "True"}]}),
    ("unknown", 1),
    ("metadata.finalizers", ["x"]),
    ("metadata.generation", 7),
    (f"{V}.unknown", 1),
]
"""Single changes of a definition."""
SECOND = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": props(a=S)}}
VERSIONS: list[Any] = [
    [],
    [{"storage": True}],
    [{"name": "v1"}],
    [{"schema": {"openAPIV3Schema": props(a=WHOLE)}}],
    [{"schema": {"openAPIV3Schema": props(a={})}}],
    [{"schema": None}],
    [{"subresources": {"scale": {}}}],
    [{"subresources": {"status": {}}}],
    [{"additionalPrinterColumns": [{"name": "a"}]}],
    [{"selectableFields": [{"jsonPath": ".z"}]}],
    [
        {
            "schema": {"openAPIV3Schema": props(b=S)},
            "selectableFields": [{"jsonPath": ".b"}, {"jsonPath": ".a"}],
        }
    ],
    [{"name": "V2"}, {"name": "v3"}],
]
"""Other versions than `SECOND`, beside the first."""
APPROVED: list[Any] = [None, "", "https://x/1", "unapproved, so far", "nonsense", "/x", "http:x", "http://"]
CHANGES: list[tuple[str, Any]] = [
    ("metadata.labels", {"a": "b"}),
    ("metadata.labels", {"-": "b"}),
    ("metadata.name", "other.example.test"),
    ("metadata.finalizers", ["example.test/x"]),
    ("spec.group", "other.test"),
    ("spec.scope", "Cluster"),
    ("spec.names.plural", "others"),
    ("spec.names.kind", "Other"),
    ("spec.names.listKind", "Others"),
    ("spec.names.singular", "one"),
    ("spec.names.shortNames", ["w"]),
    ("spec.versions", []),
    ("spec.versions", [{**SECOND, "storage": True}]),
    ("spec.preserveUnknownFields", True),
    ("spec.conversion", webhook("v1", url="https://a", caBundle="QUJD")),
    ("spec.conversion", None),
    ("status.storedVersions", ["v7"]),
]


def tried(body: dict[str, Any]) -> Ask:
    return Ask("POST", f"{PATH}?dryRun=All", body)


def of_field(schema: Any) -> Ask:
    return tried(definition(properties={"a": schema}))


def in_versions(others: list[Any]) -> Ask:
    one = definition()
    one["spec"]["versions"] += [{**SECOND, **other} for other in others]
    return tried(one)


def of_rule(schema: Any, **fields: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [fields]}


def protected(annotation: str | None) -> Ask:
    one = definition(group="example.k8s.io")
    if annotation is not None:
        one["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    return tried(one)


N, SHORT, CHANGED = {"type": "integer"}, {**S, "maxLength": 5}, {"rule": "oldSelf == self"}
COMPILED: list[Any] = [
    *[
        of_rule(N, rule=text)
        for text in (
            *("self > 1", "oldSelf < self", "self", "1", "self > 1 || nope", "nofunc(self)", "self.a", "1 +"),
            *("request.x", "authorizer.group('x')", "variables.x", "object.x", "params.x", "self == 1.0"),
            *('self > "x"', "[1, 'a'].size() == 2", '"abc".matches("(")', "self > 1\n&& x", " self <"),
            *('quantity("1").isLessThan(quantity("x"))', "self in [1, 2]", "dyn(self) == 'a'", "dyn(1)"),
        )
    ],
    *[of_rule(SHORT, rule=text) for text in ("self.startsWith('a')", "self > 1", "self.foo", "self != null")],
    *[of_rule({**S, "format": "date-time"}, rule=text) for text in ('self > "a"', "self == self")],
    *[of_rule({"type": "boolean"}, rule=text) for text in ("self", "!self", "self > 1")],
    *[of_rule({"type": "number"}, rule=text) for text in ("self > 1.0", "self > 1")],
    *[
        of_rule(N, rule="true", messageExpression=text)
        for text in ("'a'", "1", "foo", "self.", "'a' + 1", "oldSelf", " ")
    ],
    *[
        of_rule(N, rule=text, optionalOldSelf=optional)
        for text in ("oldSelf.hasValue()", "self > 1", "'oldSelf' != ''", "oldSelf.hasValue() // oldSelf")
        for optional in (True, False)
    ],
    listed(of_rule(SHORT, **CHANGED), maxItems=3),
    listed(of_rule(SHORT, **CHANGED), maxItems=3, **{"x-kubernetes-list-type": "set"}),
    listed(obj(properties={"z": of_rule(SHORT, **CHANGED)}), maxItems=3),
    listed(of_rule(SHORT, rule='"oldSelf" == self'), maxItems=3),
    obj(maxProperties=3, additionalProperties=of_rule(SHORT, **CHANGED)),
    of_rule(N, rule="foo", messageExpression="bar", reason="FieldValueForbidden", message="m"),
]


def sequences() -> list[Compared]:
    return [
        Compared("fields", [of_field(schema) for schema in FIELDS]),
        Compared("rules", [of_field(schema) for schema in COMPILED]),
        Compared("roots", [tried(definition(**schema)) for schema in ROOTS]),
        Compared("defaults", [of_field(schema) for schema in DEFAULTS]),
        Compared("spec", [tried(changed(definition(), path, value)) for path, value in SPEC]),
        Compared(
            "status",
            [
                tried(changed(definition(**schema), f"{V}.subresources", {"status": {}}))
                for schema in ({}, KEEP, {"type": "array"})
            ],
        ),
        Compared("versions", [in_versions(others) for others in VERSIONS]),
        Compared("approval", [protected(annotation) for annotation in APPROVED]),
        Compared(
            "bodies",
            [
                Ask("POST", f"{PATH}?dryRun=All&fieldValidation={how}", body)
                for how in ("Strict", "Warn", "Ignore")
                for body in (
                    definition(properties={"a": {**S, "unknown": 1}}),
                    definition(properties={"a": listed({**S, "unknown": 1})}),
                    definition(properties={"a": obj(additionalProperties={**S, "unknown": 1})}),
                    definition(properties={"a": {**S, "maxLength": "x"}}),
                    definition(properties={"a": {**S, "maxLength": 1.5}}),
                    definition(properties={"a": {**S, "maximum": "x"}}),
                    definition(properties={"a": listed({"type": 5})}),
                    definition(properties={"a": obj(additionalProperties=5)}),
                    definition(properties={"a": {"type": "array", "items": 5}}),
                    definition(properties={"a": "x"}),
                    definition(properties=[]),
                    definition(required={}),
                )
            ],
        ),
    ]


def changing() -> list[Compared]:
    """What is asked of a definition that stands, `PLURAL.example.test`."""
    place, patch = f"{PATH}/changings.example.test", {"Content_Type": MERGE_PATCH}
    shown = f"{PATH}/showns.example.test"
    status = [
        {"status": {"acceptedNames": {"plural": "-", "kind": "-"}}},
        {"status": {"storedVersions": []}},
        {"status": {"storedVersions": ["v9"]}},
        {"status": {"conditions": [{"type": "A", "status": "B"}], "observedGeneration": 3}},
        {"spec": {"scope": "Cluster"}},
        {"metadata": {"labels": {"a": "b"}}},
    ]
    return [
        Compared(
            "changings",
            [
                *(
                    Ask("PATCH", f"{place}?dryRun=All", changed({}, path, value), patch)
                    for path, value in CHANGES
                ),
                *(Ask("PATCH", f"{place}/status?dryRun=All", body, patch) for body in status),
                Ask("PUT", f"{place}?dryRun=All", definition("changings")),
                Ask("PUT", f"{place}/status?dryRun=All", definition("changings")),
                Ask(
                    "PATCH",
                    f"{place}?dryRun=All",
                    [{"op": "remove", "path": "/spec/versions/0/schema"}],
                    {"Content_Type": JSON_PATCH},
                ),
                Ask(
                    "PATCH",
                    f"{place}?dryRun=All",
                    [{"op": "replace", "path": "/spec/versions/0/served", "value": False}],
                    {"Content_Type": JSON_PATCH},
                ),
                Ask(
                    "PATCH",
                    f"{place}?dryRun=All",
                    {"spec": {"versions": [SECOND]}},
                    {"Content_Type": STRATEGIC_PATCH},
                ),
                Ask(
                    "PATCH",
                    f"{place}?dryRun=All&fieldManager=other",
                    definition("changings"),
                    {"Content_Type": APPLY},
                ),
                Ask(
                    "PATCH",
                    f"{place}?dryRun=All&fieldManager=other",
                    changed(definition("changings"), "spec.scope", "Cluster"),
                    {"Content_Type": APPLY},
                ),
                Ask("POST", f"{PATH}?dryRun=All", definition("changings")),
            ],
        ),
        Compared(
            "showns",
            [
                Ask("GET", shown, headers=TABLE),
                Ask("GET", f"{PATH}?fieldSelector=metadata.name%3Dshowns.example.test", headers=TABLE),
                Ask("GET", f"{PATH}?fieldSelector=spec.group%3Dexample.test"),
                Ask("GET", f"{PATH}?labelSelector=nothing"),
                Ask("GET", f"{shown}/scale"),
                Ask("DELETE", f"{shown}?dryRun=All"),
                Ask("DELETE", shown, {"preconditions": {"uid": "other"}}),
                Ask("DELETE", shown, {"propagationPolicy": "Foreground", "dryRun": ["All"]}),
                Ask("DELETE", f"{PATH}/nothing.example.test"),
            ],
        ),
    ]


def stand(server: Server, plural: str, **spec: Any) -> Any:
    """A definition, once controllers are done with it."""
    body = definition(plural)
    body["spec"] |= spec
    assert server.ask("POST", PATH, body).code == 201
    return settled(server, plural, lambda found: found["status"]["conditions"])


def remove(server: Server, plural: str) -> None:
    """A definition and its group, for the tests of discovery."""
    server.ask("DELETE", f"{PATH}/{plural}.example.test")
    with server.asking() as asking:
        for _ in range(LOOKS):
            if "example.test" not in str(asking.ask("GET", "/apis").body):
                return
    raise AssertionError(f"{server.name} still serves the group")


def settled(server: Server, plural: str, is_done: Callable[[Any], Any]) -> Any:
    with server.asking() as asking:
        for _ in range(LOOKS):
            found = asking.ask("GET", f"{PATH}/{plural}.example.test")
            if is_done(found.body):
                return found.body
    raise AssertionError(f"{server.name} is not done: {found.body}")


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_definitions(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = f"definitions-{sequence.name}"
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize("sequence", changing(), ids=lambda sequence: sequence.name)
def test_standing_definitions(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    for server in (kubernetes, podling):
        stand(server, sequence.name)
    try:
        found = unnamed(differences(sequence, f"definitions-{sequence.name}", kubernetes, podling))
    finally:
        for server in (kubernetes, podling):
            remove(server, sequence.name)
    assert not found, f"\n{shown(sequence, found)}"
