"""The protocol of KMS plugins, version 2: gRPC on a Unix socket. Calls block: they are for threads.

Only keys are sent, never values: `envelope.py` has what is encrypted with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

import podling.storage.kms.kms_pb2 as pb
from podling.process.histogram import Histogram

Answer = TypeVar("Answer", bound=Message)

SERVICE = "/v2.KeyManagementService/"
LATENCIES = tuple(0.0001 * 2**power for power in range(20))
"""Seconds; the bounds of Kubernetes' histogram."""
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class PluginError(Exception):
    """A call failed; the message is as Go's client words it."""


class Status(NamedTuple):
    version: str
    healthz: str
    key_id: str


class Encrypted(NamedTuple):
    """What Encrypt answers and Decrypt takes; `annotations` in the order of their names."""

    ciphertext: bytes
    key_id: str
    annotations: tuple[tuple[str, bytes], ...]


class Plugin(Protocol):
    """`uid` names a call in the logs of both. Calls raise PluginError."""

    @property
    def latencies(self) -> Mapping[tuple[str, str], Histogram]:
        """Seconds of calls, by method and gRPC's code."""
        ...

    def status(self) -> Status: ...

    def encrypt(self, plain: bytes, uid: str) -> Encrypted: ...

    def decrypt(self, encrypted: Encrypted, uid: str) -> bytes: ...

    def close(self) -> None:
        """Calls under way fail at once."""
        ...


class GrpcPlugin:
    """The plugin at `endpoint` (`unix:///…`). A call fails after `timeout` seconds; until then it waits for
    a plugin that does not listen yet."""

    def __init__(
        self, endpoint: str, timeout: float, *, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self._channel = grpc.insecure_channel(endpoint, options=_OPTIONS)
        self._timeout = timeout
        self._now = now
        self.latencies: dict[tuple[str, str], Histogram] = {}

    def status(self) -> Status:
        said = self._call("Status", pb.StatusRequest(), pb.StatusResponse)
        return Status(said.version, said.healthz, said.key_id)

    def encrypt(self, plain: bytes, uid: str) -> Encrypted:
        said = self._call("Encrypt", pb.EncryptRequest(plaintext=plain, uid=uid), pb.EncryptResponse)
        return Encrypted(said.ciphertext, said.key_id, tuple(sorted(said.annotations.items())))

    def decrypt(self, encrypted: Encrypted, uid: str) -> bytes:
        request = pb.DecryptRequest(
            ciphertext=encrypted.ciphertext,
            uid=uid,
            key_id=encrypted.key_id,
            annotations=dict(encrypted.annotations),
        )
        plain: bytes = self._call("Decrypt", request, pb.DecryptResponse).plaintext
        return plain

    def close(self) -> None:
        self._channel.close()

    def _call(self, method: str, request: Message, answer: type[Answer]) -> Answer:
        call: Any = self._channel.unary_unary(
            SERVICE + method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        began, code = self._now(), "OK"
        try:
            received: Answer = call(request, timeout=self._timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            assert isinstance(error, grpc.Call)
            code = "".join(word.capitalize() for word in error.code().name.split("_"))
            raise PluginError(f"rpc error: code = {code} desc = {error.details()}") from error
        except ValueError as error:
            code = "Canceled"
            raise PluginError(f"rpc error: code = {code} desc = {error}") from error
        finally:
            seen = self.latencies.setdefault((SERVICE + method, code), Histogram(LATENCIES))
            seen.observe(self._now() - began)
        return received
