"""EndpointSlices: some of the addresses behind a service, of one address family."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.container.ports import MAX_PORT
from podling.apiserver.registry.field import (
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
from podling.apiserver.registry.ip_addresses import ip_faults, parsed, unsuitable, warn_of_ips
from podling.apiserver.registry.kind import Column, Kind
from podling.model import names
from podling.model.endpoint_slice import Endpoint, EndpointHints, EndpointSlice, SlicePort
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.scheme import resource_of

FAMILIES = ("FQDN", "IPv4", "IPv6")
PROTOCOLS = ENUMS["SlicePort", "protocol"]
MOST_ENDPOINTS, MOST_ADDRESSES, MOST_PORTS, MOST_HINTS = 1000, 100, 20_000, 8
SHOWN = 3
UNSET = "<unset>"


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
            port.protocol = port.protocol or "TCP"

    def prepare_create(self, obj: EndpointSlice, now: datetime) -> None:
        _drop_topology(obj)

    def prepare_update(self, new: EndpointSlice, old: EndpointSlice) -> None:
        _drop_topology(new)
        if new.metadata.labels != old.metadata.labels:
            # Labels say whose slice it is: a change of theirs counts like any other.
            new.metadata.generation = old.metadata.generation + 1

    def validate(self, obj: EndpointSlice) -> list[Cause]:
        return [*_validate_frame(obj), *_validate_endpoints(obj)]

    def validate_changed(self, new: EndpointSlice, old: EndpointSlice) -> list[Cause]:
        # What stands may be of a time when it was valid.
        return list(_validate_frame(new)) if new.endpoints == old.endpoints else self.validate(new)

    def validate_update(self, new: EndpointSlice, old: EndpointSlice) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.address_type != old.address_type:
            causes.append(invalid("addressType", new.address_type, IMMUTABLE))
        return causes

    def warnings(self, obj: EndpointSlice) -> list[str]:
        if obj.address_type == "FQDN":
            return ["spec.addressType: FQDN endpoints are deprecated"]
        return [
            warning
            for i, endpoint in enumerate(obj.endpoints)
            for warning in warn_of_ips(endpoint.addresses, f"endpoints[{i}].addresses")
        ]

    def row(self, obj: EndpointSlice, now: datetime) -> list[Any]:
        return [
            obj.metadata.name,
            obj.address_type,
            _first([str(port.port) if port.port is not None else "*" for port in obj.ports]),
            _first([address for endpoint in obj.endpoints for address in endpoint.addresses]),
            age(obj.metadata.creation_timestamp, now),
        ]


def _first(items: list[str]) -> str:
    more = f" + {len(items) - SHOWN} more..." if len(items) > SHOWN else ""
    return ",".join(items[:SHOWN]) + more if items else UNSET


def _drop_topology(slice: EndpointSlice) -> None:
    """A field of the version before, which this one shows and does not take."""
    for endpoint in slice.endpoints:
        endpoint.deprecated_topology = {}


def _validate_frame(slice: EndpointSlice) -> Iterator[Cause]:
    yield from metadata.validate(slice.metadata)
    yield from one_of("addressType", slice.address_type, FAMILIES)
    yield from _validate_ports(slice.ports)


def _validate_endpoints(slice: EndpointSlice) -> Iterator[Cause]:
    if len(slice.endpoints) > MOST_ENDPOINTS:
        yield too_many("endpoints", len(slice.endpoints), MOST_ENDPOINTS)
        return
    for i, endpoint in enumerate(slice.endpoints):
        yield from _validate_endpoint(endpoint, slice.address_type, f"endpoints[{i}]")


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
            yield from all_invalid(where, address, _address_faults(address, family))
    if endpoint.node_name is not None:
        faults = names.dns1123_subdomain(endpoint.node_name)
        yield from all_invalid(f"{path}.nodeName", endpoint.node_name, faults)
    if endpoint.hostname is not None:
        yield from all_invalid(f"{path}.hostname", endpoint.hostname, names.dns1123_label(endpoint.hostname))
    if endpoint.hints is not None:
        yield from _validate_hints(endpoint.hints, f"{path}.hints")


def _validate_domain(domain: str, path: str) -> Iterator[Cause]:
    """The first fault of a name in the DNS."""
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
    """Of zones and nodes an endpoint is for; not of the latter when there are too many of the former."""
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


def _address_faults(address: str, family: str) -> list[str]:
    meant = parsed(address)
    if faults := ip_faults(address):
        return faults
    if meant is None or meant.version != int(family[-1]):
        return [f"must be an {family} address"]
    return unsuitable(meant)


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
        if port.protocol not in PROTOCOLS:
            yield not_supported(f"{path}.protocol", port.protocol, PROTOCOLS)
        if port.port is not None:
            yield from between(f"{path}.port", port.port, 1, MAX_PORT)
        if port.app_protocol is not None:
            faults = names.qualified_name(port.app_protocol)
            yield from all_invalid(f"{path}.appProtocol", port.app_protocol, faults)
