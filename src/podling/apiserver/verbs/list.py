"""GET of a collection: the bytes of the watch cache, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.continuation import Continuation, decode_continue, encode_continue
from podling.apiserver.verbs.freshness import until_fresh
from podling.apiserver.verbs.list_options import check_list, is_exact, limit_of, revision
from podling.apiserver.verbs.options import options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.selection import matcher
from podling.apiserver.verbs.show import show_list
from podling.model.errors import StatusError, gone
from podling.model.meta import ListMeta
from podling.model.options import ListOptions
from podling.storage.interface import CompactedError
from podling.watch.entry import Entry


class Page(NamedTuple):
    entries: Sequence[Entry]
    metadata: ListMeta


async def list_(context: RequestContext, scope: Scope) -> Response:
    page = await select(context, scope, list_options(context))
    return show_list(context, scope, page.entries, page.metadata)


def list_options(context: RequestContext) -> ListOptions:
    """Raises StatusError 400, 422."""
    wanted = options(context.query, ListOptions)
    check_list(wanted)
    return wanted


async def select(context: RequestContext, scope: Scope, wanted: ListOptions) -> Page:
    """Raises StatusError 410 for a state that is no longer known, 504 for one that does not come."""
    cache, prefix = scope.store.cache, scope.store.prefix(scope.namespace(context))
    await until_fresh(cache, revision(wanted.resource_version))
    start = _start(wanted, cache.revision)
    match = matcher(scope, wanted)
    after = prefix + start.after if start.after else ""
    try:
        found = cache.select(prefix, after, limit_of(wanted), match, start.revision)
    except CompactedError as error:
        raise _too_old(start) from error
    metadata = ListMeta(resource_version=str(found.revision))
    if found.more:
        metadata.continue_ = encode_continue(
            Continuation(found.revision, found.entries[-1].key.removeprefix(prefix))
        )
        metadata.remaining_item_count = found.remaining if match is None else None
    return Page(found.entries, metadata)


def _start(wanted: ListOptions, current: int) -> Continuation:
    """Which state to list, and from where on. Raises StatusError 400."""
    if wanted.continue_:
        start = decode_continue(wanted.continue_)
        return start._replace(revision=min(start.revision, current)) if start.revision else start
    asked = revision(wanted.resource_version)
    return Continuation(asked if asked and is_exact(wanted) else None, "")


def _too_old(start: Continuation) -> StatusError:
    """410. A list that was begun may be ended at what is there now, if the client so wishes."""
    if not start.after:
        return gone("The resourceVersion for the provided list is too old.")
    error = gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new "
        "list without the continue parameter, or use the continue token in this response to retrieve the "
        "remainder of the results. Continuing with the provided token results in an inconsistent list - "
        "objects that were created, modified, or deleted between the time the first chunk was returned and "
        "now may show up in the list."
    )
    error.continue_token = encode_continue(start._replace(revision=None))
    return error
