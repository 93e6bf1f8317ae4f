"""What an expression of Kubernetes may name: the functions, types and variables of its CEL environments.

`cel-expr-python`, Google's C++ library, parses and checks by them. It is imported when the first expression
comes: that takes 8 ms and 14 MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from cel_expr_python import cel
from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.any_pb2 import DESCRIPTOR as ANY
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import DESCRIPTOR as EMPTY

Field = descriptor_pb2.FieldDescriptorProto
AUTHORIZATION = "kubernetes.authorization"
VALUE, TIMESTAMP = ".google.protobuf.Value", ".google.protobuf.Timestamp"
SCALARS = {"string": Field.TYPE_STRING, "bool": Field.TYPE_BOOL, "int": Field.TYPE_INT64}
EXTENSIONS = ("lists", "optional", "two-var-comprehensions")
REPLACED = ("_<_", "_<=_", "_>_", "_>=_", "string")
"""Functions of the standard library that functions.txt declares anew."""
_NAME = re.compile(r"([\w@]+(?:\\\.\w+)*|_\\[<>]=?_)\(")
_OBJECT = re.compile(r"(?<![.\w])Object(?:\.\w++)++(?=\s*+\{)")
_FIELD = re.compile(r"\b([a-zA-Z_]\w*+)\s*+:")
_READ = re.compile(r"\.\s*+\??+\s*+([a-zA-Z_]\w*+)")
_ONE_OF_PAIRS = re.compile(
    r"//[^\n]*|[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<macro>\.exists_one\()(?=\s*+\w++\s*+,\s*+\w++\s*+,)",
    re.DOTALL,
)
MOST_OBJECT_FIELDS = 10_000
"""Types times fields of the objects that one expression makes."""
_KIND = {"group": "string", "version": "string", "kind": "string"}
_RESOURCE = {"group": "string", "version": "string", "resource": "string"}
KUBERNETES: Mapping[str, Mapping[str, str]] = {
    "GroupVersionKind": _KIND,
    "GroupVersionResource": _RESOURCE,
    "UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "*string",
        "extra": "map:.google.protobuf.ListValue",
    },
    "AdmissionRequest": {
        "kind": ".kubernetes.GroupVersionKind",
        "resource": ".kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": ".kubernetes.GroupVersionKind",
        "requestResource": ".kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": ".kubernetes.UserInfo",
        "dryRun": "bool",
        "options": VALUE,
    },
    "SubjectAccessReviewSpec": {
        "resourceAttributes": ".kubernetes.ResourceAttributes",
        "nonResourceAttributes": ".kubernetes.NonResourceAttributes",
        "user": "string",
        "groups": "*string",
        "extra": "map:.google.protobuf.ListValue",
        "uid": "string",
    },
    "ResourceAttributes": {
        "namespace": "string",
        "verb": "string",
        "group": "string",
        "version": "string",
        "resource": "string",
        "subresource": "string",
        "name": "string",
        "fieldSelector": ".kubernetes.SelectorAttributes",
        "labelSelector": ".kubernetes.SelectorAttributes",
    },
    "NonResourceAttributes": {"path": "string", "verb": "string"},
    "SelectorAttributes": {"rawSelector": "string", "requirements": "*.kubernetes.SelectorRequirement"},
    "SelectorRequirement": {"key": "string", "operator": "string", "values": "*string"},
    "NamespaceMetadata": {
        "name": "string",
        "generateName": "string",
        "namespace": "string",
        "labels": "map:string",
        "annotations": "map:string",
        "UID": "string",
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": TIMESTAMP,
        "generation": "int",
        "resourceVersion": "string",
        "finalizers": "*string",
    },
    "NamespaceSpec": {"finalizers": "*string"},
    "NamespaceStatus": {"phase": "string"},
    "Namespace": {
        "metadata": ".kubernetes.NamespaceMetadata",
        "spec": ".kubernetes.NamespaceSpec",
        "status": ".kubernetes.NamespaceStatus",
    },
}
_DEVICES: Mapping[str, Mapping[str, str]] = {
    "DRADevice": {
        "driver": "string",
        "attributes": "map:.google.protobuf.Struct",
        "capacity": "map:.google.protobuf.Struct",
        "allowMultipleAllocations": "bool",
    },
}
_DEVICE = {
    "device": cel.Type("kubernetes.DRADevice"),
    "device.attributes": cel.Type("map<string, map<string, any>>"),
    "device.capacity": cel.Type("map<string, map<string, kubernetes.Quantity>>"),
}
_ABOUT = {
    "claims": {"claims": cel.Type("map<string, dyn>")},
    "user": {
        "user": cel.Type("kubernetes.UserInfo"),
        "user.extra": cel.Type("map<string, list<string>>"),
    },
    "request": {
        "request": cel.Type("kubernetes.SubjectAccessReviewSpec"),
        "request.extra": cel.Type("map<string, list<string>>"),
    },
}
OPEN_TYPES = ("net.IP", "net.CIDR", "timestamp", "duration")
"""Types that may be named as values. The library cannot be told of such, and takes them for anything."""
_TYPES = dict.fromkeys(OPEN_TYPES, cel.Type.DYN)
_PATCH = {"op": "string", "path": "string", "from": "string", "value": VALUE}


class Knows(msgspec.Struct, frozen=True):
    """What an expression may name besides `object`, `oldObject`, `request` and `namespaceObject`.
    `variables`: their types by name, None where there are none. `mutates`: `Object` and `JSONPatch`.
    `device`: a device, in place of all others.
    `about`: `claims`, `user`, or the `request` of a SubjectAccessReview, likewise."""

    params: bool = False
    authorizer: bool = True
    variables: Mapping[str, Any] | None = None
    mutates: bool = False
    device: bool = False
    about: str = ""


def environment(knows: Knows, expression: str) -> Any:
    """The environment in which `expression` is checked, about 0.2 ms each."""
    if knows.device:
        pool = new_pool({"kubernetes": _DEVICES})
        return cel.NewEnv(pool, config=_config("bindings"), variables=_DEVICE | _TYPES)
    if knows.about:
        return cel.NewEnv(
            new_pool({"kubernetes": KUBERNETES}), config=_config(), variables=_ABOUT[knows.about] | _TYPES
        )
    types = {
        **_TYPES,
        "object": cel.Type.DYN,
        "oldObject": cel.Type.DYN,
        "request": cel.Type("kubernetes.AdmissionRequest"),
        "namespaceObject": cel.Type("kubernetes.Namespace"),
    }
    types["request.userInfo.extra"] = cel.Type("map<string, list<string>>")
    if knows.params:
        types["params"] = cel.Type.DYN
    if knows.authorizer:
        types["authorizer"] = cel.Type.AbstractType(f"{AUTHORIZATION}.Authorizer")
        types["authorizer.requestResource"] = cel.Type.AbstractType(f"{AUTHORIZATION}.ResourceCheck")
    packages = {"kubernetes": KUBERNETES, "": _objects(expression) if knows.mutates else {}}
    if knows.variables is not None:
        types["variables"] = cel.Type("kubernetes.variables")
        types |= {f"variables.{name}": type_ for name, type_ in knows.variables.items()}
        packages["kubernetes"] = {**KUBERNETES, "variables": dict.fromkeys(knows.variables, VALUE)}
    return cel.NewEnv(new_pool(packages), config=_config(mutates=knows.mutates), variables=types)


@cache
def _config(*more: str, mutates: bool = False) -> Any:
    """`more`: extensions that not all expressions have."""
    text = (files(__package__) / "functions.txt").read_text()
    declared = [line for line in text.splitlines() if not line.startswith("#")]
    if mutates:
        declared.append("jsonpatch\\.escapeKey(string): string")
    overloads: dict[str, list[dict[str, str]]] = {}
    for number, line in enumerate(declared):
        signature, _, result = line.rpartition(": ")
        found = _NAME.search(signature)
        assert found, line
        overload = {"id": f"kubernetes_{number}", "signature": signature, "return": result}
        overloads.setdefault(found[1].replace("\\", ""), []).append(overload)
    config = {
        "name": "kubernetes",
        "stdlib": {"exclude_functions": [{"name": name} for name in REPLACED]},
        "extensions": [{"name": name} for name in (*EXTENSIONS, *more)],
        "functions": [{"name": name, "overloads": same} for name, same in overloads.items()],
    }
    return cel.NewEnvConfigFromYaml(msgspec.json.encode(config).decode())


def with_macros(expression: str) -> str:
    """The expression with `existsOne` where `exists_one` has two variables, which the library knows by that
    name only. Everything keeps its place."""
    if "exists_one" not in expression:
        return expression
    return _ONE_OF_PAIRS.sub(lambda found: ".existsOne (" if found["macro"] else found[0], expression)


def with_plain_names(expression: str) -> str:
    """The expression with `Object_spec` in place of `Object.spec`, which stands for no member of `Object`."""
    return _OBJECT.sub(lambda found: found[0].replace(".", "_"), expression)


def _objects(expression: str) -> dict[str, Mapping[str, str]]:
    """Types for the objects that the expression makes. They have any field, which is all that it names."""
    named = {found[0].replace(".", "_") for found in _OBJECT.finditer(expression)} | {"Object"}
    fields = sorted({*_FIELD.findall(expression), *_READ.findall(expression)})
    if len(named) * len(fields) > MOST_OBJECT_FIELDS:
        named = {"Object"}
    return {"JSONPatch": _PATCH, **{name: dict.fromkeys(fields, VALUE) for name in sorted(named)}}


def new_pool(packages: Mapping[str, Mapping[str, Mapping[str, str]]]) -> DescriptorPool:
    pool = DescriptorPool()
    for known in (
        *(struct_pb2.DESCRIPTOR, timestamp_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR),
        *(wrappers_pb2.DESCRIPTOR, ANY, EMPTY),
    ):
        pool.AddSerializedFile(known.serialized_pb)
    for package, types in packages.items():
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        file.dependency.extend(("google/protobuf/struct.proto", "google/protobuf/timestamp.proto"))
        file.message_type.extend(messages(package, types))
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def messages(
    package: str, types: Mapping[str, Mapping[str, str]]
) -> Iterator[descriptor_pb2.DescriptorProto]:
    for name, fields in types.items():
        message = descriptor_pb2.DescriptorProto(name=name)
        for number, (field, type_) in enumerate(fields.items(), 1):
            _add_field(message, f".{package}.{name}", number, field, type_)
        yield message


def _add_field(
    message: descriptor_pb2.DescriptorProto, whole: str, number: int, name: str, type_: str
) -> None:
    """`type_`: a scalar, `*` and a scalar for a list, `map:` and the type of the values, or a message."""
    made = message.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
    if type_.startswith("map:"):
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        _add_field(entry, whole, 1, "key", "string")
        _add_field(entry, whole, 2, "value", type_.removeprefix("map:"))
        made.label, type_ = Field.LABEL_REPEATED, f"{whole}.{entry.name}"
    elif type_.startswith("*"):
        made.label, type_ = Field.LABEL_REPEATED, type_[1:]
    if type_ in SCALARS:
        made.type = SCALARS[type_]
    else:
        made.type, made.type_name = Field.TYPE_MESSAGE, type_
