"""POST in its four shapes, by what the resource or subresource is.

`create` stores a new object. `review` answers a review, such as a SubjectAccessReview, and stores nothing.
`act` does what the body of a subresource asks of the object, such as `binding` and `eviction`. `answer` fills
in the body of a subresource, such as a service account's `token`, and stores nothing.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from podling.apiserver.kinds.kind import Action, Answer, Deletion
from podling.apiserver.kinds.reviews import Review
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field
from podling.apiserver.store import object_meta
from podling.apiserver.store.store import UNRULED
from podling.apiserver.verbs.body import drop_repeated_owners, read_object
from podling.apiserver.verbs.options import is_dry_run
from podling.apiserver.verbs.scope import Scope
from podling.apiserver.verbs.show import show, show_answer
from podling.model.errors import bad_request, invalid
from podling.watch.entry import Entry

OPTIONS = "CreateOptions"
CREATED = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


async def answer(context: RequestContext, scope: Scope) -> Response:
    """POST to a subresource that answers with its body filled in."""
    subresource = cast(Answer[Any], scope.subresource)
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    body: Any = await read_object(context, subresource.body, OPTIONS)
    group = body.API_VERSION.rpartition("/")[0]
    object_meta.place(body.metadata, namespace)
    if body.metadata.name not in ("", name):
        cause = field.invalid("metadata.name", body.metadata.name, subresource.misnamed)
        raise invalid(body.KIND, name, [cause], group)
    obj = scope.store.find(namespace, name).object
    body.metadata.name, body.metadata.uid = name, obj.metadata.uid
    body.metadata.managed_fields = []
    if faults := subresource.validate(body):
        raise invalid(body.KIND, "", faults, group)
    await scope.admission(context, "CREATE", dry_run=dry_run).admit(body, None)
    subresource.answer(obj, body, scope.reviewer, context.now)
    return show_answer(context, body)


async def act(context: RequestContext, scope: Scope) -> Response:
    """POST to a subresource that changes or deletes its object."""
    action = cast(Action[Any], scope.subresource)
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    namespace, name = scope.namespace(context), context.info.name
    body = await read_object(context, action.body, OPTIONS)
    object_meta.place(body.metadata, namespace)
    if body.metadata.name != name:
        raise bad_request(f"name in URL does not match name in {body.KIND} object")
    effect = action.effect(scope.store.copy(scope.store.find(namespace, name)), body, context.now)
    if isinstance(effect, Deletion):
        dry_run = dry_run or is_dry_run(effect.options.dry_run, "DeleteOptions")
        admission = scope.admission(context, "DELETE", dry_run=dry_run)
        await scope.store.delete(
            namespace, name, effect.options, admission, mark=effect.mark, dry_run=dry_run
        )
        return Response(201, CREATED)

    def change(standing: Entry) -> Any:
        return action.effect(scope.store.copy(standing), body, context.now)

    admission = scope.admission(context, "UPDATE", dry_run=dry_run)
    await scope.store.update(namespace, name, change, admission, rules=UNRULED, dry_run=dry_run)
    return Response(201, CREATED)


async def review(context: RequestContext, scope: Scope) -> Response:
    """POST of a review."""
    kind, resource = cast(Review[Any], scope.store.kind), scope.resource
    obj = await read_object(context, resource.type, OPTIONS)
    object_meta.place(obj.metadata, scope.namespace(context))
    if faults := kind.validate(obj):
        raise invalid(resource.kind, obj.metadata.name, faults, resource.group)
    # Who manages which field is the server's to say, and it manages nothing of a question.
    obj.metadata.managed_fields = []
    kind.answer(obj, context.user, scope.reviewer, context.now)
    return show_answer(context, obj)


async def create(context: RequestContext, scope: Scope) -> Response:
    """POST of a new object."""
    dry_run = is_dry_run(context.query.get("dryRun", ()), OPTIONS)
    obj = await read_object(context, scope.resource.type, OPTIONS)
    drop_repeated_owners(context, obj)
    admission = scope.admission(context, "CREATE", dry_run=dry_run)
    saved = await scope.store.create(
        obj,
        scope.namespace(context),
        admission,
        track=scope.track(context, OPTIONS),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    context.warnings += scope.store.kind.create_warnings(saved.object)
    return show(context, scope, saved, 201)
