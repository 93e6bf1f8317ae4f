"""R-SYS-2: policies follow an API server, and no container starts before they hold for its pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.model.types.container import Container
from podling.model.types.core import Event, Namespace
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.networking import NetworkPolicy, NetworkPolicySpec
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.rbac import MASTERS
from podling.network import policies
from podling.network.nft import Nft, NftError, Run
from podling.network.policies import Policies
from podling.network.table import IPV4, Shape
from podling.storage.memory import MemoryStorage
from unit.controllers.conftest import HandClock, _nowhere


class Kernel:
    """In the place of nftables: keeps the scripts, and refuses as long as it is told to."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.refusal = ""
        self._ran = asyncio.Event()

    async def run(self, work: Callable[[Run], None]) -> None:
        await asyncio.sleep(0)
        work(self._do)

    def _do(self, script: str) -> str:
        self._ran.set()
        if self.refusal:
            raise NftError(self.refusal)
        self.scripts.append(script)
        return ""

    async def until(self, text: str) -> str:
        """The newest script, once it has the text."""
        while not (self.scripts and text in self.scripts[-1]):
            self._ran.clear()
            await self._ran.wait()
        return self.scripts[-1]

    def close(self) -> None:
        pass


def pod(name: str, **labels: str) -> Pod:
    spec = PodSpec(node_name="n1", containers=[Container(name="app", image="app:1")])
    return Pod(metadata=ObjectMeta(name=name, namespace="default", labels=labels), spec=spec)


def deny(**labels: str) -> NetworkPolicy:
    spec = NetworkPolicySpec(pod_selector=LabelSelector(match_labels=labels))
    return NetworkPolicy(metadata=ObjectMeta(name="deny", namespace="default"), spec=spec)


@asynccontextmanager
async def enforcing(kernel: Kernel) -> AsyncIterator[tuple[Client, Policies]]:
    server = ApiServer.build(MemoryStorage(), KINDS, connector=_nowhere, clock=HandClock(), plugins=())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    await client.create(Namespace(metadata=ObjectMeta(name="default")))
    events = EventRecorder(client, HandClock(), "test", "n1")
    made = Policies(Informers(client), cast(Nft, kernel), [Shape(IPV4, "test")], "n1", events)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.run())
        await kernel.until("delete table")
        yield client, made
        running.cancel()
    await server.ended()


async def test_without_policies_there_is_no_table_and_nobody_waits() -> None:
    kernel = Kernel()
    async with enforcing(kernel) as (client, made):
        assert "chain" not in kernel.scripts[0]
        assert await made.admit(await client.create(pod("web")), ("10.0.0.1",)) == ""
        assert len(kernel.scripts) == 1


async def test_the_first_policy_makes_the_table_with_the_pods_that_are_there() -> None:
    kernel = Kernel()
    async with enforcing(kernel) as (client, made):
        await made.admit(await client.create(pod("web")), ("10.0.0.1",))
        await client.create(deny())
        told = await kernel.until("10.0.0.1 : jump in-")
        assert told.startswith("table ip test {}\ndelete table ip test\n")
        # What follows is what has changed.
        assert await made.admit(await client.create(pod("other")), ("10.0.0.2",)) == ""
        assert "10.0.0.2 : jump in-" in kernel.scripts[-1]
        assert "10.0.0.1" not in kernel.scripts[-1]
        await client.delete(NetworkPolicy, "deny", "default")
        assert "delete chain" in await kernel.until("delete element ip test ingress")


async def test_a_container_waits_until_the_kernel_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is told why, if it does not come to that; a container that comes later asks again."""
    kernel = Kernel()
    async with enforcing(kernel) as (client, made):
        await client.create(deny())
        await kernel.until("chain forward")
        made_pod = await client.create(pod("web"))
        kernel.refusal = "no room"
        monkeypatch.setattr(policies, "WITHIN", 0.05)
        assert await made.admit(made_pod, ("10.0.0.1",)) == (
            "network policies are not enforced for 10.0.0.1: nftables has refused a change: no room"
        )
        kernel.refusal = ""
        monkeypatch.setattr(policies, "WITHIN", 10.0)
        assert await made.admit(made_pod, ("10.0.0.1",)) == ""
        # The kernel may have been left halfway.
        assert any("delete table" in script and "10.0.0.1 : jump" in script for script in kernel.scripts)
        count = len(kernel.scripts)
        assert await made.admit(made_pod, ("10.0.0.1",)) == ""
        assert len(kernel.scripts) == count
        assert await made.admit(made_pod, ("10.0.0.9",)) == ""
        assert "10.0.0.9 : jump" in kernel.scripts[-1]


async def test_the_informers_view_of_a_pod_changes_what_was_admitted() -> None:
    """Its labels are those of the API; its address is that of its sandbox, whatever the status tells."""
    kernel = Kernel()
    async with enforcing(kernel) as (client, made):
        await client.create(deny(app="web"))
        await kernel.until("chain forward")
        other = await client.create(pod("other", app="other"))
        assert await made.admit(other, ("10.0.0.1",)) == ""
        patch: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}}
        await client.patch(Pod, "other", "default", patch)
        await kernel.until("10.0.0.1 : jump in-")
        await client.delete(Pod, "other", "default", grace_seconds=0)
        await kernel.until("delete element ip test ingress { 10.0.0.1")


async def test_a_policy_that_cannot_be_enforced_says_so() -> None:
    kernel = Kernel()
    async with enforcing(kernel) as (client, _):
        kernel.refusal = "no room"
        await client.create(deny())
        said: list[str] = []
        while not said:
            await asyncio.sleep(0)
            found = await client.list(Event, "default")
            said = [
                f"{one.involved_object.name} {one.type} {one.reason}: {one.message}" for one in found.items
            ]
        assert said == ["deny Warning NotEnforced: nftables has refused a change: no room"]
