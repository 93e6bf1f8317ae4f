"""An API server over memory storage, talked to as a client does: a request goes in, an answer comes out."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.kinds.kind import Kind
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.patch.parse import merge_patch
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, User
from podling.apiserver.request.response import Response
from podling.apiserver.verbs import list as list_verb
from podling.apiserver.verbs.scope import Connector
from podling.model.codec.json import from_data
from podling.model.types.pod import Pod
from podling.storage.memory import MemoryStorage

ROOT = User("root", ("system:masters", "system:authenticated"))
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any
    content_type: str

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Conversation:
    """Says things to an API server. Bodies are JSON data, or bytes as they are."""

    server: ApiServer

    def __init__(self, clock: HandClock, storage: MemoryStorage) -> None:
        self.clock = clock
        self.storage = storage
        self.user: User | None = ROOT
        self.connector: Connector = answers_itself

    async def restart(self, served: Sequence[Kind[Any]] | None = None) -> None:
        """A new server over the same storage."""
        if hasattr(self, "server"):
            self.server.close()
            await self.server.ended()
        self.server = ApiServer.build(
            self.storage, served or KINDS, clock=self.clock, connector=self.connector
        )
        await self.server.start()

    async def say(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        response = await self.raw(method, target, body, **headers)
        assert isinstance(response.body, bytes), "the answer is a stream"
        said = json.loads(response.body) if response.content_type == "application/json" else response.body
        return Answer(response.status, response.headers, said, response.content_type)

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.say("GET", target, **headers)

    async def post(self, target: str, body: Any, **headers: str) -> Answer:
        return await self.say("POST", target, body, **headers)

    async def put(self, target: str, body: Any, **headers: str) -> Answer:
        return await self.say("PUT", target, body, **headers)

    async def delete(self, target: str, body: Any = None, **headers: str) -> Answer:
        return await self.say("DELETE", target, body, **headers)

    async def patch(self, target: str, body: Any, kind: str = "merge-patch", **headers: str) -> Answer:
        return await self.say("PATCH", target, body, Content_Type=f"application/{kind}+json", **headers)

    async def raw(self, method: str, target: str, body: Any = None, **headers: str) -> Response:
        path, _, query = target.partition("?")
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.server.handle(Request(method, path, query, named, sent, self.user))

    async def watch(self, target: str, **headers: str) -> Watched:
        response = await self.raw("GET", target, **headers)
        assert response.status == 200, response.body
        assert isinstance(response.body, AsyncGenerator)
        return Watched(response.body)


class Watched:
    """The events of a watch, one after the other; ends itself when the block ends."""

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        self._frames = frames
        self._lines: list[bytes] = []

    async def __aenter__(self) -> Watched:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._frames.aclose()

    async def next(self) -> Any:
        """None when the watch has ended."""
        while not self._lines:
            batch = await anext(self._frames, None)
            if batch is None:
                return None
            self._lines = batch.splitlines()
        return json.loads(self._lines.pop(0))

    async def names(self, count: int) -> list[str]:
        """Type and name of the next events: `ADDED a`."""
        events = [await self.next() for _ in range(count)]
        return [f"{event['type']} {event['object']['metadata']['name']}" for event in events]


@pytest.fixture(autouse=True)
def nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no write of the test brings about does not come."""
    monkeypatch.setattr(list_verb, "LONGEST_WAIT", 0.05)


async def answers_itself(context: RequestContext, obj: Any) -> Response:
    """In place of a node: says what would have been handed on."""
    return Response(200, f"{context.info.subresource} of {obj.metadata.name}".encode(), "text/plain")


@pytest.fixture
async def api() -> AsyncIterator[Conversation]:
    conversation = Conversation(HandClock(), MemoryStorage())
    await conversation.restart()
    for namespace in ("default", "other"):
        made = await conversation.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert made.status == 201, made.body
        account = {"metadata": {"name": "default"}}
        made = await conversation.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
        assert made.status == 201, made.body
    services = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}
    made = await conversation.post("/apis/networking.k8s.io/v1/servicecidrs", services)
    assert made.status == 201, made.body
    yield conversation
    conversation.server.close()
    await conversation.server.ended()
    await conversation.storage.close()


VALID = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"containers": [{"name": "app", "image": "busybox"}]},
}

MakePod = Callable[..., Pod]


@pytest.fixture
def make_pod() -> MakePod:
    """Makes a defaulted pod; keywords are fields of the spec, `metadata` and `status` those of the others."""

    def make(
        metadata: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any
    ) -> Pod:
        changes = {"metadata": metadata or {}, "status": status or {}, "spec": spec}
        pod = from_data(merge_patch(VALID, changes), Pod)
        Pods().default(pod)
        return pod

    return make
