"""Issue 13: what priority and fairness is about is told in tables, as Kubernetes writes them."""

from __future__ import annotations

import asyncio

from podling.apiserver.paths.flow_control import PREFIX, FlowControlPaths
from podling.apiserver.request.request import User
from unit.apiserver.fairness.test_fairness import (
    JANE,
    JOE,
    PODS,
    Handler,
    asked,
    asking,
    at_once,
    served,
    settle,
    small,
)

DETAILED = {"includeRequestDetails": ["1"]}


async def table(paths: FlowControlPaths, name: str, *, detailed: bool = False) -> list[list[str]]:
    context = asked(JANE, "GET", f"{PREFIX}{name}")
    context.query = DETAILED if detailed else {}
    response = await paths.serve(context)
    assert response is not None and response.content_type == "text/plain; charset=utf-8"
    assert isinstance(response.body, bytes) and response.body.endswith(b"\n")
    lines = response.body.decode().splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines]


async def test_the_tables() -> None:
    fairness, handler = small(length=2), Handler()
    paths = FlowControlPaths(fairness)
    async with asking(fairness, handler, JANE, JOE, JOE, JOE, JOE) as tasks:
        await settle()
        tasks[2].cancel()
        await settle()
        header, *levels = await table(paths, "dump_priority_levels")
        told = {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in levels}
        assert list(told) == sorted(told) and told["exempt"]["IsIdle"] == "true"
        assert told["one"] == {
            "ActiveQueues": "1", "IsIdle": "false", "IsQuiescing": "false", "WaitingRequests": "1",
            "ExecutingRequests": "1", "DispatchedRequests": "1", "RejectedRequests": "2",
            "TimedoutRequests": "0", "CancelledRequests": "1",
        }  # fmt: skip
        _, *queues = await table(paths, "dump_queues")
        assert [row[1] for row in queues if row[0] == "one"] == [str(n) for n in range(8)]
        assert [row[2:] for row in queues if row[2] != "0"] == [
            ["1", "0", "0", "0.00000000ss", "1", "1", "0.00300000ss"]
        ]
        header, *requests = await table(paths, "dump_requests", detailed=True)
        waiting, executing = requests
        assert waiting[:2] == ["one", "joe"] and waiting[3:5] == ["0", "joe"]
        assert waiting[6:10] == ["1", "0", "0s", "0001-01-01T00:00:00Z"]
        assert executing[:5] == ["one", "jane", "-1", "-1", "jane"] and executing[9].startswith("20")
        assert executing[10:] == ["jane", "get", f"{PODS}/a", "default", "a", "v1", "pods", ""]
        assert len((await table(paths, "dump_requests"))[0]) == 10


async def test_columns_stand_under_one_another() -> None:
    fairness, context = small(), asked(JANE, "GET", f"{PREFIX}dump_priority_levels")
    await served(fairness, context, at_once)
    response = await FlowControlPaths(fairness).serve(context)
    assert response is not None and isinstance(response.body, bytes)
    header, first, *_ = response.body.decode().splitlines()
    assert header.startswith("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, ")
    assert first.startswith("catch-all,         0,            true,   false,       0, ")


async def test_many_requests_leave_turns_to_others() -> None:
    """The table of 1,000 requests is made in pieces."""
    fairness, handler = small(length=1000), Handler()
    async with asking(fairness, handler, *[JOE] * 1000):
        await settle()
        turns = 0
        async with asyncio.TaskGroup() as group:
            made = group.create_task(table(FlowControlPaths(fairness), "dump_requests"))
            while not made.done():
                await asyncio.sleep(0)
                turns += 1
        assert turns >= 20 and len(made.result()) == 1001


async def test_one_long_path_makes_no_row_longer_than_allowed() -> None:
    fairness, handler = small(), Handler()
    paths = FlowControlPaths(fairness)
    async with asking(fairness, handler, User("jane" * 10_000)):
        await settle()
        rows = await table(paths, "dump_requests", detailed=True)
    assert max(len(cell) for row in rows for cell in row) == 1024


async def test_other_paths_are_not_served() -> None:
    for path in ("dump_queues/", "", "dump"):
        assert await FlowControlPaths(small()).serve(asked(JANE, "GET", PREFIX + path)) is None
