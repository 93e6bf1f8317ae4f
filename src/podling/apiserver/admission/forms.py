"""The forms in which a write is shown to who is asked about it from outside of the server.

A webhook or policy names resources by group and version. A request has the form of the version that it is
of; the same object may have other forms, such as autoscaling/v1 and v2, and a subresource shows a part of it,
such as the `Scale` of a Deployment. What they change is written back into the object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.kinds.kind import (
    Connect,
    Kind,
    Members,
    Posted,
    Subresource,
    View,
    kept_as,
)
from podling.model.codec import json
from podling.model.errors import StatusError, bad_request
from podling.model.scheme import Resource
from podling.model.types.meta import KubeObject

SCHEME = "k8s/pkg/api/legacyscheme/scheme.go:30"
"""How Kubernetes calls what it knows of objects, in the message to who changes one into something else."""


class Form(NamedTuple):
    """`group`, `version` and `plural` are those of the resource; `api_version` and `kind` those of the object
    in this form, which differ for the body of a subresource."""

    group: str
    version: str
    plural: str
    api_version: str
    kind: str
    read: Callable[[Any], Any]
    """From what is written to the object in this form, or its plain data. May share parts."""
    write: Callable[[Any, bytes], None]
    """Changes what is written to what JSON of this form says, with defaults. Raises StatusError."""

    def encoded(self, obj: Any) -> bytes:
        seen = self.read(obj)
        encoded = json.encode(seen)
        return json.with_nulls(encoded, type(seen)) if isinstance(seen, KubeObject) else encoded


def forms_of(kind: Kind[Any], others: Sequence[Kind[Any]], subresource: Subresource | None) -> list[Form]:
    """The form of requests to `kind` or its subresource, and those of the `others` that are stored as the
    same."""
    if isinstance(subresource, Connect):
        return options_form(kind.resource, subresource)
    # The entry of a list is written by a change of the whole object.
    if isinstance(subresource, Posted) and not isinstance(subresource, Members):
        return [posted_form(kind.resource, subresource)]
    same = [one for one in others if one is not kind and kept_as(one) is kept_as(kind)]
    return [_viewed(one) if isinstance(one, View) else _whole(one) for one in (kind, *same)]


def options_form(resource: Resource, connect: Connect) -> list[Form]:
    """What is shown of a connection are its options, as plain data."""
    if connect.is_read:
        return []

    def write(options: dict[str, Any], data: bytes) -> None:
        changed = json.decode_data(data)
        options.clear()
        options.update(changed)

    group, version, plural = resource.group, resource.version, resource.plural
    return [Form(group, version, plural, "v1", connect.options, _same, write)]


def _whole(kind: Kind[Any]) -> Form:
    resource = kind.resource

    def write(obj: Any, data: bytes) -> None:
        changed = _decoded(data, resource.type)
        kind.default(changed)
        become(obj, changed)

    return _of(resource, resource.type, _same, write)


def _viewed(view: View[Any, Any]) -> Form:
    resource = view.resource

    def write(obj: Any, data: bytes) -> None:
        changed = _decoded(data, resource.type)
        view.default(changed)
        become(obj, view.to_stored(changed))

    return _of(resource, resource.type, view.from_stored, write)


def posted_form(resource: Resource, posted: Posted[Any]) -> Form:
    def write(obj: Any, data: bytes) -> None:
        become(obj, _decoded(data, posted.body))

    return _of(resource, posted.body, _same, write)


def _decoded(data: bytes, type_: type[KubeObject]) -> Any:
    """Raises StatusError 400, 500."""
    obj = json.decode_sent(data, type_)
    obj.kind, obj.api_version = obj.kind or type_.KIND, obj.api_version or type_.API_VERSION
    if obj.kind != type_.KIND:
        group, _, version = type_.API_VERSION.rpartition("/")
        ours = f"{group.partition('.')[0] or 'core'}.{type_.KIND}"
        message = f"converting ({version}.{obj.kind}) to ({ours}): unknown conversion"
        raise StatusError(500, "", message)
    if obj.api_version != type_.API_VERSION:
        raise bad_request(
            f'no kind "{obj.kind}" is registered for version "{obj.api_version}" in scheme "{SCHEME}"'
        )
    return obj


def _of(
    resource: Resource,
    type_: type[KubeObject],
    read: Callable[[Any], Any],
    write: Callable[[Any, bytes], None],
) -> Form:
    return Form(resource.group, resource.version, resource.plural, type_.API_VERSION, type_.KIND, read, write)


def _same(obj: Any) -> Any:
    return obj


def become(obj: msgspec.Struct, other: msgspec.Struct) -> None:
    """Give `obj` all that `other`, of the same type, has."""
    for name in obj.__struct_fields__:
        setattr(obj, name, getattr(other, name))
