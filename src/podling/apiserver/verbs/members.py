"""POST, GET and DELETE of one entry of a list within an object, such as the debug container
`pods/POD/debug/NAME`.

Each write is an update of the object, decided on its current state: of several requests that take one name at
the same time exactly one succeeds. Admission sees the subresource through which the list is written (such as
`ephemeralcontainers`), so its rules hold here too. `until` waits for a state of an object; it is woken by the
object's changes, not by a timer.
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
from podling.apiserver.verbs.create import check_post
from podling.apiserver.verbs.delete import delete_options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.update import check_place
from podling.model.codec import json
from podling.model.errors import StatusError, service_unavailable
from podling.watch.entry import Entry

LONGEST_WAIT = 30.0
"""Seconds to wait until the name of a removed entry is free again."""

Take = Callable[[Any], bool]
"""Puts the entry into the object. False if the name was taken by an entry that it removed instead: the caller
waits until the name is free, and tries again."""


async def create_member(context: RequestContext, scope: Scope) -> Response:
    members, name = _asked(context, scope)
    dry_run = check_post(context)
    body = await read_object(context, members.body)
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
    dry_run = bool((await delete_options(context)).dry_run)

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
    """The object with the entry in it. Raises StatusError: 409 if its name is in use, 504 if the name of a
    removed entry does not become free in time."""
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


async def until(store: Store[Any], namespace: str, name: str, holds: Callable[[Any], bool]) -> Any:
    """The object, as soon as `holds` is true of it. Raises StatusError: 404 if it is deleted, 503 if this
    server ends, and whatever `holds` raises."""
    with closing(store.cache.watch(store.prefix(namespace) + name, store.cache.revision)) as changes:
        while not holds(obj := store.find(namespace, name).object):
            if await anext(changes, None) is None:
                raise service_unavailable("the server is shutting down")
    return obj


async def _change(
    context: RequestContext, scope: Scope, rules: Part[Any], change: Take, *, dry_run: bool
) -> tuple[Entry, bool]:
    """The stored object, and the last result of `change`."""
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
        track=through.track(context),
        dry_run=dry_run,
    )
    return saved, said


def _asked(context: RequestContext, scope: Scope) -> tuple[Members[Any], str]:
    return cast(Members[Any], scope.subresource), context.info.rest[0]
