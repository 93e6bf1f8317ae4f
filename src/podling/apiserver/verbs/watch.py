"""GET with `watch`, or of a path with `/watch/`: the frames of the watch cache, encoded once for everyone who
watches the same.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import msgspec

from podling.apiserver.connect.web_socket import WatchSocket, wants_web_socket
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import JSON, YAML
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.list_options import check_watch, revision, until_fresh
from podling.apiserver.verbs.options import options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.selection import matcher
from podling.apiserver.verbs.show import frames as frames_of
from podling.model.errors import StatusError, bad_request, gone, not_acceptable
from podling.model.selectors import escaped, parse_field_selector
from podling.model.types.meta import ListOptions
from podling.storage.interface import CompactedError
from podling.watch.subscription import Subscription

NAME = "metadata.name"
SHORTEST_TIMEOUT = 1800
"""Seconds; without a timeout of its own a watch ends after this and up to twice this, so that the watches
of many clients do not all begin again at once."""


async def watch(context: RequestContext, scope: Scope) -> Response:
    wanted = options(context.query, ListOptions)
    check_watch(wanted)
    if context.wanted.media_type == YAML:
        raise not_acceptable((JSON,))
    if name := context.info.name:
        wanted.field_selector = one_name(wanted.field_selector, name)
    try:
        subscription = await _subscribe(context, scope, wanted)
    except StatusError as error:
        if error.code not in (410, 504):
            raise
        return Response(200, _only(_error_frame(error)))
    frames = batches(subscription, _timeout(wanted))
    if context.wanted.kind == "Table":
        frames = scope.tables.columns_once(frames)
    if wants_web_socket(context.request.headers):
        return Response(101, WatchSocket(frames))
    return Response(200, frames)


async def _subscribe(context: RequestContext, scope: Scope, wanted: ListOptions) -> Subscription:
    """From a revision that is yet to come nothing is sent until it is past, unless the objects there are were
    asked for. Raises StatusError 410 when the revision is too old, 504 when it does not come.
    """
    cache, start = scope.store.cache, revision(wanted.resource_version)
    if wanted.send_initial_events:
        await until_fresh(cache, start)
    match = await matcher(scope, wanted)
    try:
        return cache.watch(
            scope.store.prefix(scope.namespace(context)),
            start,
            match=match,
            bookmarks=wanted.allow_watch_bookmarks,
            initial=wanted.send_initial_events,
            frames=frames_of(context, scope),
        )
    except CompactedError as error:
        raise gone(f"too old resource version: {start} ({error.revision})") from error


def one_name(selector: str, name: str) -> str:
    """The field selector of a watch of one object. Raises StatusError 400 when it selects another."""
    asked = parse_field_selector(selector)
    if not asked:
        return f"{NAME}={escaped(name)}"
    if asked.exact(NAME) != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return selector


def _timeout(wanted: ListOptions) -> float:
    return wanted.timeout_seconds or SHORTEST_TIMEOUT * (1 + random.random())


async def batches(subscription: Subscription, timeout: float) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().call_later(timeout, subscription.close)
    try:
        async for batch in subscription:
            yield batch
    finally:
        end.cancel()
        subscription.close()


async def _only(frame: bytes) -> AsyncGenerator[bytes, None]:
    yield frame


def _error_frame(error: StatusError) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
