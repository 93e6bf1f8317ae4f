"""Issue 13: seats are shared fairly, and never more than there are."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podling.apiserver.fairness.queues import (
    NO_SEAT,
    QUEUE_FULL,
    Queuing,
    SeatLimits,
    Seats,
    Waiter,
    hand_of,
)

QUEUING = Queuing(queues=64, hand_size=1, length_limit=1000)


class Load:
    """Flows that keep a number of requests in the server each, by a virtual clock."""

    def __init__(self, pool: Seats, level: str) -> None:
        self.level = pool.levels[level]
        self.now = 0.0
        self.served: Counter[str] = Counter()
        self.waited: defaultdict[str, list[float]] = defaultdict(list)
        self.refused: list[str] = []
        self._ends: list[tuple[float, int, str, Waiter | None, float, int]] = []
        self._numbers = count()

    def ask(self, flow: str, seconds: float, width: int = 1) -> None:
        if self.level.take(width):
            self._begin(flow, None, seconds, width)
            return
        seated: list[float] = []
        came = self.now

        def wake() -> None:
            self.waited[flow].append(self.now - came)
            seated.append(self.now)
            if waiters:
                self._begin(flow, waiters[0], seconds, width)

        waiters: list[Waiter] = []
        queuing = self.level.limits.queuing or QUEUING
        found = self.level.enqueue(hand_of("schema", flow, queuing), width, wake)
        if isinstance(found, str):
            self.refused.append(found)
            return
        waiters.append(found)
        if seated:
            self._begin(flow, found, seconds, width)

    def until(self, end: float) -> None:
        """Each flow sends its next request when one of its requests ends."""
        while self._ends and self._ends[0][0] <= end:
            self.now, _, flow, waiter, seconds, width = heapq.heappop(self._ends)
            self.served[flow] += 1
            if waiter is None:
                self.level.give_back(width)
            else:
                self.level.leave(waiter, seconds)
            self.ask(flow, seconds, width)

    def _begin(self, flow: str, waiter: Waiter | None, seconds: float, width: int) -> None:
        heapq.heappush(self._ends, (self.now + seconds, next(self._numbers), flow, waiter, seconds, width))


def pool_of(total: int, **levels: SeatLimits) -> Seats:
    pool = Seats()
    pool.set(levels, total)
    return pool


def test_two_flows_share_alike_however_much_one_of_them_asks() -> None:
    load = Load(pool_of(10, a=SeatLimits(10, 10, 10, QUEUING)), "a")
    for _ in range(200):
        load.ask("noisy", 1.0)
    for _ in range(20):
        load.ask("quiet", 1.0)
    load.until(5.0)
    load.served.clear()
    load.until(105.0)
    assert load.served["quiet"] == pytest.approx(load.served["noisy"], rel=0.05)


def test_long_requests_are_paid_for_with_seats() -> None:
    """What is shared is seats over time, not requests."""
    load = Load(pool_of(10, a=SeatLimits(10, 10, 10, QUEUING)), "a")
    for _ in range(50):
        load.ask("long", 4.0)
        load.ask("short", 1.0)
    load.until(20.0)
    load.served.clear()
    load.until(420.0)
    assert 4 * load.served["long"] == pytest.approx(load.served["short"], rel=0.1)


def test_a_noisy_flow_starves_no_quiet_one() -> None:
    load = Load(pool_of(4, a=SeatLimits(4, 4, 4, QUEUING)), "a")
    for _ in range(900):
        load.ask("noisy", 0.1)
    load.ask("quiet", 0.1)
    load.until(60.0)
    assert max(load.waited["quiet"]) <= 0.1 + 1e-6, "the next seat that is free is its own"
    assert load.served["quiet"] > 250


def test_a_wide_request_is_not_overtaken_for_ever() -> None:
    load = Load(pool_of(4, a=SeatLimits(4, 4, 4, QUEUING)), "a")
    for _ in range(100):
        load.ask("narrow", 1.0)
    load.ask("wide", 1.0, width=4)
    load.until(50.0)
    assert load.served["wide"] >= 10


def test_a_queue_has_a_length() -> None:
    queuing = Queuing(queues=1, hand_size=1, length_limit=2)
    load = Load(pool_of(1, a=SeatLimits(1, 1, 1, queuing)), "a")
    for _ in range(4):
        load.ask("a", 1.0)
    assert load.refused == [QUEUE_FULL]


def test_without_queues_who_finds_no_seat_is_refused() -> None:
    load = Load(pool_of(1, a=SeatLimits(1, 1, 1)), "a")
    load.ask("a", 1.0)
    load.ask("b", 1.0)
    assert load.refused == [NO_SEAT]


def test_a_level_without_seats_lets_one_pass_if_it_has_no_queues() -> None:
    """As asked of Kubernetes."""
    pool = pool_of(
        10, rejects=SeatLimits(0, 0, 0), queues=SeatLimits(0, 0, 0, QUEUING), other=SeatLimits(10, 10, 10)
    )
    assert pool.levels["rejects"].take(1) and not pool.levels["rejects"].take(1)
    assert not pool.levels["queues"].take(1)


def test_what_others_do_not_need_is_lent_and_comes_back() -> None:
    pool = pool_of(10, a=SeatLimits(5, 2, 15, QUEUING), b=SeatLimits(5, 2, 15, QUEUING))
    a, b = pool.levels["a"], pool.levels["b"]
    assert [a.take(1) for _ in range(9)] == [True] * 8 + [False], "the two that b never lends are kept"
    assert b.take(1) and b.take(1) and not b.take(1)
    woken: list[str] = []
    assert isinstance(a.enqueue((0,), 1, lambda: woken.append("a")), Waiter)
    assert isinstance(b.enqueue((0,), 1, lambda: woken.append("b")), Waiter)
    a.give_back(1)
    assert woken == ["b"], "who has less than its own is first"
    b.give_back(1)
    assert woken == ["b", "a"], "nobody else needs it"


def test_seats_are_borrowed_up_to_a_limit() -> None:
    pool = pool_of(10, a=SeatLimits(5, 5, 7), b=SeatLimits(5, 0, 15))
    assert [pool.levels["a"].take(1) for _ in range(8)] == [True] * 7 + [False]


def test_nobody_borrows_what_somebody_waits_for() -> None:
    """Three requests of one seat each would keep a wide one waiting for ever."""
    pool = pool_of(8, a=SeatLimits(4, 0, 12, QUEUING), b=SeatLimits(4, 0, 12, QUEUING))
    a, b = pool.levels["a"], pool.levels["b"]
    for _ in range(8):
        assert a.take(1)
    woken: list[str] = []
    b.enqueue((0,), 3, lambda: woken.append("wide"))
    for _ in range(3):
        assert woken == [] and not a.take(1)
        a.give_back(1)
    assert woken == ["wide"]


def test_a_level_that_goes_serves_who_waits() -> None:
    pool = pool_of(2, a=SeatLimits(1, 1, 1, QUEUING), b=SeatLimits(1, 1, 1, QUEUING))
    a = pool.levels["a"]
    woken: list[int] = []
    assert a.take(1)
    waiters = [a.enqueue((0,), 1, lambda: woken.append(1)) for _ in range(2)]
    pool.set({"b": SeatLimits(2, 2, 2, QUEUING)}, 2)
    a.give_back(1)
    for waiter in waiters:
        assert isinstance(waiter, Waiter) and waiter.is_seated
        a.leave(waiter, 1.0)
    pool.set({"b": SeatLimits(2, 2, 2, QUEUING)}, 2)
    assert len(woken) == 2 and pool.committed == 2 and list(pool.levels) == ["b"]


@given(st.text(), st.integers(1, 500), st.integers(1, 8))
def test_a_hand_is_of_different_queues_and_always_the_same(flow: str, queues: int, size: int) -> None:
    queuing = Queuing(queues, min(size, queues), 1)
    hand = hand_of("schema", flow, queuing)
    assert len(set(hand)) == queuing.hand_size and all(0 <= one < queues for one in hand)
    assert hand == hand_of("schema", flow, queuing)


LEVELS = st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 8))
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 3), st.booleans()), max_size=80
)


@settings(deadline=None)
@given(st.lists(LEVELS, min_size=3, max_size=3), STEPS)
def test_seats_are_never_more_and_all_come_back(
    levels: list[tuple[int, int, int]], steps: list[tuple[int, int, int, bool]]
) -> None:
    """Requests that begin, end and give up in any order; and in a queue they are served in theirs."""
    limits = {
        str(i): SeatLimits(nominal, min(lower, nominal), nominal + more, Queuing(4, 1, 5))
        for i, (nominal, lower, more) in enumerate(levels)
    }
    total = sum(one.nominal for one in limits.values())
    pool = pool_of(total, **limits)
    held: list[tuple[str, Waiter | int]] = []
    came: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    served: defaultdict[tuple[str, int], list[int]] = defaultdict(list)

    def end(at: int) -> None:
        name, what = held.pop(at)
        if isinstance(what, int):
            pool.levels[name].give_back(what)
        else:
            pool.levels[name].leave(what, 1.0)

    for number, (which, queue, width, begins) in enumerate(steps):
        name = str(which)
        level = pool.levels[name]
        width = min(width, level.limits.nominal)
        if not begins and held:
            end(queue % len(held))
        elif level.take(width):
            held.append((name, width))
        else:
            key = (name, queue)

            def wake(key: tuple[str, int] = key, number: int = number) -> None:
                served[key].append(number)

            came[key].append(number)
            waiter = level.enqueue((queue,), width, wake)
            if isinstance(waiter, Waiter):
                held.append((name, waiter))
        for one in pool.levels.values():
            assert 0 <= one.taken <= one.limits.upper
            assert one.taken == sum(
                what if isinstance(what, int) else what.width * what.is_seated
                for of, what in held
                if of == one.name
            )
        assert sum(one.taken for one in pool.levels.values()) <= pool.committed <= total
    assert all(numbers == sorted(numbers) for numbers in served.values())
    while held:
        end(0)
    assert not pool.waiting and all(not one.queues and not one.taken for one in pool.levels.values())
