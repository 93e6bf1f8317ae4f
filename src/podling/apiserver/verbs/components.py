"""GET of the parts of the cluster, of one or of all: each is asked when it is asked for."""

from __future__ import annotations

import asyncio

from podling.apiserver.observe.components import component
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.verbs.list import matcher
from podling.apiserver.verbs.options import list_options
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show, show_list
from podling.model.codec import json
from podling.model.errors import StatusError, not_found
from podling.model.types.meta import KubeObject, ListMeta
from podling.watch.entry import Decoder, Entry

_NOT_DECODED = Decoder(bytes, keep=1)


class Unversioned(Entry):
    """An object that is not stored and so has no resourceVersion."""

    __slots__ = ("_answer",)

    def __init__(self, obj: KubeObject) -> None:
        super().__init__(obj.metadata.name, 0, json.encode(obj), _NOT_DECODED)
        self._answer = obj

    @property
    def object(self) -> KubeObject:
        return self._answer

    def at(self, revision: int) -> bytes:
        return self.value

    def item(self) -> tuple[bytes, memoryview]:
        return b"{", memoryview(self.value)[self.value.index(b'"metadata"') :]


async def get_component(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 404."""
    name = context.info.name
    if name not in scope.components:
        raise not_found(scope.resource.singular, name)
    return show(context, scope, Unversioned(await component(name, scope.components[name])))


async def list_components(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 400 for a malformed selector."""
    match = await matcher(scope, list_options(context.query))
    asked = (component(name, check) for name, check in scope.components.items())
    entries = [Unversioned(one) for one in await asyncio.gather(*asked)]
    return await show_list(
        context, scope, [one for one in entries if match is None or match(one)], ListMeta()
    )


async def watch_components(context: RequestContext, scope: Scope) -> Response:
    """Raises StatusError 405: nobody is told when a part falls ill."""
    plural = scope.resource.plural
    why = f'watch is not supported on resources of kind "{plural}"'
    raise StatusError(405, "MethodNotAllowed", why, kind=plural)
