"""GET of a collection, from the encoded bytes of the watch cache, in pages if the client asks for a limit.

Its parts serve the other verbs that read, too: `matcher` makes a predicate on entries of the cache from label
and field selectors, and `until_fresh` waits for a revision that this server has not reached, because the
client had it from another server.

The `continue` token says where the next page starts, in the form that Kubernetes' own tokens have: base64 of
`{"v": "meta.k8s.io/v1", "rv": N, "start": "namespace/name\0"}`. N is the revision that the first page was
read at (-1: the current one), and `start` the first key behind that of the last object sent, relative to the
listed prefix.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podling.apiserver.kinds.config import fault_of_json_object
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.options import is_exact, limit_of, list_options, revision
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show_list
from podling.model.codec.fields import Int64
from podling.model.codec.quoting import quoted
from podling.model.errors import Cause, StatusError, bad_request, gone
from podling.model.selectors import parse_field_selector, parse_label_selector
from podling.model.types.meta import ListMeta, ListOptions
from podling.process.waits import aside, long_work, paced
from podling.storage.interface import CompactedError
from podling.watch.audience import Only
from podling.watch.cache import Cache, Selection
from podling.watch.entry import Entry

Match = Callable[[Entry], bool]
Read = Callable[[Any], str]

ON_ALL_KINDS: Mapping[str, Read] = {
    "metadata.name": lambda obj: str(obj.metadata.name),
    "metadata.namespace": lambda obj: str(obj.metadata.namespace),
}
DEARER = 8
"""How many bytes of a body take as long to read as one of a selector."""
JUDGED_AT_ONCE = 50
"""Objects of a list that are held against its selectors in one turn of the loop: 0.5 ms if all must be
decoded."""
LONGEST_WAIT = 3.0
"""Seconds to wait for a revision that is yet to come."""

TOKEN_VERSION = "meta.k8s.io/v1"
NOW = -1
TOO_OLD = "The resourceVersion for the provided list is too old."
TOO_OLD_TO_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - "
    "objects that were created, modified, or deleted between the time the first chunk was returned and "
    "now may show up in the list."
)


class Page(NamedTuple):
    entries: Sequence[Entry]
    metadata: ListMeta


async def list_(context: RequestContext, scope: Scope) -> Response:
    page = await select(context, scope, list_options(context.query))
    return await show_list(context, scope, page.entries, page.metadata)


async def select(context: RequestContext, scope: Scope, wanted: ListOptions) -> Page:
    """The page of the list that `wanted` asks for. Raises StatusError 400 for a malformed selector or token,
    410 for a revision that is no longer known, 504 for one that the cache does not reach in time."""
    cache, prefix = scope.store.cache, scope.store.prefix(scope.namespace(context))
    asked = revision(wanted.resource_version)
    await until_fresh(cache, asked)
    match, _, name = await selecting(scope, wanted)
    if wanted.continue_:
        start = decode_continue(wanted.continue_)
        if start.revision:
            start = start._replace(revision=min(start.revision, cache.revision))
    else:
        start = Continuation(asked if asked and is_exact(wanted) else None, "")
    limit = limit_of(wanted, cached=scope.store.kind.cached)
    try:
        found = cache.select(prefix, prefix + start.key, limit if match is None else 0, start.revision)
    except CompactedError as error:
        refused = gone(TOO_OLD_TO_CONTINUE if wanted.continue_ else TOO_OLD)
        if wanted.continue_:
            # The rest can be listed as it is now.
            refused.continue_token = encode_continue(start._replace(revision=None))
        raise refused from error
    if match is not None:
        is_placed = scope.namespace(context) or not scope.resource.namespaced
        is_one = name is not None and is_placed and not wanted.continue_
        found = await matching(found, match, 0 if is_one else limit)
    metadata = ListMeta(resource_version=str(found.revision))
    if found.more:
        sent = found.entries[-1].key.removeprefix(prefix)
        metadata.continue_ = encode_continue(Continuation(found.revision, f"{sent}\0"))
        metadata.remaining_item_count = found.remaining if match is None else None
    return Page(found.entries, metadata)


async def matching(every: Selection, match: Match, limit: int) -> Selection:
    """Those that match, at most `limit` unless it is 0. Others have their turns meanwhile: to judge an object
    it may have to be decoded."""
    found: list[Entry] = []
    for number, entry in enumerate(every.entries, 1):
        if number % JUDGED_AT_ONCE == 0:
            await long_work().wait()
        if limit and len(found) == limit:
            # Whether any of the rest matches is not looked for, as in Kubernetes.
            return every._replace(entries=found, more=True)
        if match(entry):
            found.append(entry)
    return every._replace(entries=found)


async def until_fresh(cache: Cache, revision: int) -> None:
    """Wait until `cache` has reached `revision`. Raises StatusError 504 after LONGEST_WAIT, as Kubernetes
    does: the client is to try again."""
    if revision <= cache.revision:
        return
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            await cache.reached(revision)
    except TimeoutError:
        message = f"Timeout: Too large resource version: {revision}, current: {cache.revision}"
        cause = Cause("ResourceVersionTooLarge", "Too large resource version")
        raise StatusError(504, "Timeout", message, causes=[cause], retry_after_seconds=1) from None


class Selected(NamedTuple):
    """Without a predicate everything is selected."""

    match: Match | None = None
    only: Only | None = None
    """What the predicate asks of one field."""
    name: str | None = None
    """That of the one object which is asked for by name."""


async def matcher(scope: Scope, wanted: ListOptions) -> Match | None:
    """The label and field selectors as one predicate; None if everything is selected. Raises StatusError 400
    for a malformed selector, or a field that the kind cannot be selected by."""
    return (await selecting(scope, wanted)).match


async def selecting(scope: Scope, wanted: ListOptions) -> Selected:
    """As `matcher`."""
    size = DEARER * (len(wanted.field_selector) + len(wanted.label_selector))
    return await aside(size, _selecting, scope, wanted)


def _selecting(scope: Scope, wanted: ListOptions) -> Selected:
    fields = parse_field_selector(wanted.field_selector, paced)
    labels = parse_label_selector(wanted.label_selector, paced)
    if not fields and not labels:
        return Selected()
    of_kind = scope.store.kind.selectable_fields
    known = {**ON_ALL_KINDS, **of_kind}
    # Cluster-wide kinds without fields of their own may be asked for a namespace; they are in none.
    if of_kind and not scope.resource.namespaced:
        del known["metadata.namespace"]
    for field, _ in sorted(fields.values):
        if field in known:
            continue
        if of_kind:
            raise bad_request(scope.store.kind.unselectable.format(field))
        listed = ", ".join(f'"{name}"' for name in ON_ALL_KINDS)
        raise bad_request(f"{quoted(field)} is not a known field selector: only {listed}")

    def match(entry: Entry) -> bool:
        obj = entry.object
        return labels.matches(obj.metadata.labels) and fields.matches(lambda field: known[field](obj))

    exact = next((field for field, equal in fields.values if equal), None)
    if exact is None:
        return Selected(match)
    only = Only(exact, known[exact], fields.exact(exact) or "")
    return Selected(match, only, fields.exact("metadata.name"))


class Continuation(NamedTuple):
    revision: int | None
    """The revision to list at; None for the current one."""
    key: str
    """The first to send, relative to the listed prefix."""


class _Token(msgspec.Struct):
    v: str = ""
    rv: Int64 = 0
    start: str = ""


def encode_continue(continuation: Continuation) -> str:
    token = _Token(TOKEN_VERSION, continuation.revision or NOW, continuation.key)
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode_continue(text: str) -> Continuation:
    """Raises StatusError 400, as Kubernetes does: it takes every key that does not lead out of the list."""
    try:
        if "=" in text:
            raise _invalid(f"illegal base64 data at input byte {text.index('=')}")
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if fault := fault_of_json_object(data):
            raise _invalid(fault)
        sent = msgspec.json.decode(data) or {}
        # As Go reads it: in letters of either case, and null is nothing.
        told = {name.casefold(): value for name, value in sent.items() if value is not None}
        token = msgspec.convert(told, _Token)
    except ValueError as error:
        raise _invalid(str(error)) from error
    if token.v != TOKEN_VERSION:
        raise _invalid(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _invalid(f"incorrect encoded start resourceVersion (version {TOKEN_VERSION})")
    if not token.start:
        raise _invalid(f"encoded start key empty (version {TOKEN_VERSION})")
    key = token.start.removeprefix("/")
    if key and not {"", ".", ".."}.isdisjoint(key.split("/")):
        raise _invalid(token.start)
    return Continuation(token.rv if token.rv > 0 else None, key)


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
