"""The connection to a runtime that is there and says nothing."""

from __future__ import annotations

import socket
from pathlib import Path

import grpc.aio
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


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
async def test_faults_have_the_names_of_grpcs_codes(code: grpc.StatusCode, tmp_path: Path) -> None:
    async def refuse(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await context.abort(code, "so it is: 100 %")

    method = {"Version": grpc.unary_unary_rpc_method_handler(refuse)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("runtime.v1.RuntimeService", method),)
    )
    server.add_insecure_port(f"unix://{tmp_path}/cri.sock")
    await server.start()
    connection = Connection(f"unix://{tmp_path}/cri.sock")
    try:
        with pytest.raises(RuntimeFault) as fault:
            await connection.call(
                "/runtime.v1.RuntimeService/Version", pb.VersionRequest(), pb.VersionResponse, None
            )
        assert (fault.value.code, fault.value.message) == (code.name, "so it is: 100 %")
    finally:
        await connection.close()
        await server.stop(None)
