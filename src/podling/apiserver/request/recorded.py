"""What goes to the audit log of a request: how much of it, which the audit policy decides once the sender is
known, and what the steps after that find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import msgspec

from podling.model.scheme import Resource

_encode = msgspec.json.Encoder().encode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


class Level(IntEnum):
    """`level` of audit.k8s.io."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


class Amount(NamedTuple):
    """How much of a request is recorded."""

    level: Level = Level.NONE
    omitted: frozenset[str] = frozenset()
    """The stages that are not."""
    without_managed_fields: bool = False
    only_failures: bool = False
    """Whether a request that succeeds is not recorded at all."""


class Identity(NamedTuple):
    """What an object that was sent says of itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Defaulting(Protocol):
    """The kind of a resource."""

    @property
    def resource(self) -> Resource: ...

    def default(self, obj: Any) -> None: ...


class Recorded(msgspec.Struct):
    """Of one request. Its parts are set when they are known; a request that is refused has none of the later
    ones."""

    amount: Amount
    is_known: bool
    """Whether it is known who sent it; else that stays out of the record."""
    identity: Identity = Identity()
    sent: bytes = b""
    """`requestObject`, from level Request on."""
    kind: Defaulting | None = None
    """The kind of the resource: what was left out of an object is recorded as Kubernetes does."""
    answered: bytes = b""
    """`responseObject`, at level RequestResponse."""
    status: Mapping[str, Any] = {}
    """What `responseStatus` says beside the code, if the answer is a Status."""
    panicked: bool = False
    """Whether something went wrong in this server."""
    goes_on: bool = False
    """Whether its end is yet to be told of, though it is answered."""

    @property
    def has_bodies(self) -> bool:
        return self.amount.level >= Level.REQUEST


def without_managed_fields(data: bytes) -> bytes:
    """An object, or a list of them, as JSON without `metadata.managedFields`."""
    fields = _fields.decode(data)
    if "items" in fields:
        kept = [msgspec.Raw(without_managed_fields(bytes(item))) for item in _items.decode(fields["items"])]
        fields["items"] = msgspec.Raw(_encode(kept))
    elif b'"managedFields"' in data and "metadata" in fields:
        metadata = _fields.decode(fields["metadata"])
        metadata.pop("managedFields", None)
        fields["metadata"] = msgspec.Raw(_encode(metadata))
    return _encode(fields)
