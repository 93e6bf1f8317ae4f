"""The types of what expressions may name besides the objects that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podling.apiserver.cel.environment import AUTHORIZATION, KUBERNETES, SCALARS, TIMESTAMP, VALUE
from podling.apiserver.cel.inference import Known, functions
from podling.apiserver.cel.types import (
    DYN,
    LIST,
    MAP,
    STRING,
    Structures,
    Type,
    list_of,
    map_of,
    parsed_type,
    struct,
)

VARIABLES = "kubernetes.variables"
_KEPT = frozenset(("bool", "int", "uint", "double", "string", "bytes", "null_type"))
_TIMES = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))
OWN = {
    "request": struct("kubernetes.AdmissionRequest"),
    "namespaceObject": struct("kubernetes.Namespace"),
    "authorizer": struct(f"{AUTHORIZATION}.Authorizer"),
    "variables": struct(VARIABLES),
}


def untyped(variables: Mapping[str, Type]) -> Known:
    """What is known where objects and parameters may be anything."""
    names = {**OWN, **dict.fromkeys(("object", "oldObject", "params"), DYN)}
    return Known(names, Several([VariableTypes(variables), KubernetesTypes()]), functions())


def kept(type_: Type) -> Type:
    """What expressions know of a variable of a type: structures may be anything."""
    if type_.kind == LIST:
        return list_of(kept(type_.params[0]))
    if type_.kind == MAP:
        key, value = type_.params
        return map_of(key if key.kind in _KEPT else DYN, kept(value))
    return type_ if type_.kind in _KEPT or type_.kind in _TIMES else DYN


class Several:
    """Structures of several sources."""

    def __init__(self, every: Sequence[Structures]) -> None:
        self._every = every

    def has(self, name: str) -> bool:
        return any(one.has(name) for one in self._every)

    def field(self, name: str, field: str) -> Type | None:
        return next((one.field(name, field) for one in self._every if one.has(name)), None)


class VariableTypes:
    def __init__(self, known: Mapping[str, Type]) -> None:
        self._known = known

    def has(self, name: str) -> bool:
        return name == VARIABLES

    def field(self, name: str, field: str) -> Type | None:
        return self._known.get(field)


class KubernetesTypes:
    """Those of `environment.py`."""

    def has(self, name: str) -> bool:
        return name.removeprefix("kubernetes.") in KUBERNETES

    def field(self, name: str, field: str) -> Type | None:
        found = KUBERNETES[name.removeprefix("kubernetes.")].get(field)
        return None if found is None else _type_of(found)


def _type_of(written: str) -> Type:
    """Of a field, as `environment.py` writes it."""
    if written.startswith("*"):
        return list_of(_type_of(written[1:]))
    if written.startswith("map:"):
        return map_of(STRING, _type_of(written.removeprefix("map:")))
    if written in SCALARS:
        return parsed_type(written)
    if written in (VALUE, TIMESTAMP):
        return DYN if written == VALUE else parsed_type("timestamp")
    return list_of(STRING) if written.endswith("ListValue") else struct(written[1:])
