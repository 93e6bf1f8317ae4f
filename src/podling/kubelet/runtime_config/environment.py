"""A container's environment: envFrom first, then env in its order, each value seeing the ones before it.
Pure: the ConfigMaps and Secrets, and what files say, are handed in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from podling.kubelet.node.node_facts import NodeFacts
from podling.kubelet.runtime_config.downward import field_value, resource_value
from podling.kubelet.runtime_config.expansion import expand
from podling.model.config import ConfigMap, Secret
from podling.model.container import EnvFromSource, EnvVarSource, EphemeralContainerCommon, FileKeySelector
from podling.model.pod import Pod


class ConfigError(Exception):
    """A container that cannot be configured: waiting reason CreateContainerConfigError, with this message."""


class FileKey(msgspec.Struct, frozen=True):
    """`name` in the file at `path` of a volume."""

    volume: str
    path: str
    name: str


class FoundInFile(msgspec.Struct, frozen=True):
    """`path` is the file's on the node, `value` empty where it does not have the key, None where it cannot be
    read or is no such file."""

    path: str
    value: str | None


class EnvSources(msgspec.Struct, frozen=True):
    """`config_maps` and `secrets` by name: one that is not here does not exist. `services` are the variables
    of the namespace's services (enableServiceLinks), which every other variable overrides. `files` has the
    keys of `referenced_files` whose volume is there.
    """

    node: NodeFacts
    pod_ips: Sequence[str] = ()
    config_maps: Mapping[str, ConfigMap] = msgspec.field(default_factory=dict)
    secrets: Mapping[str, Secret] = msgspec.field(default_factory=dict)
    services: Mapping[str, str] = msgspec.field(default_factory=dict)
    files: Mapping[FileKey, FoundInFile] = msgspec.field(default_factory=dict)


def referenced_objects(container: EphemeralContainerCommon) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and Secrets a container's environment needs."""
    maps = {e.config_map_ref.name for e in container.env_from if e.config_map_ref}
    secrets = {e.secret_ref.name for e in container.env_from if e.secret_ref}
    for source in (variable.value_from for variable in container.env if variable.value_from):
        if source.config_map_key_ref:
            maps.add(source.config_map_key_ref.name)
        if source.secret_key_ref:
            secrets.add(source.secret_key_ref.name)
    return maps, secrets


def referenced_files(container: EphemeralContainerCommon) -> list[FileKey]:
    """The keys of files a container's environment needs."""
    sources = (variable.value_from for variable in container.env if variable.value_from)
    return [_file_key(source.file_key_ref) for source in sources if source.file_key_ref]


def environment(pod: Pod, container: EphemeralContainerCommon, sources: EnvSources) -> dict[str, str]:
    """Raises ConfigError when a reference that is not optional leads nowhere."""
    made: dict[str, str] = {}
    for origin in container.env_from:
        made.update(_from(origin, pod, sources))
    for variable in container.env:
        if variable.value_from:
            value = _value(variable.value_from, pod, container, sources)
            if value is not None:
                made[variable.name] = value
        else:
            made[variable.name] = expand(variable.value, {**sources.services, **made})
    return {**made, **{name: value for name, value in sources.services.items() if name not in made}}


def _from(origin: EnvFromSource, pod: Pod, sources: EnvSources) -> Iterator[tuple[str, str]]:
    data: Mapping[str, str] = {}
    if origin.config_map_ref:
        config_map = _config_map(origin.config_map_ref.name, origin.config_map_ref.optional, sources)
        data = config_map.data if config_map else {}
    elif origin.secret_ref:
        secret = _secret(origin.secret_ref.name, origin.secret_ref.optional, sources)
        data = {key: _text(value) for key, value in secret.data.items()} if secret else {}
    for key, value in data.items():
        name = f"{origin.prefix}{key}"
        if _can_be_a_name(name):
            yield name, value


def _can_be_a_name(name: str) -> bool:
    """Printable ASCII without an equals sign; keys that cannot be names are passed over."""
    return bool(name) and name.isascii() and name.isprintable() and "=" not in name


def _value(
    source: EnvVarSource, pod: Pod, container: EphemeralContainerCommon, sources: EnvSources
) -> str | None:
    """None when an optional reference leads nowhere: then there is no such variable."""
    try:
        if source.field_ref:
            # A pod on the host's network has the node's addresses; the runtime tells none of it.
            pod_ips = sources.node.ips if pod.spec.host_network else sources.pod_ips
            return field_value(pod, source.field_ref.field_path, pod_ips, sources.node.ips)
        if source.resource_field_ref:
            return resource_value(pod, source.resource_field_ref, container.name, sources.node.allocatable)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if source.config_map_key_ref:
        ref = source.config_map_key_ref
        config_map = _config_map(ref.name, ref.optional, sources)
        return _key(
            "ConfigMap", pod, ref.name, ref.key, ref.optional, config_map.data if config_map else None
        )
    if source.secret_key_ref:
        wanted = source.secret_key_ref
        secret = _secret(wanted.name, wanted.optional, sources)
        data = {key: _text(value) for key, value in secret.data.items()} if secret else None
        return _key("Secret", pod, wanted.name, wanted.key, wanted.optional, data)
    if source.file_key_ref:
        return _in_file(source.file_key_ref, sources)
    return ""


def _file_key(ref: FileKeySelector) -> FileKey:
    return FileKey(ref.volume_name, ref.path, ref.key)


def _in_file(ref: FileKeySelector, sources: EnvSources) -> str | None:
    """A file is needed even where the key is optional, and an empty value is as good as none: so the kubelet
    of Kubernetes has it."""
    found = sources.files.get(_file_key(ref))
    if found is None:
        raise ConfigError(f'cannot find the volume "{ref.volume_name}" referenced by FileKeyRef')
    if found.value is None:
        raise ConfigError("couldn't parse env file")
    if found.value or ref.optional:
        return found.value or None
    raise ConfigError(f"environment variable key {_quoted(ref.key)} not found in file {_quoted(found.path)}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _key(
    kind: str, pod: Pod, name: str, key: str, optional: bool | None, data: Mapping[str, str] | None
) -> str | None:
    if data is not None and key in data:
        return data[key]
    if optional:
        return None
    raise ConfigError(f"couldn't find key {key} in {kind} {pod.metadata.namespace}/{name}")


def _config_map(name: str, optional: bool | None, sources: EnvSources) -> ConfigMap | None:
    if name not in sources.config_maps and not optional:
        raise ConfigError(f'configmap "{name}" not found')
    return sources.config_maps.get(name)


def _secret(name: str, optional: bool | None, sources: EnvSources) -> Secret | None:
    if name not in sources.secrets and not optional:
        raise ConfigError(f'secret "{name}" not found')
    return sources.secrets.get(name)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
