"""R-SYS-8: every way to write a number is read as by Kubernetes, in JSON, in YAML, in what is applied and in
patches: beyond what a field holds, with a point, with an exponent, in other bases, and what is no number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from peer.named_differences import MINUS_ZERO, unnamed
from peer.sequence import APPLY, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

NUMBERS = (
    "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "4294967298",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "9007199254740993",
    "1.0", "1.5", "0.0", "-0", "-0.0", "2147483647.0", "2147483648.0", "9007199254740993.0", "5.", ".5",
    "1e2", "1E2", "1e+2", "-1e2", "100e-2", "1e0", "1.0e1", "0.1e1", "1e9", "1e10", "1e15", "1e16", "1e19",
    "1e", "0x10", "0b11", "0o17", "010", "08", "+1", "1_000", "1:30", "~", "true", '"1"',
    "NaN", ".nan", "Infinity", ".inf", "-.inf",
)  # fmt: skip
SHORT = [number for number in NUMBERS if len(number) < 16 and number not in ("1e16", "1e19")]
"""Of quantities `test_quantities.py` asks more."""
FORMS: Mapping[str, str] = {
    "JSON": "application/json",
    "YAML": "application/yaml",
    "applied": APPLY,
    "merged": MERGE_PATCH,
    "patched": STRATEGIC_PATCH,
}


class Field(NamedTuple):
    """A field that is a number: `body` is JSON with `%s` in its place."""

    items: str
    body: str


POD = (
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"automountServiceAccountToken":false,'
    '%s"containers":[{"name":"c","image":"i"%s}]}}'
)
POD_TEMPLATE = '{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
SELECTOR = '"selector":{"matchLabels":{"a":"b"}}'
SCHEMA = (
    '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",'
    '"metadata":{"name":"xs.numbers.test"},"spec":{"group":"numbers.test","names":{"kind":"X","plural":"xs"},'
    '"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":'
    '{"type":"object","properties":{"a":{%s}}}}}]}}'
)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OF_SCHEMAS = {
    "integer": '"type":"integer","default":%s',
    "integer inside": '"type":"object","properties":{"b":{"type":"integer"}},"default":{"b":%s}',
    "length": '"type":"string","maxLength":%s',
}
FIELDS = {
    **{f"{name} of a schema": Field(DEFINITIONS, SCHEMA % part) for name, part in OF_SCHEMAS.items()},
    "int32": Field(
        "/apis/apps/v1/namespaces/{ns}/deployments",
        '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":%s,'
        + f'{SELECTOR},"template":{POD_TEMPLATE}}}}}',
    ),
    "int64": Field("/api/v1/namespaces/{ns}/pods", POD % ('"terminationGracePeriodSeconds":%s,', "")),
    "int or string": Field(
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        '{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"x"},'
        '"spec":{"maxUnavailable":%s,' + SELECTOR + "}}",
    ),
    "quantity": Field("/api/v1/namespaces/{ns}/pods", POD % ("", ',"resources":{"limits":{"memory":%s}}')),
    "string": Field(
        "/api/v1/namespaces/{ns}/configmaps",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":%s}}',
    ),
    "byte": Field(
        "/api/v1/namespaces/{ns}/configmaps",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"binaryData":{"a":[1,%s]}}',
    ),
    "bool": Field(
        "/api/v1/namespaces/{ns}/configmaps",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"immutable":%s}',
    ),
    "anything": Field(
        "/apis/apps/v1/namespaces/{ns}/controllerrevisions",
        '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"x"},"revision":1,'
        '"data":{"a":%s}}',
    ),
}

GREAT = (
    "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "9007199254740994",
    "9007199254740995", "18014398509481985", "1152921504606846977", "9223372036854775295",
    "9223372036854775806", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "9223372036854777856", "18446744073709551615", "18446744073709551616", "1e19",
    "1e21", "1e22", "1e30", "1e308", "1e309", "-1e309", "123456789012345678901234567890", "0.1", "1e-7", "-0",
    "1.5e0", "2147483648", "4294967296.5",
)  # fmt: skip
"""Where a float is no longer exact, and where an int64 ends. A default that is written with a point or an
exponent and is whole has become an integer here before it is judged, so none is asked."""
BOUNDS = {
    "limits of an integer": ('"type":"integer","maximum":%s', '"type":"integer","minimum":%s'),
    "limits of a number": ('"type":"number","maximum":%s', '"type":"number","multipleOf":%s'),
    "enumerated": (
        '"type":"integer","enum":[%s]', '"type":"number","enum":[%s]',
        '"x-kubernetes-preserve-unknown-fields":true,"type":"object","enum":[{"a":%s}]',
    ),
    "defaults": (
        '"type":"integer","default":%s', '"type":"number","default":%s',
        '"type":"integer","format":"int64","default":%s', '"type":"integer","format":"int32","default":%s',
        '"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{"a":[%s]}',
        '"x-kubernetes-int-or-string":true,"default":%s', '"type":"integer","example":%s',
    ),
    "a default and a limit": (
        '"type":"integer","maximum":9007199254740992,"default":%s',
        '"type":"integer","minimum":9007199254740993,"default":%s',
        '"type":"number","maximum":9223372036854775807,"default":%s',
        '"type":"integer","maximum":%s,"default":%s', '"type":"integer","minimum":%s,"default":%s',
        '"type":"integer","exclusiveMaximum":true,"maximum":%s,"default":%s',
        '"type":"number","maximum":%s,"default":%s',
    ),
    "a default that is enumerated": (
        '"type":"integer","enum":[9007199254740993,9223372036854775807,1],"default":%s',
        '"type":"number","enum":[9007199254740993,9223372036854775808,1],"default":%s',
        '"type":"integer","enum":[%s],"default":%s', '"type":"number","enum":[%s],"default":%s',
    ),
    "a default that is a multiple": (
        '"type":"integer","multipleOf":3,"default":%s',
        '"type":"integer","multipleOf":9007199254740993,"default":%s',
        '"type":"number","multipleOf":0.1,"default":%s',
        '"type":"integer","multipleOf":%s,"default":%s', '"type":"number","multipleOf":%s,"default":%s',
    ),
}  # fmt: skip


def asked(field: Field, form: str) -> Iterator[Ask]:
    sort, item = FORMS[form], f"{field.items}/x"
    if form in ("merged", "patched"):
        yield Ask("POST", field.items, json.loads(field.body % "null"))
    for number in SHORT if "limits" in field.body else NUMBERS:
        if "binaryData" in field.body and number in MINUS_ZERO.what:
            continue
        method, target = ("POST", field.items) if form in ("JSON", "YAML") else ("PATCH", item)
        query = "?dryRun=All" + ("&fieldManager=m" if form == "applied" else "")
        sent = (field.body % number).encode()
        yield Ask(method, f"{target}{query}", sent, {"Content_Type": sort}, number)
    if form in ("merged", "patched"):
        yield Ask("DELETE", f"{item}?gracePeriodSeconds=0")


WAYS = [
    (name, form)
    for name in FIELDS
    for form in FORMS
    # What may be anything is of a kind whose objects do not change.
    if name != "anything" or form in ("JSON", "YAML", "applied")
    if not name.endswith("of a schema") or form == "JSON"
]


@pytest.mark.parametrize(("name", "form"), WAYS)
def test_a_number_is_read_alike(name: str, form: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(f"{name} in {form}", list(asked(FIELDS[name], form)), apart=True)
    found = unnamed(differences(sequence, "numbers", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize("name", BOUNDS)
def test_a_great_number_of_a_schema_is_read_alike(name: str, kubernetes: Server, podling: Server) -> None:
    asks = [
        Ask("POST", f"{DEFINITIONS}?dryRun=All", (SCHEMA % part.replace("%s", number)).encode(), {}, number)
        for part in BOUNDS[name]
        for number in GREAT
    ]
    sequence = Compared(name, asks, apart=True)
    found = unnamed(differences(sequence, "great-numbers", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
