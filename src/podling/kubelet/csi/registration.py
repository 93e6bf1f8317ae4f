"""Registers the CSI drivers of the node: who listens in `plugins_registry` is asked who it is.

    a socket appears ──▶ GetInfo ──▶ NodeGetInfo ──▶ CSINode, Node ──▶ known by its name ──▶ told so
    it is gone       ──▶ not known any more ──▶ CSINode, Node

inotify tells that something changed; then the directory is read. A socket of the same name with another
inode is another one. A failure is told to the plugin and tried again, after 0.5 s growing to two minutes, as
long as its socket is there. What speaks gRPC is imported with the first socket.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from asyncinotify import Mask

from podling.client.client import Client
from podling.kubelet.csi.interface import DriverError
from podling.model.errors import StatusError
from podling.process.directories import followed
from podling.process.waits import Backoff

if TYPE_CHECKING:
    from podling.cri.grpc.connection import Connection
    from podling.kubelet.csi import registration_pb2 as pb
    from podling.kubelet.csi.driver import Driver
    from podling.kubelet.csi.node_object import NodeDrivers

RETRY = Backoff(0.5, 122.0)
CSI = "CSIPlugin"
_SERVICE = "/pluginregistration.Registration"
_DEADLINE = 10.0
_CHANGES = Mask.CREATE | Mask.DELETE | Mask.MOVED_TO | Mask.MOVED_FROM | Mask.ATTRIB

log = logging.getLogger(__name__)


class PluginError(Exception):
    """A plugin cannot be registered. The message is Kubernetes'."""


class _Socket(NamedTuple):
    path: Path
    inode: int


class CsiDrivers:
    """The registered drivers by name. `run()` it; `registry` is the directory that is watched."""

    def __init__(self, client: Client, registry: Path, node_name: str) -> None:
        self._client, self._registry, self._node_name = client, registry, node_name
        self._drivers: dict[str, tuple[_Socket, Driver]] = {}
        self._object: NodeDrivers | None = None
        self._waiting: set[Callable[[], None]] = set()

    def get(self, name: str) -> Driver | None:
        known = self._drivers.get(name)
        return known[1] if known else None

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever a driver was registered, until `leave`."""
        self._waiting.add(changed)

    def leave(self, changed: Callable[[], None]) -> None:
        self._waiting.discard(changed)

    async def run(self) -> NoReturn:
        """Raises OSError if the directory cannot be made or watched."""
        await asyncio.to_thread(self._registry.mkdir, mode=0o750, parents=True, exist_ok=True)
        known: dict[_Socket, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            changed = asyncio.Event()
            with followed(self._registry, _CHANGES | Mask.ONLYDIR, lambda _: changed.set()):
                while True:
                    # Read strictly after the watch was set, and after each event.
                    changed.clear()
                    found = await asyncio.to_thread(self._sockets)
                    for socket in known.keys() - found:
                        known.pop(socket).cancel()
                        tasks.create_task(self._forget(socket))
                    for socket in found - known.keys():
                        known[socket] = tasks.create_task(self._keep_trying(socket))
                    await changed.wait()

    def _sockets(self) -> set[_Socket]:
        found = set()
        for entry in os.scandir(self._registry):
            # A name that begins with a dot is no plugin's, as in Kubernetes.
            if not entry.name.startswith("."):
                with suppress(FileNotFoundError):
                    state = entry.stat(follow_symlinks=False)
                    if stat.S_ISSOCK(state.st_mode):
                        found.add(_Socket(Path(entry.path), state.st_ino))
        return found

    async def _keep_trying(self, socket: _Socket) -> None:
        from podling.cri.grpc.connection import Connection
        from podling.cri.interface import RuntimeFault

        connection, retry = Connection(str(socket.path)), RETRY.begin()
        try:
            while True:
                try:
                    await self._register(socket, connection)
                    return
                except (PluginError, RuntimeFault) as error:
                    log.warning("plugin at %s is not registered: %s", socket.path, error)
                await asyncio.sleep(retry.next())
        finally:
            await connection.close()

    async def _register(self, socket: _Socket, connection: Connection) -> None:
        """Raises PluginError and RuntimeFault."""
        from podling.kubelet.csi import registration_pb2 as pb

        async def tell(error: str) -> None:
            told = pb.RegistrationStatus(plugin_registered=not error, error=error)
            path = f"{_SERVICE}/NotifyRegistrationStatus"
            await connection.call(path, told, pb.RegistrationStatusResponse, _DEADLINE)

        asked = pb.InfoRequest()
        plugin = await connection.call(f"{_SERVICE}/GetInfo", asked, pb.PluginInfo, _DEADLINE)
        try:
            await self._add(socket, plugin)
        except PluginError as error:
            await tell(str(error))
            raise
        await tell("")
        log.info("CSI driver %s is registered", plugin.name)
        for changed in tuple(self._waiting):
            changed()

    async def _add(self, socket: _Socket, plugin: pb.PluginInfo) -> None:
        from podling.kubelet.csi.driver import Driver
        from podling.kubelet.csi.node_object import NodeDrivers, TopologyError

        if fault := fault_of(plugin, socket.path):
            raise PluginError(fault)
        driver = Driver(plugin.name, plugin.endpoint or str(socket.path))
        try:
            self._object = self._object or NodeDrivers(self._client, self._node_name)
            await self._object.add(plugin.name, await driver.info())
        except (DriverError, TopologyError, StatusError, OSError) as error:
            await driver.close()
            raise PluginError(
                f"RegisterPlugin error -- plugin registration failed with err: {error}"
            ) from error
        except BaseException:
            await driver.close()
            raise
        before = self._drivers.get(plugin.name)
        self._drivers[plugin.name] = socket, driver
        if before is not None:
            await before[1].close()

    async def _forget(self, socket: _Socket) -> None:
        for name, (where, driver) in list(self._drivers.items()):
            if where == socket:
                del self._drivers[name]
                await driver.close()
                assert self._object is not None
                retry = RETRY.begin()
                while name not in self._drivers:
                    try:
                        await self._object.remove(name)
                        break
                    except (StatusError, OSError) as error:
                        log.warning("CSI driver %s is gone, and its CSINode is not written: %s", name, error)
                    await asyncio.sleep(retry.next())


def fault_of(plugin: pb.PluginInfo, socket: Path) -> str:
    """Why a plugin is refused; empty if it is not."""
    if plugin.type != CSI:
        return (
            f"RegisterPlugin error -- no handler registered for plugin type: {plugin.type} at socket {socket}"
        )
    versions = plugin.supported_versions
    # Sidecars say 1.0.0, some drivers v1.0.0.
    if any(version.removeprefix("v").startswith("1.") for version in versions):
        return ""
    whose = f'kubernetes.io/csi: ValidatePlugin for CSI driver "{plugin.name}" failed.'
    if versions:
        listed = " ".join(f'"{version}"' for version in versions)
        why = f"None of the versions specified [{listed}] are supported."
    else:
        why = "Plugin returned an empty list for supported versions"
    return (
        f"RegisterPlugin error -- plugin validation failed with err: validation failed for CSI Driver "
        f"{plugin.name} at endpoint {plugin.endpoint}: {whose} {why}"
    )
