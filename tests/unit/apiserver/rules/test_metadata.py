"""Metadata is judged alike for every kind."""

from __future__ import annotations

from typing import Any

import pytest

from podling.apiserver.rules import metadata
from podling.model import names
from podling.model.codec.json import from_data
from podling.model.types.meta import ObjectMeta

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def meta(**fields: Any) -> ObjectMeta:
    return from_data({"name": "x", "namespace": "ns", **fields}, ObjectMeta)


def faults(given: ObjectMeta, **rules: Any) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in metadata.validate(given, **rules)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "a.b-c"},
        {"generateName": "a-"},
        {"generateName": "aX-"},  # The letter before the dash is masked with it.
        {"labels": {"a.io/b": "C_d"}, "annotations": {"A.io/B": "anything\n"}},
        {"finalizers": ["kubernetes", "a.io/b"], "ownerReferences": [OWNER, {**OWNER, "controller": True}]},
    ],
)
def test_valid(fields: dict[str, Any]) -> None:
    assert faults(meta(**fields)) == []


@pytest.mark.parametrize(
    ("begun", "prefix", "count"),
    [
        ("XX-", "masked", 1),
        ("-", "masked", 1),
        ("a-", "whole", 1),
        ("XX-", "unjudged", 0),
    ],
)
def test_what_a_name_begins_with(begun: str, prefix: metadata.Prefix, count: int) -> None:
    assert len(faults(meta(generateName=begun), prefix=prefix)) == count


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"name": "My_Name:a", "generateName": ".."}, []),
        ({"name": "", "generateName": "a"}, ["name"]),
        ({"name": "..", "generateName": "a/b%"}, ["generateName", "generateName", "name"]),
        ({"name": "a/b", "generation": -1}, ["name", "generation"]),
    ],
)
def test_metadata_of_any_kind(fields: dict[str, Any], paths: list[str]) -> None:
    found = metadata.validate_any(meta(**fields))
    assert [cause.field for cause in found] == [f"metadata.{path}" for path in paths]


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"name": ""}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "A"}, 'metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain'),
        (
            {"name": "a" * 254},
            f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters',
        ),
        ({"namespace": ""}, "metadata.namespace: Required value"),
        ({"namespace": "a.b"}, 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
        ({"labels": {"a b": ""}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
        ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be'),
        (
            {"annotations": {"/": ""}},
            'metadata.annotations: Invalid value: "/": prefix part must be non-empty',
        ),
        (
            {"annotations": {"a": "x" * 262145}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            {"finalizers": ["mine"]},
            'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard',
        ),
        ({"finalizers": ["a b/c"]}, 'metadata.finalizers: Invalid value: "a b/c": prefix part a lowercase'),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and',
        ),
        (
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
        ),
        (
            {"ownerReferences": [{**OWNER, "controller": True}] * 2},
            "metadata.ownerReferences: Invalid value: [",
        ),
    ],
)
def test_invalid(fields: dict[str, Any], begins: str) -> None:
    found = faults(meta(**fields))
    assert found
    assert found[0].startswith(begins)


def test_some_kinds_are_in_no_namespace() -> None:
    assert faults(meta(namespace=""), namespaced=False) == []
    assert faults(meta(), namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_some_kinds_are_named_by_stricter_rules() -> None:
    assert faults(meta(name="a.b"), name_rule=names.dns1123_label) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"])
def test_what_is_fixed(field: str) -> None:
    old = meta(uid="u", creationTimestamp="2026-01-01T00:00:00Z")
    new = meta(**{"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", field: "2026-02-02T00:00:00Z"})
    causes = metadata.validate_update(new, old)
    assert [(cause.field, cause.message) for cause in causes] == [
        (f"metadata.{field}", 'Invalid value: "2026-02-02T00:00:00Z": field is immutable')
    ]


def test_what_is_being_deleted_gets_no_new_finalizers() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"]}
    old, new = meta(**deleted), meta(**{**deleted, "finalizers": ["a.io/b", "a.io/c"]})
    assert [cause.message for cause in metadata.validate_update(new, old)] == [
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a.io/c"}'
    ]
    assert metadata.validate_update(meta(**{**deleted, "finalizers": None}), old) == []


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        ("a" * 128, []),
        ("ä" * 65, ["Too long: may not be more than 128 bytes"]),
        ("\a" * 1_000_000, ["Too long: may not be more than 128 bytes"]),
        ("a\x07", ['Invalid value: "a\\a": invalid character U+0007 (at position 1)']),
    ],
)
def test_names_of_managers(manager: str, told: list[str]) -> None:
    assert [cause.message for cause in metadata.manager_faults("manager", manager)] == told


def test_of_many_managers_at_fault_not_all_are_told() -> None:
    """Each is told of with the whole name, as often as it has letters that are none."""
    old, entry = meta(), {"manager": "\x07" * 128, "operation": "Update"}
    new = meta(managedFields=[entry] * 10_000)
    assert len(metadata.validate_update(new, old)) == metadata.MOST_TOLD
