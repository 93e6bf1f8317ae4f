"""ServiceAccounts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.kind import Column, Kind
from podling.apiserver.registry.token_requests import TokenRequests
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.service_account import ServiceAccount


class ServiceAccounts(Kind[ServiceAccount]):
    resource = resource_of(ServiceAccount)
    returns_deleted = True
    subresources = {"token": TokenRequests()}
    columns = (NAME, Column("Secrets", "integer", description="How many secrets its pods may use."), AGE)

    def validate(self, obj: ServiceAccount) -> list[Cause]:
        return metadata.validate(obj.metadata)

    def validate_update(self, new: ServiceAccount, old: ServiceAccount) -> list[Cause]:
        return metadata.validate_update(new.metadata, old.metadata)

    def row(self, obj: ServiceAccount, now: datetime) -> list[Any]:
        return [obj.metadata.name, len(obj.secrets), age(obj.metadata.creation_timestamp, now)]
