"""Seats for requests: who has none waits for it, in the queues of its priority level, or is refused.

A request that finds room takes its seat by a plain call: no task, no future, no coroutine. What a request is
found to be is cached by user and what it asks for, until a FlowSchema or PriorityLevelConfiguration changes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar

import msgspec

from podling.apiserver.fairness.levels import seats_of, with_mandatory
from podling.apiserver.fairness.matching import distinguisher, in_order, matches
from podling.apiserver.fairness.queues import TIMED_OUT, PriorityLevel, Seats, Waiter, hand_of
from podling.apiserver.fairness.work import Sized, width_of
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import MOST_REPEATED, RepeatedRequest, RequestInfo, User
from podling.apiserver.request.response import TEXT, Response
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.meta import KubeObject
from podling.model.types.rbac import MASTERS
from podling.process.histogram import Histogram
from podling.process.waits import done_for

T = TypeVar("T", bound=KubeObject)

MOST_READS, MOST_WRITES = 400, 200
"""Requests answered at a time; together, the seats of all levels."""
LONGEST_WAIT = 15.0
"""Seconds in a queue: a quarter of what kube-apiserver gives a request."""
REFUSED = 429
RETRY_AFTER = "1"
CANCELLED = "cancelled"
"""Why a request is not answered whose client leaves while it waits, as the metrics have it."""
SCHEMA_HEADER, LEVEL_HEADER = "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"
LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
READS = frozenset({"get", "list", "watch"})
BUCKETS = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
"""Upper bounds in seconds, as in Kubernetes."""


class FlowObjects(Protocol):
    def all(self, type: type[T], namespace: str = "") -> Iterable[T]: ...


class InFlightLimits(msgspec.Struct, frozen=True):
    """How many requests are answered at a time, and whether all share them fairly or reads and writes have
    theirs each; then 0 is no limit."""

    reads: int = MOST_READS
    writes: int = MOST_WRITES
    is_fair: bool = True


DEFAULT_LIMITS = InFlightLimits()


class Seat(Protocol):
    """The room that a request has."""

    def leave(self) -> None:
        """It is answered."""
        ...


class Gate(Protocol):
    """Lets requests in."""

    def seat(self, context: RequestContext) -> Seat | None:
        """The seat of a request, which it must leave; None if it has to `wait` for one."""
        ...

    async def wait(self, context: RequestContext) -> Seat | None:
        """A seat, for a request that was just now told to wait; None if it is refused."""
        ...


class Room:
    """A seat that nobody counts."""

    def leave(self) -> None: ...


ROOM = Room()


class Open:
    """A gate that everybody passes."""

    def seat(self, context: RequestContext) -> Seat:
        return ROOM

    async def wait(self, context: RequestContext) -> Seat:
        return ROOM


class PlainSeat:
    """One of the seats that a plain limit has."""

    def __init__(self, taken: Counter[bool], is_read: bool) -> None:
        self._taken, self._is_read = taken, is_read
        taken[is_read] += 1

    def leave(self) -> None:
        self._taken[self._is_read] -= 1


class InFlight:
    """Two plain limits, of reads and of writes; 0 is none. What keeps its connection and administrators are
    not counted."""

    def __init__(self, reads: int, writes: int) -> None:
        self._limits = {True: reads, False: writes}
        self._now: Counter[bool] = Counter()

    def seat(self, context: RequestContext) -> Seat | None:
        info = context.info
        is_read = info.verb in READS
        limit = self._limits[is_read]
        if not limit or info.verb == "watch" or is_exempt(info):
            return ROOM
        if self._now[is_read] >= limit and MASTERS not in context.user.groups:
            return None
        return PlainSeat(self._now, is_read)

    async def wait(self, context: RequestContext) -> None:
        """Nobody waits."""


class Schema:
    """A FlowSchema as requests meet it, and what becomes of them. Its counts outlast changes of it."""

    def __init__(self, name: str, level: str, timer: Callable[[], float]) -> None:
        self.name, self.level, self.timer = name, level, timer
        self.executing: dict[Work, None] = {}
        self.waiting: dict[Work, None] = {}
        self.rejected: Counter[str] = Counter()
        self.widths: Counter[int] = Counter()
        """How many requests were how many seats wide."""
        self.executed = Histogram(BUCKETS)
        self.waited = Histogram(BUCKETS)
        self.refused = Histogram(BUCKETS)
        """Seconds of waiting of those that got no seat."""

    @property
    def dispatched(self) -> int:
        """How many requests have had a seat."""
        return sum(self.executed.counts) + len(self.executing)


class Work(msgspec.Struct, eq=False):
    """A request that is answered, or waits to be. `began`: when its answer did, by the timer."""

    context: RequestContext
    flow: Flow
    width: int = 1
    began: float = 0.0
    waiter: Waiter | None = None

    def leave(self) -> None:
        flow, waiter = self.flow, self.waiter
        schema, level = flow.schema, flow.level
        seconds = schema.timer() - self.began
        del schema.executing[self]
        schema.executed.observe(seconds)
        if waiter is not None:
            waiter.level.leave(waiter, seconds)
        elif level is not None:
            level.give_back(self.width)


class Flow:
    """What requests of one user for one thing are found to be. `level` is None if they are exempt."""

    __slots__ = ("hand", "headers", "level", "name", "schema")

    def __init__(
        self,
        schema: Schema,
        distinguisher: str,
        level: PriorityLevel | None,
        headers: Mapping[str, str],
        hand: Sequence[int],
    ) -> None:
        self.schema, self.level, self.headers, self.hand = schema, level, headers, hand
        self.name = schema.name, distinguisher


class Fairness:
    """Priority and fairness. `sizes` are the watch caches by group and resource."""

    def __init__(
        self,
        objects: FlowObjects,
        sizes: Mapping[tuple[str, str], Sized],
        seats: int = MOST_READS + MOST_WRITES,
        longest_wait: float = LONGEST_WAIT,
        timer: Callable[[], float] = perf_counter,
    ) -> None:
        self._objects, self._sizes, self._seats = objects, sizes, seats
        self._longest_wait, self._timer = longest_wait, timer
        self._pool = Seats()
        self._is_stale = True
        self._ordered: Sequence[FlowSchema] = ()
        self._levels: Mapping[str, tuple[PriorityLevel | None, str]] = {}
        self._counts: dict[tuple[str, str], Schema] = {}
        self._remembered: dict[RepeatedRequest, Flow] = {}

    @property
    def counts(self) -> Collection[Schema]:
        """Of each FlowSchema that has had a request, with each level it has had."""
        return self._counts.values()

    @property
    def levels(self) -> Mapping[str, PriorityLevel]:
        """Those that are not exempt."""
        return self._pool.levels

    @property
    def names(self) -> Collection[str]:
        """Of all levels."""
        return self._levels.keys() | self._pool.levels.keys()

    def passed(self, work: Work) -> float:
        """Seconds since its answer began."""
        return self._timer() - work.began

    def changed(self, key: tuple[str, str], new: Any, type_: type[Any]) -> None:
        """To be called when a FlowSchema or PriorityLevelConfiguration has changed."""
        self._is_stale = True

    def seat(self, context: RequestContext) -> Seat | None:
        info, repeated = context.info, context.repeated
        # What is exempt has no flow, so nothing is remembered of it.
        flow = None if self._is_stale or repeated is None else self._remembered.get(repeated)
        if flow is None:
            if is_exempt(info):
                return ROOM
            flow = self.flow(context.user, info, repeated)
        context.flow_headers = flow.headers
        # Not asked for first: nearly every request has a task of its own, in which it is unset.
        done_for.set(flow.name)
        schema, level = flow.schema, flow.level
        width = 1 if level is None or info.verb == "get" else self._width(context, level)
        schema.widths[width] += 1
        if level is not None and not level.take(width):
            return None
        work = Work(context, flow, width, self._timer())
        schema.executing[work] = None
        return work

    async def wait(self, context: RequestContext) -> Seat | None:
        flow = self.flow(context.user, context.info, context.repeated)
        level = flow.level
        assert level is not None, "an exempt one never waits"
        work = Work(context, flow, self._width(context, level))
        if refused := await self._seated(work, level):
            flow.schema.rejected[refused] += 1
            return None
        work.began = self._timer()
        flow.schema.executing[work] = None
        return work

    def _width(self, context: RequestContext, level: PriorityLevel) -> int:
        info = context.info
        cache = self._sizes.get((info.api_group, info.resource))
        return width_of(info, context.query, cache, level.limits.nominal) if cache is not None else 1

    def flow(self, user: User, info: RequestInfo, repeated: RepeatedRequest | None = None) -> Flow:
        """The flow of a request, remembered only for a `repeated` one."""
        if self._is_stale:
            self._compile()
        if repeated is None:
            return self._find(user, info)
        found = self._remembered.get(repeated)
        if found is None:
            if len(self._remembered) >= MOST_REPEATED:
                self._remembered.clear()
            found = self._remembered[repeated] = self._find(user, info)
        return found

    def _find(self, user: User, info: RequestInfo) -> Flow:
        # Everybody is authenticated or is not, so the last of them matches whoever is left.
        schema = next((one for one in self._ordered if matches(one, user, info)), self._ordered[-1])
        name, of = schema.metadata.name, schema.spec.priority_level_configuration.name
        level, uid = self._levels[of]
        counts = self._counts.get((name, of))
        if counts is None:
            counts = self._counts[name, of] = Schema(name, of, self._timer)
        queuing = level.limits.queuing if level is not None else None
        whose = distinguisher(schema, user, info)
        hand = hand_of(name, whose, queuing) if queuing else ()
        return Flow(counts, whose, level, {SCHEMA_HEADER: schema.metadata.uid, LEVEL_HEADER: uid}, hand)

    def _compile(self) -> None:
        self._is_stale = False
        schemas, levels = with_mandatory(
            self._objects.all(FlowSchema), self._objects.all(PriorityLevelConfiguration)
        )
        seats = seats_of(levels, self._seats)
        self._pool.set({name: limits for name, (_, limits) in seats.items() if limits}, self._seats)
        self._levels = {name: (self._pool.levels.get(name), one.uid) for name, one in seats.items()}
        self._ordered = in_order(schemas, seats)
        self._remembered.clear()
        known = {one.metadata.name for one in schemas}
        # Those that nobody uses any more make room; their requests would otherwise be counted for ever.
        for key, counts in list(self._counts.items()):
            if counts.name not in known and not (counts.executing or counts.waiting):
                del self._counts[key]

    async def _seated(self, work: Work, level: PriorityLevel) -> str:
        """Returns when the request is seated, or why it is not."""
        loop, schema, began = asyncio.get_running_loop(), work.flow.schema, self._timer()
        woken: asyncio.Future[None] = loop.create_future()
        wake = partial(_wake, woken)
        waiter = level.enqueue(work.flow.hand, work.width, wake)
        if isinstance(waiter, str):
            schema.refused.observe(0.0)
            return waiter
        work.waiter = waiter
        schema.waiting[work] = None
        timer = loop.call_later(self._longest_wait, wake)
        try:
            await woken
        except BaseException:
            level.leave(waiter, 0.0)
            schema.rejected[CANCELLED] += 1
            raise
        finally:
            timer.cancel()
            del schema.waiting[work]
        seconds = self._timer() - began
        if waiter.is_seated:
            schema.waited.observe(seconds)
            return ""
        level.leave(waiter, 0.0)
        schema.refused.observe(seconds)
        return TIMED_OUT


def gate_of(limits: InFlightLimits, objects: FlowObjects, sizes: Mapping[tuple[str, str], Sized]) -> Gate:
    if limits.is_fair:
        return Fairness(objects, sizes, limits.reads + limits.writes)
    return InFlight(limits.reads, limits.writes)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def is_exempt(info: RequestInfo) -> bool:
    """Whether a request keeps its connection for long, other than a watch, and so takes no seat."""
    return info.verb == "proxy" or (info.is_resource_request and info.subresource in LONG_RUNNING)


def too_many_requests() -> Response:
    """In plain text, as in Kubernetes."""
    headers = {"Retry-After": RETRY_AFTER, "X-Content-Type-Options": "nosniff"}
    return Response(REFUSED, b"Too many requests, please try again later.\n", TEXT, headers)
