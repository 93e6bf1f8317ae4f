"""The rules on the options of a list or watch, as Kubernetes has them: which contradict each other, and which
revision they ask for.

A client may ask for a revision that this server has not reached, because it had it from another server. The
request then waits for it (`until_fresh`), and if it does not come in time the client is told to try again, as
in Kubernetes.
"""

from __future__ import annotations

import asyncio

from podling.apiserver.verbs.options import LONGEST
from podling.model.errors import Cause, StatusError, bad_request, invalid
from podling.model.types.meta import ListOptions
from podling.watch.cache import ResourceCache

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"


def check_list(wanted: ListOptions) -> None:
    """Raises StatusError 422, 400."""
    faults = _match_faults(wanted)
    if wanted.send_initial_events is not None:
        faults.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    _refuse_if(faults)
    if wanted.continue_ and wanted.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def check_watch(wanted: ListOptions) -> None:
    """Raises StatusError 422."""
    match, faults = wanted.resource_version_match, []
    if wanted.send_initial_events is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        faults.append(_forbidden("resourceVersionMatch", why))
    if wanted.send_initial_events is not None and match != NOT_OLDER_THAN:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        faults.append(_forbidden("resourceVersionMatch", why))
    _refuse_if(faults)


def is_exact(wanted: ListOptions) -> bool:
    """Whether to list exactly at `resourceVersion`: a list in pages is, unless `resourceVersionMatch`
    differs."""
    match = wanted.resource_version_match
    return match == EXACT or bool(not match and wanted.limit)


def limit_of(wanted: ListOptions) -> int:
    """How many objects to list at most; 0 for all. `limit` is ignored for `resourceVersion=0`, as in
    Kubernetes, which answers such a list from its cache."""
    in_one = wanted.resource_version == "0" and not wanted.continue_
    return 0 if in_one else wanted.limit


def revision(text: str) -> int:
    """The revision a resourceVersion names, 0 for none. Raises StatusError 400."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise _no_revision(text, "invalid syntax")
    if len(text) > LONGEST or int(text) >= 1 << 64:
        raise _no_revision(text, "value out of range")
    return int(text)


def _no_revision(text: str, why: str) -> StatusError:
    parse = f'strconv.ParseUint: parsing "{text}": {why}'
    return bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {parse}')


def _match_faults(wanted: ListOptions) -> list[Cause]:
    match, where = wanted.resource_version_match, "resourceVersionMatch"
    if not match:
        return []
    if wanted.continue_:
        return [_forbidden(where, "resourceVersionMatch is forbidden when continue is provided")]
    if not wanted.resource_version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        return [_forbidden(where, why)]
    if match not in (EXACT, NOT_OLDER_THAN):
        message = f'Unsupported value: "{match}": supported values: "{EXACT}", "{NOT_OLDER_THAN}", ""'
        return [Cause("FieldValueNotSupported", message, where)]
    if match == EXACT and wanted.resource_version == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        return [_forbidden(where, why)]
    return []


def _forbidden(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _refuse_if(faults: list[Cause]) -> None:
    if faults:
        raise invalid("ListOptions", "", faults, "meta.k8s.io")


LONGEST_WAIT = 3.0


async def until_fresh(cache: ResourceCache, revision: int) -> None:
    """Wait until `cache` has reached `revision`. Raises StatusError 504 after LONGEST_WAIT."""
    if revision <= cache.revision:
        return
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            await cache.reached(revision)
    except TimeoutError:
        raise too_large(revision, cache.revision) from None


def too_large(wanted: int, current: int) -> StatusError:
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return StatusError(504, "Timeout", message, causes=[cause], retry_after_seconds=1)
