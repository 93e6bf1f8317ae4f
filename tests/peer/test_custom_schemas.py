"""R-SYS-8: schemas of custom resources that nobody has thought of are refused and kept as by Kubernetes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

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
from peer.test_custom_resources import PATH, definition, listed, of_field, of_rule, props, tried

DRY = "?dryRun=All"
S, WHOLE, N, B, OBJECT = ({"type": type_} for type_ in ("string", "integer", "number", "boolean", "object"))
KEEP = {"x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True}

WORDS: dict[str, list[Any]] = {
    "type": ["string", "integer", "number", "boolean", "object", "array", "", "null", "Object"],
    "format": ["date-time", "int32", "int64", "byte", "duration", "uuid", "odd", "Date-Time", "ipv4", ""],
    "description": ["d", ""],
    "title": ["t"],
    "default": [None, 1, -1.5, "a", True, [], {}, ["a", 1], {"a": "b"}, {"a": None}],
    "maximum": [0, 1, 1.5, -3, 1e21, 2**53 + 1],
    "minimum": [0, 1, 1.5, -3],
    "multipleOf": [1, 0.1, 2.5],
    "exclusiveMaximum": [True, False],
    "exclusiveMinimum": [True, False],
    "maxLength": [0, 1, 3, -1, None],
    "minLength": [0, 2, -1],
    "pattern": ["^a", "a+$", "(", "^[[:alpha:]]$", r"\d{1,3}", "", r"\pL", r"\u0061", "(?i)a", "(?P<n>a)",
        "(?<n>a)"],
    "maxItems": [0, 1, 5],
    "minItems": [0, 1],
    "uniqueItems": [False, True],
    "enum": [["a", "b"], [1, 2.0], [None], [[]], [{"a": 1}], [True], []],
    "maxProperties": [0, 1],
    "minProperties": [0, 1],
    "required": [["a"], ["a", "a"], [""], []],
    "nullable": [True, False],
    "example": [1, {"a": [None]}, None],
    "externalDocs": [{"url": "u"}, {"description": "d"}, {}],
    "x-kubernetes-preserve-unknown-fields": [True, True, False],
    "x-kubernetes-embedded-resource": [True, False],
    "x-kubernetes-int-or-string": [True, False],
    "x-kubernetes-list-type": ["atomic", "set", "map", "Set"],
    "x-kubernetes-list-map-keys": [["a"], ["a", "b"], ["z"], []],
    "x-kubernetes-map-type": ["atomic", "granular", "Atomic"],
    "$schema": ["s"],
    "$ref": ["#/a"],
    "id": ["i"],
    "additionalItems": [False, True],
}  # fmt: skip
"""What a schema may say, and values of each: right ones, odd ones and wrong ones."""
OF_TYPES: dict[str, tuple[str, ...]] = {
    "string": ("format", "maxLength", "minLength", "pattern", "enum"),
    "integer": ("format", "maximum", "minimum", "multipleOf", "exclusiveMaximum", "exclusiveMinimum"),
    "number": ("maximum", "minimum", "multipleOf", "exclusiveMaximum", "enum"),
    "boolean": ("enum",),
    "object": ("maxProperties", "minProperties", "required", "x-kubernetes-map-type"),
    "array": ("maxItems", "minItems", "x-kubernetes-list-type"),
}
ANYWHERE = ("nullable", "description", "title", "example", "default")
RARE = tuple(WORDS)
ALL_WORDS = (
    *WORDS,
    *("items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties"),
    *("dependencies", "definitions", "x-kubernetes-validations"),
)
TYPES = tuple(OF_TYPES)


def made_schema(random: Random, depth: int = 3, *, oddness: float = 0.04) -> dict[str, Any]:
    """A schema that is mostly right."""
    type_ = random.choice(TYPES if depth else TYPES[:4])
    schema: dict[str, Any] = {"type": type_}
    for word in OF_TYPES[type_]:
        if random.random() < 0.25:
            schema[word] = random.choice(WORDS[word])
    for word in ANYWHERE:
        if random.random() < 0.08:
            schema[word] = random.choice(WORDS[word])
    if type_ == "array":
        schema["items"] = made_schema(random, depth - 1, oddness=oddness)
    elif type_ == "object":
        chosen = random.random()
        if chosen < 0.6:
            names = random.sample(("a", "b", "metadata", "kind", "apiVersion"), random.choice((1, 1, 1, 2)))
            schema["properties"] = {name: made_schema(random, depth - 1, oddness=oddness) for name in names}
        elif chosen < 0.8:
            schema["additionalProperties"] = random.choice(
                (True, False, made_schema(random, depth - 1, oddness=oddness))
            )
        else:
            schema |= KEEP
    if random.random() < 0.08:
        del schema["type"]
        schema |= random.choice((KEEP, EITHER))
    if depth and random.random() < 0.2:
        word = random.choice(("allOf", "anyOf", "oneOf", "not"))
        inner = made_condition(random, depth - 1, oddness)
        schema[word] = inner if word == "not" else [inner, made_condition(random, depth - 1, oddness)]
    if random.random() < oddness * 2:
        word = random.choice(RARE)
        schema[word] = random.choice(WORDS[word])
    return schema


def made_condition(random: Random, depth: int, oddness: float) -> dict[str, Any]:
    condition = made_schema(random, depth, oddness=oddness)
    kept = 0 if random.random() > oddness * 2 else 1
    for word in (
        "type",
        "default",
        "description",
        "title",
        "nullable",
        "additionalProperties",
        *KEEP,
        *EITHER,
    ):
        if not kept:
            condition.pop(word, None)
    for word in ("x-kubernetes-list-type", "x-kubernetes-map-type"):
        if not kept:
            condition.pop(word, None)
    return condition


ATOMS: dict[str, tuple[Any, ...]] = {
    "string": (
        *("a", "", "aa", "aaaa", "1", "é\x01\"", "2020-01-01T00:00:00Z"),
        *("2020-01-01", "QUI=", "1h", "1.2.3.4"),
        *("::1", "10.0.0.0/8", "a@b.c", "http://a", "A.b"),
        *("01:02:03:04:05:06", "#fff", "rgb(1,2,3)", "2147483648"),
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "978-3-16-148410-0", "5105105105105100", "123-45-6789",
    ),
    "integer": (0, 1, -3, 2, 97, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1.0, 3.0000000001, 1e10),
    "number": (0, 0.5, 1.5, -1, 2.5, 0.3, 2**31, 0.1, -7.25, 123456789.25),
    "boolean": (True, False),
    "null": (None,),
}  # fmt: skip
NAMES = ("a", "b", "c", "metadata", "kind", "apiVersion", "")


def made_value(random: Random, schema: Any, depth: int = 4) -> Any:
    """A value that is mostly of that schema."""
    if not isinstance(schema, dict) or random.random() < 0.05:
        schema = {"type": random.choice((*TYPES, "null"))}
    if schema.get("nullable") and random.random() < 0.2:
        return None
    if schema.get("enum") and random.random() < 0.6:
        return random.choice(schema["enum"])
    type_ = schema.get("type") or random.choice(TYPES)
    if type_ == "array" and depth:
        return [
            made_value(random, schema.get("items"), depth - 1) for _ in range(random.choice((0, 1, 2, 3)))
        ]
    if type_ == "object" and depth:
        known = schema.get("properties") or {}
        names = [name for name in known if random.random() < 0.8]
        more = schema.get("additionalProperties")
        if more or random.random() < 0.05:
            names += random.sample(NAMES, 2)
        return {name: made_value(random, known.get(name, more), depth - 1) for name in names}
    return random.choice(ATOMS.get(type_, ({}, [], "a")))


FORMATS = (
    *("bsonobjectid", "uri", "email", "hostname", "ipv4"),
    *("ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"),
    *("isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date"),
    *("duration", "datetime", "date-time", "k8s-short-name"),
    *("k8s-long-name", "int32", "int64", "float", "double"),
    *("uint32", "uint64", "int-or-string", "quantity"),
)  # fmt: skip


def with_defaults(random: Random, schema: dict[str, Any]) -> dict[str, Any]:
    """With formats and a default, somewhere."""
    for part in parts(schema):
        if part.get("type") in ("string", "integer", "number") and random.random() < 0.2:
            part["format"] = random.choice(FORMATS)
    chosen = random.choice(list(parts(schema)))
    chosen["default"] = made_value(random, chosen)
    return schema


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and those of what is in its values."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), schema.get("items")):
        if isinstance(inner, dict):
            yield from parts(inner)


def made_schemas(seed: int, count: int, oddness: float) -> list[Ask]:
    random = Random(seed)
    return [of_field(made_schema(random, oddness=oddness)) for _ in range(count)]


def made_defaults(seed: int, count: int) -> list[Ask]:
    random = Random(seed)
    return [of_field(with_defaults(random, made_schema(random, oddness=0.0))) for _ in range(count)]


def made_roots(seed: int, count: int) -> list[Ask]:
    """Schemas of whole objects, with two versions, and with what else a version has."""
    random, asks = Random(seed), list[Ask]()
    for _ in range(count):
        one = definition()
        version = one["spec"]["versions"][0]
        count = random.choice((1, 1, 2))
        for name in ("v1", "v2")[:count]:
            schema = made_schema(random, oddness=0.0 if count == 1 else 0.03)
            if random.random() < 0.9:
                schema["type"] = "object"
                schema.pop("items", None)
            made = {**version, "name": name, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
            if random.random() < 0.3:
                made["subresources"] = {"status": {}}
            # At paths of more steps Kubernetes panics, where the schema is wrong or there are several.
            if count == 1 and "properties" in schema and random.random() < 0.5:
                made["selectableFields"] = [
                    {"jsonPath": random.choice((".a", ".b", ".kind", ".metadata", ".x"))}
                ]
            one["spec"]["versions"][int(name[1]) - 1 :] = [made]
        asks.append(tried(one))
    return asks


TEXTS = (
    *ATOMS["string"],
    *("1 h", "1h30m", "-1h", "+5s", "1.5h", ".5h", "5", "0"),
    *("1 day", "2 weeks", "1w", "3d", "x 3d y", "1H", "1 hours"),
    *("1 hrs", "1ms", "1us", "1\u00b5s", "1\u03bcs", "1ns"),
    *("10 nanoseconds", "5 secs", "P1D", "1y", "1 month", "1h ", " 1h"),
    *("99999999999999999999h", "1minute", "1 wks", "1e3s", "1d1"),
    *("h", "1.h", "--1h", "9999999h", "1 microseconds", "0x1h"),
    *("1_000h", "1m\n", "10dx", "1sx", "7dayish", "1secx", "1hourx"),
    *("1nanox", "1minx", "2147483648d", "9223372036854775808d"),
    *("b", "a-b", "a-", "-a", "a..b", "a.b-", "a.b-c", "a_b.c"),
    *("a.b1", "1.2", "a.b.", "\u00e9.fr", "x" * 63 + ".ab"),
    *("x" * 64 + ".ab", "x" * 64, "x" * 63, "a--b", "a--b.cd"),
    *("ab.c--d", "a.1a", "\u20ac.ab", "localhost", "A.B"),
    *("01.2.3.4", "1.2.3", "256.1.1.1", "::ffff:1.2.3.4"),
    *("fe80::1%eth0", "1::2::3", "10.0.0.0/33", "::/0", "1.2.3.4/8"),
    *("1.2.3.4/08", "::1/129", "10.0.0.0/", "/8", "::01", "::10000"),
    *("1:2:3:4:5:6:7:8", "1.2.3.4.5", "0.0.0.0", " 1.2.3.4"),
    *("2020-02-30", "2020-2-3", "2020-01-01T25:00:00Z"),
    *("2020-01-01t00:00:00z", "2020-01-01T00:00:00", "2020-01-01 00:00:00Z"),
    *("2020-01-01T00:00:00.123456789Z", "2020-01-01T00:00:00+01:00"),
    *("2020-01-01T00:00:00+0100", "2020-01-01T24:00:00Z"),
    *("2020-01-01T00:00:60Z", "0000-01-01", "20200101"),
    *("2020-01-01T00:00:00+24:00", "2020-01-01T00:00:00,5Z", "9999-12-31"),
    *("-", "QUI", "QU I=", "QUI=\n", "QUJD", "-_==", "===="),
    *("QQ==", "0xff", "#ff", "#FFFFFF", "fff", "#ggg", "#ffff"),
    *("rgb(1, 2, 3)", "rgb(256,0,0)", "rgb(1,2)", "RGB(1,2,3)"),
    *("rgb(01,002,3)", " rgb(1,2,3)", "rgba(1,2,3,0)"),
    *("A <a@b.c>", "a@b", "@b", "a@", "a@b@c", "a b@c"),
    *("a@[1.2.3.4]", '"a b"@c', "a.@b", "<a@b>", "a@b, c@d", "a@b."),
    *("/a", "a", "a:b", "http://", "http:///x", "http://a b"),
    *("http://a/%zz", "http://a:x", "//a", "?", "urn:x", "http://a#b"),
    *("mailto:a@b", "http://[::1", "HTTP://A", "://a", "a/b"),
    *("/", "/a b", "http://\u00e9", "#a", "/#", "/%", "1:b"),
    *("f81d4fae7dec11d0a76500a0c91e6bf6", "F81D4FAE-7DEC-31D0-A765-00A0C91E6BF6"),
    *("f81d4fae-7dec-41d0-a765-00a0c91e6bf6"),
    *("f81d4fae-7dec-51d0-a765-00a0c91e6bf6", "f81d4fae-7dec-41d0-c765-00a0c91e6bf6"),
    *("{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}"),
    *("0-306-40615-2", "080442957X", "9780306406157", "978 0 306 40615 7"),
    *("0-306-40615-3", "0306406152 ", "978-0-306-40615-8"),
    *("4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1112"),
    *("378282246310005", "6011111111111117", "4222222222222"),
    *("2221000000000009", "5019717010103742", "30569309025904"),
    *("3530111333300000", "6759649826438453", "4111x1111x1111x1111"),
    *("123456789", "123-456-789", "123 45 6789", "12345-6789", "123--45-6789"),
    *("000-00-0000", "01:02:03:04:05:6", "01-02-03-04-05-06"),
    *("0102.0304.0506", "01:02:03:04:05:06:07:08", "01:02-03:04:05:06"),
    *("010203040506", "0G:02:03:04:05:06", "01:02:03:04:05"),
    *("507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
    *("507F1F77BCF86CD799439011", "a-b", "A-b", "a.b", "a_b", "a" * 64),
    *("a." * 130 + "a", "x.y.", ".x", "1", "1Gi", "1e3", "100m"),
    *("-1", "1.5.5", "1KB", "\x7f", "\n", "\u2028", "'", "a\tb"),
    *("\u4e2d.\u4e2d\u56fd", "\U0001f600.ab", "a\u0301.ab"),
    *("\u0661.ab", "1.2.3.4:5", "[::1]", "localhost.", "xn--a.b"),
)  # fmt: skip


def formats() -> list[Ask]:
    """All texts for one format in a request: each that is wrong is told."""
    return [
        of_field({**listed({**S, "format": form}), "default": list(TEXTS[at : at + 40])})
        for form in FORMATS
        for at in range(0, len(TEXTS), 40)
    ]


SHOWN = re.compile(r"Invalid value: {.*?}: (only \[Description)")
"""The schema at a root, by the names of Kubernetes' internal type."""


def empties() -> list[Ask]:
    """Fields that are there though they say nothing, and fields of the root of an object with a status."""
    values: tuple[Any, ...] = ([], {}, None, "", False, 0, [None], {"a": None})
    asks = [of_field({**S, word: value}) for word in ALL_WORDS for value in values]
    for word in ALL_WORDS:
        for value in (*values, *WORDS.get(word, ())):
            one = definition(**{word: value})
            one["spec"]["versions"][0]["subresources"] = {"status": {}}
            asks.append(tried(one))
    return asks


def paths() -> list[Ask]:
    """Of fields that may be selected, of a fault of a rule, and of a scale."""
    some = {"type": "string"}
    roots: tuple[Any, ...] = (
        {"additionalProperties": True},
        props(b={"type": "object", "additionalProperties": True}),
        props(b={"type": "object", "additionalProperties": False}),
        props(b={"type": "object", "additionalProperties": some}),
        props(b={"type": "object", "additionalProperties": props(c=some)}),
        props(b=props(c=some, d=WHOLE, e=N, f=B, g=listed(some))),
        props(b={"type": "object", **KEEP}),
        props(b=listed(props(c=some))),
        props(b={**EITHER}),
        props(b={**some, "nullable": True}, **{"c d": some, "e.f": some, "g'h": some, "": some, "1": some}),
        props(b={"type": "object", "x-kubernetes-embedded-resource": True, **KEEP}),
        props(b={**some, "enum": ["a"]}, c={**some, "format": "date"}, d={**WHOLE, "format": "int32"}),
        props(metadata=props(name=some)),
        props(spec=props(metadata=some), status=props(b=some)),
    )
    found = (
        *(".b", ".b.c", ".b.d", ".b.e", ".b.f", ".b.g", ".c", ".d"),
        *("['b']", ".b['c']", ".b.c.d", "b", ".", "", ".b."),
        *(".b[0]", ".b[0].c", ".b[]", ".b['c'", "..b", "['c d']"),
        *(".c d", ".['b']", ".e.f", "['e.f']", ".1", "[1]"),
        *(".metadata", ".metadata.name", ".metadata.labels"),
        *(".metadata['name']", ".kind", ".apiVersion", ".b.kind"),
        *(".b.metadata", ".b.metadata.name", ".spec.metadata", ".status.b"),
        *("['g\\'h']", "['']", "$.b", ".*", ".b['*']", " .b"),
        *('["b"]', ".b[c]", ".b['c']['d']", ".b.'c'", "'b'", ".b\n"),
        *("\u00e9", ".b['\\n']", ".b['\\x']", "['b'].c", "[b'c']"),
    )  # fmt: skip
    asks = []
    for root in roots:
        # Kubernetes panics at a step into what is of any type.
        is_open = isinstance(root.get("properties", {}).get("b", {}).get("additionalProperties"), bool)
        for path in found:
            if is_open and len(re.findall("[a-z]+", path)) > 2:
                continue
            one = definition(**root)
            one["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": path}]
            asks.append(tried(one))
            asks.append(tried(definition(**of_rule({"type": "object", **root}, rule="true", fieldPath=path))))
    for path in found:
        for column in ({"type": "date"}, {"type": "integer", "format": "int32", "priority": 2}):
            one = definition()
            one["spec"]["versions"][0]["additionalPrinterColumns"] = [
                {"name": "c", "jsonPath": path, **column}
            ]
            asks.append(tried(one))
        for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"):
            for begin in ("", ".spec", ".status"):
                one = definition()
                scale = {
                    "specReplicasPath": ".spec.a",
                    "statusReplicasPath": ".status.a",
                    name: f"{begin}{path}",
                }
                one["spec"]["versions"][0]["subresources"] = {"scale": scale}
                asks.append(tried(one))
    return asks


def rules() -> list[Ask]:
    """What an expression knows of a value, by its schema."""
    some, few = {**S, "maxLength": 5}, {"maxItems": 3}
    names = (
        *("a", "if", "namespace", "a-b", "a.b", "a/b", "__a"),
        *("a__b", "self", "in", "true", "null", "1a", "A", "int"),
        *("var", "void", "while", "package", "import", "let"),
        *("loop", "for", "function", "return", "break", "const"),
        *("as", "else", "continue", "é", "a b", "$a", "has"),
        *("all", "size", "a_", "_", "__dot__", "type", "dyn"),
    )  # fmt: skip
    schemas: tuple[dict[str, Any], ...] = (
        some, {**S, "format": "byte"}, {**S, "format": "date"}, {**S, "format": "duration"},
        {**S, "format": "uuid"},
        {**S, "format": "date-time"}, {**S, "enum": ["a", "b"]}, WHOLE, {**WHOLE, "format": "int32"}, N,
        {**N, "format": "float"}, B,
        {**B, "nullable": True}, {**some, "nullable": True}, EITHER, {**EITHER, "anyOf": [WHOLE, S]}, KEEP,
        {**OBJECT, **KEEP},
        OBJECT, props(a=WHOLE), props(a=some, b=listed(some, **few)), {**props(a=WHOLE), "required": ["a"]},
        {**props(a=WHOLE), **KEEP},
        {**OBJECT, "additionalProperties": some, "maxProperties": 3},
        {**OBJECT, "additionalProperties": True},
        {**OBJECT, "additionalProperties": props(a=WHOLE), "maxProperties": 3},
        {**OBJECT, "additionalProperties": False},
        listed(some, **few), listed(WHOLE, **few, **{"x-kubernetes-list-type": "set"}), listed(KEEP, **few),
        listed(OBJECT, **few),
        listed(listed(WHOLE, **few), **few), listed({**props(a=some, b=WHOLE), "required": ["a"]}, **few),
        keyed(**few), {**OBJECT, "x-kubernetes-embedded-resource": True, **KEEP},
        {**props(a=KEEP), "nullable": True},
        {**props(spec=props(a=WHOLE)), "x-kubernetes-embedded-resource": True},
        {**props(a={**WHOLE, "default": 1}), "default": {}}, props(a=props(a=props(a=WHOLE))),
        props(metadata=OBJECT, kind=S),
        {"type": "object", "properties": dict.fromkeys(names, WHOLE)},
    )  # fmt: skip
    texts = (
        *("self", "self == self", "self == null", "self == 1"),
        *("self == 'a'", "self == 1.0", "self == true", "self > self"),
        *("self.size() == 1", "size(self) == 1", "has(self.a)"),
        *("self.a == 1", "self.a == 'a'", "self['a'] == 1", "self[0] == 1"),
        *("self.all(x, x == 1)", "self.exists(x, x == 'a')"),
        *("self.map(x, x).size() == 1", "self.a.a.a == 1", "'a' in self"),
        *("1 in self", "self.metadata.name == 'a'", "self.kind == 'a'"),
        *("self.apiVersion == 'a'", "self.metadata.labels == {}"),
        *("self.spec.a == 1", "type(self) == int", "type(self) == string"),
        *("string(self) == 'a'", "int(self) == 1", "!self"),
        *("self + self == self", "self.a + 1 == 2", "self.?a.hasValue()"),
        *("self[?'a'].hasValue()", "self.?a.orValue(1) == 1"),
        *("self.b.size() == 1", "self.all(x, x.a == 'a')"),
        *("self.all(k, v, v == 1)", "self == oldSelf", "oldSelf.a == 1"),
        *("self == [1]", "self == {}", "self == {'a': 1}", "self in [1]"),
        *("self.isSorted()", "self.sum() == 1", "self.min() == 1"),
        *("self.matches('a')", "self < duration('1h')"),
        *("self < timestamp('2020-01-01T00:00:00Z')", "self == b'a'", "self.getFullYear() == 1"),
        *("self.getSeconds() == 1", "self.exists_one(x, true)"),
        *("self.filter(x, true) == self", "self.a[0].a == 1"),
        *("self.__if__ == 1", "self.if == 1", "self.__namespace__ == 1"),
        *("self.namespace == 1", "self.a__dash__b == 1"),
        *("self.a__dot__b == 1", "self.a__slash__b == 1", "self.__a == 1"),
        *("self.__underscores__a == 1", "self.a__underscores__b == 1"),
        *("self.self == 1", "self.__in__ == 1", "self.__true__ == 1"),
        *("self.__null__ == 1", "self.A == 1", "self.int == 1"),
        *("self.__var__ == 1", "self.__let__ == 1", "self.__as__ == 1"),
        *("self.var == 1", "self['a b'] == 1", "self.é == 1"),
        *("self.has == 1", "self.all == 1", "self.size == 1", "self._ == 1"),
        *("self.a_ == 1", "self.type == 1", "self.dyn == 1"),
        *("self.__underscores__dot__underscores__ == 1", "self.__for__ == 1"),
        *("self.__function__ == 1", "self.__const__ == 1"),
        *("self.a.size() == 1", "self.b == ['a']", "quantity(self).isInteger()"),
        *("self.format() == ''", "isURL(self)", "ip.isCanonical(self)"),
        *("self.split('').size() == 1", "self.lowerAscii() == 'a'"),
        *("self.indexOf('a') == 1", "self.indexOf(1) == 1", "self.a.b"),
        *("cel.bind(x, self, x == self)", "self.transformList(i, v, v) == []"),
        *("self.first().hasValue()", "sets.contains(self, self)"),
        *("self.a != oldSelf.a", "math.greatest(self, 1) == 1"),
        *("base64.encode(self) == 'a'", "self.find('a') == 'a'", "[self, 1]"),
    )  # fmt: skip
    messages = (
        *("self", "string(self)", "'a' + self.a", "self.a", "'' + oldSelf", "dyn(self)", "self.map(x, x)[0]"),
    )
    asks = [
        *(of_field(of_rule(schema, rule=text)) for schema in schemas for text in texts),
        *(
            of_field(of_rule(one, rule="true", messageExpression=text))
            for one in schemas
            for text in messages
        ),
    ]
    return Random(1).sample(asks, 800)


def judged() -> list[Ask]:
    """Defaults, and rules that hold for them or do not."""
    some = {**S, "maxLength": 9}
    values: tuple[tuple[dict[str, Any], Any], ...] = (
        (some, "a"), (WHOLE, 1), (N, 1), (B, True), ({**S, "format": "date-time"}, "2020-01-01T00:00:00Z"),
        (EITHER, 1),
        (EITHER, "a"), ({**S, "format": "date"}, "2020-01-01"), ({**S, "format": "duration"}, "1h"),
        ({**S, "format": "byte"}, "YQ=="), (listed(WHOLE, maxItems=3), [1, 2]),
        (props(a=WHOLE, b=some), {"a": 1}),
        (props(a=WHOLE, b=some), {}), ({**OBJECT, "additionalProperties": WHOLE, "maxProperties": 3},
        {"a": 1}),
        ({**some, "nullable": True}, "b"), (keyed(maxItems=3), [{"a": "a", "b": 1}]),
        ({**OBJECT, **KEEP}, {"a": 1}),
        (props(**{"if": WHOLE, "a-b": WHOLE}), {"if": 1, "a-b": 2}),
        (listed(listed(WHOLE, maxItems=2), maxItems=2), [[1], [2]]),
    )  # fmt: skip
    texts = (
        *("self == self", "self != oldSelf", "self == 1", "self > 1"),
        *("self > 1.0", "self == 'a'", "self == true", "self.size() > 1"),
        *("self.a == 1", "self.a == 2", "has(self.b)", "self.all(x, x > 1)"),
        *("self.exists(x, x > 1)", "self.b == 'a'", "self['a'] > 1"),
        *("self[5] > 1", "self > timestamp('2021-01-01T00:00:00Z')"),
        *("self > duration('2h')", "self == b'a'", "self.startsWith('b')"),
        *("1 / (self - self) == 1", "self + 9223372036854775807 > 0"),
        *("self[0] == 1", "int(self) > 1", "self.matches('^b')", "self.if == 2"),
        *("self.__if__ == 1", "self.a__dash__b > 2", "self.all(x, x.a == 'b')"),
        *("self['b'] == 1", "self[0][0] == 2", "self.getFullYear() == 1"),
        *("type(self) == int", "self in [2, 3]", "self == [2, 1]", "size(self) == 0", "false", "true"),
    )  # fmt: skip
    told: tuple[dict[str, Any], ...] = (
        {"message": " no  "}, {"messageExpression": "'a' + 'b'"}, {"messageExpression": "'a\\nb'"},
        {"messageExpression": "' '"},
        {"messageExpression": "string(1 / 0)", "message": "m"}, {"reason": "FieldValueForbidden"},
        {"reason": "FieldValueInvalid"},
        {"reason": "FieldValueRequired"}, {"reason": "FieldValueDuplicate"},
        {"reason": "FieldValueRequired", "message": "m"},
        {"fieldPath": ".a"}, {"optionalOldSelf": True},
        {"optionalOldSelf": True, "rule": "oldSelf.hasValue() && false"},
    )  # fmt: skip
    inside = {
        **props(a=of_rule(WHOLE, rule="self > 1"), b=listed(of_rule(WHOLE, rule="self > 1"), maxItems=3)),
        "default": {"a": 1},
    }
    return [
        *(
            of_field(of_rule({**schema, "default": value}, rule=text))
            for schema, value in values
            for text in texts
        ),
        *(
            of_field(
                of_rule({**props(a=WHOLE), "default": {}}, **{"rule": "false && self == oldSelf", **one})
            )
            for one in told
        ),
        of_field(inside),
        of_field({**inside, "default": {"a": 2, "b": [1, 2, 0]}}),
        of_field(props(a=inside)),
        of_field(
            {
                **OBJECT,
                "maxProperties": 2,
                "additionalProperties": of_rule(WHOLE, rule="self > 1"),
                "default": {"k": 1},
            }
        ),
        of_field({**of_rule(WHOLE, rule="self > 1"), "enum": [1, 2], "default": 1}),
        of_field({**of_rule(WHOLE, rule="self > 1"), "maximum": 0, "default": 1}),
        tried(definition(**of_rule(props(spec=inside), rule="has(self.spec)"))),
        # It costs more than one rule may.
        of_field(
            {
                **of_rule(listed(WHOLE, maxItems=1100), rule="self.all(x, self.all(y, x == y))"),
                "default": [1] * 1100,
            }
        ),
    ]


def keyed(**fields: Any) -> dict[str, Any]:
    item = {**props(a={"type": "string", "maxLength": 5}, b=WHOLE), "required": ["a"]}
    return listed(item, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}, **fields)


def orders_apart(found: Sequence[Found]) -> list[Found]:
    """Those that are not only of the order of causes, in which Kubernetes goes through a map."""
    kept: list[Found] = []
    for step in {one.step for one in found}:
        here = [one for one in found if one.step == step]
        said = [Counter[str](), Counter[str]()]
        for one in here:
            for counted, what in zip(said, (one.kubernetes, one.podling), strict=True):
                told = SHOWN.sub(r"\1", str(what))
                if one.path == "body.message":
                    counted.update(
                        re.split(
                            r", (?=spec)|is invalid: ", str(told).replace("[spec", "spec").removesuffix("]")
                        )
                    )
                else:
                    counted[f"{one.path.rpartition('.')[2]} {told}"] += 1
        split = said[0] == said[1] and all("causes" in one.path or one.path == "body.message" for one in here)
        if not split:
            kept += here
    return sorted(kept, key=lambda one: one.step)


GROUP = "schemas.test"
MERGE, TABLE = {"Content_Type": MERGE_PATCH}, {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}


def version(name: str, *, storage: bool = False, **fields: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": props(spec=props(a=S), status=props(b=WHOLE))}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **fields}


def named(
    plural: str, versions: Sequence[dict[str, Any]] = (), scope: str = "Namespaced", **names: Any
) -> dict[str, Any]:
    one = definition(plural, GROUP)
    one["spec"]["names"] |= names
    one["spec"]["scope"] = scope
    one["spec"]["versions"] = list(versions) or [version("v1", storage=True)]
    return one


def standing() -> list[Ask]:
    """Definitions that are kept: their names, versions, and what may be changed."""
    at = f"{PATH}/apples.{GROUP}"
    v1, v2, v3 = version("v1", storage=True), version("v2"), version("v3")
    old, new = {**v1, "storage": False}, {**v2, "storage": True}
    ruled = version("v1", storage=True, schema={"openAPIV3Schema": props(a=of_rule(WHOLE, rule="self > 1"))})
    broken = version("v1", storage=True, schema={"openAPIV3Schema": props(a=of_rule(WHOLE, rule="self > x"))})

    def versions(*every: Any, dry: str = DRY) -> Ask:
        return Ask("PATCH", f"{at}{dry}", {"spec": {"versions": every}}, MERGE)

    def stored(*names: str, dry: str = DRY) -> Ask:
        return Ask("PATCH", f"{at}/status{dry}", {"status": {"storedVersions": names}}, MERGE)

    return [
        Ask("POST", PATH, named("apples", shortNames=["ap"], categories=["all", "fruit"])),
        *(
            Ask("POST", f"{PATH}?fieldValidation={how}{more}",
                {**named("pears"), "odd": 1, "spec": {**named("pears")["spec"], "odd": 1}})
            for how in ("Strict", "Warn", "Ignore")
            for more in ("&dryRun=All",)
        ),
        # Names that others have.
        Ask("POST", PATH, named("pears", shortNames=["ap", "pe"])),
        Ask("POST", PATH, named("plums", kind="Apples", listKind="PlumsList")),
        Ask("POST", PATH, named("figs", singular="apples")),
        Ask("POST", PATH, named("dates", kind="Dates", listKind="ApplesList")),
        Ask("POST", PATH, named("limes", singular="ap", shortNames=["apples", "li"], categories=["fruit"])),
        Ask("POST", PATH, named("ap")),
        *(Ask("GET", f"{PATH}/{one}.{GROUP}") for one in ("apples", "pears", "plums", "figs", "dates",
            "limes", "ap")),
        Ask("GET", at, headers=TABLE),
        Ask("GET", at, headers=METADATA),
        # The names.
        *(
            Ask("PATCH", f"{at}{DRY}", {"spec": change}, MERGE)
            for change in (
                {"scope": "Cluster"}, {"names": {"kind": "Other"}}, {"names": {"plural": "other"}},
                {"group": "other.test"},
                {"names": {"listKind": "Others"}}, {"names": {"singular": None}},
                {"names": {"shortNames": None}},
                {"names": {"shortNames": ["X"]}}, {"names": {"categories": ["x", "x"]}},
                {"names": {"singular": "X"}},
                {"preserveUnknownFields": True}, {"conversion": {"strategy": "Webhook"}}, {"versions": None},
                {"names": None},
                {"scope": None}, {"scope": "Cluster", "names": {"kind": "B"}, "versions": [ruled]},
            )
        ),
        # The versions.
        versions(v1, v2), versions(v2), versions(new), versions(old, new), versions(old, v2),
        versions(v1, new),
        versions(v1, v1), versions(ruled), versions(broken), versions({**v1, "served": False}),
        versions(v1, v2, v3),
        versions({**v1, "schema": None}), versions({**v1, "deprecated": True}),
        versions({**v1, "deprecated": True, "deprecationWarning": "x"}),
        versions({**v1, "deprecationWarning": "x"}), versions({**v1, "name": "v9"}),
        stored(), stored("v1"), stored("v2"), stored("v1", "v2"), stored("v1", "v1"),
        versions(old, new, dry=""), Ask("GET", at),
        stored("v2"), stored("v1"), stored("v1", "v2"), stored("v2", "v1"), stored("v3"), versions(new),
        # Of several that are missing Kubernetes tells in any order.
        versions(v2, v3), versions(v1, v2),
        versions(v1, v2, v3), stored("v2", dry=""), versions(new, dry=""), versions(v1, v2), Ask("GET", at),
        versions(version("v2", storage=True,
            schema={"openAPIV3Schema": props(a=of_rule(WHOLE, rule="self > 1"))}), dry=""),
        versions(version("v2", storage=True,
            schema={"openAPIV3Schema": props(a=of_rule(WHOLE, rule="self > x"))})),
        Ask("PATCH", f"{at}{DRY}", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        # Other ways.
        Ask("PATCH", f"{at}{DRY}",
            [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/a/maximum",
                "value": 5.0}],
            {"Content_Type": JSON_PATCH}),
        Ask("PATCH", f"{at}{DRY}",
            [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/type"}],
            {"Content_Type": JSON_PATCH}),
        Ask("PATCH", f"{at}{DRY}", {"spec": {"versions": [new]}}, {"Content_Type": STRATEGIC_PATCH}),
        *(
            Ask("PATCH", f"{PATH}/kiwis.{GROUP}?fieldManager={who}{more}",
                named("kiwis", [made], shortNames=[who]), {"Content_Type": APPLY})
            for who, made, more in (
                ("a", ruled, ""), ("b", ruled, DRY.replace("?", "&")), ("b", v1, DRY.replace("?", "&")),
                ("b", v1, "&force=true"), ("a", broken, "&force=true"),
            )
        ),
        Ask("PUT", f"{at}{DRY}", named("apples", [new])),
        Ask("PUT", f"{PATH}/none.{GROUP}{DRY}", named("none")),
        Ask("DELETE", f"{PATH}/apples.{GROUP}", {"preconditions": {"uid": "x"}}),
        # What frees no name that another waits for comes first.
        *(
            Ask("DELETE", f"{PATH}/{one}.{GROUP}")
            for one in ("kiwis", "limes", "dates", "figs", "plums", "pears", "ap", "apples")
        ),
        Ask("GET", at, until=404),
    ]  # fmt: skip


MADE: dict[str, Callable[[], list[Ask]]] = {
    "standing": standing,
    "judged": judged,
    "rules": rules,
    "paths": paths,
    "empties": empties,
    "formats": formats,
    "right ones": partial(made_schemas, 1, 200, 0.0),
    "odd ones": partial(made_schemas, 2, 300, 0.1),
    "very odd ones": partial(made_schemas, 3, 200, 0.3),
    "defaults": partial(made_defaults, 1, 500),
    "roots": partial(made_roots, 1, 300),
}


@pytest.mark.parametrize("name", MADE)
def test_schemas(name: str, kubernetes: Server, podling: Server) -> None:
    compared = Compared(name, MADE[name](), apart=True)
    found = orders_apart(
        unnamed(differences(compared, f"schemas-{name.replace(' ', '-')}", kubernetes, podling))
    )
    assert not found, f"\n{shown(compared, found)}"
