"""`/`: the paths there are, for who looks around."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from podling.apiserver.context import RequestContext
from podling.apiserver.pipeline import PathHandler
from podling.apiserver.response import Response


class Index:
    def __init__(self, handlers: Sequence[PathHandler]) -> None:
        self._handlers = handlers

    @property
    def paths(self) -> Collection[str]:
        """It does not name itself."""
        return ()

    async def serve(self, context: RequestContext) -> Response | None:
        if context.info.path != "/":
            return None
        found = sorted({path for handler in self._handlers for path in handler.paths})
        return Response(200, msgspec.json.encode({"paths": found}))
