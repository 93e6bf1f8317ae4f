"""Endpoints: the addresses behind a service."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, joined
from podling.apiserver.registry.ip_addresses import warn_of_ip
from podling.apiserver.registry.kind import Column, Kind
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.service import Endpoints as EndpointsObject
from podling.model.service import EndpointSubset

SHOWN = 3


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
        return metadata.validate(obj.metadata)

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
    addresses = [address for subset in subsets for address in _addresses(subset)]
    more = f" + {len(addresses) - SHOWN} more..." if len(addresses) > SHOWN else ""
    return joined(addresses[:SHOWN]) + more


def _addresses(subset: EndpointSubset) -> Iterator[str]:
    if not subset.ports:
        yield from (address.ip for address in subset.addresses)
    for port in subset.ports:
        yield from (f"{address.ip}:{port.port}" for address in subset.addresses)
