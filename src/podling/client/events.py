"""The event recorder: writes Events about objects, as `kubectl describe` shows them.

Recording never waits and never fails. An event goes into one of a few bounded queues, which `run()` empties
in parallel; when the server is away for long, the oldest ones are dropped. Events about one object keep their
order. The same event again raises the count of the existing one, also while it is not written because there
are too many; of events that differ in their messages alone, most are counted as one (client-go's
EventCorrelator).
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import OrderedDict, deque
from datetime import timedelta
from typing import NamedTuple, TypeVar

import msgspec

from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.time import Clock, rfc3339
from podling.model.types.core import Event, EventSource
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.references import ObjectReference
from podling.process.waits import Backoff

NORMAL = "Normal"
WARNING = "Warning"

LANES = 8
"""Queues, and so events written at a time: the storage groups writes that come together."""
QUEUE_LIMIT = 1000
"""Events in each queue."""
REMEMBERED = 4096
BURST = 25
REFILL = timedelta(minutes=5)
ALIKE = 10
"""From so many messages on, without `ALIKE_WITHIN` between two, events are counted as one."""
ALIKE_WITHIN = timedelta(minutes=10)
EARLY, LATE = Backoff(0.1, 5.0), 3.0
"""Waits for a namespace that is missing, and the first that is too long."""
COMBINED = "(combined from similar events): "
RUN_ONCE = "spec.ephemeralContainers{"
"""Field paths with a budget of their own. A container that runs once repeats no event, and its events say who
ran which image where (R-EPH-14): neither its pod's events nor those of earlier debug containers may use up
that budget.
"""

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")


class _Said(NamedTuple):
    about: ObjectReference
    type: str
    reason: str
    message: str
    at: str
    component: str
    name: str
    """Of the event."""
    began: str
    times: int


class _Counted(msgspec.Struct):
    """How often something was said, and since when."""

    name: str
    began: str
    times: int = 0


class _Alike(msgspec.Struct):
    """Messages of events about one object that differ in nothing else, by their hashes, and when the last of
    them came."""

    at: float
    messages: set[int] = msgspec.field(default_factory=set)


class _Budget(NamedTuple):
    """How many more events one object, or one debug container, may have: `BURST`, then one more each `REFILL`
    seconds."""

    left: float
    at: float


class _Lane:
    """One of the queues; it has all events of its objects."""

    def __init__(self) -> None:
        self._queue: deque[_Said] = deque(maxlen=QUEUE_LIMIT)
        self._wakeup = asyncio.Event()

    def add(self, said: _Said) -> None:
        self._queue.append(said)
        self._wakeup.set()

    async def next(self) -> _Said:
        while not self._queue:
            self._wakeup.clear()
            await self._wakeup.wait()
        return self._queue.popleft()


class EventRecorder:
    """Records events as `component` on `host`."""

    def __init__(self, client: Client, clock: Clock, component: str, host: str = "") -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._host = host
        self._lanes = [_Lane() for _ in range(LANES)]
        self._counted: OrderedDict[tuple[str, ...], _Counted] = OrderedDict()
        self._alike: OrderedDict[tuple[str, ...], _Alike] = OrderedDict()
        self._budgets: OrderedDict[str, _Budget] = OrderedDict()
        self._last_stamp = 0

    def normal(self, obj: KubeObject, reason: str, message: str, *, field_path: str = "") -> None:
        self._say(obj, NORMAL, reason, message, field_path)

    def warning(self, obj: KubeObject, reason: str, message: str, *, field_path: str = "") -> None:
        self._say(obj, WARNING, reason, message, field_path)

    def by(self, component: str) -> EventRecorder:
        """Records as another component, through the queues of this one."""
        other = copy.copy(self)
        other._component = component
        return other

    async def run(self) -> None:
        async def empty(lane: _Lane) -> None:
            while True:
                said = await lane.next()
                try:
                    await self._write(said)
                except (StatusError, OSError) as error:
                    about = said.about
                    log.warning(
                        "event %s on %s/%s not recorded: %s", said.reason, about.kind, about.name, error
                    )

        async with asyncio.TaskGroup() as tasks:
            for lane in self._lanes:
                tasks.create_task(empty(lane))

    def _say(self, obj: KubeObject, type_: str, reason: str, message: str, field_path: str) -> None:
        about = ObjectReference(
            kind=obj.kind,
            namespace=obj.metadata.namespace,
            name=obj.metadata.name,
            uid=obj.metadata.uid,
            api_version=obj.api_version,
            resource_version=obj.metadata.resource_version,
            field_path=field_path,
        )
        now = self._clock.now()
        at, seconds = rfc3339(now), now.timestamp()
        alike: tuple[str, ...] = (about.kind, about.namespace, about.name, about.uid)
        alike += (type_, reason, self._component)
        if not field_path.startswith(RUN_ONCE) and self._are_many(alike, message, seconds):
            message, key = COMBINED + message, alike
        else:
            key = (*alike, field_path, message)
        counted = self._counted.get(key) or _Counted(self._new_name(about.name, seconds), at)
        counted.times += 1
        _remember(self._counted, key, counted)
        # Before it is queued: what is said too often must not push what others say out of the queue.
        if not self._affordable(about, seconds):
            return
        lane = self._lanes[hash(about.uid or about.name) % LANES]
        told = counted.name, counted.began, counted.times
        lane.add(_Said(about, type_, reason, message, at, self._component, *told))

    def _new_name(self, about: str, now: float) -> str:
        """Unique in the namespace: nanoseconds since the epoch, never the same twice."""
        self._last_stamp = max(self._last_stamp + 1, int(now * 1e9))
        return f"{about}.{self._last_stamp:x}"

    def _are_many(self, key: tuple[str, ...], message: str, now: float) -> bool:
        alike = self._alike.get(key)
        if alike is None or now - alike.at > ALIKE_WITHIN.total_seconds():
            alike = _Alike(now)
        alike.at = now
        alike.messages.add(hash(message))
        _remember(self._alike, key, alike)
        if len(alike.messages) < ALIKE:
            return False
        alike.messages.pop()
        return True

    async def _write(self, said: _Said) -> None:
        namespace = said.about.namespace or "default"
        if said.times > 1:
            again = {"count": said.times, "lastTimestamp": said.at, "message": said.message}
            try:
                await self._client.patch(Event, said.name, namespace, again)
            except StatusError as error:
                # It has expired, or was never written.
                if error.code != 404:
                    raise
            else:
                return
        event = Event(
            metadata=ObjectMeta(name=said.name, namespace=namespace),
            involved_object=said.about,
            reason=said.reason,
            message=said.message,
            source=EventSource(component=said.component, host=self._host),
            first_timestamp=said.began,
            last_timestamp=said.at,
            count=said.times,
            type=said.type,
            reporting_component=said.component,
            reporting_instance=self._host,
        )
        retry = EARLY.begin()
        while True:
            try:
                await self._client.create(event)
                return
            except StatusError as error:
                wait = retry.next()
                # Of what has no namespace events are in one that the server of a new cluster makes a moment
                # after it lets nodes in.
                if error.code != 404 or said.about.namespace or wait > LATE:
                    raise
                await asyncio.sleep(wait)

    def _affordable(self, about: ObjectReference, now: float) -> bool:
        key = about.uid or f"{about.kind}/{about.name}"
        if about.field_path.startswith(RUN_ONCE):
            key += about.field_path
        budget = self._budgets.get(key, _Budget(BURST, now))
        left = min(BURST, budget.left + (now - budget.at) / REFILL.total_seconds())
        _remember(self._budgets, key, _Budget(max(left - 1, 0) if left >= 1 else left, now))
        return left >= 1


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > REMEMBERED:
        known.popitem(last=False)
