"""The answer in the representation that the client asked for: the object itself, a Table, or its metadata
only.
"""

from __future__ import annotations

from collections.abc import Sequence

from podling.apiserver.kinds.kind import kept_as
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.show.table import (
    MetadataFrames,
    TableFrames,
    include_object,
    metadata_of,
    partial_metadata,
    partial_metadata_list,
)
from podling.apiserver.verbs.scope import Scope
from podling.model.codec import json
from podling.model.errors import StatusError
from podling.model.scheme import Resource
from podling.model.types.meta import KubeObject, ListMeta
from podling.process.waits import long_work
from podling.watch.entry import Entry, Frames, items

JOINED_AT_ONCE = 250
"""Objects of a list that are put together in one turn of the loop: 0.2 ms."""


def show(context: RequestContext, scope: Scope, entry: Entry, status: int = 200) -> Response:
    match context.wanted.kind:
        case "":
            return Response(status, entry.data)
        case "Table":
            include = _include(context)
            return Response(status, scope.tables.of_one(entry, entry.revision, context.now, include))
        case "PartialObjectMetadataList":
            raise not_shown_as(context, f"not a list ({_internal_type(scope)})")
        case _:
            return Response(status, partial_metadata(entry, entry.revision))


def show_answer(context: RequestContext, obj: KubeObject) -> Response:
    """Answer with an object that is not stored and so has no Table."""
    if context.wanted.kind == "PartialObjectMetadataList":
        group = obj.API_VERSION.partition(".")[0]
        raise not_shown_as(context, f"not a list (*{group}.{obj.KIND})")
    return Response(201, metadata_of(obj) if context.wanted.kind else json.encode(obj))


async def show_list(
    context: RequestContext, scope: Scope, entries: Sequence[Entry], metadata: ListMeta
) -> Response:
    if context.wanted.kind and len(entries) > JOINED_AT_ONCE:
        await long_work().wait()
    match context.wanted.kind:
        case "":
            return Response(200, await object_list(scope.resource, entries, metadata))
        case "Table":
            return Response(200, scope.tables.of_list(entries, metadata, context.now, _include(context)))
        case "PartialObjectMetadata":
            raise not_shown_as(context, f"a list ({_internal_type(scope)}List)")
        case _:
            return Response(200, partial_metadata_list(entries, metadata))


def _internal_type(scope: Scope) -> str:
    """The type by which Kubernetes names the resource: `*networking.IPAddress`."""
    group = kept_as(scope.store.kind).group
    return f"*{group.partition('.')[0] or 'core'}.{scope.resource.kind}"


def not_shown_as(context: RequestContext, what: str) -> StatusError:
    wanted = context.wanted.kind
    return StatusError(406, "NotAcceptable", f"you requested {wanted}, but the requested object is {what}")


def frames(context: RequestContext, scope: Scope) -> Frames | None:
    """How to encode the events of a watch; None for the objects themselves, whose encoded frames all watchers
    share."""
    match context.wanted.kind:
        case "":
            return None
        case "Table":
            return TableFrames(scope.tables, _include(context), scope.store.clock)
        case _:
            return MetadataFrames()


async def object_list(resource: Resource, entries: Sequence[Entry], metadata: ListMeta) -> bytes:
    """The list object (a PodList of Pods), joined from the encoded objects; a long one over several turns of
    the loop."""
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'
    pieces: list[bytes | memoryview] = [head.encode(), json.encode(metadata), b',"items":[']
    for at in range(0, len(entries), JOINED_AT_ONCE):
        if len(entries) > JOINED_AT_ONCE:
            await long_work().wait()
        pieces += items(entries[at : at + JOINED_AT_ONCE])
        pieces.append(b",")
    if entries:
        pieces.pop()
    pieces.append(b"]}")
    return b"".join(pieces)


def _include(context: RequestContext) -> str:
    return include_object(context.query.get("includeObject", ()))
