"""Reads an object from a request's body: JSON, YAML or protobuf, of the kind that the path says, with field
validation. Duplicate owner references of the object are removed, with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from podling.apiserver.protobuf.wire import decode
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import body_format
from podling.apiserver.request.recorded import Identity, without_managed_fields
from podling.apiserver.verbs.options import field_validation
from podling.apiserver.verbs.yaml_body import read_any_yaml, unmarshal_errors
from podling.model.codec import json
from podling.model.codec.fields import Object
from podling.model.codec.strict import field_faults, may_repeat_keys, strict_message
from podling.model.errors import StatusError, bad_request
from podling.model.scheme import by_kind
from podling.model.types.meta import DeleteOptions, KubeObject, ManagedFieldsEntry
from podling.model.types.pod import Eviction
from podling.process.waits import aside, give_way

T = TypeVar("T", bound=Object)

INTERNAL = "meta.k8s.io/__internal"
"""The version by which Kubernetes' audit log calls DeleteOptions."""
IN_EVERY_GROUP = frozenset({DeleteOptions})
"""Sent with the version of what they are about."""
OLDER_VERSIONS: Mapping[type[Object], str] = {Eviction: "policy/v1beta1"}
"""What is served no more but still taken: older clients drain nodes by it."""


class Body(NamedTuple):
    """A body as JSON, and what is wrong with it that JSON cannot show."""

    json: bytes
    repeated: list[str]
    has_repeats: bool | None
    """Whether the JSON may have a key twice; None if nobody knows yet."""


async def json_body(context: RequestContext, type_: type[Object]) -> Body:
    """Raises StatusError 415, 400."""
    request = context.request
    match body_format(request.headers.get("Content-Type", "")):
        case "application/yaml":
            body = await read_any_yaml(request.body)
            return Body(*body, False)
        case "application/vnd.kubernetes.protobuf":
            encoded = await aside(len(request.body), lambda: msgspec.json.encode(decode(request.body, type_)))
            return Body(encoded, [], False)
    return Body(request.body, [], None)


async def read_object(context: RequestContext, type_: type[T]) -> T:
    """Raises StatusError 400 for a body that is not this type, or not Strict enough if that is asked."""
    body = await json_body(context, type_)
    return await aside(len(body.json), object_of, context, body, type_)


def object_of(context: RequestContext, body: Body, type_: type[T]) -> T:
    """Raises StatusError as `read_object` does."""
    # What options do not know is never told of.
    validation = "Ignore" if type_ is DeleteOptions else field_validation(context.query)
    data, repeated, has_repeats = body
    give_way()
    obj = json.decode_sent(data, type_)
    versions = (type_.API_VERSION, OLDER_VERSIONS.get(type_))
    if obj.kind != type_.KIND or (obj.api_version not in versions and type_ not in IN_EVERY_GROUP):
        raise other_kind(obj, type_)
    if type_ in IN_EVERY_GROUP and not _may_be_version(obj.api_version):
        raise bad_request(f"unexpected GroupVersion string: {obj.api_version}")
    if validation != "Ignore":
        if has_repeats is None:
            give_way()
            plain = json.decode_data(data)
            give_way()
            has_repeats = may_repeat_keys(data, plain)
        give_way()
        faults = field_faults(data, type_, has_repeats=has_repeats)
        if validation == "Strict" and (repeated or faults):
            told = [unmarshal_errors(repeated)] if repeated else []
            raise json.refusal(strict_message(told + faults), type_)
        context.warnings += repeated + faults
    record(context, obj)
    return obj


def _may_be_version(text: str) -> bool:
    return text.count("/") <= 1 and (text == "/" or not text.endswith("/"))


def note_no_managers(obj: KubeObject, data: bytes) -> None:
    """An empty list of those who manage fields says, as one with an empty entry does, that nobody does: in
    `obj`, which was made of the JSON `data`, it is one that is left out."""
    if not obj.metadata.managed_fields and b'"managedFields"' in data:
        metadata = json.decode_data(data).get("metadata") or {}
        obj.metadata.managed_fields = [ManagedFieldsEntry()] if metadata.get("managedFields") == [] else []


def record(context: RequestContext, obj: Object) -> None:
    """What was sent, for the audit log: at level Request with defaults, as Kubernetes tells it."""
    recorded = context.recorded
    if recorded is None or recorded.sent:
        return
    if isinstance(obj, KubeObject):
        meta = obj.metadata
        recorded.identity = Identity(meta.name, meta.namespace, meta.uid, meta.resource_version)
    if recorded.has_bodies:
        data = json.encode(obj)
        kind, type_ = recorded.kind, type(obj)
        if type_ is DeleteOptions:
            data = json.encode(msgspec.structs.replace(obj, api_version=INTERNAL))
        elif kind is not None and type_ is kind.resource.type:
            copy = json.decode(data, type_)
            kind.default(copy)
            data = json.encode(copy)
        recorded.sent = without_managed_fields(data) if recorded.amount.without_managed_fields else data


def record_patch(context: RequestContext, body: bytes) -> None:
    """A patch, for the audit log, if it is JSON: Kubernetes records nothing at all of the request if not."""
    recorded = context.recorded
    if recorded is not None and recorded.has_bodies:
        with suppress(msgspec.DecodeError):
            recorded.sent = msgspec.json.format(body, indent=-1)


def other_kind(obj: Object, type_: type[Object]) -> StatusError:
    """400 for an object that was sent to the wrong place, in the words of Kubernetes' decoder."""
    version = obj.api_version.rpartition("/")[2]
    if obj.kind == type_.KIND and by_kind(obj.api_version, obj.kind) is not None:
        return bad_request(
            f"the API version in the data ({obj.api_version}) does not match "
            f"the expected API version ({type_.API_VERSION})"
        )
    why = f"converting ({version}.{obj.kind}) to ({type_.KIND}): unknown conversion"
    if by_kind(obj.api_version, obj.kind) is None:
        why = f'no kind "{obj.kind}" is registered for version "{obj.api_version}"'
    return bad_request(f'{obj.kind} in version "{version}" cannot be handled as a {type_.KIND}: {why}')
