"""ConfigMaps and Secrets: their size limit, their immutability, and what each type of Secret must contain."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from podling.apiserver.kinds.columns import AGE, NAME, age
from podling.apiserver.kinds.kind import Column, Kind
from podling.apiserver.rules import metadata
from podling.apiserver.rules.field import IMMUTABLE, all_invalid, forbidden, invalid, required, too_long
from podling.model import names
from podling.model.errors import Cause
from podling.model.scheme import resource_of
from podling.model.types.core import ConfigMap, Secret

_WHERE = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}
_TYPES = {list: "array", str: "string", bool: "bool", float: "number"}

SIZE_LIMIT = 1024 * 1024
EVERYTHING = "[]"
"""The path that Kubernetes gives to faults of the object as a whole."""
SEALED = "field is immutable when `immutable` is set"

OPAQUE = "Opaque"
TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"
SSH_AUTH = "kubernetes.io/ssh-auth"
TLS = "kubernetes.io/tls"
TLS_KEYS = ("tls.crt", "tls.key")

REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    SSH_AUTH: ("ssh-privatekey",),
    TLS: TLS_KEYS,
}
JSON_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")
BASIC_AUTH = "kubernetes.io/basic-auth"


def fault_of_json_object(data: bytes) -> str:
    """Go's words for why a text is not a JSON object; empty if it is one, or null, which Go reads as an empty
    one."""
    text = data.decode(errors="replace")
    try:
        # A number is read as one that fits, however long it is.
        found: Any = json.loads(text, parse_int=float)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg not in _WHERE:
            return "unexpected end of JSON input"
        return f"invalid character {text[error.pos]!r} {_WHERE[error.msg]}"
    except RecursionError:
        return "exceeded max depth"
    if found is None or isinstance(found, dict):
        return ""
    return f"json: cannot unmarshal {_TYPES[type(found)]} into Go value of type map[string]interface {{}}"


class ConfigMaps(Kind[ConfigMap]):
    resource = resource_of(ConfigMap)
    tells_changes_first = True
    columns = (NAME, Column("Data", description="How many keys it has."), AGE)

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


class Secrets(Kind[Secret]):
    resource = resource_of(Secret)
    tells_changes_first = True
    columns = (
        NAME,
        Column("Type", description="What the secret is for, and so which keys it has."),
        Column("Data", description="How many keys it has."),
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

    def warnings(self, obj: Secret) -> list[str]:
        if obj.type != TLS:
            return []
        from podling.apiserver.rules.key_pairs import pair_fault

        fault = pair_fault(*(obj.data[key] for key in TLS_KEYS))
        return [fault] if fault else []

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
