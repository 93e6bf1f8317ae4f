"""The service proxy at work: it follows Services and EndpointSlices, and keeps the kernel's tables as they
say.

    informers ─▶ services that changed ─▶ frontends ─▶ a transaction ─▶ datagrams' entries forgotten

While a transaction is under way changes gather, and the next takes them all. One that the kernel refuses is
followed by one that replaces the table.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

from prometheus_client.metrics_core import Metric

from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.model.time import Clock, parse_optional
from podling.model.types.discovery import EndpointSlice
from podling.model.types.node import Node
from podling.model.types.service import Service
from podling.network.health import HealthPaths, HealthPorts, ProxyHealth, is_eligible, local_health
from podling.network.loopback import LoopbackPorts
from podling.network.metrics import Counted, metrics
from podling.network.nft import Nft, NftError, Run
from podling.network.services import Behind, Frontend, Key, NodeFacts, frontends, service_of
from podling.network.table import ServiceTable, Shape, Stale
from podling.process.waits import Backoff, Turn

TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
ZONE_LABEL = "topology.kubernetes.io/zone"
RETRY = Backoff(0.1, 30.0)
SHORT = 64
"""Frontends and endpoints of a change that takes less than a millisecond."""

Taken = Callable[[str, str, int], bool]
Changes = dict[Frontend, Behind | None]

log = logging.getLogger(__name__)


class Frontends:
    """What every service wants of the tables. What several want is the first's, by name."""

    def __init__(self) -> None:
        self._of: dict[Key, dict[Frontend, Behind]] = {}
        self._wanted_by: dict[Frontend, tuple[Key, ...]] = {}

    def put(self, key: Key, wanted: dict[Frontend, Behind]) -> Changes:
        """Returns what is to change in the tables."""
        before = self._of.pop(key, {})
        if wanted:
            self._of[key] = wanted
        changes: Changes = {}
        for frontend in {**before, **wanted}:
            keys = set(self._wanted_by.get(frontend, ())) - {key}
            if frontend in wanted:
                keys.add(key)
            if keys:
                self._wanted_by[frontend] = (*sorted(keys),)
                owner = self._wanted_by[frontend][0]
                changes[frontend] = self._of[owner][frontend]
            else:
                del self._wanted_by[frontend]
                changes[frontend] = None
        return changes

    def without_local(self) -> dict[str, dict[str, int]]:
        """By family and traffic policy, how many services' ports of policy `Local` have endpoints elsewhere
        only."""
        found: dict[str, dict[str, set[tuple[Key, str]]]] = {}
        for wanted in self._of.values():
            for frontend, behind in wanted.items():
                if behind.refusal == "drop":
                    policy = "internal" if behind.way == "cluster" else "external"
                    of_family = found.setdefault(frontend.family, {})
                    of_family.setdefault(policy, set()).add((behind.key, behind.port))
        return {family: {policy: len(of) for policy, of in of.items()} for family, of in found.items()}


class ServiceProxy:
    """Make it before its informers start, then `run()` it. At `address`, the node's, services have their
    health check ports; `events` tells what went wrong with a service, and `taken` whether a process has a
    port: called with protocol (`TCP`), address and port."""

    def __init__(
        self,
        informers: Informers,
        nft: Nft,
        shapes: Sequence[Shape],
        node: str,
        address: str,
        clock: Clock,
        events: EventRecorder,
        taken: Taken,
    ) -> None:
        self._address, self._taken = address, taken
        self._node_ports: set[Frontend] = set()
        """Those that were looked at."""
        self._informers, self._nft, self._clock, self._events = informers, nft, clock, events
        self._tables = {shape.family.api: ServiceTable(shape) for shape in shapes}
        self._counted = Counted(self._tables)
        self._is_refused = False
        self._triggers: dict[Key, list[tuple[str, datetime]]] = {}
        """When happened what slices tell of and the kernel does not have yet, with the family."""
        self._health_ports = HealthPorts(address, self._is_healthy, self._cannot_listen)
        self._loopback = LoopbackPorts(self._tables)
        self.paths = HealthPaths(clock, self._health)
        self._services = informers.of(Service)
        self._endpoint_slices = informers.of(EndpointSlice)
        self._nodes = informers.of(Node, field_selector=f"metadata.name={node}")
        self._node = NodeFacts(node)
        self._slices: dict[Key, dict[str, EndpointSlice]] = {}
        self._frontends = Frontends()
        self._changed: dict[Key, None] = {}
        self._wake = asyncio.Event()
        self.is_programmed = asyncio.Event()
        """Set once the kernel has the services that were there at the start."""
        self._nodes.subscribe(self._on_node)
        self._services.subscribe(self._on_service)
        self._endpoint_slices.subscribe(self._on_slice)

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        zone = new.metadata.labels.get(ZONE_LABEL, "") if new else self._node.zone
        if zone != self._node.zone:
            self._node = NodeFacts(self._node.name, zone)
            for service in self._services.items():
                self._on_service(None, service)

    def _on_service(self, old: Service | None, new: Service | None) -> None:
        if one := new or old:
            self._counted.service_changes += 1
            self._note((one.metadata.namespace, one.metadata.name))

    def _on_slice(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        self._counted.slice_changes += 1
        for one, is_there in ((old, False), (new, True)):
            if one is None or (key := service_of(one)) is None:
                continue
            of_service = self._slices.setdefault(key, {})
            if is_there:
                of_service[one.metadata.name] = one
            else:
                of_service.pop(one.metadata.name, None)
                if not of_service:
                    del self._slices[key]
            self._note(key)
            if is_there and self.is_programmed.is_set() and (at := _triggered(old, one)):
                self._triggers.setdefault(key, []).append((one.address_type, at))

    def _note(self, key: Key) -> None:
        self._changed[key] = None
        now = self._clock.now().timestamp()
        for of_family in self._counted.of.values():
            of_family.queued = now
        self._wake.set()

    def metrics(self) -> Iterable[Metric]:
        self._counted.pending_services = len(self._changed)
        return metrics(self._counted, self._frontends.without_local(), self.paths.answers)

    def _is_healthy(self) -> bool:
        return self.is_programmed.is_set() and not self._is_refused

    def _health(self) -> ProxyHealth:
        updated = {
            family: datetime.fromtimestamp(of_family.synced, UTC)
            for family, of_family in self._counted.of.items()
            if of_family.synced
        }
        node = self._nodes.get("", self._node.name)
        return ProxyHealth(updated, self._is_healthy(), is_eligible(node))

    def _cannot_listen(self, key: Key, port: int, why: str) -> None:
        if service := self._services.get(*key):
            name = (
                f'node {self._node.name} failed to start healthcheck "{"/".join(key)}" on port {port}: {why}'
            )
            self._events.warning(service, "FailedToStartServiceHealthcheck", name)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._health_ports.run())
            tasks.create_task(self._loopback.run())
            await self._informers.start(tasks)
            await self._program(None)
            self.is_programmed.set()
            while True:
                await self._wake.wait()
                await self._program(await self._plan())

    async def _plan(self) -> Changes:
        """What the services that have changed want."""
        self._wake.clear()
        keys, self._changed = self._changed, {}
        changes, turn = Changes(), Turn()
        for key in keys:
            service = self._services.get(*key)
            slices = self._slices.get(key, {}).values()
            self._health_ports.put(key, local_health(service, slices, self._node.name))
            changed = self._frontends.put(key, frontends(service, slices, self._node) if service else {})
            if service is not None:
                self._look_at_node_ports(service, changed)
            for frontend, behind in changed.items():
                self._loopback.put(frontend, behind)
            changes.update(changed)
            await turn.share()
        return changes

    def _look_at_node_ports(self, service: Service, changed: Changes) -> None:
        """Say of a new node port that a process has it: its clients are led to the service from now on."""
        for frontend, behind in changed.items():
            if frontend.address or frontend.family != ("IPv6" if ":" in self._address else "IPv4"):
                continue
            if behind is None:
                self._node_ports.discard(frontend)
            elif frontend not in self._node_ports:
                self._node_ports.add(frontend)
                protocol = frontend.protocol.upper()
                if self._taken(protocol, self._address, frontend.port):
                    which = f"{protocol} port {frontend.port} of node {self._node.name}"
                    why = f"{which} is in use by a process there, whose clients are led to this service"
                    self._events.warning(service, "NodePortInUse", why)

    async def _program(self, changes: Changes | None) -> None:
        """Bring changes into the kernel, however often that takes; None is for all there is."""
        retry, is_whole = RETRY.begin(), changes is None
        changes = await self._plan() if changes is None else changes
        triggers, self._triggers = self._triggers, {}
        while True:
            try:
                writing = partial(self._write, changes, is_whole=is_whole)
                stale = await self._nft.run(writing, is_short=not is_whole and _is_short(changes))
                self._is_refused = False
                if stale:
                    # Not before the rules: a packet in between would bring the entry back.
                    await self._nft.run(partial(_forget, stale))
                self._count(triggers)
                return
            except NftError as error:
                self._is_refused = True
                log.warning("the services' table is made anew, since nftables refused a change: %s", error)
            changes, is_whole = {}, True
            if (seconds := retry.next()) > RETRY.first:
                await asyncio.sleep(seconds)

    def _count(self, triggers: dict[Key, list[tuple[str, datetime]]]) -> None:
        now = self._clock.now()
        for of_service in triggers.values():
            for family, at in of_service:
                if of_family := self._counted.of.get(family):
                    of_family.programming.observe(max((now - at).total_seconds(), 0.0))

    def _write(self, changes: Changes, run: Run, *, is_whole: bool) -> list[Stale]:
        """Returns which entries of datagrams are wrong from now on. One of these runs at a time, perhaps in a
        thread. Raises NftError."""
        by_family: dict[str, Changes] = {family: {} for family in self._tables}
        for frontend, behind in changes.items():
            if frontend.family in by_family:
                by_family[frontend.family][frontend] = behind
        stale: list[Stale] = []
        for family, of_family in by_family.items():
            table, counted, began = self._tables[family], self._counted.of[family], time.perf_counter()
            if is_whole:
                stale += table.hold(of_family)
                script = table.whole()
            else:
                script, gone = table.change(of_family)
                stale += gone
            try:
                if script:
                    run(script)
            except NftError:
                counted.failures += 1
                raise
            counted.add(time.perf_counter() - began, self._clock.now().timestamp(), is_whole=is_whole)
        return stale


def _is_short(changes: Changes) -> bool:
    return sum(1 + (len(one.endpoints) + len(one.local) if one else 0) for one in changes.values()) <= SHORT


def _forget(stale: Sequence[Stale], run: Run) -> None:
    """Reads all entries there are, so it is for a thread."""
    # Imported with the first datagrams that went to an endpoint which is gone.
    from podling.network.conntrack import forget

    try:
        forget(stale)
    except OSError as error:
        log.warning("datagrams may go on to endpoints that are gone: %s", error)


def _triggered(old: EndpointSlice | None, new: EndpointSlice) -> datetime | None:
    """When happened what a change of a slice tells of, if it says so."""
    at = new.metadata.annotations.get(TRIGGER, "")
    if old is not None and old.metadata.annotations.get(TRIGGER) == at:
        return None
    try:
        return parse_optional(at)
    except ValueError:
        return None
