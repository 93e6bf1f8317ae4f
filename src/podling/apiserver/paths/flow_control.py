"""`/debug/api_priority_and_fairness/`: levels, queues and requests of priority and fairness as tables, in
Kubernetes' form, for whoever finds out why requests wait.

Who finds a seat at once has been in no queue here: such a request is shown as the requests of levels without
queues are there, with the index -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

from podling.apiserver.fairness.fairness import CANCELLED, Fairness, Flow
from podling.apiserver.fairness.queues import NO_SEAT, NOTHING, QUEUE_FULL, TIMED_OUT
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.response import TEXT, Response
from podling.process.waits import long_work

PREFIX = "/debug/api_priority_and_fairness/"
LEVELS = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests"),
    *("ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
QUEUES = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
REQUESTS = (
    *("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher"),
    *("ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"),
)
DETAILS = "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"
NOT_YET = "0001-01-01T00:00:00Z"
EXPECTED = 0.003
"""Seconds that Kubernetes expects any request to take; podling expects nothing."""
ROWS = 50
"""Made in one turn of the loop, in 0.5 ms."""
NARROWEST, WIDEST = 8, 1024
"""Characters of a cell: clients choose names and paths, and all rows are as wide as the widest."""

Row = Sequence[object]


class FlowControlPaths:
    """Not in the index, as in Kubernetes."""

    paths: Collection[str] = ()

    def __init__(self, fairness: Fairness) -> None:
        self._fairness = fairness
        self._tables: Mapping[str, Callable[[RequestContext], tuple[Row, Iterator[Row]]]] = {
            f"{PREFIX}dump_priority_levels": lambda _: (LEVELS, levels(fairness)),
            f"{PREFIX}dump_queues": lambda _: (QUEUES, queues(fairness)),
            f"{PREFIX}dump_requests": self._requests,
        }

    async def serve(self, context: RequestContext) -> Response | None:
        table = self._tables.get(context.info.path)
        return None if table is None else Response(200, (await written(*table(context))).encode(), TEXT)

    def _requests(self, context: RequestContext) -> tuple[Row, Iterator[Row]]:
        detailed = bool(context.query.get("includeRequestDetails", ("",))[0])
        header = (*REQUESTS, *DETAILS) if detailed else REQUESTS
        return header, requests(self._fairness, context.now, detailed=detailed)


def levels(fairness: Fairness) -> Iterator[Row]:
    for name in sorted(fairness.names):
        level = fairness.levels.get(name)
        counts = [one for one in fairness.counts if one.level == name]
        waiting = sum(len(one.waiting) for one in counts)
        executing = sum(len(one.executing) for one in counts)
        refused = Counter[str]()
        for one in counts:
            refused.update(one.rejected)
        yield (
            name,
            len(level.waiting) if level is not None else 0,
            _go(not waiting and not executing),
            _go(level is not None and level.limits is NOTHING),
            waiting,
            executing,
            sum(one.dispatched for one in counts),
            refused[QUEUE_FULL] + refused[NO_SEAT],
            refused[TIMED_OUT],
            refused[CANCELLED],
        )


def queues(fairness: Fairness) -> Iterator[Row]:
    """All queues of a level, those without requests, too."""
    for name, level in sorted(fairness.levels.items()):
        many = level.limits.queuing.queues if level.limits.queuing is not None else 0
        for index in range(max(many, max(level.queues, default=-1) + 1)):
            queue = level.queues.get(index)
            if queue is None:
                yield name, index, 0, 0, 0, _seat_seconds(0), 0, 0, _seat_seconds(0)
                continue
            seats = queue.waiting_seats
            work = _seat_seconds(seats * EXPECTED)
            used = _seat_seconds(queue.used)
            yield name, index, len(queue.waiting), queue.seated, queue.seats, used, seats, seats, work


def requests(fairness: Fairness, now: datetime, *, detailed: bool) -> Iterator[Row]:
    """Those that wait first, in the order of their queues."""
    waiting = [work for one in fairness.counts for work in one.waiting]
    executing = [work for one in fairness.counts for work in one.executing]
    places = {
        waiter: (queue.index, place)
        for level in fairness.levels.values()
        for queue in level.queues.values()
        for place, waiter in enumerate(queue.waiting)
    }
    found = [(work, places.get(work.waiter, (-1, -1))) for work in waiting if work.waiter is not None]
    found += [(work, (work.waiter.queue.index if work.waiter else -1, -1)) for work in executing]
    for work, place in sorted(found, key=lambda one: (one[0].flow.schema.level, one[1][1] < 0, one[1])):
        began = NOT_YET if place[1] >= 0 else _written(now - timedelta(seconds=fairness.passed(work)))
        row = (
            *(work.flow.schema.level, work.flow.schema.name, *place, _distinguisher(work.flow)),
            _written(work.context.now),
            *(work.width, 0, "0s", began),
        )
        yield (*row, *_details(work.context)) if detailed else row


def _distinguisher(flow: Flow) -> str:
    """Told where it decides about queues."""
    queuing = flow.level.limits.queuing if flow.level is not None else None
    return flow.name[1] if queuing is not None and queuing.queues > 1 else ""


def _details(context: RequestContext) -> Row:
    info = context.info
    of = (info.namespace, info.name, info.api_version, info.resource, info.subresource)
    return context.user.name, info.verb, info.path, *of


async def written(header: Row, rows: Iterator[Row]) -> str:
    """Columns as wide as they must be, at least `NARROWEST`; the last is not filled up."""
    cells: list[list[str]] = [_cells(header)]
    widths = [len(cell) for cell in cells[0]]
    turn = long_work()
    while piece := list(islice(rows, ROWS)):
        await turn.wait()
        for row in piece:
            cells.append(_cells(row))
            widths = [max(width, len(cell)) for width, cell in zip(widths, cells[-1], strict=True)]
    widths = [max(width + 1, NARROWEST) for width in widths[:-1]] + [0]
    lines: list[str] = []
    for at in range(0, len(cells), ROWS):
        await turn.wait()
        lines += (
            "".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in cells[at : at + ROWS]
        )
    return "\n".join([*lines, ""])


def _cells(row: Row) -> list[str]:
    cut = [str(one)[:WIDEST] for one in row]
    return [*(f"{one}," for one in cut[:-1]), cut[-1]]


def _go(value: bool) -> str:
    return str(value).lower()


def _seat_seconds(value: float) -> str:
    return f"{value:.8f}ss"


def _written(moment: datetime) -> str:
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"
