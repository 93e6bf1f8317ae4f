"""GET of a collection: the bytes of the watch cache, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.continuation import Continuation, decode_continue, encode_continue
from podling.apiserver.verbs.list_options import EXACT, check_list, revision, too_large
from podling.apiserver.verbs.options import options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.selection import matcher
from podling.apiserver.verbs.show import show_list
from podling.model.errors import gone
from podling.model.meta import ListMeta
from podling.model.options import ListOptions
from podling.watch.entry import Entry


class Page(NamedTuple):
    entries: Sequence[Entry]
    metadata: ListMeta


async def list_(context: RequestContext, scope: Scope) -> Response:
    page = select(context, scope, list_options(context))
    return show_list(context, scope, page.entries, page.metadata)


def list_options(context: RequestContext) -> ListOptions:
    """Raises StatusError 400, 422."""
    wanted = options(context.query, ListOptions)
    check_list(wanted)
    return wanted


def select(context: RequestContext, scope: Scope, wanted: ListOptions) -> Page:
    cache, prefix = scope.store.cache, scope.store.prefix(scope.namespace(context))
    _check_revision(wanted, cache.revision)
    start = decode_continue(wanted.continue_) if wanted.continue_ else Continuation(cache.revision, "")
    match = matcher(scope, wanted)
    after = prefix + start.after if start.after else ""
    found = cache.select(prefix, after=after, limit=wanted.limit, match=match)
    # A later page is read at a later state. Claiming the first page's revision makes a watch from there
    # repeat what changed in between, so the client misses nothing.
    metadata = ListMeta(resource_version=str(start.revision))
    if found.more:
        metadata.continue_ = encode_continue(
            Continuation(start.revision, found.entries[-1].key.removeprefix(prefix))
        )
        metadata.remaining_item_count = found.remaining if match is None else None
    return Page(found.entries, metadata)


def _check_revision(wanted: ListOptions, current: int) -> None:
    asked = revision(wanted.resource_version)
    if asked > current:
        raise too_large(asked, current)
    if asked < current and wanted.resource_version_match == EXACT:
        raise gone("The resourceVersion for the provided list is too old.")
