"""The body of a PATCH as a function that patches an object, and JSON Merge Patch (RFC 7386).

A body is parsed once. The function is applied again, to the newer object, after each conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.patch.json_patch import json_patch
from podling.apiserver.patch.strategic import lookup_of, strategic_merge_patch
from podling.model.codec.fields import shape_of
from podling.model.codec.strict import field_faults, may_repeat_keys
from podling.model.errors import GenericError, bad_request
from podling.model.types.meta import KubeObject

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY)
"""The media types of a PATCH. The body of the last is a configuration, which `verbs/apply.py` reads."""
NOTHING: Mapping[str, Any] = {JSON_PATCH: [], STRATEGIC_MERGE_PATCH: {}}
"""What `null` is read as."""

Patch = Callable[[Any], Any]
"""From an object as plain JSON data to the patched one, a new document. Raises StatusError 400 or 422."""


class ParsedPatch(NamedTuple):
    data: Any
    """The body as plain data."""
    apply: Patch


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged in, as a new document (RFC 7386): a null removes a member, objects are
    merged, any other value replaces. Objects in a list lose their nulls, too, unless the list replaces an
    object."""
    if isinstance(patch, list) and not isinstance(target, dict):
        return [_pruned(each) for each in patch]
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _pruned(value: Any) -> Any:
    """An element of a list keeps its place, though it is null."""
    return merge_patch(None, value) if isinstance(value, dict | list) else value


class _Operation(msgspec.Struct):
    """The members of an operation of a JSON Patch, for `patch_faults`."""

    op: Any = None
    path: Any = None
    from_: Any = msgspec.field(name="from", default=None)
    value: Any = None


_OPERATIONS, _ANY_FIELDS = list[_Operation], dict[str, Any]


def unsupported() -> GenericError:
    return GenericError(415, "UnsupportedMediaType", "415: Unsupported Media Type")


def parse_patch(media_type: str, body: bytes, type: type[KubeObject]) -> ParsedPatch:
    """The patch in `body`, for objects of `type`. Raises StatusError: 415 for another media type, 400 for a
    malformed body."""
    if media_type not in MEDIA_TYPES or media_type == APPLY:
        raise unsupported()
    try:
        patch = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if patch is None and media_type != MERGE_PATCH:
        patch = NOTHING[media_type]
    if media_type != JSON_PATCH and not isinstance(patch, dict):
        raise bad_request("a patch of this type is a JSON object")

    def apply(document: Any) -> Any:
        try:
            if media_type == STRATEGIC_MERGE_PATCH:
                patched = strategic_merge_patch(document, patch, lookup_of(shape_of(type)))
                # Read as what it was, whatever the patch says, if that is a word.
                own = {"kind": type.KIND, "apiVersion": type.API_VERSION}
                words = (name for name in own if isinstance(patched.get(name), str | None))
                patched = {**patched, **{name: own[name] for name in words}}
            else:
                patched = (json_patch if media_type == JSON_PATCH else merge_patch)(document, patch)
        except RecursionError as error:
            raise bad_request("the patch exceeds the maximum depth") from error
        return patched

    return ParsedPatch(patch, apply)


def patch_faults(media_type: str, body: bytes, data: Any) -> list[str]:
    """Unknown members of the operations of a JSON Patch, and duplicate members of any patch, for field
    validation. `data`: the body as plain data. The patched object is validated by itself."""
    has_repeats = may_repeat_keys(body, data)
    if media_type == JSON_PATCH:
        faults = field_faults(body, _OPERATIONS, has_repeats=has_repeats)
        return [f"json patch {fault}" for fault in faults]
    return field_faults(body, _ANY_FIELDS, has_repeats=has_repeats)
