"""GET with `watch`, or of a path with `/watch/`: the frames of the watch cache, which are encoded once and
shared by all watchers of a resource.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from podling.apiserver.connect.web_socket import WatchSocket
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import WATCHED, YAML
from podling.apiserver.request.request import flag, wants_web_socket
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import BETA, in_beta
from podling.apiserver.verbs.list import selecting, until_fresh
from podling.apiserver.verbs.options import NOT_OLDER_THAN, check_watch, options, revision
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import frames as frames_of
from podling.model.errors import StatusError, bad_request, gone, not_acceptable
from podling.model.selectors import escaped, parse_field_selector
from podling.model.types.meta import ListOptions
from podling.storage.interface import CompactedError
from podling.watch.subscription import Subscription

NAME = "metadata.name"
SHORTEST_TIMEOUT = 1800
"""Seconds. A watch without `timeoutSeconds` ends after this long up to twice this long, at random, so that
the watches of many clients do not all restart at once."""


async def watch(context: RequestContext, scope: Scope) -> Response:
    wanted = options(context.query, ListOptions)
    says_no_more = wanted.send_initial_events is None and not wanted.resource_version_match
    if says_no_more and wanted.resource_version in ("", "0") and flag(context.query, "watch"):
        # Who names no revision is sent what there is in any case, and so told where that ends; not who asks
        # by the older path.
        wanted.send_initial_events, wanted.resource_version_match = True, NOT_OLDER_THAN
    check_watch(wanted)
    if context.wanted.media_type == YAML:
        raise not_acceptable((WATCHED,))
    if name := context.info.name:
        wanted.field_selector = one_name(wanted.field_selector, name)
    try:
        subscription = await _subscribe(context, scope, wanted)
    except StatusError as error:
        if error.code not in (410, 504):
            raise
        frame = msgspec.json.encode({"type": "ERROR", "object": error.status()}) + b"\n"
        return Response(200, _only(frame))
    timeout = wanted.timeout_seconds or SHORTEST_TIMEOUT * (1 + random.random())
    frames = batches(subscription, timeout)
    if context.wanted.kind == "Table":
        frames = scope.tables.columns_once(frames)
    if context.wanted.version == BETA:
        frames = _in_beta(frames)
    if context.wanted.kind == "PartialObjectMetadataList":
        frames = _until_the_first(frames)
    if wants_web_socket(context.request.headers):
        return Response(101, WatchSocket(frames))
    return Response(200, frames)


async def _subscribe(context: RequestContext, scope: Scope, wanted: ListOptions) -> Subscription:
    """Subscribe at the revision asked for. If the cache has not reached it, nothing is sent until it has;
    only a watch that first lists the current objects waits for it here. Raises StatusError 410 if the
    revision is too old, 504 if it does not come in time."""
    cache, start = scope.store.cache, revision(wanted.resource_version)
    if wanted.send_initial_events:
        await until_fresh(cache, start)
    selected = await selecting(scope, wanted)
    try:
        return cache.watch(
            scope.store.prefix(scope.namespace(context)),
            start,
            match=selected.match,
            bookmarks=wanted.allow_watch_bookmarks,
            initial=wanted.send_initial_events,
            frames=frames_of(context, scope),
            only=selected.only,
        )
    except CompactedError as error:
        raise gone(f"too old resource version: {start} ({error.revision})") from error


def one_name(selector: str, name: str) -> str:
    """The field selector `metadata.name=NAME` of a watch by path. Raises StatusError 400 if the query selects
    another name."""
    asked = parse_field_selector(selector)
    if not asked:
        return f"{NAME}={escaped(name)}"
    if asked.exact(NAME) != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return selector


async def batches(subscription: Subscription, timeout: float) -> AsyncGenerator[bytes, None]:
    end = asyncio.get_running_loop().call_later(timeout, subscription.close)
    try:
        async for batch in subscription:
            yield batch
    finally:
        end.cancel()
        subscription.close()


async def _until_the_first(frames: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """An event has no form as a list: as in Kubernetes, the watch ends where the first would be."""
    nothing: tuple[bytes, ...] = ()
    async with aclosing(frames):
        async for _ in frames:
            break
    for frame in nothing:
        yield frame


async def _in_beta(batches: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(batches):
        async for batch in batches:
            yield in_beta(batch)


async def _only(frame: bytes) -> AsyncGenerator[bytes, None]:
    yield frame
