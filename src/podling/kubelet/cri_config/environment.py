"""A container's environment variables. Pure: ConfigMaps, Secrets, Services and the contents of files are
passed in.

The order is service variables (enableServiceLinks), envFrom, env; a later one replaces an earlier one of its
name. Values of env may refer to earlier variables as `$(NAME)`, as commands, arguments and subPathExpr do.
The sources of valueFrom (fieldRef, resourceFieldRef) are resolved here as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgspec

from podling.kubelet.pod.containers import ConfigError, ContainerType, all_containers
from podling.kubelet.pod.sandbox import NodeFacts
from podling.model.codec.fields import Part, always
from podling.model.quantity import Quantity
from podling.model.types.container import (
    EnvVarSource,
    EphemeralContainerCommon,
    FileKeySelector,
)
from podling.model.types.core import ConfigMap, Secret
from podling.model.types.meta import KubeObject
from podling.model.types.pod import Pod
from podling.model.types.references import ResourceFieldSelector

_NAME = re.compile(r"[ -<>-~]+")
"""Printable ASCII without an equals sign."""
_DOLLAR = re.compile(r"\$(?:\$|\(([^)]*)\))")
_LISTS = {
    ContainerType.REGULAR: "containers",
    ContainerType.INIT: "initContainers",
    ContainerType.SIDECAR: "initContainers",
    ContainerType.EPHEMERAL: "ephemeralContainers",
}
API_SERVICE = ("default", "kubernetes")
NO_ADDRESS = ("", "None")
"""`clusterIP` of ExternalName services and of headless ones."""
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_ONE = Quantity("1")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value. An undefined name stays as it is; `$$` becomes `$` and escapes it."""
    if "$" not in text:
        return text
    return _DOLLAR.sub(lambda found: "$" if found[1] is None else values.get(found[1], found[0]), text)


def undefined(text: str, values: Mapping[str, str]) -> list[str]:
    """The names in `$(NAME)` references that have no value."""
    names = (match[1] for match in _DOLLAR.finditer(text))
    return [name for name in names if name is not None and name not in values]


def field_path(kind: ContainerType, name: str) -> str:
    """A container as events name it: `spec.initContainers{name}`."""
    return f"spec.{_LISTS[kind]}{{{name}}}"


def field_paths(pod: Pod) -> dict[str, str]:
    """The field path of every container of the pod, by name."""
    return {container.name: field_path(kind, container.name) for kind, container in all_containers(pod)}


class LinkedPort(Part):
    name: str = ""
    protocol: str = ""
    port: int = 0


class LinkedSpec(Part):
    cluster_ip: str = ""
    ports: list[LinkedPort] = []


class LinkedMeta(Part):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class LinkedService(KubeObject):
    """What variables need of a Service. A kubelet has all services of its cluster in memory, and what is read
    of each takes a sixth of the whole, and a ninth of the time to decode."""

    KIND: ClassVar[str] = "Service"
    API_VERSION: ClassVar[str] = "v1"

    metadata: LinkedMeta = always(LinkedMeta)  # type: ignore[assignment]
    spec: LinkedSpec = always(LinkedSpec)


class ServiceAddress(NamedTuple):
    """Where a service is reached."""

    host: str
    port: int


def service_variables(
    pod: Pod, services: Iterable[LinkedService], api_server: ServiceAddress | None
) -> dict[str, str]:
    """The variables of enableServiceLinks: for each service with a cluster IP `NAME_SERVICE_HOST`,
    `NAME_SERVICE_PORT` (of its first port), `NAME_SERVICE_PORT_PORTNAME`, and those of Docker links
    (`NAME_PORT_80_TCP_ADDR` …). The API server's own service is always included, as clients in pods rely on
    it. `api_server` replaces its address, if nothing answers at its cluster IP."""
    chosen: dict[str, LinkedService] = {}
    for service in services:
        if service.spec.cluster_ip in NO_ADDRESS:
            continue
        namespace, name = _name_of(service)
        if namespace == pod.metadata.namespace and pod.spec.enable_service_links is not False:
            chosen[name] = service
        elif (namespace, name) == API_SERVICE:
            # A service `kubernetes` of the pod's own namespace wins over the API server's.
            chosen.setdefault(name, service)
    return {
        name: value
        for _, service in sorted(chosen.items())
        for name, value in _variables(service, api_server if _name_of(service) == API_SERVICE else None)
    }


def _variables(service: LinkedService, instead: ServiceAddress | None) -> Iterator[tuple[str, str]]:
    prefix, ports = _name(service.metadata.name), service.spec.ports
    places = [instead or ServiceAddress(service.spec.cluster_ip, port.port) for port in ports]
    if not ports:
        return
    yield f"{prefix}_SERVICE_HOST", places[0].host
    yield f"{prefix}_SERVICE_PORT", str(places[0].port)
    for port, place in zip(ports, places, strict=True):
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_name(port.name)}", str(place.port)
    yield f"{prefix}_PORT", _url(ports[0], places[0])
    for port, place in zip(ports, places, strict=True):
        link = f"{prefix}_PORT_{port.port}_{_protocol(port)}"
        yield link, _url(port, place)
        yield f"{link}_PROTO", _protocol(port).lower()
        yield f"{link}_PORT", str(place.port)
        yield f"{link}_ADDR", place.host


def _name(name: str) -> str:
    return name.replace("-", "_").upper()


def _protocol(port: LinkedPort) -> str:
    return port.protocol.upper() or "TCP"


def _url(port: LinkedPort, place: ServiceAddress) -> str:
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{_protocol(port).lower()}://{host}:{place.port}"


def _name_of(service: LinkedService) -> tuple[str, str]:
    return service.metadata.namespace, service.metadata.name


def field_value(pod: Pod, path: str, others: Mapping[str, Callable[[], str]]) -> str:
    """The value of a fieldRef: of the pod's metadata, or one of `others`, by path. Raises ValueError for any
    other path."""
    if match := _SUBSCRIPT.fullmatch(path):
        values = pod.metadata.labels if match[1] == "labels" else pod.metadata.annotations
        return values.get(match[2], "")
    plain: Mapping[str, Callable[[], str]] = {
        "metadata.name": lambda: pod.metadata.name,
        "metadata.namespace": lambda: pod.metadata.namespace,
        "metadata.uid": lambda: pod.metadata.uid,
        **others,
    }
    if path not in plain:
        raise ValueError(f"unsupported fieldPath: {path}")
    return plain[path]()


def quoted(text: str) -> str:
    """As Go's strconv.Quote writes a string."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b"}
    named |= {"\f": "\\f", "\v": "\\v"}
    made = []
    for char in text:
        code = ord(char)
        if char in named:
            made.append(named[char])
        elif char.isprintable():
            made.append(char)
        elif code < 0x80:
            made.append(f"\\x{code:02x}")
        else:
            made.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return f'"{"".join(made)}"'


def resource_value(
    pod: Pod, selector: ResourceFieldSelector, own_name: str, allocatable: Mapping[str, Quantity]
) -> str:
    """The value of a resourceFieldRef: a request or limit in units of the divisor, rounded up. A limit that
    is not set is the node's allocatable. Raises ValueError for an unknown container or resource."""
    wanted = selector.container_name or own_name
    container = next((container for _, container in all_containers(pod) if container.name == wanted), None)
    if container is None:
        raise ValueError(f"container {wanted} not found")
    side, _, resource = selector.resource.partition(".")
    if side not in ("limits", "requests") or not resource:
        raise ValueError(f"unsupported container resource : {selector.resource}")
    given = container.resources.limits if side == "limits" else container.resources.requests
    value = given.get(resource) or (allocatable.get(resource) if side == "limits" else None) or Quantity("0")
    divisor = selector.divisor or _ONE
    return str(-(-value.nanos // divisor.nanos))


class FileKey(msgspec.Struct, frozen=True):
    """A fileKeyRef: the variable `name` in the file at `path` of a volume."""

    volume: str
    path: str
    name: str

    @classmethod
    def of(cls, ref: FileKeySelector) -> FileKey:
        return cls(ref.volume_name, ref.path, ref.key)


class FoundInFile(msgspec.Struct, frozen=True):
    """The result of a fileKeyRef."""

    path: str
    """Of the file on the node."""
    value: str | None
    """"" if the file does not have the key; None if it cannot be read or parsed."""


class EnvSources(msgspec.Struct, frozen=True):
    """What was fetched for one container's environment."""

    node: NodeFacts
    pod_ips: Sequence[str] = ()
    config_maps: Mapping[str, ConfigMap] = msgspec.field(default_factory=dict)
    """By name; one that is missing here does not exist."""
    secrets: Mapping[str, Secret] = msgspec.field(default_factory=dict)
    """By name; one that is missing here does not exist."""
    services: Mapping[str, str] = msgspec.field(default_factory=dict)
    """`service_variables`; every other variable of the same name replaces them."""
    files: Mapping[FileKey, FoundInFile] = msgspec.field(default_factory=dict)
    """The keys of `referenced_files` whose volume exists."""


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
    return [FileKey.of(source.file_key_ref) for source in sources if source.file_key_ref]


def environment(pod: Pod, container: EphemeralContainerCommon, sources: EnvSources) -> dict[str, str]:
    """Raises ConfigError when a reference that is not optional leads nowhere."""
    made: dict[str, str] = {}
    for origin in container.env_from:
        data: Mapping[str, str] = {}
        if maps := origin.config_map_ref:
            config_map = _config_map(maps.name, maps.optional, sources)
            data = config_map.data if config_map else {}
        elif secrets := origin.secret_ref:
            secret = _secret(secrets.name, secrets.optional, sources)
            data = {key: _text(value) for key, value in secret.data.items()} if secret else {}
        # Keys that cannot be names are skipped.
        named = {f"{origin.prefix}{key}": text for key, text in data.items()}
        made |= {name: text for name, text in named.items() if _NAME.fullmatch(name)}
    for variable in container.env:
        if variable.value_from:
            value = _value(variable.value_from, pod, container, sources)
            if value is not None:
                made[variable.name] = value
        else:
            made[variable.name] = expand(variable.value, {**sources.services, **made})
    return {**made, **{name: value for name, value in sources.services.items() if name not in made}}


def _value(
    source: EnvVarSource, pod: Pod, container: EphemeralContainerCommon, sources: EnvSources
) -> str | None:
    """The value of a valueFrom; None for an optional reference to nothing: the variable is left out."""
    try:
        if source.field_ref:
            # With hostNetwork the runtime reports no addresses; they are the node's.
            host_ips = sources.node.ips
            pod_ips = host_ips if pod.spec.host_network else sources.pod_ips
            others = {
                "spec.nodeName": lambda: pod.spec.node_name,
                "spec.serviceAccountName": lambda: pod.spec.service_account_name,
                "status.hostIP": lambda: next(iter(host_ips), ""),
                "status.hostIPs": lambda: ",".join(host_ips),
                "status.podIP": lambda: next(iter(pod_ips), ""),
                "status.podIPs": lambda: ",".join(pod_ips),
            }
            return field_value(pod, source.field_ref.field_path, others)
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
    if found_at := source.file_key_ref:
        # As in Kubernetes' kubelet, `optional` covers the key but not the file, and an empty value counts as
        # a missing key.
        found = sources.files.get(FileKey.of(found_at))
        if found is None:
            raise ConfigError(f'cannot find the volume "{found_at.volume_name}" referenced by FileKeyRef')
        if found.value is None:
            raise ConfigError("couldn't parse env file")
        if not found.value and not found_at.optional:
            where = f"environment variable key {quoted(found_at.key)}"
            raise ConfigError(f"{where} not found in file {quoted(found.path)}")
        return found.value or None
    return ""


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
