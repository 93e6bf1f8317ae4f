"""Issue 13: requests take seats, wait for them in fair turns, and give them back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import pytest
from msgspec import convert

from podling.apiserver.fairness import fairness as fairness_module
from podling.apiserver.fairness.fairness import (
    LEVEL_HEADER,
    SCHEMA_HEADER,
    Fairness,
    Gate,
    InFlight,
    too_many_requests,
)
from podling.apiserver.observe.fairness_metrics import fairness_metrics
from podling.apiserver.request.context import ANONYMOUS, RequestContext
from podling.apiserver.request.request import RepeatedRequest, Request, User, parse_query, request_info
from podling.apiserver.request.response import Response
from podling.model.rules.flowcontrol import flow_schemas, priority_levels
from podling.model.types.flowcontrol import FlowSchema, PriorityLevelConfiguration
from podling.model.types.meta import KubeObject
from podling.model.types.rbac import MASTERS

T = TypeVar("T", bound=KubeObject)
AUTHENTICATED = "system:authenticated"
JANE, JOE = User("jane", (AUTHENTICATED,)), User("joe", (AUTHENTICATED,))
ADMIN = User("admin", (MASTERS, AUTHENTICATED))
NODE = User("system:node:n", ("system:nodes", AUTHENTICATED))
PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"


class Kept:
    """FlowObjects as the watch caches have them."""

    def __init__(self, *objects: Any) -> None:
        self.objects: list[Any] = [*flow_schemas().values(), *priority_levels().values(), *objects]

    def all(self, type: type[T], namespace: str = "") -> Iterable[T]:
        return [one for one in self.objects if isinstance(one, type)]


class Many:
    size, bytes, watchers = 1000, 800_000, 45


def schema(name: str, level: str, user: str) -> FlowSchema:
    everything = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "clusterScope": True,
        "namespaces": ["*"],
    }
    spec = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": 50,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}],
    }
    return convert({"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec}, FlowSchema)


def level(name: str, shares: int, length: int = 50) -> PriorityLevelConfiguration:
    queuing = {"queues": 8, "handSize": 1, "queueLengthLimit": length}
    limited = {
        "nominalConcurrencyShares": shares,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }
    spec = {"type": "Limited", "limited": limited}
    return convert(
        {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": spec}, PriorityLevelConfiguration
    )


def small(*, length: int = 50, wait: float = 15.0) -> Fairness:
    """Jane and Joe share a level that has one seat."""
    kept = Kept(level("one", 1, length), schema("jane", "one", "jane"), schema("joe", "one", "joe"))
    return Fairness(kept, {("", "pods"): Many()}, seats=200, longest_wait=wait)


def asked(user: User, method: str = "GET", path: str = PODS + "/a", query: str = "") -> RequestContext:
    parsed = parse_query(query)
    context = RequestContext(Request(method, path, query), "", datetime.now(UTC), parsed)
    context.user, context.info = user, request_info(method, path, parsed)
    return context


class Handler:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.go_on = asyncio.Event()

    async def __call__(self, context: RequestContext) -> Response:
        self.begun.append(context.user.name)
        await self.go_on.wait()
        return Response(200)


async def served(
    gate: Gate, context: RequestContext, answer: Callable[[RequestContext], Awaitable[Response]]
) -> Response:
    """As the pipeline does it."""
    seat = gate.seat(context) or await gate.wait(context)
    if seat is None:
        return too_many_requests()
    try:
        return await answer(context)
    finally:
        seat.leave()


async def at_once(context: RequestContext) -> Response:
    return Response(200)


@asynccontextmanager
async def asking(gate: Gate, handler: Handler, *users: User) -> AsyncIterator[list[asyncio.Task[Response]]]:
    async with asyncio.TaskGroup() as tasks:
        yield [tasks.create_task(served(gate, asked(user), handler)) for user in users]
        handler.go_on.set()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_every_answer_names_schema_and_level() -> None:
    fairness, context = small(), asked(JANE)
    await served(fairness, context, at_once)
    assert context.flow_headers == {SCHEMA_HEADER: "uid-of-jane", LEVEL_HEADER: "uid-of-one"}


async def test_who_finds_room_waits_for_nothing() -> None:
    """No turn of the loop passes between the request and its answer."""
    answer = served(small(), asked(JANE), at_once)
    with pytest.raises(StopIteration) as ended:
        cast(Any, answer).send(None)
    assert ended.value.value.status == 200


async def test_who_finds_none_waits_for_a_seat() -> None:
    fairness, handler = small(), Handler()
    async with asking(fairness, handler, JANE, JOE):
        await settle()
        assert handler.begun == ["jane"]
        [waiting] = [one for one in fairness.counts if one.name == "joe"]
        assert (len(waiting.waiting), len(waiting.executing)) == (1, 0)
    assert handler.begun == ["jane", "joe"] and fairness.levels["one"].taken == 0
    assert (len(waiting.waiting), waiting.dispatched) == (0, 1)


async def test_a_full_queue_refuses_as_kubernetes_does() -> None:
    fairness, handler = small(length=1), Handler()
    async with asking(fairness, handler, JANE, JANE, JANE) as tasks:
        await settle()
        refused = tasks[2].result()
    assert refused.status == 429 and refused.headers["Retry-After"] == "1"
    assert refused.body == b"Too many requests, please try again later.\n"
    assert refused.content_type == "text/plain; charset=utf-8"
    assert [tasks[i].result().status for i in (0, 1)] == [200, 200]


async def test_nobody_waits_longer_than_allowed() -> None:
    fairness, handler = small(wait=0.0), Handler()
    async with asking(fairness, handler, JANE, JOE) as tasks:
        await asyncio.wait([tasks[1]])
        assert tasks[1].result().status == 429
    [counts] = [one for one in fairness.counts if one.name == "joe"]
    assert counts.rejected == {"time-out": 1} and not fairness.levels["one"].queues


@pytest.mark.parametrize("which", [0, 1])
async def test_a_client_that_leaves_gives_its_seat_back(which: int) -> None:
    """While it is answered, and while it waits."""
    fairness, handler = small(), Handler()
    async with asking(fairness, handler, JANE, JOE) as tasks:
        await settle()
        tasks[which].cancel()
        await settle()
        assert handler.begun == [["jane", "joe"], ["jane"]][which]
    assert fairness.levels["one"].taken == 0 and not fairness.levels["one"].queues


async def test_a_client_that_leaves_as_it_is_seated_gives_its_seat_back() -> None:
    fairness, handler = small(), Handler()
    async with asking(fairness, handler, JANE, JOE) as tasks:
        await settle()
        tasks[0].cancel()
        await asyncio.sleep(0)
        assert fairness.levels["one"].taken == 1, "it is Joe's, who does not know yet"
        tasks[1].cancel()
    assert handler.begun == ["jane"] and fairness.levels["one"].taken == 0


async def test_a_fault_gives_the_seat_back() -> None:
    async def fails(context: RequestContext) -> Response:
        raise RuntimeError("nobody thought of this")

    fairness = small()
    with pytest.raises(RuntimeError):
        await served(fairness, asked(JANE), fails)
    assert fairness.levels["one"].taken == 0


async def test_the_kubelet_and_health_checks_are_on_time_in_a_flood() -> None:
    """A user fills every seat there is for him and all queues he is dealt; nodes, leader elections, health
    checks and administrators wait for nothing."""
    fairness, handler = Fairness(Kept(), {}), Handler()
    flood = User("flood", (AUTHENTICATED,))
    async with asking(fairness, handler, *[flood] * 2000) as tasks:
        await settle()
        refused = sum(task.done() and task.result().status == 429 for task in tasks)
        assert refused > 1000 and len(handler.begun) < 600
        for context in (
            asked(NODE, "PUT", LEASE),
            asked(NODE, "PATCH", "/api/v1/nodes/n/status"),
            asked(NODE, "GET", PODS + "/a"),
            asked(User("system:kube-scheduler", (AUTHENTICATED,)), "PUT", LEASE),
            asked(ANONYMOUS, "GET", "/livez"),
            asked(ADMIN),
        ):
            with pytest.raises(StopIteration):
                cast(Any, served(fairness, context, at_once)).send(None)
        quiet = asyncio.get_running_loop().create_future()

        async def answered(context: RequestContext) -> Response:
            quiet.set_result(len(handler.begun))
            return Response(200)

        begun = len(handler.begun)
        async with asyncio.TaskGroup() as group:
            group.create_task(served(fairness, asked(JANE), answered))
            await settle()
            handler.go_on.set()
        assert quiet.result() - begun < 20, "a quiet user of the same level is among the next"


async def test_what_keeps_its_connection_takes_no_seat() -> None:
    fairness, handler = small(), Handler()
    async with asyncio.TaskGroup() as tasks:
        for path in ("/exec", "/attach", "/portforward", "/log", "/proxy"):
            tasks.create_task(served(fairness, asked(JANE, "GET", f"{PODS}/a{path}"), handler))
        await settle()
        assert len(handler.begun) == 5 and not fairness.counts
        handler.go_on.set()


async def test_lists_and_writes_are_as_wide_as_what_they_do() -> None:
    fairness, seats = Fairness(Kept(), {("", "pods"): Many()}), []

    async def look(context: RequestContext) -> Response:
        seats.append(fairness.levels["global-default"].taken)
        return Response(200)

    for method, query in (("GET", ""), ("GET", "limit=200"), ("POST", "")):
        await served(fairness, asked(JANE, method, PODS, query), look)
    await served(fairness, asked(JANE), look)
    assert seats == [8, 2, 5, 1]


async def test_a_change_counts_at_once() -> None:
    kept = Kept(level("one", 1))
    fairness, context = Fairness(kept, {}), asked(JANE)
    await served(fairness, context, at_once)
    kept.objects.append(schema("jane", "one", "jane"))
    fairness.changed(("", "jane"), kept.objects[-1], FlowSchema)
    await served(fairness, context, at_once)
    assert context.flow_headers[SCHEMA_HEADER] == "uid-of-jane"


def test_flows_are_remembered_by_target_and_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness_module, "MOST_REPEATED", 3)
    fairness, info = small(), request_info("GET", PODS, {})
    fairness.flow(ANONYMOUS, info)
    assert not fairness._remembered, "of a request that is not remembered"
    for _ in range(10):
        repeated = RepeatedRequest(JANE, info)
        assert fairness.flow(JANE, info, repeated) is fairness.flow(JANE, info, repeated)
        assert 1 <= len(fairness._remembered) <= 3


def test_the_metrics_have_names_and_labels_of_kubernetes() -> None:
    fairness = small()
    counts = fairness.flow(JANE, request_info("GET", PODS, {})).schema
    counts.rejected["queue-full"] += 1
    counts.executed.observe(0.1)
    counts.waited.observe(0.1)
    found = {
        one.name: {tuple(sorted(sample.labels)) for sample in one.samples}
        for one in fairness_metrics(fairness)
    }
    prefix, of = "apiserver_flowcontrol_", ("flow_schema", "priority_level")
    assert {name.removeprefix(prefix) for name in found} == {
        "current_executing_requests", "current_executing_seats", "current_inqueue_requests",
        "current_inqueue_seats", "nominal_limit_seats", "lower_limit_seats", "upper_limit_seats",
        "dispatched_requests", "rejected_requests", "request_execution_seconds",
        "request_wait_duration_seconds", "current_limit_seats", "work_estimated_seats",
    }  # fmt: skip
    assert found[f"{prefix}dispatched_requests"] == {of}
    assert found[f"{prefix}rejected_requests"] == {(*of, "reason")}
    assert found[f"{prefix}nominal_limit_seats"] == {("priority_level",)}


async def test_plain_limits() -> None:
    gate, handler = InFlight(1, 1), Handler()
    async with asking(gate, handler, JANE):
        await settle()
        assert (await served(gate, asked(JOE), at_once)).status == 429
        assert (await served(gate, asked(ADMIN), at_once)).status == 200
        assert (await served(gate, asked(JOE, "POST", PODS), at_once)).status == 200
        assert (await served(gate, asked(JOE, "GET", PODS, "watch=1"), at_once)).status == 200
    assert (await served(gate, asked(JOE), at_once)).status == 200
    assert (await served(InFlight(0, 0), asked(JOE), at_once)).status == 200
