"""Drivers that listen in the directory of plugins are registered, by real gRPC, and the CSINode shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from csi_driver import CsiDriver
from podling.client.client import Client
from podling.client.informer import Informer
from podling.kubelet.csi import registration_pb2 as pb
from podling.kubelet.csi.node_object import NODE_IDS
from podling.kubelet.csi.registration import CsiDrivers, fault_of
from podling.model.types.node import Node
from podling.model.types.storage import CSINode

Entry = tuple[str, str, list[str], int | None]
"""Of a CSINode: name, node id, topology keys, most volumes."""


class Drivers:
    """The drivers of n1, and what the API server has of them."""

    def __init__(self, client: Client, registry: Path, seen: Informer[CSINode]) -> None:
        self.client = client
        self.registered = CsiDrivers(client, registry, "n1")
        self._seen, self._changed = seen, asyncio.Event()
        seen.subscribe(lambda old, new: self._changed.set())

    async def shown(self, holds: Callable[[list[Entry]], bool]) -> list[Entry]:
        """Returns when it holds of the entries of the CSINode."""

        def entries(found: CSINode | None) -> list[Entry]:
            listed = found.spec.drivers if found else []
            return [
                (one.name, one.node_id, one.topology_keys, one.allocatable.count if one.allocatable else None)
                for one in listed
            ]

        async with asyncio.timeout(20):
            while not holds(listed := entries(self._seen.get("", "n1"))):
                self._changed.clear()
                await self._changed.wait()
        return listed


class Over(Exception):
    """The test has ended."""


@asynccontextmanager
async def running(clients: tuple[Client, Client], registry: Path) -> AsyncIterator[Drivers]:
    try:
        async with asyncio.TaskGroup() as tasks:
            client, root = clients
            seen = Informer(root, CSINode, field_selector="metadata.name=n1")
            tasks.create_task(seen.run())
            await seen.wait_synced()
            made = Drivers(client, registry, seen)
            tasks.create_task(made.registered.run())
            yield made
            raise Over
    except* Over:
        """The way out of a task group whose tasks never end."""


async def told(driver: CsiDriver) -> tuple[bool, str]:
    """What the kubelet has told the driver."""
    return await asyncio.to_thread(driver.status.get, timeout=20)


async def test_a_driver_is_registered_while_it_listens(
    clients: tuple[Client, Client], tmp_path: Path
) -> None:
    driver, registry = CsiDriver("d.test", tmp_path / "d"), tmp_path / "registry"
    driver.set(most=3, topology={"d.test/rack": "r1"})
    async with running(clients, registry) as drivers:
        with driver.serving(registry):
            assert await told(driver) == (True, "")
            found = drivers.registered.get("d.test")
            assert found is not None and found.name == "d.test"
            shown = await drivers.shown(bool)
            assert shown == [("d.test", "node-one", ["d.test/rack"], 3)]
            meta = (await drivers.client.get(Node, "n1")).metadata
            assert meta.labels["d.test/rack"] == "r1"
            assert json.loads(meta.annotations[NODE_IDS]) == {"d.test": "node-one"}
            (owner,) = (await drivers.client.get(CSINode, "n1")).metadata.owner_references
            assert (owner.kind, owner.uid) == ("Node", meta.uid)
        assert await drivers.shown(lambda listed: not listed) == []
        assert drivers.registered.get("d.test") is None
        driver.set(node="node-two", most=0)
        with driver.serving(registry):
            assert await told(driver) == (True, "")
            assert await drivers.shown(bool) == [("d.test", "node-two", ["d.test/rack"], None)]


async def test_one_that_was_known_before_is_written_anew(
    clients: tuple[Client, Client], tmp_path: Path
) -> None:
    """As after a kill: nobody has told that its socket went."""
    driver, registry = CsiDriver("d.test", tmp_path / "d"), tmp_path / "registry"
    with driver.serving(registry):
        async with running(clients, registry):
            await told(driver)
        driver.set(node="node-two")
        async with running(clients, registry) as drivers:
            assert await told(driver) == (True, "")
            assert [one[:2] for one in await drivers.shown(bool)] == [("d.test", "node-two")]


async def test_a_driver_is_told_why_it_is_refused_and_asked_again(
    clients: tuple[Client, Client], tmp_path: Path
) -> None:
    driver, registry = CsiDriver("d.test", tmp_path / "d"), tmp_path / "registry"
    driver.set(topology={"zone": "b"}, refuses={"NodeGetInfo": "not yet"})
    async with running(clients, registry) as drivers:
        with driver.serving(registry):
            begin = "RegisterPlugin error -- plugin registration failed with err: "
            assert await told(driver) == (False, f"{begin}rpc error: code = Internal desc = not yet")
            driver.set(refuses={})
            clash = 'driver reported "zone":"b" but existing label is "zone":"a"'
            assert await told(driver) == (
                False,
                f"{begin}detected topology value collision: {clash}",
            )
            driver.set(topology={"zone": "a"})
            assert await told(driver) == (True, "")
            assert drivers.registered.get("d.test") is not None


async def test_who_waits_for_a_driver_is_called(clients: tuple[Client, Client], tmp_path: Path) -> None:
    driver, registry = CsiDriver("d.test", tmp_path / "d"), tmp_path / "registry"
    async with running(clients, registry) as drivers:
        called = asyncio.Event()
        drivers.registered.follow(called.set)
        with driver.serving(registry):
            async with asyncio.timeout(20):
                await called.wait()
            assert drivers.registered.get("d.test") is not None
            drivers.registered.leave(called.set)


@pytest.mark.parametrize(
    ("kind", "versions", "why"),
    [
        ("CSIPlugin", ["1.0.0"], ""),
        ("CSIPlugin", ["0.3.0", "v1.2.0"], ""),
        ("DRAPlugin", ["1.0.0"], "no handler registered for plugin type: DRAPlugin at socket /s"),
        (
            "CSIPlugin",
            [],
            "plugin validation failed with err: validation failed for CSI Driver d at endpoint /e: "
            'kubernetes.io/csi: ValidatePlugin for CSI driver "d" failed. Plugin returned an empty list for '
            "supported versions",
        ),
        (
            "CSIPlugin",
            ["0.3.0"],
            "plugin validation failed with err: validation failed for CSI Driver d at endpoint /e: "
            'kubernetes.io/csi: ValidatePlugin for CSI driver "d" failed. None of the versions specified '
            '["0.3.0"] are supported.',
        ),
    ],
)
def test_what_is_refused(kind: str, versions: list[str], why: str) -> None:
    plugin = pb.PluginInfo(type=kind, name="d", endpoint="/e", supported_versions=versions)
    assert fault_of(plugin, Path("/s")) == (f"RegisterPlugin error -- {why}" if why else "")
