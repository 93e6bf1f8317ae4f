"""The connection to a runtime that is there and says nothing."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from podling.cri.grpc import cri_pb2 as pb
from podling.cri.grpc.connection import Connection
from podling.cri.interface import RuntimeFault


async def test_a_socket_that_says_nothing_is_waited_for_no_longer_than_the_deadline(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as nobody_accepts:
        nobody_accepts.bind(str(tmp_path / "cri.sock"))
        nobody_accepts.listen()
        connection = Connection(str(tmp_path / "cri.sock"))
        with pytest.raises(RuntimeFault) as fault:
            await connection.call(
                "/runtime.v1.RuntimeService/Version", pb.VersionRequest(), pb.VersionResponse, 0.1
            )
        assert fault.value.code == "DEADLINE_EXCEEDED"
        await connection.close()


async def test_no_socket_at_all_is_said_at_once(tmp_path: Path) -> None:
    connection = Connection(str(tmp_path / "cri.sock"))
    with pytest.raises(RuntimeFault) as fault:
        await connection.call(
            "/runtime.v1.RuntimeService/Version", pb.VersionRequest(), pb.VersionResponse, 30.0
        )
    assert fault.value.code == "UNAVAILABLE"
    await connection.close()
