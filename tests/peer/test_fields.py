"""R-SYS-8: every field of every kind, set to good values and to bad ones, is answered as by Kubernetes: in
new objects, in updates and in statuses.

The kinds are those of `tests/e2e/samples.yaml`, from whose objects the changes start. A change is asked as a
dry run, and each answer stands for itself.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from peer.fields import variations
from peer.named_differences import OWN_FIELDS, UNREADABLE, unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from podling.model.codec.fields import fields_of
from podling.model.scheme import Resource, by_kind, resource_of
from podling.model.types.apiextensions import CustomResourceDefinition, JSONSchemaProps

SAMPLES = yaml.safe_load((Path(__file__).parents[1] / "e2e/samples.yaml").read_text())
LOOKS = 5000
"""Requests in which Kubernetes has had time to do what it does in the background."""
NAMESPACE = "fields"
EMPTY: tuple[Any, ...] = ([], {}, [{}], {"a": {}}, {"a": []})
"""What Kubernetes may know from a field that is left out."""
SCHEMAS = (
    {"type": "object", "properties": {"b": {"type": "string"}}},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    },
    {"type": "string", "enum": ["a"]},
)
METADATA = ("metadata", "kind", "apiVersion")
METADATA_OF = ("ConfigMap", "create")
"""Where these are changed, too: the rules are those of all kinds."""
MOST = {"create": 900, "update": 150, "status": 400}
"""Requests of a sequence; of more, they are taken evenly."""


def asked(sample: dict[str, Any], way: str, *, empty: bool = False) -> Iterator[Ask]:
    """`empty`: only what is empty, and all of that."""
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    items = items_of(resource)
    base = plain(sample, resource)
    item = f"{items}/{base['metadata']['name']}"
    method, target = {
        "create": ("POST", items), "update": ("PUT", item), "status": ("PUT", f"{item}/status"),
    }[way]  # fmt: skip
    asks = [
        Ask(method, f"{target}?dryRun=All", body, what=f"{path} = {value!r:.200}")
        for path, value, body in variations(resource.type, base)
        if path.startswith("status") == (way == "status")
        and not path.startswith((*OWN_FIELDS.what, *UNREADABLE.what))
        and ((resource.kind, way) == METADATA_OF or not path.startswith(METADATA))
        and (not empty or value in EMPTY)
    ]
    if way != "create":
        yield Ask("POST", items, base)
    yield from asks if empty else asks[:: -(-len(asks) // MOST[way]) or 1]
    if way != "create":
        yield Ask("DELETE", f"{item}?gracePeriodSeconds=0")


def items_of(resource: Resource) -> str:
    base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return f"{base}/{'namespaces/{ns}/' if resource.namespaced else ''}{resource.plural}"


def plain(sample: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """Without what keeps it from being deleted, and a pod that needs nothing."""
    body: dict[str, Any] = json.loads(
        json.dumps(sample).replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"')
    )
    body["metadata"].pop("finalizers", None)
    if resource.kind == "Pod":
        body["spec"] = {"containers": body["spec"]["containers"], "automountServiceAccountToken": False}
    return body


def has_status(sample: dict[str, Any]) -> bool:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    return resource is not None and "status" in fields_of(resource.type)


WAYS = [
    (sample, way)
    for sample in SAMPLES
    for way in ("create", "update", "status")
    if way != "status" or has_status(sample)
]


@pytest.mark.parametrize(
    ("sample", "way"),
    WAYS,
    ids=lambda part: part if isinstance(part, str) else f"{part['kind']}.{part['apiVersion']}",
)
def test_every_field(sample: dict[str, Any], way: str, kubernetes: Server, podling: Server) -> None:
    sequence = Compared(way, list(asked(sample, way)), apart=True)
    if sample["kind"] == "CustomResourceDefinition":
        wait_until_gone(kubernetes, sample["metadata"]["name"])
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


@pytest.mark.parametrize(
    ("sample", "way"),
    WAYS,
    ids=lambda part: part if isinstance(part, str) else f"{part['kind']}.{part['apiVersion']}",
)
def test_empty_is_not_left_out(sample: dict[str, Any], way: str, kubernetes: Server, podling: Server) -> None:
    """Every list, map and object that a kind has, sent empty."""
    sequence = Compared(way, list(asked(sample, way, empty=True)), apart=True)
    if sample["kind"] == "CustomResourceDefinition":
        wait_until_gone(kubernetes, sample["metadata"]["name"])
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def wait_until_gone(server: Server, definition: str) -> None:
    """Kubernetes empties a definition before it goes, and the one before has the same name."""
    for _ in range(LOOKS):
        if (
            server.ask("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}").code
            == 404
        ):
            return
    raise AssertionError(f"{definition} is still there")


@pytest.mark.parametrize("base", SCHEMAS, ids=str)
def test_every_field_of_a_schema(base: dict[str, Any], kubernetes: Server, podling: Server) -> None:
    sequence = Compared("schema", list(asked_of_schema(base)), apart=True)
    found = unnamed(differences(sequence, NAMESPACE, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def asked_of_schema(base: dict[str, Any]) -> Iterator[Ask]:
    """Definitions of one property, whose schema has one field changed."""
    definition = next(sample for sample in SAMPLES if sample["kind"] == "CustomResourceDefinition")
    for path, value, schema in variations(JSONSchemaProps, base, deep=False):
        body = copy.deepcopy(definition)
        version = body["spec"]["versions"][0]
        version["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"a": schema}}
        what = f"{path} = {value!r:.200}"
        yield Ask("POST", f"{items_of(resource_of(CustomResourceDefinition))}?dryRun=All", body, what=what)
