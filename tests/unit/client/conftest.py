"""Servers for clients: one that plays a script, each request or watch is answered with the next line of it;
and one over TLS that asks everybody who they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podling.apiserver.authn.certificates import common_name
from podling.apiserver.http.server import listening, tls_context
from podling.apiserver.request.request import Request
from podling.apiserver.request.response import Response
from podling.client.transport import JSON, Answer
from podling.machine.pki import Authority
from podling.model.errors import StatusError

Step = Answer | list[bytes] | StatusError


@dataclass
class ScriptedServer:
    """Keeps the promise of a transport. What was asked stands in `asked`; an empty script hangs in
    `exhausted`.
    """

    script: list[Step]
    exhausted: Callable[[], None]
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)

    async def request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, content_type: str = JSON
    ) -> Answer:
        self.asked.append((method, path, dict(query), msgspec.json.decode(body) if body else None))
        step = self.script.pop(0)
        assert isinstance(step, tuple), f"{method} {path} came where a watch was expected"
        if not self.script:
            self.exhausted()
        return step

    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        self.asked.append(("WATCH", path, dict(query), None))
        if not self.script:
            self.exhausted()
            await asyncio.Event().wait()
        step = self.script.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, list), f"a watch of {path} came where a request was expected"
        for piece in step:
            yield piece

    async def close(self) -> None: ...


class HandClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Doorman:
    """The TLS of a podling API server, and who came: by certificate, by `Authorization`, as whom. Who shows
    one of `refused` is answered 401. Its certificate is for 127.0.0.1 and for the name api.example."""

    directory: Path
    authority: Authority
    port: int = 0
    asked: list[Request] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    @property
    def who(self) -> list[tuple[str, str]]:
        """Of each request, whose certificate it showed and which `Authorization`."""
        return [(_name(request), request.headers.get("Authorization", "")) for request in self.asked]

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        if self.refused & {_name(request), request.headers.get("Authorization", "")}:
            return Response(401, b"{}")
        return Response(200, b"come in")

    def kubeconfig(self, user: dict[str, Any], **cluster: Any) -> Path:
        """A file that leads here, for this user."""
        told = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority": str(self.authority.ca.certificate),
            **cluster,
        }
        document = {
            "clusters": [{"name": "here", "cluster": told}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "this", "context": {"cluster": "here", "user": "me"}}],
            "current-context": "this",
        }
        file = self.directory / "config"
        file.write_text(yaml.safe_dump(document))
        return file


def _name(request: Request) -> str:
    return common_name(request.certificate.subject) if request.certificate else ""


@pytest.fixture
def absent_doorman(tmp_path: Path) -> Doorman:
    """One whose server does not run."""
    return Doorman(tmp_path, Authority(tmp_path / "pki", datetime.now(UTC)))


@pytest.fixture
async def doorman(absent_doorman: Doorman) -> AsyncIterator[Doorman]:
    made = absent_doorman
    pair = made.authority.server("server", "kubernetes", ["127.0.0.1", "api.example"])
    tls = tls_context(pair.certificate, pair.key, made.authority.ca.certificate)
    async with listening(made.handle, "127.0.0.1", 0, tls, end_streams=lambda: None) as made.port:
        yield made


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def scripted() -> type[ScriptedServer]:
    return ScriptedServer
