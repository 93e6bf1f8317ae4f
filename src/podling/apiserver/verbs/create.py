"""POST in its shapes, by what the resource or subresource is.

`create` stores a new object. `review` answers a review, such as a SubjectAccessReview, and stores nothing.
`act` does what the body of a subresource asks of the object, such as `binding` and `eviction`, and
`act_on_named` does so where it is the body that names the object. `answer` fills in the body of a
subresource, such as a service account's `token`, and stores nothing.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from podling.apiserver.apply.apply import by_update
from podling.apiserver.kinds.kind import Action, Answer, Deletion
from podling.apiserver.kinds.reviews import Review
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.negotiation import body_format
from podling.apiserver.request.response import Response
from podling.apiserver.rules import field, metadata
from podling.apiserver.store import object_meta
from podling.apiserver.store.object_meta import drop_repeated_owners
from podling.apiserver.store.store import UNRULED
from podling.apiserver.verbs.body import read_object
from podling.apiserver.verbs.delete import check_deletion
from podling.apiserver.verbs.options import check_write
from podling.apiserver.verbs.scope import RequestAdmission, Scope
from podling.apiserver.verbs.show import show, show_answer
from podling.model.errors import bad_request, conflict, invalid
from podling.model.time import rfc3339
from podling.watch.entry import Entry

OPTIONS = "CreateOptions"
CREATED = msgspec.json.encode(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
)


def check_post(context: RequestContext) -> bool:
    """Whether it is a dry run. Raises StatusError 415 for a body that nobody reads, 422 for the query: in
    this order, as in Kubernetes, which looks at the query of a PUT first."""
    body_format(context.request.headers.get("Content-Type", ""))
    return check_write(context.query, OPTIONS)


async def answer(context: RequestContext, scope: Scope) -> Response:
    """POST to a subresource that answers with its body filled in."""
    subresource = cast(Answer[Any], scope.subresource)
    dry_run = check_post(context)
    namespace, name = scope.namespace(context), context.info.name
    body: Any = await read_object(context, subresource.body)
    group = body.API_VERSION.rpartition("/")[0]
    object_meta.place(body.metadata, namespace)
    subresource.default(body)
    manage(context, scope, body)
    admission = scope.admission(context, "CREATE", dry_run=dry_run)
    await admission.admit(body, None)
    if body.metadata.name not in ("", name):
        cause = field.invalid("metadata.name", body.metadata.name, subresource.misnamed)
        raise invalid(body.KIND, name, [cause], group)
    obj = scope.store.find(namespace, name).object
    uid = body.metadata.uid = body.metadata.uid or obj.metadata.uid
    if uid != obj.metadata.uid:
        raise conflict(body.KIND, name, subresource.replaced.format(uid, obj.metadata.uid), group)
    body.metadata.name = name
    body.metadata.creation_timestamp = rfc3339(context.now)
    if faults := subresource.validate(body):
        raise invalid(body.KIND, "", faults, group)
    await admission.validate(body, None)
    subresource.answer(obj, body, scope.reviewer, context.now)
    return show_answer(context, body)


async def act(context: RequestContext, scope: Scope) -> Response:
    """POST to a subresource that changes or deletes its object."""
    action = cast(Action[Any], scope.subresource)
    dry_run = check_post(context)
    body = await read_object(context, action.body)
    object_meta.place(body.metadata, scope.namespace(context))
    asked = await _admitted(context, scope, body, dry_run=dry_run)
    if body.metadata.name != context.info.name:
        raise bad_request(f"name in URL does not match name in {body.KIND} object")
    dry_runs = context.query.get("dryRun", ()), action.dry_run(body)
    if all(dry_runs) and list(dry_runs[0]) != list(dry_runs[1]):
        both = " and ".join(f"[{' '.join(values)}]" for values in dry_runs)
        raise bad_request(f"Non-matching dry-run options in request and content: {both}")
    await asked.validate(body, None)
    return await _act(context, scope, body, dry_run=dry_run)


async def act_on_named(context: RequestContext, scope: Scope) -> Response:
    """POST of the body of an action on the object that it names, whichever uid it says."""
    assert scope.acts_on is not None
    dry_run = check_post(context)
    body = await read_object(context, scope.resource.type)
    object_meta.place(body.metadata, scope.namespace(context))
    body.metadata.uid = ""
    asked = await _admitted(context, scope, body, dry_run=dry_run)
    if not body.metadata.name:
        raise bad_request("Name parameter required.")
    metadata.check_name(body.metadata.name)
    await asked.validate(body, None)
    return await _act(context, scope.acts_on, body, dry_run=dry_run)


async def _admitted(context: RequestContext, scope: Scope, body: Any, *, dry_run: bool) -> RequestAdmission:
    asked = scope.admission(context, "CREATE", dry_run=dry_run)
    if asked.waits:
        manage(context, scope, body)
    await asked.admit(body, None)
    return asked


async def _act(context: RequestContext, scope: Scope, body: Any, *, dry_run: bool) -> Response:
    action = cast(Action[Any], scope.subresource)
    namespace, name = scope.namespace(context), body.metadata.name
    effect = action.effect(scope.store.copy(scope.store.find(namespace, name)), body, context.now)
    # What follows from it nobody outside is asked about once more.
    if isinstance(effect, Deletion):
        check_deletion(effect.options)
        dry_run = dry_run or bool(effect.options.dry_run)
        admission = scope.admission(context, "DELETE", dry_run=dry_run, forms=())
        await scope.store.delete(
            namespace, name, effect.options, admission, mark=effect.mark, dry_run=dry_run
        )
        return Response(201, CREATED)

    def change(standing: Entry) -> Any:
        return action.effect(scope.store.copy(standing), body, context.now)

    admission = scope.admission(context, "UPDATE", dry_run=dry_run, forms=())
    await scope.store.update(namespace, name, change, admission, rules=UNRULED, dry_run=dry_run)
    return Response(201, CREATED)


def manage(context: RequestContext, scope: Scope, body: Any) -> None:
    """Record who manages the fields of a body that is not stored, for who is shown it."""
    by = scope.writer(context)._replace(api_version=body.API_VERSION)
    track = by_update(by, unwritten={}, now=context.now, versions={})
    body.metadata.managed_fields = track(body, None)


async def review(context: RequestContext, scope: Scope) -> Response:
    """POST of a review."""
    kind, resource = cast(Review[Any], scope.store.kind), scope.resource
    check_post(context)
    obj = await read_object(context, resource.type)
    object_meta.place(obj.metadata, scope.namespace(context))
    manage(context, scope, obj)
    admission = scope.admission(context, "CREATE")
    await admission.admit(obj, None)
    if faults := kind.validate(obj):
        # Kubernetes names neither the kind nor the object.
        raise invalid("", "", faults, resource.group)
    await admission.validate(obj, None)
    await kind.answer(obj, context.user, scope.reviewer, context.now)
    return show_answer(context, obj)


async def create(context: RequestContext, scope: Scope) -> Response:
    """POST of a new object."""
    dry_run = check_post(context)
    obj = await read_object(context, scope.resource.type)
    drop_repeated_owners(obj.metadata, context.warnings)
    object_meta.drop_of_server(obj.metadata)
    admission = scope.admission(context, "CREATE", dry_run=dry_run)
    saved = await scope.store.create(
        obj,
        scope.namespace(context),
        admission,
        track=scope.track(context),
        dry_run=dry_run,
        size=len(context.request.body),
    )
    return show(context, scope, saved, 201)
