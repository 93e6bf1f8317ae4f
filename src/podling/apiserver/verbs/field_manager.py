"""The field manager a write is recorded for: the query's `fieldManager`, or else the program that sent it.

`apply/` decides what is recorded. This file only tells it who writes and which part of the object. Duplicate
owner references are removed here too, with a warning, since every write needs that after its body was read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podling.apiserver.apply.apply import Track, by_update
from podling.apiserver.apply.managers import Writer
from podling.apiserver.request.context import RequestContext
from podling.apiserver.verbs.scope import Scope
from podling.model.errors import Cause, invalid
from podling.model.remembered import remembered
from podling.model.types.meta import OwnerReference

REPEATED = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
    "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
REPEATED_AFTER_ADMISSION = REPEATED.replace("entries;", "entries after mutating admission happens;")
"""The warning to a patch: Kubernetes checks a patched object only after admission, and says so."""


def drop_repeated_owners(context: RequestContext, obj: Any, complaint: str = REPEATED) -> None:
    kept: dict[tuple[Any, ...], OwnerReference] = {}
    repeated = [
        owner.uid
        for owner in obj.metadata.owner_references
        if kept.setdefault(msgspec.structs.astuple(owner), owner) is not owner
    ]
    if not repeated:
        return
    obj.metadata.owner_references = list(kept.values())
    warning = complaint + ", ".join(repeated)
    if warning not in context.warnings:
        context.warnings.append(warning)


LONGEST_MANAGER = 128


def tracked(context: RequestContext, scope: Scope, options_kind: str) -> Track:
    """How an update or creation is recorded in `managedFields`. Raises StatusError 422."""
    by = writer(context, scope, options_kind)
    return by_update(by, has_status=has_status(scope), now=context.now)


def has_status(scope: Scope) -> bool:
    """Whether the kind has a `status` subresource, through which alone its status is written."""
    return "status" in scope.store.kind.subresources


def writer(context: RequestContext, scope: Scope, options_kind: str) -> Writer:
    """Raises StatusError 422."""
    manager = field_manager(context, options_kind) or program(context.request.headers.get("User-Agent", ""))
    subresource = scope.subresource.name if scope.subresource else ""
    return Writer(manager, scope.resource.api_version, subresource)


def field_manager(context: RequestContext, options_kind: str) -> str:
    """Raises StatusError 422."""
    manager = context.query.get("fieldManager", ("",))[0]
    faults = []
    if len(manager.encode()) > LONGEST_MANAGER:
        why = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        faults.append(Cause("FieldValueTooLong", why, "fieldManager"))
    if not manager.isprintable():
        why = f'Invalid value: "{manager}": should only contain printable characters'
        faults.append(Cause("FieldValueInvalid", why, "fieldManager"))
    if faults:
        raise invalid(options_kind, "", faults, "meta.k8s.io")
    return manager


@remembered(1024)
def program(user_agent: str) -> str:
    """`kubectl` for the `User-Agent` `kubectl/v1.32.0 (linux/amd64)`."""
    name = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:LONGEST_MANAGER].decode(errors="ignore")
