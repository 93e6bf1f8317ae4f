"""Reads an object from a request's body: JSON, YAML or protobuf, of the kind that the path says, with field
validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import msgspec

from podling.apiserver.protobuf.wire import decode
from podling.apiserver.request.aside import aside
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import body_format
from podling.apiserver.verbs.options import field_validation
from podling.apiserver.verbs.yaml_process import read_any_yaml
from podling.model.codec import json
from podling.model.codec.fields import Object
from podling.model.codec.json import field_faults, strict_message
from podling.model.errors import StatusError, bad_request
from podling.model.scheme import by_kind
from podling.model.types.meta import DeleteOptions
from podling.model.types.pod import Eviction

T = TypeVar("T", bound=Object)

NEXT = "\n  "

IN_EVERY_GROUP = frozenset({DeleteOptions})
"""Sent with the version of what they are about."""
OLDER_VERSIONS: Mapping[type[Object], str] = {Eviction: "policy/v1beta1"}
"""What is served no more but still taken: older clients drain nodes by it."""


class Body(NamedTuple):
    """A body as JSON, and what is wrong with it that JSON cannot show."""

    json: bytes
    faults: list[str]


async def json_body(context: RequestContext, type_: type[Object]) -> Body:
    """Raises StatusError 415, 400."""
    request = context.request
    match body_format(request.headers.get("Content-Type", "")):
        case "application/yaml":
            body = await read_any_yaml(request.body)
            told = [f"yaml: unmarshal errors:{''.join(f'{NEXT}{key}' for key in body.repeated)}"]
            return Body(body.json, told if body.repeated else [])
        case "application/vnd.kubernetes.protobuf":
            return Body(await aside(len(request.body), _of_protobuf, request.body, type_), [])
    return Body(request.body, [])


def _of_protobuf(body: bytes, type_: type[Object]) -> bytes:
    return msgspec.json.encode(decode(body, type_))


async def read_object(context: RequestContext, type_: type[T], options_kind: str) -> T:
    """Raises StatusError 400 for a body that is not this type, or not Strict enough if that is asked."""
    body = await json_body(context, type_)
    return await aside(len(body.json), object_of, context, body, type_, options_kind)


def object_of(context: RequestContext, body: Body, type_: type[T], options_kind: str) -> T:
    """Raises StatusError as `read_object` does."""
    validation = field_validation(context.query, options_kind)
    data, repeated = body
    obj = json.decode_sent(data, type_)
    if obj.kind != type_.KIND or not _is_accepted(obj.api_version, type_):
        raise other_kind(obj, type_)
    faults = repeated + field_faults(data, type_) if validation != "Ignore" else []
    if faults and validation == "Strict":
        raise json.refusal(strict_message(faults), type_)
    context.warnings += faults
    return obj


def _is_accepted(version: str, type_: type[Object]) -> bool:
    known = (type_.API_VERSION, OLDER_VERSIONS.get(type_))
    return version in known or type_ in IN_EVERY_GROUP


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
