"""Services. Their addresses and node ports are given out by admission; here they only stay what they are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import structs

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME, NONE, joined, labels_text, or_none
from podling.apiserver.registry.kind import PROXY_VERBS, Column, Connect, Kind, Part, Subresource
from podling.apiserver.registry.service.carry_over import carry_over, name_all_addresses
from podling.apiserver.registry.service.defaults import default_service
from podling.apiserver.registry.service.load_balancer import validate_load_balancer_status
from podling.apiserver.registry.service.needs import EXTERNAL, LOAD_BALANCER
from podling.apiserver.registry.service.validation import validate_service, validate_service_update
from podling.apiserver.registry.service.warnings import service_warnings
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.service import Service, ServicePort


class _Status(Part[Service]):
    name = "status"

    def prepare_update(self, new: Service, old: Service) -> None:
        new.spec = old.spec

    def validate_update(self, new: Service, old: Service) -> list[Cause]:
        return [
            *metadata.validate_update(new.metadata, old.metadata),
            *validate_load_balancer_status(new, old),
        ]


class Services(Kind[Service]):
    resource = resource_of(Service)
    creates_on_update = True
    returns_deleted = True
    subresources: Mapping[str, Subresource] = {
        "proxy": Connect("proxy", "ServiceProxyOptions", PROXY_VERBS, has_path=True),
        "status": _Status(),
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

    def prepare_update(self, new: Service, old: Service) -> None:
        # What is carried over may change the status, too.
        new.status = structs.replace(old.status)
        carry_over(new, old)

    def validate(self, obj: Service) -> list[Cause]:
        return list(validate_service(obj, None))

    def validate_changed(self, new: Service, old: Service) -> list[Cause]:
        return list(validate_service(new, old))

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
            joined(map(_port, obj.spec.ports)),
            age(obj.metadata.creation_timestamp, now),
            labels_text(obj.spec.selector),
        ]


def _external(service: Service) -> str:
    spec = service.spec
    if spec.type == EXTERNAL:
        return or_none(spec.external_name)
    balancers = [entry.ip or entry.hostname for entry in service.status.load_balancer.ingress]
    if spec.type == LOAD_BALANCER:
        return ",".join([*balancers, *spec.external_ips]) or "<pending>"
    return joined(spec.external_ips) if spec.external_ips else NONE


def _port(port: ServicePort) -> str:
    number = f"{port.port}:{port.node_port}" if port.node_port else str(port.port)
    return f"{number}/{port.protocol}"
