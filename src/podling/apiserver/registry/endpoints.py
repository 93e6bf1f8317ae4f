"""Endpoints: the addresses behind a service."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, joined
from podling.apiserver.registry.container.ports import MAX_PORT
from podling.apiserver.registry.field import all_invalid, between, not_supported, required
from podling.apiserver.registry.ip_addresses import parsed_loosely, unsuitable, validate_ip, warn_of_ip
from podling.apiserver.registry.kind import Column, Kind
from podling.model import names
from podling.model.enums import ENUMS
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.service import EndpointAddress, EndpointPort, EndpointSubset
from podling.model.service import Endpoints as EndpointsObject

SHOWN = 3
PROTOCOLS = ENUMS["EndpointPort", "protocol"]


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

    def validate_update(self, new: EndpointsObject, old: EndpointsObject) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

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
        return [obj.metadata.name, _shown(obj.subsets), age(obj.metadata.creation_timestamp, now)]


def _shown(subsets: list[EndpointSubset]) -> str:
    # Counted, not made: a subset has as many as its addresses times its ports.
    count = sum(len(subset.addresses) * max(len(subset.ports), 1) for subset in subsets)
    addresses = islice((address for subset in subsets for address in _addresses(subset)), SHOWN)
    more = f" + {count - SHOWN} more..." if count > SHOWN else ""
    return joined(addresses) + more


def _addresses(subset: EndpointSubset) -> Iterator[str]:
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
            yield from _validate_port(port, f"{path}.ports[{j}]", named=len(subset.ports) > 1)


def _validate_address(address: EndpointAddress, path: str) -> Iterator[Cause]:
    yield from validate_ip(address.ip, f"{path}.ip")
    if address.hostname:
        yield from all_invalid(f"{path}.hostname", address.hostname, names.dns1123_label(address.hostname))
    if address.node_name is not None:
        faults = names.dns1123_subdomain(address.node_name)
        yield from all_invalid(f"{path}.nodeName", address.node_name, faults)
    if (meant := parsed_loosely(address.ip)) is not None:
        yield from all_invalid(f"{path}.ip", address.ip, unsuitable(meant))


def _validate_port(port: EndpointPort, path: str, *, named: bool) -> Iterator[Cause]:
    if port.name:
        yield from all_invalid(f"{path}.name", port.name, names.dns1123_label(port.name))
    elif named:
        yield required(f"{path}.name")
    yield from between(f"{path}.port", port.port, 1, MAX_PORT)
    if port.protocol not in PROTOCOLS:
        yield not_supported(f"{path}.protocol", port.protocol, PROTOCOLS)
    if port.app_protocol is not None:
        faults = names.qualified_name(port.app_protocol)
        yield from all_invalid(f"{path}.appProtocol", port.app_protocol, faults)
