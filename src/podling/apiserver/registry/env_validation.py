"""Faults of a container's environment variables and of where their values come from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podling.apiserver.registry.field import all_invalid, invalid, not_supported, required
from podling.model import names
from podling.model.container import EnvFromSource, EnvVar, EnvVarSource, FileKeySelector
from podling.model.errors import Cause
from podling.model.references import (
    ConfigMapKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)

ENV_FIELDS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
VOLUME_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)

_KEYED = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]", re.DOTALL)


def validate_env(variables: list[EnvVar], path: str) -> Iterator[Cause]:
    for i, variable in enumerate(variables):
        where = f"{path}[{i}]"
        if not variable.name:
            yield required(f"{where}.name")
        else:
            yield from all_invalid(f"{where}.name", variable.name, names.environment_name(variable.name))
        if variable.value_from is not None:
            yield from _validate_source(variable, variable.value_from, f"{where}.valueFrom")


def _validate_source(variable: EnvVar, source: EnvVarSource, path: str) -> Iterator[Cause]:
    given = [one for one in (getattr(source, name) for name in source.__struct_fields__) if one is not None]
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        why = f"must specify one of: {listed}"
        yield invalid(path, "", why)
    elif variable.value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    if source.field_ref is not None:
        yield from validate_field_ref(source.field_ref, f"{path}.fieldRef", ENV_FIELDS)
    if source.resource_field_ref is not None:
        yield from validate_resource_ref(source.resource_field_ref, f"{path}.resourceFieldRef", volume=False)
    if source.config_map_key_ref is not None:
        yield from _validate_key_ref(source.config_map_key_ref, f"{path}.configMapKeyRef")
    if source.secret_key_ref is not None:
        yield from _validate_key_ref(source.secret_key_ref, f"{path}.secretKeyRef")
    if source.file_key_ref is not None:
        yield from _validate_file_ref(source.file_key_ref, f"{path}.fileKeyRef")


def validate_field_ref(ref: ObjectFieldSelector, path: str, fields: frozenset[str]) -> Iterator[Cause]:
    if not ref.api_version:
        yield required(f"{path}.apiVersion")
        return
    if not ref.field_path:
        yield required(f"{path}.fieldPath")
        return
    keyed = _KEYED.fullmatch(ref.field_path)
    if keyed:
        key = keyed[2] if keyed[1] == "metadata.labels" else keyed[2].lower()
        yield from all_invalid(path, keyed[2], names.qualified_name(key))
    elif ref.field_path not in fields:
        yield not_supported(f"{path}.fieldPath", ref.field_path, fields)


def validate_resource_ref(ref: ResourceFieldSelector, path: str, *, volume: bool) -> Iterator[Cause]:
    if volume and not ref.container_name:
        yield required(f"{path}.containerName")
    if not ref.resource:
        yield required(f"{path}.resource")
    elif ref.resource not in RESOURCES and not ref.resource.partition(".")[2].startswith("hugepages-"):
        yield not_supported(f"{path}.resource", ref.resource, RESOURCES)


def _validate_key_ref(ref: ConfigMapKeySelector | SecretKeySelector, path: str) -> Iterator[Cause]:
    if not ref.name:
        yield required(f"{path}.name")
    if not ref.key:
        yield required(f"{path}.key")
    else:
        yield from all_invalid(f"{path}.key", ref.key, names.config_key(ref.key))


def _validate_file_ref(ref: FileKeySelector, path: str) -> Iterator[Cause]:
    for wire, value in (("volumeName", ref.volume_name), ("path", ref.path), ("key", ref.key)):
        if not value:
            yield required(f"{path}.{wire}")


def validate_env_from(sources: list[EnvFromSource], path: str) -> Iterator[Cause]:
    for i, source in enumerate(sources):
        where = f"{path}[{i}]"
        if source.prefix:
            yield from all_invalid(f"{where}.prefix", source.prefix, names.environment_name(source.prefix))
        given = 0
        for wire, ref in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref)):
            if ref is not None:
                given += 1
                if not ref.name:
                    yield required(f"{where}.{wire}.name")
        if given == 0:
            yield invalid(where, "", "must specify one of: `configMapRef` or `secretRef`")
        elif given > 1:
            yield invalid(where, "", "may not have more than one field specified at a time")
