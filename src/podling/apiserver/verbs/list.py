"""GET of a collection, from the encoded bytes of the watch cache, in pages if the client asks for a limit.

The `continue` token says where the next page starts, in the form that Kubernetes' own tokens have: base64 of
`{"v": "meta.k8s.io/v1", "rv": N, "start": "namespace/name\0"}`. N is the revision that the first page was
read at (-1: the current one), and `start` the key, relative to the listed prefix, of the last object sent.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.list_options import check_list, is_exact, limit_of, revision, until_fresh
from podling.apiserver.verbs.options import options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.selection import matcher
from podling.apiserver.verbs.show import show_list
from podling.model.errors import StatusError, bad_request, gone
from podling.model.types.meta import ListMeta, ListOptions
from podling.storage.interface import CompactedError
from podling.watch.entry import Entry

VERSION = "meta.k8s.io/v1"
NOW = -1


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


class Continuation(NamedTuple):
    revision: int | None
    """The revision to list at; None for the current one."""
    after: str
    """The last key sent, relative to the listed prefix."""


_decoder = msgspec.json.Decoder(_Token)


def encode_continue(continuation: Continuation) -> str:
    token = _Token(VERSION, continuation.revision or NOW, f"{continuation.after}\0")
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode_continue(text: str) -> Continuation:
    """Raises StatusError 400."""
    try:
        padded = text + "=" * (-len(text) % 4)
        token = _decoder.decode(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _invalid(str(error)) from error
    if token.v != VERSION:
        raise _invalid(f'server does not recognize this encoded version "{token.v}"')
    if (
        (token.rv <= 0 and token.rv != NOW)
        or not token.start.endswith("\0")
        or ".." in token.start.split("/")
    ):
        raise _invalid("incorrect encoded start resourceVersion or key")
    return Continuation(None if token.rv == NOW else token.rv, token.start.removesuffix("\0"))


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


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
    """The page of the list that `wanted` asks for. Raises StatusError 410 for a revision that is no longer
    known, 504 for one that the cache does not reach in time."""
    cache, prefix = scope.store.cache, scope.store.prefix(scope.namespace(context))
    await until_fresh(cache, revision(wanted.resource_version))
    match = await matcher(scope, wanted)
    start = _start(wanted, cache.revision)
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
    """The revision to list at, and the key after which to start. Raises StatusError 400."""
    if wanted.continue_:
        start = decode_continue(wanted.continue_)
        return start._replace(revision=min(start.revision, current)) if start.revision else start
    asked = revision(wanted.resource_version)
    return Continuation(asked if asked and is_exact(wanted) else None, "")


def _too_old(start: Continuation) -> StatusError:
    """410. For a list that was begun, the error has a token to continue it at the current revision."""
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
