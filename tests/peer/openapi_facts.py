"""What an OpenAPI v3 document says of each type, without its words: a line a field, to be compared.

    core.v1.ServicePort
      port* integer/int32 =0
      protocol string =TCP one of SCTP TCP UDP

`*` is a field that is required, `[]` holds a list and `{}` a map, `=` comes before a default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

REF = "#/components/schemas/"
OWNERS = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.")
EMBEDDED = frozenset({
    "ArbitraryKeys", "Extensions", "MediaTypeProps", "OperationProps", "ParameterProps", "RequestBodyProps",
    "SchemaProps", "SwaggerSchemaProps",
})  # fmt: skip


def facts_of(document: Any) -> dict[str, list[str]]:
    """By the name of each type."""
    schemas = level(document["components"].get("schemas", {}))
    return {_short(name): list(_lines(schema)) for name, schema in sorted(schemas.items())}


def written(facts: Mapping[str, list[str]]) -> str:
    return "".join(f"{name}\n" + "".join(f"  {line}\n" for line in facts[name]) for name in sorted(facts))


def read(text: str) -> dict[str, list[str]]:
    """What `written` wrote."""
    facts: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            fields = facts[line] = []
        else:
            fields.append(line.strip())
    return facts


def level(value: Any) -> Any:
    """As the specification has it: the upstream program was built with a compiler that leaves the parts of an
    embedded struct under the names of their Go types."""
    if isinstance(value, list):
        return [level(item) for item in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, said in value.items():
        found |= (level(said) or {}) if key in EMBEDDED else {key: level(said)}
    return found


def _lines(schema: Any) -> Iterator[str]:
    own = {key: schema[key] for key in schema if key.startswith("x-") or key in ("format", "oneOf")}
    if own or schema.get("type", "object") != "object":
        yield " ".join((schema.get("type", ""), json.dumps(own, sort_keys=True))).strip()
    required = set(schema.get("required", ()))
    for name, field in sorted(schema.get("properties", {}).items()):
        yield f"{name}{'*' if name in required else ''} {_type(field)}{_said(field)}"


def _type(schema: Any) -> str:
    for wrapped in (schema, *schema.get("allOf", ())):
        if "$ref" in wrapped:
            return _short(wrapped["$ref"].removeprefix(REF))
    if "items" in schema:
        return f"[{_type(schema['items'])}{_said(schema['items'])}]"
    if "additionalProperties" in schema:
        return f"{{{_type(schema['additionalProperties'])}}}"
    return "/".join(schema[key] for key in ("type", "format") if key in schema)


def _said(schema: Any) -> str:
    default = f" ={json.dumps(schema['default'])}" if "default" in schema else ""
    values = (
        f" one of {' '.join(repr(value) for value in sorted(schema['enum']))}" if "enum" in schema else ""
    )
    extensions = "".join(
        f" {key.removeprefix('x-kubernetes-')}={json.dumps(schema[key])}"
        for key in sorted(schema)
        if key.startswith("x-")
    )
    return default + values + extensions


def _short(name: str) -> str:
    for owner in OWNERS:
        if name.startswith(owner):
            return name.removeprefix(owner)
    return name
