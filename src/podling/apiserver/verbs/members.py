"""POST, GET and DELETE of one entry of a list within an object, such as the debug container
`pods/POD/debug/NAME`.

Each write is an update of the object, decided on what stands: of many that take one name at the same time
exactly one does. Admission is asked about the subresource the list is written through, so that nobody goes
around it.

Waiting, within a request, for an object to become what the request needs: woken by its changes, never by
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from podling.apiserver.kinds.kind import Members, Part
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.store.store import Store
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.delete import delete_options
from podling.apiserver.verbs.field_manager import tracked
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.errors import StatusError, service_unavailable
from podling.watch.entry import Entry


async def until(store: Store[Any], namespace: str, name: str, holds: Callable[[Any], bool]) -> Any:
    """The object, as soon as it is so. Raises StatusError: 404 when it is gone, 503 when this server ends,
    and whatever `holds` raises.
    """
    with closing(store.cache.watch(store.prefix(namespace) + name, store.cache.revision)) as changes:
        while not holds(obj := store.find(namespace, name).object):
            if await anext(changes, None) is None:
                raise service_unavailable("the server is shutting down")
    return obj


OPTIONS = "UpdateOptions"
LONGEST_WAIT = 30.0
"""Seconds a name that has been let go may still be in use."""

Take = Callable[[Any], bool]
"""Puts the entry into the object it is given; False when its name had to be let go of first."""


async def create_member(context: RequestContext, scope: Scope) -> Response:
    members, name = _asked(context, scope)
    dry_run = is_dry_run(context.query.get("dryRun", ()), "CreateOptions")
    body = await read_object(context, members.body, "CreateOptions")
    body.metadata.name = body.metadata.name or name
    check_place(body.metadata, scope.namespace(context), name)
    saved = await put_in(
        context,
        scope,
        members.rules(name),
        lambda obj: members.add(obj, name, body),
        lambda obj: members.is_free(obj, name),
        dry_run=dry_run,
    )
    return Response(201, json.encode(members.read(saved.object, name)))


async def get_member(context: RequestContext, scope: Scope) -> Response:
    members, name = _asked(context, scope)
    obj = scope.store.find(scope.namespace(context), context.info.name).object
    return Response(200, json.encode(members.read(obj, name)))


async def delete_member(context: RequestContext, scope: Scope) -> Response:
    members, name = _asked(context, scope)
    dry_run = is_dry_run((await delete_options(context)).dry_run, "DeleteOptions")

    def take_out(obj: Any) -> bool:
        members.remove(obj, name)
        return True

    await _change(context, scope, members.rules(name), take_out, dry_run=dry_run)
    details = {"name": name, "kind": f"{scope.resource.plural}/{members.name}"}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Response(200, msgspec.json.encode(status))


async def put_in(
    context: RequestContext,
    scope: Scope,
    rules: Part[Any],
    take: Take,
    is_free: Callable[[Any], bool],
    *,
    dry_run: bool,
) -> Entry:
    """The object with the entry in it. Raises StatusError: 409 when its name is in use, 504 when it
    stays so although it was let go."""
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            while True:
                saved, done = await _change(context, scope, rules, take, dry_run=dry_run)
                if done or dry_run:
                    return saved
                await until(scope.store, scope.namespace(context), context.info.name, is_free)
    except TimeoutError as error:
        message = f"the node did not let go of what had this name before within {LONGEST_WAIT:.0f}s"
        raise StatusError(504, "Timeout", message) from error


async def _change(
    context: RequestContext, scope: Scope, rules: Part[Any], change: Take, *, dry_run: bool
) -> tuple[Entry, bool]:
    """The object as it was stored, and what `change` said last."""
    through = replace(scope, subresource=rules)
    said = False

    def decide(standing: Entry) -> Any:
        nonlocal said
        obj = scope.store.copy(standing)
        said = change(obj)
        return obj

    saved = await scope.store.update(
        scope.namespace(context),
        context.info.name,
        decide,
        through.admission(context, "UPDATE", dry_run=dry_run),
        rules=rules,
        track=tracked(context, through, OPTIONS),
        dry_run=dry_run,
    )
    return saved, said


def _asked(context: RequestContext, scope: Scope) -> tuple[Members[Any], str]:
    return cast(Members[Any], scope.subresource), context.info.rest[0]
