"""Secrets: what each type must contain, and text written in `stringData` kept as data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podling.apiserver.registry import metadata
from podling.apiserver.registry.age import age
from podling.apiserver.registry.columns import AGE, NAME
from podling.apiserver.registry.config_maps import SEALED, SIZE_LIMIT
from podling.apiserver.registry.field import (
    IMMUTABLE,
    all_invalid,
    forbidden,
    invalid,
    required,
    too_long,
)
from podling.apiserver.registry.json_object import fault_of_json_object
from podling.apiserver.registry.kind import Column, Kind
from podling.model import names
from podling.model.config import Secret
from podling.model.errors import Cause
from podling.model.scheme import resource_of

OPAQUE = "Opaque"
TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
SSH_AUTH = "kubernetes.io/ssh-auth"

REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    SSH_AUTH: ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
JSON_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
BASIC_AUTH = "kubernetes.io/basic-auth"


class Secrets(Kind[Secret]):
    resource = resource_of(Secret)
    columns = (
        NAME,
        Column("Type", description="What the secret is for, and so which keys it has."),
        Column("Data", "integer", description="How many keys it has."),
        AGE,
    )
    selectable_fields = {"type": lambda secret: secret.type}

    def default(self, obj: Secret) -> None:
        obj.type = obj.type or OPAQUE
        if obj.string_data:
            obj.data = {**obj.data, **{key: text.encode() for key, text in obj.string_data.items()}}
            obj.string_data = {}

    def validate(self, obj: Secret) -> list[Cause]:
        causes = metadata.validate(obj.metadata)
        for key in obj.data:
            causes += all_invalid(f"data[{key}]", key, names.config_key(key))
        if sum(map(len, obj.data.values())) > SIZE_LIMIT:
            causes.append(too_long("data", SIZE_LIMIT))
        return causes + _validate_type(obj)

    def validate_update(self, new: Secret, old: Secret) -> list[Cause]:
        causes = metadata.validate_update(new.metadata, old.metadata)
        if new.type != old.type:
            causes.append(invalid("type", new.type, IMMUTABLE))
        if old.immutable:
            if not new.immutable:
                causes.append(forbidden("immutable", SEALED))
            if new.data != old.data:
                causes.append(forbidden("data", SEALED))
        return causes

    def row(self, obj: Secret, now: datetime) -> list[Any]:
        return [obj.metadata.name, obj.type, len(obj.data), age(obj.metadata.creation_timestamp, now)]


def _validate_type(secret: Secret) -> list[Cause]:
    if secret.type == TOKEN and not secret.metadata.annotations.get(ACCOUNT_ANNOTATION):
        return [required(f"metadata.annotations[{ACCOUNT_ANNOTATION}]")]
    if secret.type == BASIC_AUTH and not secret.data.keys() & {"username", "password"}:
        return [required("data[username]"), required("data[password]")]
    causes = []
    for key in REQUIRED_KEYS.get(secret.type, ()):
        if key not in secret.data or (secret.type == SSH_AUTH and not secret.data[key]):
            causes.append(required(f"data[{key}]"))
        elif secret.type in JSON_TYPES and (why := fault_of_json_object(secret.data[key])):
            causes.append(invalid(f"data[{key}]", "<secret contents redacted>", why))
    return causes
