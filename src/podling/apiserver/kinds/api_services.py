"""APIServices: who serves which group and version of the API.

Without a service the API server does, which is always there. podling makes one of these for each group and
version that it has, and says of the others whether they are there (`controllers/api_services.py`); their
requests are passed on (`apiserver/aggregation/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Controlled, Status
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import invalid, not_supported, required
from podling.model import names
from podling.model.errors import Cause
from podling.model.rules.api_services import LOCAL, set_condition
from podling.model.scheme import resource_of
from podling.model.types.apiregistration import (
    APIService,
    APIServiceSpec,
    APIServiceStatus,
)

PORT = 443
STATUSES = ("True", "False", "Unknown")
LARGEST_GROUP_PRIORITY, LARGEST_VERSION_PRIORITY = 20_000, 1_000


def _validate_status(new: APIService, old: APIService) -> Iterator[Cause]:
    for i, one in enumerate(new.status.conditions):
        if one.status not in STATUSES:
            yield not_supported(f"status.conditions[{i}].status", one.status, STATUSES)


class APIServices(Controlled[APIService]):
    resource = resource_of(APIService)
    standard_finalizers = False
    has_generation = False
    updates_unconditionally = False
    subresources = {
        "status": Status(_validate_status, keeps_metadata=True, keeps_unset=False, has_tables=False)
    }
    columns = (
        NAME,
        Column("Service", description="The service that serves it, or Local."),
        Column("Available", description="Whether it is served."),
        AGE,
    )

    def default(self, obj: APIService) -> None:
        service = obj.spec.service
        if service is not None and service.port is None:
            service.port = PORT

    def prepare_create(self, obj: APIService, now: datetime) -> None:
        obj.status = APIServiceStatus()
        if obj.spec.service is None:
            set_condition(obj.status, LOCAL, now)

    def validate(self, obj: APIService) -> list[Cause]:
        wanted = f"{obj.spec.version}.{obj.spec.group}"

        def name_rule(name: str) -> list[str]:
            if faults := names.path_segment(name):
                return faults
            return [] if name == wanted else [f'must be `spec.version+"."+spec.group`: "{wanted}"']

        causes = metadata.validate(
            obj.metadata, namespaced=False, name_rule=name_rule, prefix="whole", standard=False
        )
        return [*causes, *_validate_spec(obj.spec)]

    def row(self, obj: APIService, now: datetime) -> list[Any]:
        service = obj.spec.service
        found = next((one for one in obj.status.conditions if one.type == "Available"), None)
        available = found.status if found is not None else "Unknown"
        if found is not None and found.status != "True":
            available = f"{found.status} ({found.reason})"
        return [
            obj.metadata.name,
            "Local" if service is None else f"{service.namespace}/{service.name}",
            available,
            age(obj.metadata.creation_timestamp, now),
        ]


def _validate_spec(spec: APIServiceSpec) -> Iterator[Cause]:
    if not spec.group and spec.version != "v1":
        why = "only v1 may have an empty group and it better be legacy kube"
        yield required("spec.group", why)
    for fault in names.dns1123_subdomain(spec.group) if spec.group else ():
        yield invalid("spec.group", spec.group, fault)
    for fault in names.dns1035_label(spec.version):
        yield invalid("spec.version", spec.version, fault)
    for name, value, most in (
        ("groupPriorityMinimum", spec.group_priority_minimum, LARGEST_GROUP_PRIORITY),
        ("versionPriority", spec.version_priority, LARGEST_VERSION_PRIORITY),
    ):
        if not 0 < value <= most:
            yield invalid(f"spec.{name}", value, f"must be positive and less than {most}")
    service = spec.service
    if service is None:
        if spec.ca_bundle:
            why = "local APIServices may not have a caBundle"
            yield invalid("spec.caBundle", f"{len(spec.ca_bundle)} bytes", why)
        if spec.insecure_skip_tls_verify:
            why = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid("spec.insecureSkipTLSVerify", True, why)
        return
    if not service.namespace:
        yield required("spec.service.namespace")
    if not service.name:
        yield required("spec.service.name")
    if service.port is not None and (faults := names.port_number(service.port)):
        yield invalid("spec.service.port", service.port, f"port is not valid: {','.join(faults)}")
    if spec.insecure_skip_tls_verify and spec.ca_bundle:
        yield invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")
