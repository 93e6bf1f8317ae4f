"""gRPC's health protocol: `grpc.health.v1.Health/Check`.

Its two messages have one field each, so they are read and written as the wrapper messages that have the same
form on the wire: the request is a string in field 1, the response a number in field 1.
"""

from __future__ import annotations

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from podling.kubelet.probes.outcome import Outcome, address

METHOD = "/grpc.health.v1.Health/Check"
SERVING = 1
_STATUSES = {0: "UNKNOWN", SERVING: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


async def check_grpc(host: str, port: int, service: str, timeout: int, user_agent: str) -> Outcome:
    target = address(host, port)
    options = [("grpc.primary_user_agent", user_agent), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(target, options) as channel:
        check = channel.unary_unary(
            METHOD,
            request_serializer=StringValue.SerializeToString,
            response_deserializer=Int32Value.FromString,
        )
        try:
            answer = await check(StringValue(value=service), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            return Outcome(False, _failure(error, target, timeout))
    if answer.value == SERVING:
        return Outcome(True)
    status = _STATUSES.get(answer.value, str(answer.value))
    return Outcome(False, f'service unhealthy (responded with "{status}")')


def _failure(error: grpc.aio.AioRpcError, target: str, timeout: int) -> str:
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            return (
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
                f"{error.details()}"
            )
        case grpc.StatusCode.UNAVAILABLE:
            return f'error: failed to connect service "{target}": {error.details()}'
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"timeout: health rpc did not complete within {timeout}s"
    return f"error: health rpc probe failed: {error.details()}"
