"""The way of a request through the API server, step by step: authenticate, authorize, answer, record.

Every request takes the same steps, whether `http/server.py` received it from a socket or `http/local.py` from
a client in the same process. A step that refuses raises a StatusError, which becomes the answer here and
nowhere else.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from podling.apiserver.authn.authenticators import Authenticator, authenticate, wanted_user
from podling.apiserver.authz.authorizers import Authorizer, authorize
from podling.apiserver.authz.impersonation import impersonate
from podling.apiserver.finish import finish, rewrite
from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.metrics import RequestMetrics
from podling.apiserver.request.context import ANONYMOUS, PathHandler, RequestContext
from podling.apiserver.request.request import (
    LONGEST_OF_A_STRANGER,
    Request,
    flag,
    parse_query,
    recall_path,
    recall_query,
    request_info,
)
from podling.apiserver.request.response import Response, failure, no_such_page
from podling.apiserver.routes import Routes
from podling.model.errors import StatusError, internal
from podling.model.time import Clock
from podling.process.waits import aside

LONGEST_AUDIT_ID = 64
"""Characters kept of an `Audit-Id` that the client sends."""
ESCAPES_DEARER = 4
"""How many bytes of a body take as long to read as one of a query."""
CLIENT_LEFT = 499
"""The status recorded for a request whose client disconnected before the answer."""

# An audit ID is a UUID: a random prefix for this process and a counter, since every request needs one.
_OURS = str(uuid.uuid4())[:-12]
_count = count()

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Called for every request once the status of its answer is known."""

    def completed(self, context: RequestContext, code: int) -> None: ...


class Pipeline:
    """Answers requests, wherever they come from."""

    def __init__(
        self,
        *,
        clock: Clock,
        authenticators: Sequence[Authenticator],
        authorizers: Sequence[Authorizer],
        paths: Sequence[PathHandler],
        routes: Routes,
        metrics: RequestMetrics,
        audit: AuditLog | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._clock = clock
        self._authenticators = authenticators
        self._authorizers = authorizers
        self._paths = paths
        self._routes = routes
        self._metrics = metrics
        self._audit = audit
        audits: Sequence[Observer] = () if audit is None else (audit,)
        self._observers = (metrics, *audits, *observers)

    async def handle(self, request: Request) -> Response:
        """Answer and record a request. Never raises, except when its task is cancelled."""
        # No audit event is dropped: requests wait while the disk is slower than they are.
        if self._audit is not None and self._audit.sink.full:
            await self._audit.sink.room()
        context = RequestContext(
            request,
            request.headers.get("Audit-Id", "")[:LONGEST_AUDIT_ID] or f"{_OURS}{next(_count):012x}",
            self._clock.now(),
        )
        self._metrics.began(context)
        status = CLIENT_LEFT
        try:
            response = await self._respond(context)
            status = response.status
            response.body = self._metrics.following(context, response.body)
        finally:
            for observer in self._observers:
                observer.completed(context, status)
        return response

    async def _respond(self, context: RequestContext) -> Response:
        try:
            response = await self._answer(context)
        except StatusError as error:
            response = failure(error)
        except Exception as error:
            log.exception("%s %s", context.request.method, context.request.path)
            response = failure(internal(str(error)))
        if finish(context, response):
            await rewrite(context, response)
        return response

    async def _answer(self, context: RequestContext) -> Response:
        request = context.request
        try:
            context.user = authenticate(self._authenticators, request)
        finally:
            # Also after a refusal: audit and metrics record what was asked for.
            await _read_target(context)
        if wanted := wanted_user(request.headers):
            context.impersonation = impersonate(self._authorizers, context.user, wanted, context.info)
            context.user = context.impersonation.user
        authorize(self._authorizers, context.user, context.info)
        if not context.info.is_resource_request:
            for handler in self._paths:
                if (response := await handler.serve(context)) is not None:
                    return response
            return no_such_page()
        return await self._routes.serve(context)


async def _read_target(context: RequestContext) -> None:
    """Read the path and query into `context`. Those of an anonymous request are cut, and not cached."""
    request = context.request
    if context.user is ANONYMOUS:
        context.query = parse_query(request.query[:LONGEST_OF_A_STRANGER])
        path = request.path[:LONGEST_OF_A_STRANGER]
        context.info = request_info(request.method, path, context.query)
    else:
        query = request.query
        if query:
            context.query = await aside(ESCAPES_DEARER * len(query), recall_query, query)
        is_watch = "watch" in context.query and flag(context.query, "watch")
        context.info = recall_path(request.path, request.method, is_watch)
