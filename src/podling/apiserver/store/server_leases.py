"""The addresses of the API servers that write to one etcd, as kube-apiserver keeps them: each has a key with
its own, which etcd deletes when it was not renewed for LEASE seconds.

So each server knows all that live, podling's and Kubernetes', and writes them into the endpoints of the
service `kubernetes`. One that ends takes its address away at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from itertools import count

from podling.model.codec import json
from podling.model.types.meta import ObjectMeta
from podling.model.types.service import EndpointAddress, Endpoints, EndpointSubset
from podling.storage.interface import (
    ConflictError,
    Event,
    KeyExistsError,
    Storage,
    StorageClosedError,
    UnknownOutcomeError,
    Write,
)

PREFIX = "/registry/masterleases/"
LEASE, RENEWED = 15, 10.0
AGAIN = 1.0
"""Seconds until a renewal that failed is tried again."""

_log = logging.getLogger(__name__)


class ServerLeases:
    """Run `renew()`; `leave()` when that has been cancelled. `changed` is called with the addresses of all
    servers, in order, whenever they may have changed, and after each renewal."""

    def __init__(self, storage: Storage, address: str, changed: Callable[[Sequence[str]], None]) -> None:
        self._storage = storage
        self._key = f"{PREFIX}{address}"
        self._changed = changed
        self._living: set[str] = set()
        self._renewals = count(1)
        self._end = storage.watch(PREFIX, self._hear)

    async def renew(self) -> None:
        """Until cancelled."""
        self._living.update(record.key for record in (await self._storage.list(PREFIX)).records)
        while True:
            try:
                await self._write()
                wait = RENEWED
            except (StorageClosedError, UnknownOutcomeError) as error:
                _log.warning("the lease of this API server was not renewed: %s", error)
                wait = AGAIN
            # Also what somebody else wrote into the endpoints is put right by then.
            self._tell()
            await asyncio.sleep(wait)

    async def leave(self) -> None:
        """Take one's own address away. Raises what the storage raises."""
        try:
            record = await self._storage.get(self._key)
            if record is not None:
                await self._storage.delete(self._key, record.revision)
        except ConflictError as error:
            # Ended by etcd meanwhile.
            if error.record is not None:
                raise
        finally:
            self._end()

    async def _write(self) -> None:
        # A number that changes, as in Kubernetes, which would not write what has not.
        meta = ObjectMeta(generation=next(self._renewals))
        address = EndpointAddress(ip=self._key.removeprefix(PREFIX))
        value = json.encode(Endpoints(metadata=meta, subsets=[EndpointSubset(addresses=[address])]))
        record = await self._storage.get(self._key)
        while True:
            try:
                write = Write(self._key, value, record.revision if record else None, LEASE)
                await self._storage.commit([write])
                return
            except (ConflictError, KeyExistsError) as error:
                # A server that had this address before, or the end of its lease.
                record = error.record

    def _hear(self, revision: int, events: Sequence[Event]) -> None:
        before = set(self._living)
        for event in events:
            if event.value is None:
                self._living.discard(event.key)
            else:
                self._living.add(event.key)
        if self._living != before:
            self._tell()

    def _tell(self) -> None:
        addresses = (key.removeprefix(PREFIX) for key in self._living)
        self._changed(sorted(addresses, key=_in_order))


def _in_order(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)
