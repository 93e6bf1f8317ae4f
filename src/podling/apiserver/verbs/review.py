"""POST of a question that is answered and not stored."""

from __future__ import annotations

from typing import Any, cast

from podling.apiserver.context import RequestContext
from podling.apiserver.registry import object_meta
from podling.apiserver.registry.review import Review
from podling.apiserver.response import Response
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show_answer
from podling.model.errors import invalid

OPTIONS = "CreateOptions"


async def review(context: RequestContext, scope: Scope) -> Response:
    kind, resource = cast(Review[Any], scope.store.kind), scope.resource
    obj = await read_object(context, resource.type, OPTIONS)
    object_meta.place(obj.metadata, scope.namespace(context))
    if faults := kind.validate(obj):
        raise invalid(resource.kind, obj.metadata.name, faults, resource.group)
    # Who manages which field is the server's to say, and it manages nothing of a question.
    obj.metadata.managed_fields = []
    kind.answer(obj, context.user, scope.judges, context.now)
    return show_answer(context, obj)
