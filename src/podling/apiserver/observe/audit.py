"""The audit log: what the policy wants recorded of each request, at which of its stages, goes to every sink.

    received ─▶ RequestReceived
    answered ─▶ ResponseStarted, of what goes on: watches, connections, logs
    completed, or the end of what went on ─▶ ResponseComplete, or Panic

A request that nobody could authenticate is told of once, with the refusal, as ResponseStarted, as in
Kubernetes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from podling.apiserver.observe.audit_event import LONGEST_URI, audit_event, named, shortened
from podling.apiserver.observe.audit_policy import COMPLETE, FAILURES, PANIC, RECEIVED, STARTED, Recording
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.recorded import Level, Recorded, without_managed_fields
from podling.apiserver.request.request import RequestInfo
from podling.apiserver.request.response import JSON, Body, Response, Upgrade
from podling.model.rules.audit_modes import BATCH, STRICT
from podling.model.time import Clock
from podling.process.waits import aside

if TYPE_CHECKING:
    from aiohttp import web

LONG_VERBS = frozenset({"watch", "proxy"})
LONG_SUBRESOURCES = frozenset({"attach", "exec", "proxy", "log", "portforward"})
LONG_PATHS = "/debug/pprof/"
FAILED = 400
STATUS = b'{"kind":"Status"'

_encode = msgspec.json.Encoder().encode


class Sink(Protocol):
    """Where the events of the audit log go."""

    name: str
    """The `plugin` of its metrics."""
    mode: str
    """Whether requests wait for it: one of MODES."""

    @property
    def full(self) -> bool:
        """Whether callers should wait for `room()`; `write` still accepts events."""
        ...

    async def room(self) -> None:
        """Wait until it is no longer full."""
        ...

    def write(self, event: bytes) -> None:
        """One event as JSON in one line. Must not block."""
        ...

    def kept(self) -> Awaitable[bool]:
        """Waits until what was written by now is where it belongs; False if it is lost."""
        ...

    @property
    def lost(self) -> int:
        """How many events could not be kept."""
        ...

    @property
    def fault(self) -> str:
        """Why events are lost now; empty while they are not."""
        ...


class AuditLog:
    """An observer of the pipeline."""

    def __init__(self, recording: Recording, sinks: Sequence[Sink], clock: Clock) -> None:
        self.sinks = sinks
        self._held = [sink for sink in sinks if sink.mode != BATCH]
        self.holds = bool(self._held)
        """Whether requests are to wait for what is `kept`."""
        self._recording = recording
        self._clock = clock
        self.count = 0
        self.levels = [0] * len(Level)
        """Requests by how much of them the policy wants recorded. A dict would have Python hash the Level."""

    @property
    def fault(self) -> str:
        return "; ".join(sink.fault for sink in self.sinks if sink.fault)

    @property
    def full(self) -> bool:
        # Asked before every request; a generator would cost as much as all sinks.
        for sink in self.sinks:  # noqa: SIM110
            if sink.full:
                return True
        return False

    async def room(self) -> None:
        """Wait while a sink is full: nothing is dropped to keep up."""
        for sink in self.sinks:
            if sink.full:
                await sink.room()

    async def kept(self) -> bool:
        """Wait for those sinks that requests wait for; False if one that is strict has lost something."""
        # All are asked before any is waited for: what they do meanwhile is not told later.
        asked = [(sink.mode, sink.kept()) for sink in self._held]
        outcomes = [(mode, await kept) for mode, kept in asked]
        return (STRICT, False) not in outcomes

    def received(self, context: RequestContext, *, is_known: bool) -> None:
        """Decide what to record. `is_known`: whether the request's user is, before any impersonation."""
        # A query may name what a path does not.
        if context.repeated is not None and is_known and not context.query:
            amount = self._recording.of_repeated(context.repeated)
        else:
            amount = self._recording.of(context.user if is_known else None, named(context))
        self.levels[amount.level] += 1
        if not amount.level:
            return
        if is_known and amount.only_failures:
            context.is_told_if_it_fails = True
            return
        context.recorded = recorded = Recorded(amount, is_known)
        if is_known:
            self._tell(context, recorded, RECEIVED, 0)

    async def answered(
        self, context: RequestContext, response: Response, *, failed: bool, panicked: bool
    ) -> None:
        """Take from an answer what is recorded of it, before it is written in another form. `failed`: whether
        it is the Status of an error, `panicked`: of one of this server's."""
        if failed and context.is_told_if_it_fails:
            context.recorded = Recorded(FAILURES, True)
        recorded = context.recorded
        if recorded is None:
            return
        recorded.panicked = panicked
        body, goes_on = response.body, is_long(context.info)
        if isinstance(body, bytes) and response.content_type == JSON:
            await _take(
                recorded, body, failed=failed, is_object=context.info.is_resource_request and not goes_on
            )
        if not goes_on or recorded.panicked or not recorded.is_known:
            return
        self._tell(context, recorded, STARTED, response.status)
        if not isinstance(body, bytes) and COMPLETE not in recorded.amount.omitted:
            response.body = self._until_complete(context, recorded, body, response.status)

    def completed(self, context: RequestContext, code: int) -> None:
        """Unless the answer goes on: then its end is told of."""
        recorded = context.recorded
        if recorded is None and context.is_told_if_it_fails and code >= FAILED:
            recorded = Recorded(FAILURES, True)
        if recorded is None or recorded.goes_on:
            return
        stage = PANIC if recorded.panicked else COMPLETE if recorded.is_known else STARTED
        self._tell(context, recorded, stage, code)

    def _until_complete(
        self,
        context: RequestContext,
        recorded: Recorded,
        body: AsyncGenerator[bytes, None] | Upgrade,
        code: int,
    ) -> Body:
        recorded.goes_on = True

        def complete() -> None:
            self._tell(context, recorded, COMPLETE, code)

        return _told(body, complete) if isinstance(body, AsyncGenerator) else _Told(body, complete)

    def _tell(self, context: RequestContext, recorded: Recorded, stage: str, code: int) -> None:
        amount = recorded.amount
        if stage in amount.omitted or (amount.only_failures and code < FAILED):
            return
        self.count += 1
        event = _encode(audit_event(context, recorded, stage, code, self._clock.now()))
        for sink in self.sinks:
            sink.write(event)


def is_long(info: RequestInfo) -> bool:
    """Whether a request may go on after it was answered, as Kubernetes sees it."""
    if info.is_resource_request:
        return info.verb in LONG_VERBS or info.subresource in LONG_SUBRESOURCES
    return info.path.startswith(LONG_PATHS)


async def _take(recorded: Recorded, body: bytes, *, failed: bool, is_object: bool) -> None:
    if failed or (is_object and body.startswith(STATUS)):
        status: dict[str, Any] = msgspec.json.decode(body)
        del status["kind"], status["apiVersion"]
        if "message" in status:
            status["message"] = shortened(status["message"], LONGEST_URI)
        recorded.status = status
    amount = recorded.amount
    if amount.level is Level.REQUEST_RESPONSE and (failed or is_object):
        if amount.without_managed_fields:
            body = await aside(len(body), without_managed_fields, body)
        recorded.answered = body


async def _told(
    body: AsyncGenerator[bytes, None], complete: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(body):
            async for piece in body:
                yield piece
    finally:
        complete()


class _Told(NamedTuple):
    upgrade: Upgrade
    complete: Callable[[], None]

    async def run(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self.upgrade.run(request)
        finally:
            self.complete()
