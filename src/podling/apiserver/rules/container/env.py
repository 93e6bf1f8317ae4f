"""Validation of a container's environment variables and of their sources: objects, files, and the downward
API, which gives fields of the pod and amounts of resources, also to volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podling.apiserver.rules.field import (
    all_invalid,
    invalid,
    not_found,
    not_supported,
    required,
    validate_no_backsteps,
)
from podling.model import names
from podling.model.errors import Cause
from podling.model.types.container import EnvFromSource, EnvVar, FileKeySelector
from podling.model.types.references import (
    ConfigMapKeySelector,
    ObjectFieldSelector,
    ResourceFieldSelector,
    SecretKeySelector,
)
from podling.model.types.volume import Volume

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
FIELDS = (
    ENV_FIELDS | VOLUME_FIELDS | {"spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
"""Those a path may name at all: which of them are given depends on to what."""

RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")

_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS = {
    "cpu": (("1m", "1"), "1m and 1", "cpu"),
    "memory": (_UNITS, ", ".join(_UNITS), "memory"),
    "ephemeral-storage": (_UNITS, ", ".join(_UNITS), "local ephemeral storage"),
    "hugepages": (_UNITS, ", ".join(_UNITS), "hugepages"),
}
"""Of each resource: the divisors, how they are listed, and its name in that sentence."""

_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_MANY_SOURCES = "may not have more than one field specified at a time"


def validate_field_ref(ref: ObjectFieldSelector, path: str, fields: frozenset[str]) -> Iterator[Cause]:
    if not ref.api_version:
        yield required(f"{path}.apiVersion")
        return
    if not ref.field_path:
        yield required(f"{path}.fieldPath")
        return
    label, bracket, key = ref.field_path.partition("['")
    subscripted = bool(bracket and label) and ref.field_path.endswith("']")
    why = ""
    if ref.api_version != "v1":
        why = f"unsupported pod version: {ref.api_version}"
    elif subscripted and label not in ("metadata.labels", "metadata.annotations"):
        why = f"field label does not support subscript: {label}"
    elif not subscripted and ref.field_path not in FIELDS:
        why = f"field label not supported: {ref.field_path}"
    if why:
        yield invalid(f"{path}.fieldPath", ref.field_path, f"error converting fieldPath: {why}")
    elif subscripted:
        key = key.removesuffix("']")
        key = key if label == "metadata.labels" else key.lower()
        yield from all_invalid(path, key, names.qualified_name(key))
    elif ref.field_path not in fields:
        yield not_supported(f"{path}.fieldPath", ref.field_path, fields)


def validate_resource_ref(ref: ResourceFieldSelector, path: str, *, volume: bool) -> Iterator[Cause]:
    if volume and not ref.container_name:
        yield required(f"{path}.containerName")
    elif not ref.resource:
        yield required(f"{path}.resource")
    elif ref.resource not in RESOURCES and not ref.resource.startswith(HUGE_PAGES):
        yield not_supported(f"{path}.resource", ref.resource, RESOURCES)
    if ref.divisor:
        kind = "hugepages" if ref.resource.startswith(HUGE_PAGES) else ref.resource.partition(".")[2]
        if kind in _DIVISORS and (kind == "hugepages" or ref.resource in RESOURCES):
            allowed, listed, name = _DIVISORS[kind]
            if str(ref.divisor) not in allowed:
                why = f"only divisor's values {listed} are supported with the {name} resource"
                yield invalid(f"{path}.divisor", ref.resource, why)


def validate_env(variables: list[EnvVar], path: str) -> Iterator[Cause]:
    for i, variable in enumerate(variables):
        if not variable.name:
            yield required(f"{path}[{i}].name")
        else:
            faults = names.environment_name(variable.name)
            yield from all_invalid(f"{path}[{i}].name", variable.name, faults)
        source, where = variable.value_from, f"{path}[{i}].valueFrom"
        if source is None:
            continue
        if (field := source.field_ref) is not None:
            yield from validate_field_ref(field, f"{where}.fieldRef", ENV_FIELDS)
        if (resource := source.resource_field_ref) is not None:
            yield from validate_resource_ref(resource, f"{where}.resourceFieldRef", volume=False)
        if source.config_map_key_ref is not None:
            yield from _validate_key_ref(source.config_map_key_ref, f"{where}.configMapKeyRef")
        if source.secret_key_ref is not None:
            yield from _validate_key_ref(source.secret_key_ref, f"{where}.secretKeyRef")
        if source.file_key_ref is not None:
            yield from _validate_file_ref(source.file_key_ref, f"{where}.fileKeyRef")
        given = sum(getattr(source, name) is not None for name in source.__struct_fields__)
        if not given:
            yield invalid(where, "", _NO_SOURCE)
        elif variable.value:
            yield invalid(where, "", "may not be specified when `value` is not empty")
        elif given > 1:
            yield invalid(where, "", _MANY_SOURCES)


def _validate_file_ref(ref: FileKeySelector, path: str) -> Iterator[Cause]:
    for wire, value, rule in (
        ("key", ref.key, names.environment_name),
        ("volumeName", ref.volume_name, names.dns1123_label),
    ):
        if not value:
            yield required(f"{path}.{wire}")
        else:
            yield from all_invalid(f"{path}.{wire}", value, rule(value))
    if not ref.path:
        yield required(f"{path}.path")
    else:
        yield from validate_no_backsteps(ref.path, f"{path}.path")


def _validate_key_ref(ref: ConfigMapKeySelector | SecretKeySelector, path: str) -> Iterator[Cause]:
    yield from all_invalid(f"{path}.name", ref.name, names.dns1123_subdomain(ref.name))
    if not ref.key:
        yield required(f"{path}.key")
    else:
        yield from all_invalid(f"{path}.key", ref.key, names.config_key(ref.key))


def validate_env_files(variables: list[EnvVar], path: str, volumes: Mapping[str, Volume]) -> Iterator[Cause]:
    """A file that sets variables is one the pod itself has written."""
    for i, variable in enumerate(variables):
        if variable.value_from is None or variable.value_from.file_key_ref is None:
            continue
        where = f"{path}[{i}].valueFrom.fileKeyRef.volumeName"
        name = variable.value_from.file_key_ref.volume_name
        volume = volumes.get(name)
        if volume is None:
            yield not_found(where, name)
        elif volume.empty_dir is None:
            yield invalid(where, name, "referenced volume must be of type emptyDir")


def validate_env_from(sources: list[EnvFromSource], path: str) -> Iterator[Cause]:
    for i, source in enumerate(sources):
        where = f"{path}[{i}]"
        if source.prefix:
            yield from all_invalid(f"{where}.prefix", source.prefix, names.environment_name(source.prefix))
        if source.config_map_ref is not None:
            yield from _validate_name(source.config_map_ref.name, f"{where}.configMapRef.name")
        if source.secret_ref is not None:
            yield from _validate_name(source.secret_ref.name, f"{where}.secretRef.name")
        given = (source.config_map_ref is not None) + (source.secret_ref is not None)
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif given > 1:
            yield invalid(path, "", _MANY_SOURCES)


def _validate_name(name: str, path: str) -> Iterator[Cause]:
    """Of an object to take all variables from; like the beginning of a name it may end in a dash."""
    if not name:
        yield required(path)
        return
    whole = f"{name[:-1]}a" if name.endswith("-") else name
    yield from all_invalid(path, name, names.dns1123_subdomain(whole))
