"""A cluster without kubelets: the real API server over memory storage, and controllers made to catch up.

`settle` lets informers see what was written and reconciles until nothing is left to do; time moves by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kind import storage_key
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.assemble.accounts import in_process
from podling.assemble.controllers import CONTROLLERS
from podling.client.client import Client
from podling.client.informer import Informers
from podling.controllers.controller import Controller
from podling.model.codec.json import from_data
from podling.model.errors import StatusError
from podling.model.scheme import resource_of
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import KubeObject
from podling.model.types.networking import ServiceCIDR
from podling.model.types.pod import Pod
from podling.model.types.rbac import AUTHENTICATED, MASTERS
from podling.storage.interface import Write
from podling.storage.memory import MemoryStorage

T = TypeVar("T", bound=KubeObject)


def versions(objects: Iterable[KubeObject]) -> set[tuple[str, str, str]]:
    return {(o.metadata.namespace, o.metadata.name, o.metadata.resource_version) for o in objects}


class HandClock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Recorder:
    """Remembers what was said of objects."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def normal(self, obj: KubeObject, reason: str, message: str, *, field_path: str = "") -> None:
        self.said.append(f"{reason}: {message}")

    warning = normal

    def by(self, component: str) -> Recorder:
        return self


class Cluster:
    def __init__(
        self, tasks: asyncio.TaskGroup, clock: HandClock, server: ApiServer, storage: MemoryStorage
    ) -> None:
        self._tasks = tasks
        self.clock = clock
        self.server, self.storage = server, storage
        self.client = self.of("root", MASTERS)
        self.account = partial(in_process, self.of)
        self.informers = Informers(self.of(CONTROLLERS))
        self.events: Any = Recorder()
        self._controllers: list[Controller[Any]] = []

    def of(self, user: str, *groups: str) -> Client:
        return Client(LocalTransport(self.server.handle, User(user, (*groups, AUTHENTICATED))))

    async def run(self, *controllers: Controller[Any]) -> None:
        """Begin with what is there."""
        self._controllers += controllers
        await self.informers.start(self._tasks)
        await self.settle()

    async def settle(self) -> None:
        await self.see()
        while any(len(controller.queue) for controller in self._controllers):
            for controller in self._controllers:
                while len(controller.queue):
                    await self._reconcile_next(controller)
            await self.see()

    async def reconcile(self, key: Any) -> None:
        """As if the time had come for `key` of the one controller that runs."""
        (controller,) = self._controllers
        await self.see()
        await controller.reconcile(key)
        await self.settle()

    async def make(self, type_: type[T], name: str, namespace: str = "ns", **body: Any) -> T:
        """`metadata` may add to the name; a status is written too."""
        status = body.pop("status", None)
        place = {"namespace": namespace} if namespace else {}
        metadata = {**body.pop("metadata", {}), "name": name, **place}
        made = await self.client.create(from_data({**body, "metadata": metadata}, type_))
        if status is None:
            return made
        return await self.client.patch(type_, name, namespace, {"status": status}, subresource="status")

    async def pod(self, name: str, namespace: str = "ns", *, node: str = "", **body: Any) -> Pod:
        spec = {"containers": [{"name": "a", "image": "i"}], **({"nodeName": node} if node else {})}
        return await self.make(Pod, name, namespace, **{**body, "spec": {**spec, **body.get("spec", {})}})

    async def names(self, type_: type[KubeObject], namespace: str = "") -> list[str]:
        return [obj.metadata.name for obj in (await self.client.list(type_, namespace)).items]

    async def _reconcile_next(self, controller: Controller[Any]) -> None:
        key = await controller.queue.get()
        # What comes back often would wait, by a clock that is not moved by hand.
        controller.queue._paid_until.clear()
        try:
            await controller.reconcile(key)
        except StatusError as error:
            if error.code != 409:
                raise
            await self.see()
            controller.queue.add(key)
        finally:
            controller.queue.done(key)

    async def see(self) -> None:
        """Returns when every informer has what the server has."""
        for (type_, namespace, fields), informer in self.informers._by_choice.items():
            lags = True
            while lags:
                await asyncio.sleep(0)
                if fields:
                    listed = await self.client.list(type_, namespace, field_selector=fields)
                    lags = versions(informer.items()) != versions(listed.items)
                else:
                    lags = versions(informer.items()) != await self._stored(type_, namespace)

    async def _stored(self, type_: type[KubeObject], namespace: str) -> set[tuple[str, str, str]]:
        """As `versions` of a list, of which nothing need be decoded."""
        resource = resource_of(type_)
        records = (await self.storage.list(storage_key(resource, namespace))).records
        places = [record.key.removeprefix(storage_key(resource)).rpartition("/") for record in records]
        return {(p[0], p[2], str(record.revision)) for p, record in zip(places, records, strict=True)}

    def close(self) -> None:
        for controller in self._controllers:
            controller.queue.close()


class Over(Exception):
    """The test has ended."""


async def _nowhere(*_: Any) -> Response:
    raise AssertionError("there are no nodes")


@asynccontextmanager
async def _cluster(before: Sequence[Write]) -> AsyncIterator[Cluster]:
    storage, clock = MemoryStorage(), HandClock()
    await storage.commit(before)
    server = ApiServer.build(
        storage,
        KINDS,
        clock=clock,
        connector=_nowhere,
        paths=(Discovery(KINDS, "1.0.0"),),
        families=("IPv4", "IPv6"),
    )
    await server.start()
    try:
        async with asyncio.TaskGroup() as tasks:
            made = Cluster(tasks, clock, server, storage)
            yield made
            made.close()
            raise Over
    except* Over:
        """The way out of a task group whose tasks never end."""
    server.close()
    await storage.close()


async def _begin() -> Sequence[Write]:
    async with _cluster(()) as cluster:
        await cluster.server.have_default_roles()
        for namespace in ("ns", "default", "kube-node-lease"):
            await cluster.make(Namespace, namespace, "")
            await cluster.make(ServiceAccount, "default", namespace)
        await cluster.make(ServiceCIDR, "kubernetes", "", spec={"cidrs": ["10.96.0.0/16"]})
        return [Write(record.key, record.value, None) for record in (await cluster.storage.list("")).records]


@pytest.fixture(scope="session")
def beginning() -> Sequence[Write]:
    """What every cluster has, written once: its roles take as long as the whole server."""
    return asyncio.run(_begin())


@pytest.fixture
async def cluster(beginning: Sequence[Write]) -> AsyncIterator[Cluster]:
    async with _cluster(beginning) as made:
        yield made
