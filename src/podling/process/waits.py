"""How a task waits: for an event or a time, longer after each failure, for its turn on the loop, and for
work in a thread beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import msgspec

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_TURN = 0.01
"""Seconds."""
SHORT = 64 * 1024
"""Bytes of input; decoding, validating and encoding so many takes at most 20 ms, whatever their content."""
MOST_PUT_OFF = 4
"""Turns that a long piece lets short ones pass."""
LONGEST_WAY = 0.003
"""Seconds that the thread of `aside` waits at a time for short requests to be answered."""
PACE = 64
"""Items of a list that work in that thread goes through at a time: some 0.1 ms."""
_waiting = ThreadPoolExecutor(1, "apart")
_MOST_DOUBLINGS = 64
"""More than any backoff needs to reach its longest delay; a float overflows at 1024."""

done_for: ContextVar[Hashable] = ContextVar("done_for", default=None)
"""For whom the running task works: requests set it to their flow."""


async def woken(event: asyncio.Event, seconds: float | None) -> bool:
    """Whether the event came within so many seconds; None waits for it however long it takes."""
    # `wait_for` of Python 3.11 loses a cancellation that comes with the event: its task would never end.
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def each(works: Iterable[Awaitable[object]]) -> None:
    """Wait for all of them, also after one has failed. Raises an ExceptionGroup of what went wrong.

    For who goes on after failures: a TaskGroup that has failed leaves its task marked as cancelled, and until
    Python 3.11.4 the next timeout in such a task ends it.
    """
    results = await asyncio.gather(*works, return_exceptions=True)
    if errors := [result for result in results if isinstance(result, Exception)]:
        raise ExceptionGroup("some failed", errors)


class Turn:
    """Divides long work on the event loop, so that other tasks get their turns.

    An `await` that finds nothing to wait for does not let other tasks run, so a loop over many things must
    yield by itself."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def share(self) -> None:
        """Let other tasks run if this turn has lasted LONGEST_TURN. Call it between any two things."""
        if time.monotonic() - self._began >= LONGEST_TURN:
            await asyncio.sleep(0)
            self._began = time.monotonic()


class OneATurn:
    """Spreads long pieces of work over turns of the loop: one in each. Whoever they are done for (`done_for`)
    take turns; the pieces of one are done in the order they came."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[Callable[[], bool]]] = {}
        self._is_taken = False
        self._rest = 0
        self._put_off = 0

    def let_pass(self, turns: int) -> None:
        """Begin no piece in so many turns, since something short has come that takes as many."""
        self._rest = turns

    async def wait(self) -> None:
        """Returns when a piece may begin, which ends at the task's next await."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._add(partial(_give, turn))
            await turn
        else:
            self._is_taken = True
            loop.call_soon(self._next)

    def call(self, work: Callable[[], bool]) -> None:
        """Have `work` called in a later turn. It says whether there was anything to do."""
        self._add(work)
        if not self._is_taken:
            self._is_taken = True
            asyncio.get_running_loop().call_soon(self._next)

    def _add(self, work: Callable[[], bool]) -> None:
        self._waiting.setdefault(done_for.get(), deque()).append(work)

    def _next(self) -> None:
        if self._rest and self._put_off < MOST_PUT_OFF:
            self._rest -= 1
            self._put_off += 1
            asyncio.get_running_loop().call_soon(self._next)
            return
        self._put_off = 0
        while self._waiting:
            whose = next(iter(self._waiting))
            pieces = self._waiting.pop(whose)
            work = pieces.popleft()
            if pieces:
                self._waiting[whose] = pieces
            if work():
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False


def _give(turn: asyncio.Future[None]) -> bool:
    if turn.done():
        return False
    turn.set_result(None)
    return True


_long_work: WeakKeyDictionary[asyncio.AbstractEventLoop, OneATurn] = WeakKeyDictionary()


def long_work() -> OneATurn:
    """The turns for all long work of the running loop: pieces that take up to 0.5 ms, such as a part of a
    long list, the encryption of 256 KiB, or reading as much. A turn of the loop has one such piece at most,
    however many clients there are, and flows take turns, however many pieces of one wait."""
    loop = asyncio.get_running_loop()
    turns = _long_work.get(loop)
    if turns is None:
        turns = _long_work[loop] = OneATurn()
    return turns


class Aside:
    """One thread, for all work beside the loop: threads share Python's lock, so more of them finish nothing
    earlier, but each that computes takes its turn at the lock before the loop has its next one.

    Unlike an executor it is handed work in few steps of the loop, at each of which that may lose the lock.

    To answer a request the loop takes Python's lock six to eight times, each time after a call into C of this
    thread at worst. So the loop holds the thread while it answers what is short, and the thread waits where
    its work gives way."""

    def __init__(
        self, timer: Callable[[], float] = time.perf_counter, longest_way: float = LONGEST_WAY
    ) -> None:
        self._works: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._timer, self._longest_way = timer, longest_way
        self._is_busy = False
        self._gate: threading.Lock | None = None
        """Taken, while the thread is held; a new one each time, since the loop may end meanwhile."""
        self._turns = 0
        """Turns of the loop until it is let go."""
        self._runs_until = 0.0
        """When it may be made to wait again."""

    @property
    def is_here(self) -> bool:
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Its result. Work whose future is cancelled before it begins is left out."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="aside", daemon=True)
            self._thread.start()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._works.put((done, work))
        return done

    def hold(self, turns: int) -> None:
        """Have the thread wait for so many turns of the loop, which calls this, where its work gives way."""
        self._turns = turns
        if self._is_busy and self._gate is None:
            self._gate = gate = threading.Lock()
            gate.acquire()
            asyncio.get_running_loop().call_soon(self._turn, gate)

    def _turn(self, gate: threading.Lock) -> None:
        self._turns -= 1
        if self._turns > 0:
            asyncio.get_running_loop().call_soon(self._turn, gate)
            return
        if self._gate is gate:
            self._gate = None
        gate.release()

    def give_way(self) -> None:
        """Wait while the thread is held, for LONGEST_WAY at most. It then works for as long as it has waited
        before it waits again, so short requests without end take half of its time and no more."""
        gate = self._gate
        if gate is None or not self.is_here or (began := self._timer()) < self._runs_until:
            return
        if not gate.acquire(timeout=self._longest_way) and self._gate is gate:
            self._gate = None
        ended = self._timer()
        self._runs_until = ended + (ended - began)

    def _work(self) -> None:
        while True:
            done, work = self._works.get()
            if done.cancelled():
                continue
            self._is_busy = True
            self.give_way()
            try:
                settle = partial(_settle, done, work(), None)
            except BaseException as error:
                settle = partial(_settle, done, None, error)
            self._is_busy = False
            # The loop may have ended meanwhile.
            with suppress(RuntimeError):
                done.get_loop().call_soon_threadsafe(settle)
            del done, work, settle


def _settle(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


_aside = Aside()


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, in a thread if its input has more than SHORT bytes; a thread costs 0.1 ms.

    The work must be pure: a thread cannot be cancelled, so work that has begun runs to its end even if its
    task is cancelled."""
    if size <= SHORT:
        return work(*args, **kwargs)
    return await _aside.run(partial(work, *args, **kwargs))


def is_aside() -> bool:
    """Whether this is the thread of `aside`, whose work should call into C for long only in pieces."""
    return _aside.is_here


hold_aside = _aside.hold
"""Have the work of `aside` wait for so many turns of the loop: a short request has come that takes as many to
be answered."""


def give_way() -> None:
    """For work of `aside`, to be called before whatever holds Python's lock for 0.1 ms and more: lets short
    requests be answered first. Elsewhere it does nothing."""
    _aside.give_way()


def giving_way(work: Callable[P, T]) -> Callable[P, T]:
    """`work`, and before it `give_way`."""

    def after_others(*args: P.args, **kwargs: P.kwargs) -> T:
        give_way()
        return work(*args, **kwargs)

    return after_others


def paced(items: Iterable[T]) -> Iterable[T]:
    """The items; work of `aside` gives way after each PACE of them."""
    # Most objects have none of most things.
    return _paced(items) if items and is_aside() else items


def _paced(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if number % PACE == 0:
            give_way()
        yield item


async def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As `aside`, for work that may itself wait for a process: in a thread that no other work waits for."""
    return await asyncio.get_running_loop().run_in_executor(_waiting, partial(work, *args, **kwargs))


class Backoff(msgspec.Struct, frozen=True):
    """Exponential backoff in seconds: `first` after one failure, then twice as long each time, up to
    `longest`. It only computes; the caller waits."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Seconds before the next try after so many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)

    def begin(self) -> Retries:
        return Retries(self)


class Retries:
    """The failures in a row of one thing that is tried again and again."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._failures = 0

    def next(self) -> float:
        """A try has failed. Returns the seconds before the next."""
        self._failures += 1
        return self._backoff.after(self._failures)

    def reset(self) -> None:
        """A try has succeeded."""
        self._failures = 0
