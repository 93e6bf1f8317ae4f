"""Leader election by a Lease: of all schedulers, or all controllers, one acts. Kubernetes' own ask for the
same Leases in the same way, so that they and podling's exclude each other.

    waits   until nobody holds the Lease, or its holder has not renewed it for as long as it lasts
    leads   while it renews the Lease in time, and nobody else has written it
    leaves  the Lease to the next at once, when it ends by itself
"""

from __future__ import annotations

import asyncio
import logging
import platform
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.model.errors import StatusError
from podling.model.time import Clock, micro_time
from podling.model.types.coordination import Lease, LeaseSpec
from podling.model.types.meta import ObjectMeta

NAMESPACE = "kube-system"

log = logging.getLogger(__name__)


class Timing(NamedTuple):
    """Seconds, by default Kubernetes': how long a Lease lasts that is not renewed, how long its holder tries
    to renew it, and what is between two tries."""

    lasts: float = 15.0
    renew_within: float = 10.0
    retry: float = 2.0


TIMING = Timing()


class LostError(Exception):
    """Somebody else leads, or may do so any moment. The message says why."""


class Seen(NamedTuple):
    """What a Lease said, and since when it says so, in seconds of the loop's time: the clocks of those who
    ask for it may differ."""

    spec: LeaseSpec
    since: float


def is_free(seen: Seen, me: str, now: float) -> bool:
    """Whether who is called `me` may take the Lease."""
    holder, seconds = seen.spec.holder_identity, seen.spec.lease_duration_seconds or 0
    return not holder or holder == me or seen.since + seconds <= now


def held_by(me: str, before: LeaseSpec, moment: str, lasts: float) -> LeaseSpec:
    """What the Lease is to say when `me` takes it, or renews it, at a moment."""
    mine = before.holder_identity == me
    return replace(
        before,
        holder_identity=me,
        lease_duration_seconds=int(lasts),
        acquire_time=before.acquire_time if mine else moment,
        renew_time=moment,
        lease_transitions=(before.lease_transitions or 0) + (not mine),
    )


class Election:
    """Asks for the Lease `name`. `run()` it."""

    def __init__(
        self, client: Client, name: str, clock: Clock, events: EventRecorder, timing: Timing = TIMING
    ) -> None:
        self._client, self._name, self._clock, self._events = client, name, clock, events
        self._timing = timing
        self.me = f"{platform.node()}_{uuid.uuid4()}"
        self._lease: Lease | None = None
        self._seen = Seen(LeaseSpec(), 0.0)
        self._sent = 0.0
        """When the request was sent that last took or renewed the Lease, in seconds of the loop's time."""

    async def run(self, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do `act`, once this process leads, until it ends. Raises LostError, in a group, and ends `act`
        when it leads no more."""
        while True:
            if await self._tried():
                break
            # Not every role may watch the Lease, so it is asked for again, as by Kubernetes.
            await asyncio.sleep(self._timing.retry)
        assert self._lease is not None, "what was taken was read or made"
        log.info("%s leads as %s", self._name, self.me)
        self._events.normal(self._lease, "LeaderElection", f"{self.me} became leader")
        try:
            async with asyncio.TaskGroup() as tasks:
                renewing = tasks.create_task(self._renew())
                await act()
                renewing.cancel()
        finally:
            await self._leave()

    async def _tried(self) -> bool:
        """Whether the Lease could be taken or renewed."""
        sent = asyncio.get_running_loop().time()
        if taken := await self._asked():
            self._sent = sent
        return taken

    async def _asked(self) -> bool:
        moment, lasts = micro_time(self._clock.now()), self._timing.lasts
        try:
            if self._lease is not None and self._seen.spec.holder_identity == self.me:
                with suppress(StatusError):
                    # It is mostly as it was left.
                    return await self._write(self._lease, moment)
            found = await self._client.get(Lease, self._name, NAMESPACE)
            if found.spec != self._seen.spec:
                self._seen = Seen(found.spec, asyncio.get_running_loop().time())
            if not is_free(self._seen, self.me, asyncio.get_running_loop().time()):
                return False
            return await self._write(found, moment)
        except (StatusError, OSError) as error:
            if not isinstance(error, StatusError) or error.code != 404:
                log.info("%s: %s", self._name, error)
                return False
        made = replace(held_by(self.me, LeaseSpec(), moment, lasts), lease_transitions=0)
        meta = ObjectMeta(name=self._name, namespace=NAMESPACE)
        try:
            return self._hold(await self._client.create(Lease(metadata=meta, spec=made)))
        except (StatusError, OSError) as error:
            log.info("%s: %s", self._name, error)
            return False

    async def _write(self, found: Lease, moment: str) -> bool:
        wanted = held_by(self.me, found.spec, moment, self._timing.lasts)
        return self._hold(await self._client.update(replace(found, spec=wanted)))

    def _hold(self, lease: Lease) -> bool:
        self._lease, self._seen = lease, Seen(lease.spec, asyncio.get_running_loop().time())
        return True

    async def _renew(self) -> None:
        """Raises LostError."""
        while True:
            await asyncio.sleep(self._timing.retry)
            # Counted from when the last renewal was sent, not answered: others may have seen it since then.
            # So who leads ends before they take the Lease, however long an answer took.
            within = self._timing.retry + self._timing.renew_within
            try:
                async with asyncio.timeout_at(self._sent + within):
                    while not await self._tried():
                        if self._seen.spec.holder_identity != self.me:
                            raise LostError(f"{self._seen.spec.holder_identity} has the lease {self._name}")
                        await asyncio.sleep(self._timing.retry)
            except TimeoutError:
                within = self._timing.renew_within
                raise LostError(f"the lease {self._name} could not be renewed within {within:g} s") from None

    async def _leave(self) -> None:
        """Let the next have the Lease without waiting for its end."""
        if self._lease is None or self._seen.spec.holder_identity != self.me:
            return
        moment = micro_time(self._clock.now())
        left = replace(
            self._lease.spec,
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=moment,
            renew_time=moment,
        )
        try:
            await self._client.update(replace(self._lease, spec=left))
        except (StatusError, OSError) as error:
            log.info("%s is not left to the next: %s", self._name, error)
