"""The options of a request, from its query, and the rules on them.

As in Kubernetes, the first value of each counts and unknown names are ignored. Those of a list or watch may
contradict each other, and name the revision that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from podling.apiserver.request.request import Query, is_true, number
from podling.apiserver.rules.field import not_supported, required
from podling.apiserver.rules.metadata import manager_faults
from podling.model.codec.fields import fields_of
from podling.model.errors import Cause, StatusError, bad_request, invalid
from podling.model.integers import parse_uint
from podling.model.types.meta import ListOptions

T = TypeVar("T", bound=msgspec.Struct)

FIELD_VALIDATION = ("Ignore", "Strict", "Warn")
EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"


def options(query: Query, type_: type[T]) -> T:
    """The options `type` from the query. Raises StatusError 400 for a malformed number."""
    fields, found = fields_of(type_), dict[str, Any]()
    for name, values in query.items():
        if (field := fields.get(name)) is None:
            continue
        if field.type is bool:
            found[field.attribute] = is_true(values[0])
        elif field.type is int:
            found[field.attribute] = number(values[0])
        elif item := field.shape.item:
            numbers = item.type is int
            found[field.attribute] = [number(value) for value in values] if numbers else list(values)
        elif field.shape.struct is None:  # A query has no form for the others.
            found[field.attribute] = values[0]
    return type_(**found)


def check_write(query: Query, options_kind: str, *, applies: bool | None = None) -> bool:
    """Whether a write is a dry run. `applies`: for a patch, whether it is a configuration to apply. Raises
    StatusError 422 with every fault of the options of this kind."""
    if not query and not applies:
        return False
    faults = []
    if applies and not field_manager(query):
        faults.append(required("fieldManager", "is required for apply patch"))
    if applies is False and "force" in query:
        faults.append(_forbidden("force", "may not be specified for non-apply patch"))
    faults += manager_faults("fieldManager", field_manager(query))
    values = query.get("dryRun", ())
    faults += dry_run_faults(values)
    if (validation := field_validation(query)) not in FIELD_VALIDATION:
        faults.append(_unsupported("fieldValidation", validation, "", *FIELD_VALIDATION))
    if faults:
        raise _refused(options_kind, *faults)
    return bool(values)


def dry_run_faults(values: Sequence[str]) -> list[Cause]:
    """Any value but All is one."""
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


def field_validation(query: Query) -> str:
    """What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict."""
    return query.get("fieldValidation", ("Warn",))[0] or "Warn"


def field_manager(query: Query) -> str:
    """The name that a write is recorded for in `managedFields`; empty if none is given."""
    return query.get("fieldManager", ("",))[0]


def list_options(query: Query) -> ListOptions:
    """The options of a list or of the deletion of one. Raises StatusError 400, 422."""
    wanted = options(query, ListOptions)
    check_list(wanted)
    return wanted


def check_list(wanted: ListOptions) -> None:
    """ValidateListOptions. Raises StatusError 422, 400."""
    match, where, faults = wanted.resource_version_match, "resourceVersionMatch", []
    if match and not wanted.resource_version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        faults.append(_forbidden(where, why))
    if match and wanted.continue_:
        faults.append(_forbidden(where, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("", EXACT, NOT_OLDER_THAN):
        faults.append(_unsupported(where, match, EXACT, NOT_OLDER_THAN, ""))
    elif match == EXACT and wanted.resource_version == "0":
        faults.append(_forbidden(where, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if wanted.send_initial_events is not None:
        faults.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if faults:
        raise _refused("ListOptions", *faults)
    if wanted.continue_ and wanted.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def check_watch(wanted: ListOptions) -> None:
    """ValidateListOptions of a watch. Raises StatusError 422."""
    match, faults = wanted.resource_version_match, []
    if wanted.send_initial_events is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        faults.append(_forbidden("resourceVersionMatch", why))
    if wanted.send_initial_events is not None and match != NOT_OLDER_THAN:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        faults.append(_forbidden("resourceVersionMatch", why))
    if match not in ("", NOT_OLDER_THAN):
        faults.append(_unsupported("resourceVersionMatch", match, NOT_OLDER_THAN))
    if wanted.continue_ and match:
        why = "resourceVersionMatch is forbidden when continue is provided"
        faults.append(_forbidden("resourceVersionMatch", why))
    if faults:
        raise _refused("ListOptions", *faults)


def is_exact(wanted: ListOptions) -> bool:
    """Whether to list exactly at `resourceVersion`: a list in pages is, unless `resourceVersionMatch`
    differs."""
    match = wanted.resource_version_match
    return match == EXACT or (not match and wanted.limit > 0)


def limit_of(wanted: ListOptions, *, cached: bool) -> int:
    """How many objects to list at most; 0 for all. `limit` is ignored for `resourceVersion=0`, as in
    Kubernetes, which answers such a list from its cache. `cached`: whether Kubernetes has one of the kind."""
    in_one = cached and wanted.resource_version == "0" and not wanted.continue_
    return 0 if in_one else max(0, wanted.limit)


def revision(text: str) -> int:
    """The revision a resourceVersion names, 0 for none. Raises StatusError 400."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        message = f'invalid resource version: resourceVersion: Invalid value: "{text}": {error}'
        raise bad_request(message) from error


def _unsupported(field: str, value: str, *supported: str) -> Cause:
    listed = ", ".join(f'"{choice}"' for choice in supported)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def _forbidden(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _refused(kind: str, *faults: Cause) -> StatusError:
    """422 for options of this kind."""
    return invalid(kind, "", faults, "meta.k8s.io")
