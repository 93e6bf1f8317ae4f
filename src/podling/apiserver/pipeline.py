"""The way of a request through the API server, step by step: authenticate, find room, authorize, answer,
record.

Every request takes the same steps, whether `http/server.py` received it from a socket or `http/local.py` from
a client in the same process. A step that refuses raises a StatusError, which becomes the answer here and
nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from podling.apiserver.aggregation.passing import Aggregation
from podling.apiserver.authn.authenticators import Authentication, wanted_user
from podling.apiserver.authz.authorizers import (
    ALLOWED,
    Authorizer,
    Opinion,
    Unanswered,
    asked,
    opinion_of,
    refusal,
    settled,
    settled_later,
)
from podling.apiserver.authz.impersonation import impersonate
from podling.apiserver.fairness.fairness import REFUSED, Gate, Open, too_many_requests
from podling.apiserver.finish import finish, rewrite
from podling.apiserver.observe.audit import AuditLog
from podling.apiserver.observe.audit_event import DECISION, REASON
from podling.apiserver.observe.metrics import RequestMetrics
from podling.apiserver.request.context import ANONYMOUS, PathHandler, RequestContext
from podling.apiserver.request.negotiation import of_an_error
from podling.apiserver.request.request import (
    LONGEST_OF_A_STRANGER,
    RepeatedRequests,
    Request,
    RequestInfo,
    User,
    audit_id,
    flag,
    parse_query,
    path_info,
    recall_query,
    request_info,
)
from podling.apiserver.request.response import (
    NOT_SNIFFED,
    Layout,
    Response,
    failure,
    internal_error,
    no_such_page,
)
from podling.apiserver.routes import Routes
from podling.model.errors import Cause, StatusError, internal
from podling.model.time import Clock
from podling.process.waits import SHORT, aside
from podling.storage.interface import NotSealedError

ESCAPES_DEARER = 4
"""How many bytes of a body take as long to read as one of a query."""
LONG_QUERY = SHORT // ESCAPES_DEARER
CLIENT_LEFT = 499
"""The status recorded for a request whose client disconnected before the answer."""

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
        authentication: Authentication,
        authorizers: Sequence[Authorizer],
        paths: Sequence[PathHandler],
        routes: Routes,
        aggregation: Aggregation,
        metrics: RequestMetrics,
        gate: Gate | None = None,
        audit: AuditLog | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._clock = clock
        self._authentication = authentication
        self._authorizers = authorizers
        self._paths = _Paths(paths)
        self._routes = routes
        self._aggregation = aggregation
        self._metrics = metrics
        self._gate = gate or Open()
        self._audit = audit
        self._repeated = RepeatedRequests()
        audits: Sequence[Observer] = () if audit is None else (audit,)
        self._observers = (metrics, *audits, *observers)

    async def handle(self, request: Request) -> Response:
        """Answer and record a request. Never raises, except when its task is cancelled."""
        # No audit event is dropped: requests wait while the disk is slower than they are.
        if self._audit is not None and self._audit.full:
            await self._audit.room()
        context = RequestContext(request, audit_id(request.headers), self._clock.now())
        self._metrics.began(context)
        status = CLIENT_LEFT
        try:
            response = await self._respond(context)
            status = response.status
            if not isinstance(response.body, bytes):
                response.body = self._metrics.following(context, response.body)
        finally:
            for observer in self._observers:
                observer.completed(context, status)
        if self._audit is not None and self._audit.holds:
            await self._audit.kept()
        return response

    async def _respond(self, context: RequestContext) -> Response:
        failed, panicked = True, False
        try:
            response = await self._answer(context)
            failed = response.status == REFUSED
        except StatusError as error:
            response = failure(error)
            if wanted := of_an_error(context.request.headers.get("Accept", "")):
                context.wanted = wanted
            else:
                response.layout = Layout.INDENTED
        except NotSealedError as error:
            response = failure(internal(str(error), causes=[Cause("", str(error))]))
        except Exception as error:
            log.exception("%s %s", context.request.method, context.request.path)
            response = failure(internal(str(error)))
            panicked = True
        if self._audit is not None and (failed or context.recorded is not None):
            await self._audit.answered(context, response, failed=failed, panicked=panicked)
        if finish(context, response):
            await rewrite(context, response)
        return response

    async def _answer(self, context: RequestContext) -> Response:
        request = context.request
        is_known = False
        try:
            user = self._authentication.known(request)
            context.user = await self._authentication.asked(request) if user is None else user
            is_known = True
        finally:
            # Also after a refusal: audit and metrics record what was asked for.
            if len(request.query) > LONG_QUERY and context.user is not ANONYMOUS:
                context.query = await aside(ESCAPES_DEARER * len(request.query), parse_query, request.query)
            self._read_target(context)
            if self._audit is not None:
                self._audit.received(context, is_known=is_known)
        if self._audit is not None and self._audit.holds and not await self._audit.kept():
            return internal_error(request, "failed to store audit event")
        info = asked(context.info, context.query) if context.query else context.info
        try:
            if wanted := wanted_user(request.headers):
                asker = context.user
                context.impersonation = await settled(
                    lambda: impersonate(self._authorizers, asker, wanted, info)
                )
                context.user = context.impersonation.user
                self._aim(context)
        except StatusError as error:
            error.headers = NOT_SNIFFED
            raise
        seat = self._gate.seat(context) or await self._gate.wait(context)
        if seat is None:
            return too_many_requests()
        try:
            try:
                opinion = opinion_of(self._authorizers, context.user, info)
            except Unanswered:
                opinion = await settled_later(self._opinion, context.user, info)
            if opinion.decision is not ALLOWED:
                return _refused(context, info, opinion)
            context.allowed_by = opinion.reason
            passing = self._aggregation.passes(info.path) if self._aggregation.services else None
            if passing is None:
                return await (self._routes if info.is_resource_request else self._paths).serve(context)
        finally:
            seat.leave()
        # Without a seat: nobody here waits because another server is slow.
        return await passing(context)

    def _read_target(self, context: RequestContext) -> None:
        """Read the path and query into `context`. Those of an anonymous request are cut, and not cached."""
        request = context.request
        if context.user is ANONYMOUS:
            context.query = parse_query(request.query[:LONGEST_OF_A_STRANGER])
            path = request.path[:LONGEST_OF_A_STRANGER]
            context.info = request_info(request.method, path, context.query)
            return
        if request.query and not context.query:
            context.query = recall_query(request.query)
        self._aim(context)

    def _aim(self, context: RequestContext) -> None:
        request = context.request
        watch = "watch" in context.query and flag(context.query, "watch")
        context.repeated = repeated = self._repeated.of(context.user, request, watch=watch)
        context.info = path_info(request.path, request.method, watch) if repeated is None else repeated.info

    async def _opinion(self, user: User, info: RequestInfo) -> Opinion:
        return opinion_of(self._authorizers, user, info)


class _Paths:
    """Answers requests for what is no resource by the first of `handlers` that serves the path."""

    def __init__(self, handlers: Sequence[PathHandler]) -> None:
        self._handlers = handlers

    async def serve(self, context: RequestContext) -> Response:
        for handler in self._handlers:
            if (response := await handler.serve(context)) is not None:
                return response
        return no_such_page()


def _refused(context: RequestContext, info: RequestInfo, opinion: Opinion) -> Response:
    """The answer if nobody can tell whether it is allowed. Raises StatusError 403 if it is not."""
    if opinion.error:
        context.annotations[REASON] = "internal error"
        return internal_error(context.request, opinion.error)
    context.annotations[DECISION] = "forbid"
    context.annotations[REASON] = opinion.reason
    error = refusal(context.user, info, opinion.reason)
    error.headers = NOT_SNIFFED
    raise error
