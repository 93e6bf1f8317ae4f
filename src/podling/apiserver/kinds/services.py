"""Services, and the two kinds that list the addresses behind them: EndpointSlices, each of one address type,
and the older Endpoints.

Cluster IPs and node ports of services are given out by admission; the rules here only keep them as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import structs

from podling.apiserver.kinds.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    addresses_text,
    age,
    joined,
    labels_text,
    or_none,
)
from podling.apiserver.kinds.kind import PROXY_VERBS, Column, Connect, Kept, Kind, Status, Subresource
from podling.apiserver.rules import metadata
from podling.apiserver.rules.addresses import (
    ip_faults,
    ip_faults_exact,
    parsed,
    unsuitable,
    validate_ip,
    warn_of_ip,
    warn_of_ips,
)
from podling.apiserver.rules.container.mounts import MAX_PORT
from podling.apiserver.rules.field import (
    IMMUTABLE,
    all_invalid,
    between,
    duplicate,
    invalid,
    not_supported,
    one_of,
    required,
    too_many,
)
from podling.apiserver.rules.service.addresses import EXTERNAL, LOAD_BALANCER, node_ports
from podling.apiserver.rules.service.defaults import (
    default_service,
    drop_internal_policy,
    name_all_addresses,
    service_warnings,
    status_warnings,
)
from podling.apiserver.rules.service.ranges import ALLOCATED, PORT_ALLOCATED, address_fault, not_allocated
from podling.apiserver.rules.service.service import (
    validate_load_balancer_status,
    validate_service,
    validate_service_update,
)
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause, StatusError
from podling.model.errors import invalid as invalid_object
from podling.model.rules.addresses import address_of, cluster_ips
from podling.model.scheme import resource_of
from podling.model.types.discovery import Endpoint, EndpointHints, EndpointSlice, SlicePort
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.service import EndpointAddress, EndpointSubset, Service
from podling.model.types.service import Endpoints as EndpointsObject

FAMILIES = ("FQDN", "IPv4", "IPv6")
SLICE_PROTOCOLS = ENUMS["SlicePort", "protocol"]
MOST_ENDPOINTS, MOST_ADDRESSES, MOST_PORTS, MOST_HINTS = 1000, 100, 20_000, 8
SHOWN = 3

PROTOCOLS = ENUMS["EndpointPort", "protocol"]


class _Allocated(Kept[Service]):
    def of(self, obj: Service) -> list[KubeObject]:
        return [address_of(obj, address) for address in cluster_ips(obj)]

    def going(self, obj: Service) -> list[KubeObject]:
        # A service of the same name that is made next is not to have these.
        meta = ObjectMeta(name=obj.metadata.name, namespace=obj.metadata.namespace)
        return [EndpointsObject(metadata=meta)]

    def node_ports(self, obj: Service) -> set[int]:
        return set(node_ports(obj.spec))

    def asked(self, obj: Service) -> list[str]:
        return [obj.spec.cluster_ip, *obj.spec.cluster_ips, *map(str, node_ports(obj.spec))]

    def taken(self, obj: Service, name: str) -> StatusError:
        if name.isdigit():
            at = next((i for i, port in enumerate(obj.spec.ports) if port.node_port == int(name)), None)
            if at is None:
                return not_allocated(
                    f"failed to allocate requested HealthCheck NodePort {name}: {PORT_ALLOCATED}"
                )
            refused = invalid(f"spec.ports[{at}].nodePort", int(name), PORT_ALLOCATED)
            return invalid_object("Service", obj.metadata.name, [refused])
        fault = address_fault(obj.spec, name, ALLOCATED)
        return invalid_object("Service", obj.metadata.name, [fault])


class Services(Kind[Service]):
    resource = resource_of(Service)
    judges_prefix_again = False
    tells_changes_first = True
    kept = _Allocated()
    creates_on_update = True
    returns_deleted = True
    subresources: Mapping[str, Subresource] = {
        "proxy": Connect("proxy", "ServiceProxyOptions", PROXY_VERBS, has_path=True),
        "status": Status(validate_load_balancer_status, warn=status_warnings),
    }
    columns = (
        NAME,
        Column("Type", description="From where the service can be reached."),
        Column("Cluster-IP", description="Address within the cluster."),
        Column("External-IP", description="Addresses outside the cluster."),
        Column("Port(s)", description="Ports, with those of the nodes, and protocols."),
        AGE,
        Column("Selector", description="Labels of the pods behind it.", priority=1),
    )
    selectable_fields = {
        "spec.clusterIP": lambda service: service.spec.cluster_ip,
        "spec.type": lambda service: service.spec.type,
    }

    def default(self, obj: Service) -> None:
        default_service(obj)

    def prepare_create(self, obj: Service, now: datetime) -> None:
        obj.status = type(obj.status)()
        name_all_addresses(obj.spec)
        drop_internal_policy(obj.spec)

    def prepare_update(self, new: Service, old: Service) -> None:
        # What admission carries over may change the status, too.
        new.status = structs.replace(old.status)

    def validate(self, obj: Service) -> list[Cause]:
        return list(validate_service(obj, None))

    def validate_changed(self, new: Service, old: Service) -> list[Cause]:
        faults = list(validate_service(new, old))
        # Where it need not have one, its address was judged alone, but is shown among all.
        name_all_addresses(new.spec)
        return faults

    def validate_update(self, new: Service, old: Service) -> list[Cause]:
        return list(validate_service_update(new, old))

    def warnings(self, obj: Service) -> list[str]:
        return list(service_warnings(obj))

    def row(self, obj: Service, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.spec.type,
            or_none(obj.spec.cluster_ip),
            _external(obj),
            joined(
                f"{port.port}:{port.node_port}/{port.protocol}"
                if port.node_port
                else f"{port.port}/{port.protocol}"
                for port in obj.spec.ports
            ),
            age(obj.metadata.creation_timestamp, now),
            labels_text(obj.spec.selector),
        ]


def _external(service: Service) -> str:
    spec = service.spec
    if spec.type == EXTERNAL:
        return or_none(spec.external_name)
    if spec.type == LOAD_BALANCER:
        balancers = addresses_text(service.status.load_balancer.ingress)
        return ",".join(filter(None, [balancers, *spec.external_ips])) or "<pending>"
    return joined(spec.external_ips) if spec.external_ips else NONE


class EndpointSlices(Kind[EndpointSlice]):
    resource = resource_of(EndpointSlice)
    has_generation = True
    columns = (
        NAME,
        Column("AddressType", description="What kind of addresses it has."),
        Column("Ports", description="Ports of every address."),
        Column("Endpoints", description="The addresses."),
        AGE,
    )

    def default(self, obj: EndpointSlice) -> None:
        for port in obj.ports:
            port.name = port.name or ""
            port.protocol = "TCP" if port.protocol is None else port.protocol

    def prepare_create(self, obj: EndpointSlice, now: datetime) -> None:
        _drop_topology(obj)

    def prepare_update(self, new: EndpointSlice, old: EndpointSlice) -> None:
        # Labels say whose slice it is: a change of theirs counts like any other, as does what is dropped.
        relabelled = new.metadata.labels != old.metadata.labels
        if relabelled or any(endpoint.deprecated_topology for endpoint in new.endpoints):
            new.metadata.generation = old.metadata.generation + 1
        _drop_topology(new)

    def validate(self, obj: EndpointSlice) -> list[Cause]:
        causes = list(_validate_frame(obj))
        if len(obj.endpoints) > MOST_ENDPOINTS:
            return [*causes, too_many("endpoints", len(obj.endpoints), MOST_ENDPOINTS)]
        for i, endpoint in enumerate(obj.endpoints):
            causes += _validate_endpoint(endpoint, obj.address_type, f"endpoints[{i}]")
        return causes

    def validate_changed(self, new: EndpointSlice, old: EndpointSlice) -> list[Cause]:
        # What stands may be of a time when it was valid.
        return list(_validate_frame(new)) if new.endpoints == old.endpoints else self.validate(new)

    def validate_update(self, new: EndpointSlice, old: EndpointSlice) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.address_type != old.address_type:
            causes.append(invalid("addressType", new.address_type, IMMUTABLE))
        return causes

    def warnings(self, obj: EndpointSlice) -> list[str]:
        deprecated = ["spec.addressType: FQDN endpoints are deprecated"]
        return [
            *(deprecated if obj.address_type == "FQDN" else ()),
            *(
                warning
                for i, endpoint in enumerate(obj.endpoints)
                for warning in warn_of_ips(endpoint.addresses, f"endpoints[{i}].addresses")
            ),
        ]

    def row(self, obj: EndpointSlice, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.address_type,
            _first([str(port.name if port.port is None else port.port) for port in obj.ports]),
            _first([address for endpoint in obj.endpoints for address in endpoint.addresses]),
            age(obj.metadata.creation_timestamp, now),
        ]


def _first(items: list[str]) -> str:
    more = f" + {len(items) - SHOWN} more..." if len(items) > SHOWN else ""
    return ",".join(items[:SHOWN]) + more or UNSET


def _drop_topology(slice: EndpointSlice) -> None:
    """Clear `deprecatedTopology`, which v1 shows but does not accept."""
    for endpoint in slice.endpoints:
        endpoint.deprecated_topology = {}


def _validate_frame(slice: EndpointSlice) -> Iterator[Cause]:
    yield from metadata.validate(slice.metadata)
    yield from one_of("addressType", slice.address_type, FAMILIES)
    yield from _validate_ports(slice.ports)


def _validate_endpoint(endpoint: Endpoint, family: str, path: str) -> Iterator[Cause]:
    if not endpoint.addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    elif len(endpoint.addresses) > MOST_ADDRESSES:
        yield too_many(f"{path}.addresses", len(endpoint.addresses), MOST_ADDRESSES)
    for i, address in enumerate(endpoint.addresses):
        where = f"{path}.addresses[{i}]"
        if family == "FQDN":
            yield from _validate_domain(address, where)
        elif family in FAMILIES:
            meant, faults = parsed(address), ip_faults(address)
            if meant is not None and not faults:
                is_meant = meant.version == int(family[-1])
                if not is_meant:
                    yield invalid(f"{path}.addresses", address, f"must be an {family} address")
                faults = (ip_faults_exact(address) if is_meant else []) or unsuitable(address)
            yield from all_invalid(where, address, faults)
    if endpoint.node_name is not None:
        faults = names.dns1123_subdomain(endpoint.node_name)
        yield from all_invalid(f"{path}.nodeName", endpoint.node_name, faults)
    if endpoint.hostname is not None:
        yield from all_invalid(f"{path}.hostname", endpoint.hostname, names.dns1123_label(endpoint.hostname))
    if endpoint.hints is not None:
        yield from _validate_hints(endpoint.hints, f"{path}.hints")


def _validate_domain(domain: str, path: str) -> Iterator[Cause]:
    """The first fault of a DNS name."""
    if not domain:
        yield required(path)
        return
    name = domain.removesuffix(".")
    labels = name.split(".")
    if faults := names.dns1123_subdomain(name):
        yield invalid(path, name, ",".join(faults))
    elif len(labels) < 2:
        yield invalid(path, name, "should be a domain with at least two segments separated by dots")
    else:
        long = [(label, faults) for label in labels if (faults := names.dns1123_label(label))]
        yield from (invalid(path, label, ",".join(faults)) for label, faults in long[:1])


def _validate_hints(hints: EndpointHints, path: str) -> Iterator[Cause]:
    """Faults of hints. Those of nodes are not checked if there are too many zones, as in Kubernetes."""
    for wire, listed, rule in (
        ("forZones", [one.name for one in hints.for_zones], names.label_value),
        ("forNodes", [one.name for one in hints.for_nodes], names.dns1123_subdomain),
    ):
        if len(listed) > MOST_HINTS:
            yield too_many(f"{path}.{wire}", len(listed), MOST_HINTS)
            return
        for i, name in enumerate(listed):
            where = f"{path}.{wire}[{i}].name"
            if name in listed[:i]:
                yield duplicate(where, name)
            yield from all_invalid(where, name, rule(name))


def _validate_ports(ports: list[SlicePort]) -> Iterator[Cause]:
    if len(ports) > MOST_PORTS:
        yield too_many("ports", len(ports), MOST_PORTS)
        return
    seen: set[str] = set()
    for i, port in enumerate(ports):
        path, name = f"ports[{i}]", port.name or ""
        if name:
            yield from all_invalid(f"{path}.name", name, names.dns1123_label(name))
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        if port.protocol not in SLICE_PROTOCOLS:
            yield not_supported(f"{path}.protocol", port.protocol, SLICE_PROTOCOLS)
        if port.app_protocol is not None:
            faults = names.qualified_name(port.app_protocol)
            yield from all_invalid(f"{path}.appProtocol", port.app_protocol, faults)


class Endpoints(Kind[EndpointsObject]):
    resource = resource_of(EndpointsObject)
    creates_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    columns = (NAME, Column("Endpoints", description="Addresses and ports that are ready."), AGE)

    def default(self, obj: EndpointsObject) -> None:
        for subset in obj.subsets:
            for port in subset.ports:
                port.protocol = port.protocol or "TCP"

    def validate(self, obj: EndpointsObject) -> list[Cause]:
        return [*metadata.validate(obj.metadata), *_validate_subsets(obj.subsets)]

    def validate_changed(self, new: EndpointsObject, old: EndpointsObject) -> list[Cause]:
        # What stands may be of a time when it was valid.
        return metadata.validate(new.metadata) if new.subsets == old.subsets else self.validate(new)

    def warnings(self, obj: EndpointsObject) -> list[str]:
        return [
            warning
            for i, subset in enumerate(obj.subsets)
            for field, addresses in (
                ("addresses", subset.addresses),
                ("notReadyAddresses", subset.not_ready_addresses),
            )
            for j, address in enumerate(addresses)
            for warning in warn_of_ip(address.ip, f"subsets[{i}].{field}[{j}].ip")
        ]

    def row(self, obj: EndpointsObject, now: datetime) -> list[Any]:
        # Counted, not made: a subset has as many as its addresses times its ports.
        count = sum(len(subset.addresses) * max(len(subset.ports), 1) for subset in obj.subsets)
        more = f" + {count - SHOWN} more..." if count > SHOWN else ""
        shown = ",".join(islice(_addresses(obj.subsets), SHOWN)) + more if obj.subsets else NONE
        return [obj.metadata.name, shown, age(obj.metadata.creation_timestamp, now)]


def _addresses(subsets: list[EndpointSubset]) -> Iterator[str]:
    for subset in subsets:
        if not subset.ports:
            yield from (address.ip for address in subset.addresses)
        for port in subset.ports:
            yield from (f"{address.ip}:{port.port}" for address in subset.addresses)


def _validate_subsets(subsets: list[EndpointSubset]) -> Iterator[Cause]:
    for i, subset in enumerate(subsets):
        path = f"subsets[{i}]"
        if not subset.addresses and not subset.not_ready_addresses:
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for j, address in enumerate(subset.addresses):
            yield from _validate_address(address, f"{path}.addresses[{j}]")
        for j, address in enumerate(subset.not_ready_addresses):
            yield from _validate_address(address, f"{path}.notReadyAddresses[{j}]")
        for j, port in enumerate(subset.ports):
            where = f"{path}.ports[{j}]"
            if port.name:
                yield from all_invalid(f"{where}.name", port.name, names.dns1123_label(port.name))
            elif len(subset.ports) > 1:
                yield required(f"{where}.name")
            yield from between(f"{where}.port", port.port, 1, MAX_PORT)
            if port.protocol not in PROTOCOLS:
                yield not_supported(f"{where}.protocol", port.protocol, PROTOCOLS)
            if port.app_protocol is not None:
                faults = names.qualified_name(port.app_protocol)
                yield from all_invalid(f"{where}.appProtocol", port.app_protocol, faults)


def _validate_address(address: EndpointAddress, path: str) -> Iterator[Cause]:
    yield from validate_ip(address.ip, f"{path}.ip")
    if address.hostname:
        yield from all_invalid(f"{path}.hostname", address.hostname, names.dns1123_label(address.hostname))
    if address.node_name is not None:
        faults = names.dns1123_subdomain(address.node_name)
        yield from all_invalid(f"{path}.nodeName", address.node_name, faults)
    yield from all_invalid(f"{path}.ip", address.ip, unsuitable(address.ip))
