"""What a member of etcd is that does not answer."""

from __future__ import annotations

import socket

import pytest

import podling.storage.etcd.etcd_pb2 as pb
from podling.storage.etcd import connection
from podling.storage.etcd.connection import Connection, EtcdError


async def test_a_member_that_is_silent_is_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is stopped: its kernel takes connections. Who asks, or follows it, goes on elsewhere."""
    monkeypatch.setattr(connection, "CONNECTED_WITHIN", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        members = Connection([url, url])
        for _ in range(2):
            with pytest.raises(EtcdError, match="it takes no connection: silence") as raised:
                await members.ask("/etcdserverpb.KV/Range", pb.RangeRequest(key=b"a"), pb.RangeResponse)
            assert (raised.value.failed, raised.value.sent) == (True, False)
        with pytest.raises(EtcdError, match="it takes no connection: silence"):
            async for _ in members.watch(pb.WatchCreateRequest(key=b"a")):
                pass
        await members.close()
