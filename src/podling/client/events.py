"""The event recorder: writes Events about objects, as `kubectl describe` shows them.

Recording never waits and never fails. An event goes into one of a few bounded queues, which `run()` empties
in parallel; when the server is away for long, the oldest ones are dropped. Events about one object keep their
order. The same event again raises the count of the existing one.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import OrderedDict, deque
from datetime import timedelta
from typing import NamedTuple

from podling.client.client import Client
from podling.model.errors import StatusError
from podling.model.time import Clock, rfc3339
from podling.model.types.core import Event, EventSource
from podling.model.types.meta import KubeObject, ObjectMeta
from podling.model.types.references import ObjectReference

NORMAL = "Normal"
WARNING = "Warning"

LANES = 8
"""Queues, and so events written at a time: the storage groups writes that come together."""
QUEUE_LIMIT = 1000
"""Events in each queue."""
REMEMBERED = 4096
BURST = 25
REFILL = timedelta(minutes=5)
RUN_ONCE = "spec.ephemeralContainers{"
"""Field paths with a budget of their own. A container that runs once repeats no event, and its events say who
ran which image where (R-EPH-14): neither its pod's events nor those of earlier debug containers may use up
that budget.
"""

log = logging.getLogger(__name__)


class _Said(NamedTuple):
    about: ObjectReference
    type: str
    reason: str
    message: str
    at: str
    component: str


class _Standing(NamedTuple):
    name: str
    times: int


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
        self._standing: OrderedDict[tuple[str, ...], _Standing] = OrderedDict()
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
        # Before it is queued: what is said too often must not push what others say out of the queue.
        now = self._clock.now()
        if not self._affordable(about, now.timestamp()):
            return
        lane = self._lanes[hash(about.uid or about.name) % LANES]
        lane.add(_Said(about, type_, reason, message, rfc3339(now), self._component))

    async def _write(self, said: _Said) -> None:
        about = said.about
        what = (said.type, said.reason, said.message, said.component)
        key = (about.uid, about.name, about.field_path, *what)
        namespace = said.about.namespace or "default"
        standing = self._standing.get(key)
        if standing is not None:
            raised = _Standing(standing.name, standing.times + 1)
            try:
                await self._client.patch(
                    Event, raised.name, namespace, {"count": raised.times, "lastTimestamp": said.at}
                )
            except StatusError as error:
                if error.code != 404:
                    raise
            else:
                self._remember(key, raised)
                return
        # Unique in the namespace: nanoseconds since the epoch, never the same twice.
        self._last_stamp = max(self._last_stamp + 1, int(self._clock.now().timestamp() * 1e9))
        name = f"{said.about.name}.{self._last_stamp:x}"
        event = Event(
            metadata=ObjectMeta(name=name, namespace=namespace),
            involved_object=said.about,
            reason=said.reason,
            message=said.message,
            source=EventSource(component=said.component, host=self._host),
            first_timestamp=said.at,
            last_timestamp=said.at,
            count=1,
            type=said.type,
            reporting_component=said.component,
            reporting_instance=self._host,
        )
        await self._client.create(event)
        self._remember(key, _Standing(name, 1))

    def _remember(self, key: tuple[str, ...], standing: _Standing) -> None:
        self._standing[key] = standing
        self._standing.move_to_end(key)
        if len(self._standing) > REMEMBERED:
            self._standing.popitem(last=False)

    def _affordable(self, about: ObjectReference, now: float) -> bool:
        key = about.uid or f"{about.kind}/{about.name}"
        if about.field_path.startswith(RUN_ONCE):
            key += about.field_path
        budget = self._budgets.get(key, _Budget(BURST, now))
        left = min(BURST, budget.left + (now - budget.at) / REFILL.total_seconds())
        self._budgets[key] = _Budget(max(left - 1, 0) if left >= 1 else left, now)
        self._budgets.move_to_end(key)
        if len(self._budgets) > REMEMBERED:
            self._budgets.popitem(last=False)
        return left >= 1
