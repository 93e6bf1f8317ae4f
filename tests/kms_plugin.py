"""A KMS plugin for tests: it keeps its promises until it is told to be slow, to lie or to be down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import podling.cri.grpc  # noqa: F401  it says how gRPC is to be loaded
import podling.storage.kms.kms_pb2 as pb


class KmsPlugin(msgspec.Struct):
    """What it says and does may be changed while it runs. `answers` has what it lies."""

    key_id: str = "one"
    healthz: str = "ok"
    version: str = "v2"
    goes_on: Event = msgspec.field(default_factory=Event)
    """Cleared, no call is answered."""
    answers: dict[str, Any] = {}
    refuses: set[str] = set()
    calls: list[str] = []
    secret: bytes = bytes(32)

    def __post_init__(self) -> None:
        self.goes_on.set()

    def count(self, method: str) -> int:
        return self.calls.count(method)

    def status(self, _: Any) -> Any:
        return pb.StatusResponse(version=self.version, healthz=self.healthz, key_id=self.key_id)

    def encrypt(self, request: Any) -> Any:
        nonce = os.urandom(12)
        sealed = nonce + AESGCM(self.secret).encrypt(nonce, request.plaintext, self.key_id.encode())
        return pb.EncryptResponse(
            ciphertext=sealed, key_id=self.key_id, annotations={"kms.example.org": b"1"}
        )

    def decrypt(self, request: Any) -> Any:
        if dict(request.annotations) != {"kms.example.org": b"1"}:
            raise ValueError("the annotations are not those of Encrypt")
        sealed = request.ciphertext
        try:
            plain = AESGCM(self.secret).decrypt(sealed[:12], sealed[12:], request.key_id.encode())
        except InvalidTag as error:
            raise ValueError("it is not of this plugin") from error
        return pb.DecryptResponse(plaintext=plain)

    def _answering(self, method: str, answer: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def answered(request: Any, context: Any) -> Any:
            self.calls.append(method)
            self.goes_on.wait(30)
            if method in self.refuses:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the vault is closed")
            if method in self.answers:
                return self.answers[method]
            try:
                return answer(request)
            except ValueError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return answered

    @contextmanager
    def serving(self, socket: Path) -> Iterator[str]:
        """Serve at this path while the block runs; gives the endpoint."""
        socket.unlink(missing_ok=True)
        methods: dict[str, tuple[Any, Any]] = {
            "Status": (self.status, pb.StatusRequest),
            "Encrypt": (self.encrypt, pb.EncryptRequest),
            "Decrypt": (self.decrypt, pb.DecryptRequest),
        }
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(name, answer),
                request_deserializer=request.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for name, (answer, request) in methods.items()
        }
        service = grpc.method_handlers_generic_handler("v2.KeyManagementService", handlers)
        with ThreadPoolExecutor(8) as threads:
            server = grpc.server(threads, handlers=[service])
            endpoint = f"unix://{socket}"
            server.add_insecure_port(endpoint)
            server.start()
            try:
                yield endpoint
            finally:
                self.goes_on.set()
                server.stop(None).wait()
