"""In whose name a write is recorded: the query's `fieldManager`, else the program that asks.

What the record says is decided in `apply/`; here it is only told who writes, and what of the object.
"""

from __future__ import annotations

from podling.apiserver.apply.managers import Writer
from podling.apiserver.apply.tracking import Track, by_update
from podling.apiserver.context import RequestContext
from podling.apiserver.verbs.scope import Scope
from podling.model.errors import Cause, invalid
from podling.model.remembered import remembered

LONGEST_MANAGER = 128


def tracked(context: RequestContext, scope: Scope, options_kind: str) -> Track:
    """The record of an update or a creation. Raises StatusError 422."""
    by = writer(context, scope, options_kind)
    return by_update(by, has_status=has_status(scope), now=context.now)


def has_status(scope: Scope) -> bool:
    """Whether the status is written through a subresource of its own."""
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
    """`kubectl` of `kubectl/v1.32.0 (linux/amd64)`."""
    name = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    return name.encode()[:LONGEST_MANAGER].decode(errors="ignore")
