"""ConfigMaps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.field import all_invalid, forbidden, invalid, too_long
from podling.apiserver.registry.kind import Column, Kind
from podling.model import names
from podling.model.config import ConfigMap
from podling.model.errors import Cause
from podling.model.scheme import resource_of

SIZE_LIMIT = 1024 * 1024
EVERYTHING = "[]"
"""How Kubernetes writes the path of nothing in particular."""
SEALED = "field is immutable when `immutable` is set"


class ConfigMaps(Kind[ConfigMap]):
    resource = resource_of(ConfigMap)
    columns = (NAME, Column("Data", "integer", description="How many keys it has."), AGE)

    def validate(self, obj: ConfigMap) -> list[Cause]:
        causes = metadata.validate(obj.metadata)
        for key in obj.data:
            causes += all_invalid(f"data[{key}]", key, names.config_key(key))
            if key in obj.binary_data:
                causes.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in obj.binary_data:
            causes += all_invalid(f"binaryData[{key}]", key, names.config_key(key))
        size = sum(len(value.encode()) for value in obj.data.values())
        size += sum(map(len, obj.binary_data.values()))
        if size > SIZE_LIMIT:
            causes.append(too_long(EVERYTHING, SIZE_LIMIT))
        return causes

    def validate_update(self, new: ConfigMap, old: ConfigMap) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if old.immutable:
            if not new.immutable:
                causes.append(forbidden("immutable", SEALED))
            if new.data != old.data:
                causes.append(forbidden("data", SEALED))
            if new.binary_data != old.binary_data:
                causes.append(forbidden("binaryData", SEALED))
        return causes

    def row(self, obj: ConfigMap, now: datetime) -> list[Any]:
        count = len(obj.data) + len(obj.binary_data)
        return [obj.metadata.name, count, age(obj.metadata.creation_timestamp, now)]
