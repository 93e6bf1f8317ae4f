"""The node ports that services have, where several API servers write to one storage: a RangeAllocation under
kube-apiserver's key, in which each port has a bit.

A service is written in one transaction with the ports it gets and gives back, so of two servers that choose
the same port at once the second is refused. kube-apiserver sets a port's bit before it writes the service:
for podling such a port is taken, too.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Collection, Sequence, Set
from typing import Any

from podling.apiserver.protobuf.wire import MAGIC, WireError, fields
from podling.model.codec import json
from podling.model.errors import internal
from podling.storage.interface import ConflictError, KeyExistsError, Record, Storage, Write

KEY = "/registry/ranges/servicenodeports"
NODE_PORTS = range(30000, 32768)
RANGE = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"


def encode(ports: Collection[int]) -> bytes:
    """The value: bit n of a number, written big end first, is the nth port of the range."""
    bits = sum(1 << (port - NODE_PORTS.start) for port in ports)
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
    said = {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": RANGE}
    return json.encode({**said, "data": base64.b64encode(data).decode()})


def decode(value: bytes) -> set[int]:
    """Of podling's JSON or kube-apiserver's protobuf. Raises ValueError, also for a range that is not
    podling's."""
    if value.startswith(MAGIC):
        envelope = dict(fields(value[len(MAGIC) :]))
        raw = envelope.get(2, b"")
        message = dict(fields(raw)) if isinstance(raw, bytes) else {}
        named, data = message.get(2, b""), message.get(3, b"")
        if not (isinstance(named, bytes) and isinstance(data, bytes)):
            raise WireError("no RangeAllocation")
        text = named.decode()
    else:
        said = json.decode(value, dict[str, Any])
        text, data = str(said.get("range")), base64.b64decode(str(said.get("data") or ""), validate=True)
    if text != RANGE:
        raise ValueError(f"another API server gives node ports of {text}, this one of {RANGE}")
    bits = int.from_bytes(data, "big")
    return {NODE_PORTS.start + n for n in range(bits.bit_length()) if bits >> n & 1}


class NodePorts:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        # Writers in this process take turns: all of them write the same key.
        self._turn = asyncio.Lock()

    async def taken(self) -> set[int]:
        """None where one server alone writes: services say it. Raises StatusError 500."""
        return self._read(await self._storage.get(KEY)) if self._storage.is_shared else set()

    async def commit(self, writes: Sequence[Write], given: Set[int], freed: Set[int]) -> int:
        """Make the writes of a service that gets the ports `given` and gives back those `freed`. Raises
        KeyExistsError for a port that is taken, whose key ends in the port, and what the storage raises."""
        if not self._storage.is_shared or not (given or freed):
            return await self._storage.commit(writes)
        async with self._turn:
            while True:
                record = await self._storage.get(KEY)
                taken = self._read(record)
                if refused := given & taken:
                    raise KeyExistsError(
                        Record(f"{KEY}/{min(refused)}", b"", record.revision if record else 0)
                    )
                value = encode((taken | given) - freed)
                ports = Write(KEY, value, record.revision if record else None)
                try:
                    return await self._storage.commit([*writes, ports])
                except (ConflictError, KeyExistsError) as error:
                    # Another server gave or took back a port, not necessarily one of these.
                    if _key(error) != KEY:
                        raise

    async def complete(self, ports: Set[int]) -> None:
        """Have the ports taken that services have: a podling of before did not say so."""
        while self._storage.is_shared:
            record = await self._storage.get(KEY)
            taken = self._read(record)
            if record is not None and ports <= taken:
                return
            try:
                write = Write(KEY, encode(taken | ports), record.revision if record else None)
                await self._storage.commit([write])
            except (ConflictError, KeyExistsError) as error:
                if _key(error) != KEY:
                    raise

    def _read(self, record: Record | None) -> set[int]:
        try:
            return decode(record.value) if record else set()
        except ValueError as error:
            raise internal(f"failed to allocate a nodePort: {error}") from error


def _key(error: ConflictError | KeyExistsError) -> str:
    return error.key if isinstance(error, ConflictError) else error.record.key
