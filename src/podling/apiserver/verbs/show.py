"""The answer in the shape the client asked for: the object itself, a Table, or its metadata only."""

from __future__ import annotations

from collections.abc import Sequence

from podling.apiserver.context import RequestContext
from podling.apiserver.response import Response
from podling.apiserver.verbs.scope import Scope
from podling.model import json
from podling.model.meta import ListMeta
from podling.model.scheme import Resource
from podling.watch.entry import Entry


def show(context: RequestContext, scope: Scope, entry: Entry, status: int = 200) -> Response:
    return Response(status, entry.data)


def show_list(
    context: RequestContext, scope: Scope, entries: Sequence[Entry], metadata: ListMeta
) -> Response:
    return Response(200, object_list(scope.resource, entries, metadata))


def object_list(resource: Resource, entries: Sequence[Entry], metadata: ListMeta) -> bytes:
    """A PodList of Pods, by joining the bytes that are there."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    opened = json.encode(head)[:-1] + b',"items":['
    return b"%b%b]}" % (opened, b",".join([entry.item for entry in entries]))
