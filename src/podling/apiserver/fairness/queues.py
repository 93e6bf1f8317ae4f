"""Seats, and the queues in which requests wait for them. It knows no clock and no event loop: times come in,
and whoever waits is called.

A **level** has seats of its own. Its `lower` seats nobody else ever takes; those above it lends while it does
not need them, and borrows up to `upper` from others that do not. What is free goes to levels that have less
than their own first, so what was lent comes back as soon as a request ends.

A flow is dealt a **hand** of its level's queues, and a request waits in the one with the least to do. Of the
queues that wait the one that has the fewest seats is next, and of those the one that has used the least:
each gets the same share, however much waits in the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TIMED_OUT, QUEUE_FULL, NO_SEAT = "time-out", "queue-full", "concurrency-limit"
"""Why a request is refused, as the metrics have it."""


class Queuing(NamedTuple):
    queues: int
    hand_size: int
    length_limit: int


class SeatLimits(NamedTuple):
    """Of a level, in seats. Without `queuing` who finds no seat is refused."""

    nominal: int
    lower: int
    upper: int
    queuing: Queuing | None = None


NOTHING = SeatLimits(0, 0, 0)


class Queue:
    """The requests of the flows that were dealt it, in order. It exists while one waits or is answered."""

    __slots__ = ("index", "seated", "seats", "used", "waiting", "waiting_seats")

    def __init__(self, index: int, used: float) -> None:
        self.index = index
        self.waiting: dict[Waiter, None] = {}
        self.waiting_seats = 0
        self.seated = self.seats = 0
        """Requests that waited in it and are answered, and the seats they have."""
        self.used = used
        """Seat-seconds. It begins with what the others have used at least, so time without requests saves
        nothing."""

    @property
    def load(self) -> int:
        return self.seats + self.waiting_seats


class Waiter:
    """One request that waits for `width` seats. `wake` is called when it has them."""

    __slots__ = ("is_seated", "level", "queue", "wake", "width")

    def __init__(self, level: PriorityLevel, queue: Queue, width: int, wake: Callable[[], None]) -> None:
        self.level, self.queue, self.width, self.wake = level, queue, width, wake
        self.is_seated = False


class PriorityLevel:
    def __init__(self, name: str, pool: Seats, limits: SeatLimits) -> None:
        self.name = name
        self.limits = limits
        self.taken = 0
        self.queues: dict[int, Queue] = {}
        """Those in which a request waits, or waited that is still answered."""
        self.waiting: dict[Queue, None] = {}
        self._pool = pool

    def take(self, width: int) -> bool:
        """Take seats if there is room and nobody waits who comes first."""
        taken = self.taken + width
        if taken <= self.limits.lower and not self.waiting:
            # Nobody else ever has these, so there is nothing to add up.
            self.taken = taken
            return True
        pool = self._pool
        if self.waiting or (pool.waiting and taken > self.limits.nominal):
            return False
        if not self.fits(width):
            return False
        self.add(width)
        return True

    def fits(self, width: int) -> bool:
        taken, lower, upper = self.taken, self.limits.lower, self.limits.upper
        wanted = taken + width
        if wanted > upper:
            # Who is wider than the level has it alone. Where there are no seats at all those in queues wait
            # on, and others pass one by one, as in Kubernetes.
            return taken == 0 and (upper > 0 or self.limits.queuing is None)
        more = max(wanted, lower) - max(taken, lower)
        return self._pool.committed + more <= self._pool.total

    def add(self, seats: int) -> None:
        before, lower = self.taken, self.limits.lower
        self.taken = before + seats
        self._pool.committed += max(self.taken, lower) - max(before, lower)

    def give_back(self, width: int) -> None:
        if self.taken <= self.limits.lower:
            self.taken -= width
        else:
            self.add(-width)
        if self._pool.waiting:
            self._pool.dispatch()

    def enqueue(self, hand: Sequence[int], width: int, wake: Callable[[], None]) -> Waiter | str:
        """Who waits, and may have been seated meanwhile; or why nobody can."""
        if self.limits.queuing is None:
            return NO_SEAT
        chosen = min(hand, key=lambda index: queue.load if (queue := self.queues.get(index)) else 0)
        queue = self.queues.get(chosen)
        if queue is not None and len(queue.waiting) >= self.limits.queuing.length_limit:
            return QUEUE_FULL
        if queue is None:
            used = min((one.used for one in self.queues.values()), default=0.0)
            queue = self.queues[chosen] = Queue(chosen, used)
        waiter = Waiter(self, queue, width, wake)
        queue.waiting[waiter] = None
        queue.waiting_seats += width
        self.waiting[queue] = None
        self._pool.waiting[self] = None
        self._pool.dispatch()
        return waiter

    def first(self) -> Waiter:
        """Who is next; somebody must wait."""
        queue = min(self.waiting, key=lambda one: (one.seats, one.used))
        return next(iter(queue.waiting))

    def seat(self, waiter: Waiter) -> None:
        self._remove(waiter)
        waiter.queue.seated += 1
        waiter.queue.seats += waiter.width
        self.add(waiter.width)
        waiter.is_seated = True
        waiter.wake()

    def leave(self, waiter: Waiter, seconds: float) -> None:
        """The waiter has been answered, in so many seconds, or waits no more."""
        queue = waiter.queue
        if waiter.is_seated:
            queue.seated -= 1
            queue.seats -= waiter.width
            queue.used += waiter.width * seconds
            self._forget(queue)
            self.give_back(waiter.width)
        else:
            self._remove(waiter)
            self._forget(queue)
            # Whoever stood behind it may need fewer seats.
            self._pool.dispatch()

    def _remove(self, waiter: Waiter) -> None:
        queue = waiter.queue
        del queue.waiting[waiter]
        queue.waiting_seats -= waiter.width
        if not queue.waiting:
            del self.waiting[queue]
            if not self.waiting:
                del self._pool.waiting[self]

    def _forget(self, queue: Queue) -> None:
        if not queue.waiting and not queue.seats:
            del self.queues[queue.index]


class Seats:
    """All seats of the server, and its levels by name."""

    def __init__(self) -> None:
        self.total = 0
        self.committed = 0
        """Taken, or kept for a level that has not taken its `lower` ones."""
        self.levels: dict[str, PriorityLevel] = {}
        self.waiting: dict[PriorityLevel, None] = {}

    def set(self, limits: Mapping[str, SeatLimits], total: int) -> None:
        """Give each level its limits. A level that has none is kept, without seats of its own, until it has
        no requests any more."""
        for name, level in list(self.levels.items()):
            if name not in limits:
                level.limits = NOTHING
                if not level.taken and not level.waiting:
                    del self.levels[name]
        for name, one in limits.items():
            if name in self.levels:
                self.levels[name].limits = one
            else:
                self.levels[name] = PriorityLevel(name, self, one)
        # Shares are rounded up: together they may come to more.
        self.total = max(total, sum(one.nominal for one in limits.values()))
        self.committed = sum(max(one.taken, one.limits.lower) for one in self.levels.values())
        self.dispatch()

    def dispatch(self) -> None:
        """Seat whoever can be seated."""
        while (waiter := self.next()) is not None:
            waiter.level.seat(waiter)

    def next(self) -> Waiter | None:
        """Who is seated next, if there is room: of the levels that wait the one with the smallest part of
        its own seats."""
        owed = False
        for level in sorted(self.waiting, key=lambda one: one.taken / (one.limits.nominal or 1)):
            waiter = level.first()
            is_own = level.taken + waiter.width <= level.limits.nominal
            if (is_own or not owed) and level.fits(waiter.width):
                return waiter
            owed = owed or is_own
        return None


def hand_of(schema: str, distinguisher: str, queuing: Queuing) -> tuple[int, ...]:
    """Which queues a flow is dealt: as many different ones as a hand has, by a hash of its name."""
    text = f"{len(schema)},{schema},{distinguisher}"
    entropy = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")
    hand: list[int] = []
    for dealt in range(min(queuing.hand_size, queuing.queues)):
        entropy, card = divmod(entropy, queuing.queues - dealt)
        for before in sorted(hand):
            card += card >= before
        hand.append(card)
    return tuple(hand)
