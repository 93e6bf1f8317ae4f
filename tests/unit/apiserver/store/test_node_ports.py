"""The node ports of several servers on one storage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.store.node_ports import KEY, NODE_PORTS, NodePorts, decode, encode
from podling.model.errors import StatusError
from podling.storage.interface import ConflictError, KeyExistsError, Write
from podling.storage.memory import MemoryStorage

OF_KUBERNETES = (
    b'k8s\x00\n\x15\n\x02v1\x12\x0fRangeAllocation\x12"\n\x10\n\x00\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
    b'\x12\x0b30000-32767\x1a\x01\x02\x1a\x00"\x00'
)
"""What kube-apiserver 1.36.2 has stored for a service with port 30001."""
SERVICE = "/registry/services/default/s"


class SharedStorage(MemoryStorage):
    """As etcd is. `meanwhile` are writes of another server, each made before the next of this one."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Write] = []

    async def commit(self, writes: Sequence[Write]) -> int:
        if self.meanwhile:
            await super().commit([self.meanwhile.pop(0)])
        return await super().commit(writes)


async def standing(storage: MemoryStorage) -> set[int]:
    record = await storage.get(KEY)
    return decode(record.value) if record else set()


@given(st.sets(st.sampled_from(NODE_PORTS)))
def test_what_is_written_is_read(ports: set[int]) -> None:
    assert decode(encode(ports)) == ports


def test_what_kubernetes_has_written_is_read() -> None:
    assert decode(OF_KUBERNETES) == {30001}


@pytest.mark.parametrize(
    "value",
    [b"{}", b"k8s\0", b"k8s\0\x0a", b'{"range":"20000-21000"}', b'{"range":"30000-32767","data":"?"}'],
)
def test_anything_else_is_refused_in_words(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(value)


async def test_a_service_is_written_with_its_ports_and_gives_them_back() -> None:
    storage = SharedStorage()
    ports = NodePorts(storage)
    revision = await ports.commit([Write(SERVICE, b"v1", None)], {30001, 30002}, set())
    assert await standing(storage) == await ports.taken() == {30001, 30002}
    with pytest.raises(KeyExistsError, match=f"{KEY}/30002"):
        await ports.commit([Write(f"{SERVICE}-2", b"v1", None)], {30002, 30003}, set())
    assert await storage.get(f"{SERVICE}-2") is None
    record = await storage.get(SERVICE)
    assert record and record.revision <= revision
    await ports.commit([Write(SERVICE, None, record.revision)], set(), {30001, 30002})
    assert await standing(storage) == set()


async def test_a_port_that_another_server_takes_meanwhile_is_refused_and_any_other_is_no_matter() -> None:
    storage = SharedStorage()
    ports = NodePorts(storage)
    storage.meanwhile = [Write(KEY, encode({30007}), None)]
    await ports.commit([Write(SERVICE, b"v1", None)], {30001}, set())
    assert await standing(storage) == {30001, 30007}
    record = await storage.get(KEY)
    assert record
    storage.meanwhile = [Write(KEY, encode({30001, 30002, 30007}), record.revision)]
    with pytest.raises(KeyExistsError, match=f"{KEY}/30002"):
        await ports.commit([Write(f"{SERVICE}-2", b"v1", None)], {30002}, set())


async def test_a_conflict_of_the_service_itself_is_told() -> None:
    storage = SharedStorage()
    with pytest.raises(ConflictError):
        await NodePorts(storage).commit([Write(SERVICE, b"v2", 7)], {30001}, set())
    assert await standing(storage) == set()


async def test_writers_at_once_all_get_theirs() -> None:
    storage = SharedStorage()
    ports = NodePorts(storage)
    wanted = NODE_PORTS[:50]
    await asyncio.gather(
        *(
            ports.commit([Write(f"{SERVICE}-{n}", b"v1", None)], {port}, set())
            for n, port in enumerate(wanted)
        )
    )
    assert await standing(storage) == set(wanted)


async def test_what_services_have_and_nobody_has_noted_is_noted() -> None:
    storage = SharedStorage()
    ports = NodePorts(storage)
    storage.meanwhile = [Write(KEY, encode({30009}), None)]
    await ports.complete({30001})
    assert await standing(storage) == {30001, 30009}
    revision = storage.revision
    await ports.complete({30001})
    assert storage.revision == revision


async def test_one_server_alone_notes_nothing() -> None:
    storage = MemoryStorage()
    ports = NodePorts(storage)
    await ports.commit([Write(SERVICE, b"v1", None)], {30001}, set())
    await ports.complete({30001})
    assert (await ports.taken(), await storage.get(KEY)) == (set(), None)


async def test_a_range_that_is_another_is_one_sentence() -> None:
    storage = SharedStorage()
    await storage.create(KEY, b'{"kind":"RangeAllocation","range":"20000-21000"}')
    with pytest.raises(StatusError, match="another API server gives node ports of 20000-21000"):
        await NodePorts(storage).taken()
