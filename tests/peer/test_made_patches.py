"""R-SYS-8: patches of one field made by chance from what Kubernetes publishes of each kind, right ones and
wrong ones, are judged as by Kubernetes, and what comes of them is the same. In which words and in which order
faults are told is compared elsewhere, one at a time (`test_fields.py`).

`PODLING_TEST_SEED` makes others: what they find is mended, or asked in `test_fields.py`.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from http.client import RemoteDisconnected
from random import Random
from typing import Any

import pytest

from peer.named_differences import EMPTY_BUNDLE, OWN_FIELDS, SETTLED, UNREADABLE, unnamed
from peer.openapi_facts import REF, level
from peer.sequence import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server
from peer.test_fields import METADATA, SAMPLES, items_of, plain
from podling.model.scheme import by_kind

Schema = Mapping[str, Any]
STILL = [sample for sample in SAMPLES if sample["kind"] not in SETTLED.what]
OF_A_KIND = 20
NAMED_BY_RULE = ("IPAddress", "CustomResourceDefinition", "APIService")
DEEPEST = 5
WRONG, NULL, STOP = 0.08, 0.08, 0.3
"""How often a value is of another type, or null, and how often a field is changed whole that has fields."""
SCALARS: Mapping[str, tuple[Any, ...]] = {
    "string": ("", "a", "b-1", "10.0.0.9", "No_Name", "a.b/c", "1", "5%", "2026-01-02T03:04:05Z", "x" * 300),
    "integer": (0, 1, -1, 7, 70_000, (1 << 31) - 1),
    "number": (0, 1.5, -1),
    "boolean": (True, False),
}
ANY: tuple[Any, ...] = ("a", 1, True, {}, ["a"], {"a": "b"})
TOLD = ("body.message", "body.details")


class Making:
    """Patches by chance. `schemas`: those of the document that has the kind."""

    def __init__(self, random: Random, schemas: Mapping[str, Schema]) -> None:
        self._random, self._schemas = random, schemas

    def of(self, schema: Schema, depth: int = 0) -> Any:
        """A value that fits but for what rules ask, or at the top one of another type."""
        random, schema = self._random, self._whole(schema)
        chance = 1 if depth else random.random()
        if chance < WRONG + NULL:
            return None if chance < NULL else random.choice(ANY)
        if "enum" in schema:
            return random.choice(schema["enum"])
        type_ = schema.get("type", "object" if "properties" in schema else "string")
        if type_ == "array":
            return [self.of(schema["items"], depth + 1) for _ in range(random.choice((0, 1, 1, 2)))]
        if type_ != "object":
            return random.choice(SCALARS[type_])
        fields = self._fields(schema)
        needed = {name for name in schema.get("required", ()) if name in fields}
        if depth < DEEPEST:
            needed |= set(random.sample(sorted(fields), min(len(fields), random.randint(0, 2))))
        made = {name: self.of(fields[name], depth + 1) for name in sorted(needed)}
        return {name: value for name, value in made.items() if value != "" or name not in EMPTY_BUNDLE.what}

    def change(self, schema: Schema, without: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Any]:
        """The way to a field, and its value."""
        fields = self._fields(self._whole(schema))
        way: tuple[str, ...] = ()
        while names := sorted(name for name in fields if way or name not in without):
            name = self._random.choice(names)
            way, schema = (*way, name), self._whole(fields[name])
            fields = self._fields(schema)
            if self._random.random() < STOP:
                break
        return way, self.of(schema)

    def _whole(self, schema: Schema) -> Schema:
        for one in (schema, *schema.get("allOf", ()), *schema.get("oneOf", ())):
            if "$ref" in one:
                return self._whole(self._schemas[one["$ref"].removeprefix(REF)])
        return schema

    def _fields(self, schema: Schema) -> Mapping[str, Schema]:
        if more := schema.get("additionalProperties"):
            return {"a": more}
        fields: Mapping[str, Schema] = schema.get("properties", {})
        return fields


def patches(making: Making, random: Random, schema: Schema, item: str, base: Any) -> Iterator[Ask]:
    made = 0
    while made < OF_A_KIND:
        way, value = making.change(schema, (*METADATA, "status"))
        if not way or ".".join(way).startswith((*OWN_FIELDS.what, *UNREADABLE.what)):
            continue
        made += 1
        what = f"{'.'.join(way)} = {value!r:.200}"
        body: Any = value
        for name in reversed(way):
            body = {name: body}
        sort = random.choice((MERGE_PATCH, STRATEGIC_PATCH, APPLY, JSON_PATCH))
        if sort == APPLY:
            body = {**body, "apiVersion": base["apiVersion"], "kind": base["kind"]}
            body["metadata"] = {"name": base["metadata"]["name"]}
        if sort == JSON_PATCH:
            path = "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in way)
            operation = random.choice(("add", "replace", "remove", "test"))
            body = [{"op": operation, "path": path, **({} if operation == "remove" else {"value": value})}]
        query = "&fieldManager=m&force=true" if sort == APPLY else ""
        yield Ask("PATCH", f"{item}?dryRun=All{query}", body, {"Content_Type": sort}, what)


@pytest.fixture(scope="module")
def seed() -> int:
    """Of what is made by chance."""
    return int(os.environ.get("PODLING_TEST_SEED", "1"))


@pytest.mark.parametrize("sample", STILL, ids=lambda sample: f"{sample['kind']}.{sample['apiVersion']}")
def test_patches_of_one_field(sample: dict[str, Any], seed: int, kubernetes: Server, podling: Server) -> None:
    resource = by_kind(sample["apiVersion"], sample["kind"])
    assert resource
    group = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
    document = level(kubernetes.ask("GET", f"/openapi/v3/{group}").body)
    schemas = document["components"]["schemas"]
    names = (
        name
        for name, one in schemas.items()
        for said in one.get("x-kubernetes-group-version-kind", ())
        if said == {"group": resource.group, "version": resource.version, "kind": resource.kind}
    )
    base = plain(copy.deepcopy(sample), resource)
    if sample["kind"] not in NAMED_BY_RULE:
        base["metadata"]["name"] = "made"
    item = f"{items_of(resource)}/{base['metadata']['name']}"
    random = Random(f"{seed} {sample['apiVersion']} {sample['kind']}")
    asks = patches(Making(random, schemas), random, schemas[next(names)], item, base)
    made = [Ask("POST", items_of(resource), base), *asks, Ask("DELETE", f"{item}?gracePeriodSeconds=0")]
    sequence = Compared("patches", made, apart=True)
    try:
        both = differences(sequence, "patches", kubernetes, podling)
    except RemoteDisconnected:
        kubernetes.ask("DELETE", f"{item}?gracePeriodSeconds=0".replace("{ns}", "patches"))
        pytest.skip("kube-apiserver has panicked")
    found = [one for one in unnamed(both) if not one.path.startswith(TOLD)]
    assert not found, f"PODLING_TEST_SEED={seed}\n{shown(sequence, found)}"
