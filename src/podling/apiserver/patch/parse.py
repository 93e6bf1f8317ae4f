"""Parses a PATCH body into a function from object to object, which is parsed once and applied again after
each conflict. JSON Merge Patch (RFC 7386) is here too: null removes, objects merge, anything else replaces.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from podling.apiserver.patch.json_patch import json_patch
from podling.apiserver.patch.strategic import Field, Lookup, strategic_merge_patch, untyped
from podling.model.codec.fields import FieldInfo, fields_of, is_struct, item_type
from podling.model.codec.json import field_faults
from podling.model.errors import bad_request, unsupported_media_type
from podling.model.types.meta import KubeObject


@functools.cache
def lookup_of(annotation: Any) -> Lookup:
    """Fields by wire name; of unknown ones nothing is known, as of maps whose keys are data."""
    if not is_struct(annotation):
        return untyped
    fields = fields_of(annotation)

    def lookup(name: str) -> Field:
        return _field(fields[name]) if name in fields else Field(untyped)

    return lookup


@functools.cache
def _field(info: FieldInfo) -> Field:
    is_list = typing.get_origin(info.type) is list
    inner = item_type(info.type) if is_list else info.type
    return Field(lookup_of(inner), "merge" in info.merge.strategies, info.merge.key)


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged in, as a new document; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

APPLY = "application/apply-patch+yaml"

MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY)
"""The patch types that are served. The last is no patch but a configuration: `verbs/apply.py` sees to it."""


class _Operation(msgspec.Struct):
    """Of a JSON Patch."""

    op: Any = None
    path: Any = None
    from_: Any = msgspec.field(name="from", default=None)
    value: Any = None


_OPERATIONS, _ANY_FIELDS = list[_Operation], dict[str, Any]

Patch = Callable[[Any], Any]
"""From the object as JSON data to the patched object; changes nothing in place. Raises StatusError."""


def parse_patch(media_type: str, body: bytes, type: type[KubeObject]) -> Patch:
    """The patch of objects of `type`. Raises StatusError: 415 type not served, 400 malformed body."""
    if media_type not in MEDIA_TYPES or media_type == APPLY:
        raise unsupported_media_type(MEDIA_TYPES)
    patch = _decode(body)
    if media_type != JSON_PATCH and not isinstance(patch, dict):
        raise bad_request("a patch of this type is a JSON object")
    return _bounded(_patcher(media_type, patch, type))


def patch_faults(media_type: str, body: bytes) -> list[str]:
    """What is unknown or said twice in the patch itself; what it makes of an object is looked at apart."""
    if media_type == JSON_PATCH:
        return [f"json patch {fault}" for fault in field_faults(body, _OPERATIONS)]
    return field_faults(body, _ANY_FIELDS)


def _patcher(media_type: str, patch: Any, type: type[KubeObject]) -> Patch:
    match media_type:
        case "application/json-patch+json":
            return lambda document: json_patch(document, patch)
        case "application/merge-patch+json":
            return lambda document: merge_patch(document, patch)
        case _:
            return lambda document: strategic_merge_patch(document, patch, lookup_of(type))


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error


def _bounded(patch: Patch) -> Patch:
    def apply(document: Any) -> Any:
        try:
            patched = patch(document)
        except RecursionError as error:
            raise bad_request("the patch exceeds the maximum depth") from error
        if not isinstance(patched, dict):
            raise bad_request("a patched object is a JSON object")
        return patched

    return apply
