"""What nodes and pods use, from the kubelets' `/metrics/resource`, as Kubernetes' metrics server has it.

A kubelet is asked when somebody asks for metrics and what is known is older than RESOLUTION; in between
nothing is done (docs/decisions/090). The use of the CPU is the increase of a counter between two samples of a
node. Whoever asks first after a pause waits SHORTEST for the second.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import aiohttp
import msgspec
from yarl import URL

from podling.apiserver.connect.kubelets import Kubelets, http_connector, kubelet_address
from podling.apiserver.store.store import Store, Stores
from podling.model.errors import StatusError
from podling.model.quantity import Quantity
from podling.model.time import Clock, go_duration, rfc3339
from podling.model.types.meta import ObjectMeta
from podling.model.types.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from podling.model.types.node import Node
from podling.model.types.pod import Pod
from podling.process.waits import aside

RESOLUTION = 15.0
"""Seconds for which what a kubelet said is told, as the metrics server's `--metric-resolution`."""
LONGEST_WINDOW = 4 * RESOLUTION
"""Seconds between two samples beyond which they say nothing of the present."""
SHORTEST = 1.0
"""Seconds between two samples, at least."""
PATIENCE = 10.0
"""Seconds that a kubelet may take to answer, as with the metrics server."""
LARGEST = 32 << 20
"""Bytes of an answer: 100,000 containers."""
RUNNING = "Running"
_LINE = re.compile(
    r"^(?P<of>container|node)_(?P<what>cpu_usage_seconds_total|memory_working_set_bytes|start_time_seconds)"
    r"(?:\{(?P<labels>[^}]*)\})? (?P<value>[0-9.eE+-]+)(?: (?P<at>[0-9]+))?$",
    re.MULTILINE,
)
_LABEL = re.compile(r'(\w+)="([^"\\]*)"')

log = logging.getLogger(__name__)

Whose = tuple[str, str, str]
"""Namespace, pod and container; the node itself is NODE."""
NODE: Whose = ("", "", "")


class Point(msgspec.Struct):
    """What one container, or the node, had used at `at` (seconds since the epoch) since `begun`: seconds of
    CPU, and bytes of memory then. -1 is what was not said."""

    at: float
    cpu: float = -1.0
    memory: float = -1.0
    begun: float = -1.0


Sample = Mapping[Whose, Point]
"""What a kubelet said at one time."""


class Use(NamedTuple):
    """`cpu` is nanocores on average over the `window` seconds that ended at `at`, `memory` bytes."""

    cpu: int
    memory: int
    at: float
    window: float


def read_sample(text: str, now: float) -> Sample:
    """The answer of `/metrics/resource`; `now` is when those were measured that have no time of their own.
    What has no CPU or no memory is left out."""
    found: dict[Whose, Point] = {}
    for match in _LINE.finditer(text):
        whose = NODE
        if match["of"] == "container":
            labels = dict(_LABEL.findall(match["labels"] or ""))
            whose = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        point = found.setdefault(whose, Point(now))
        match match["what"]:
            case "cpu_usage_seconds_total":
                point.cpu = float(match["value"])
                point.at = int(match["at"]) / 1000 if match["at"] else now
            case "memory_working_set_bytes":
                point.memory = float(match["value"])
            case _:
                point.begun = float(match["value"])
    return {whose: point for whose, point in found.items() if point.cpu >= 0 and point.memory >= 0}


def use_of(last: Point, before: Point | None) -> Use | None:
    """None if two points do not say it. A container that has begun since the point before, or without one,
    had used nothing when it began."""
    if before is None or before.at < last.begun:
        if last.begun < 0 or last.at - last.begun > LONGEST_WINDOW:
            return None
        before = Point(last.begun, 0.0)
    window = last.at - before.at
    if window <= 0 or last.cpu < before.cpu:
        return None
    return Use(int((last.cpu - before.cpu) / window * 1e9), int(last.memory), last.at, window)


class _OfNode(msgspec.Struct):
    """What is known of one node. `asked` is when its kubelet was asked last."""

    turn: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    asked: float = float("-inf")
    last: Sample = {}
    before: Sample = {}

    def add(self, sample: Sample) -> None:
        """Points that the kubelet has not measured anew leave those before them where they are."""
        known, self.last = self.last, sample
        self.before = {
            whose: self.before.get(whose, earlier) if earlier.at >= sample[whose].at else earlier
            for whose, earlier in known.items()
            if whose in sample
        }

    def uses(self) -> dict[Whose, Use]:
        found = ((whose, use_of(point, self.before.get(whose))) for whose, point in self.last.items())
        return {whose: use for whose, use in found if use is not None}


class Measures:
    """Asks kubelets when it is asked. Nodes and pods of which not all is known are left out."""

    def __init__(self, objects: Stores, kubelets: Kubelets, clock: Clock) -> None:
        self._objects = objects
        self._kubelets = kubelets
        self._clock = clock
        self._known: dict[str, _OfNode] = {}

    def subjects(self, *, pods: bool) -> Store[Any]:
        """Of the pods, or the nodes, that are measured."""
        return self._objects.by_type[Pod if pods else Node]

    async def nodes(self, nodes: Sequence[Node]) -> list[NodeMetrics]:
        """In the order of `nodes`."""
        await self._look(nodes)
        made = rfc3339(self._clock.now())
        uses = ((node.metadata, self._known[node.metadata.name].uses().get(NODE)) for node in nodes)
        return [
            NodeMetrics(
                metadata=_metadata(meta, made),
                timestamp=_time(use.at),
                window=_window(use.window),
                usage=_usage(use),
            )
            for meta, use in uses
            if use is not None
        ]

    async def pods(self, pods: Sequence[Pod]) -> list[PodMetrics]:
        """In the order of `pods`, without those that do not run."""
        names = sorted({pod.spec.node_name for pod in pods if pod.status.phase == RUNNING})
        found = ((name, self._objects.find(Node, "", name)) for name in names)
        nodes = {name: node for name, node in found if node is not None}
        await self._look(list(nodes.values()))
        made = rfc3339(self._clock.now())
        known = {name: by_pod(self._known[name]) for name in nodes}
        measured = []
        for pod in pods:
            meta = pod.metadata
            containers = known.get(pod.spec.node_name, {}).get((meta.namespace, meta.name))
            if not containers or pod.status.phase != RUNNING:
                continue
            newest = max((use for _, use in containers), key=lambda use: use.at)
            measured.append(
                PodMetrics(
                    metadata=_metadata(meta, made),
                    timestamp=_time(newest.at),
                    window=_window(newest.window),
                    containers=[ContainerMetrics(name=name, usage=_usage(use)) for name, use in containers],
                )
            )
        return measured

    async def _look(self, nodes: Sequence[Node]) -> None:
        for name in [name for name in self._known if self._objects.find(Node, "", name) is None]:
            del self._known[name]
        for node in nodes:
            self._known.setdefault(node.metadata.name, _OfNode())
        await asyncio.gather(*(self._look_at(node) for node in nodes))

    async def _look_at(self, node: Node) -> None:
        """Bring up to date what is known of the node, as far as it says it."""
        known = self._known[node.metadata.name]
        # Others who ask meanwhile are told the same.
        async with known.turn:
            age = self._now() - known.asked
            # Negative where the machine's clock was set.
            if 0 <= age < (RESOLUTION if NODE in known.uses() or not known.last else SHORTEST):
                return
            if not 0 <= age <= LONGEST_WINDOW:
                known.last = known.before = {}
            is_first = not known.last
            if await self._sampled(node, known) and is_first:
                await asyncio.sleep(SHORTEST)
                await self._sampled(node, known)

    async def _sampled(self, node: Node, known: _OfNode) -> bool:
        name, known.asked = node.metadata.name, self._now()
        try:
            async with asyncio.timeout(PATIENCE):
                text = await self._ask(node)
        except (StatusError, aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            log.warning("the kubelet of node %s does not say what it uses: %s", name, error or "no answer")
            return False
        known.add(await aside(len(text), read_sample, text, self._now()))
        return True

    def _now(self) -> float:
        return self._clock.now().timestamp()

    async def _ask(self, node: Node) -> str:
        """Raises StatusError, aiohttp.ClientError, OSError, ValueError."""
        address = self._kubelets.at(*kubelet_address(node))
        host = f"[{address.host}]" if ":" in address.host else address.host
        url = URL(f"https://{host}:{address.port}/metrics/resource")
        async with (
            aiohttp.ClientSession(connector=http_connector(address)) as session,
            session.get(url) as answer,
        ):
            answer.raise_for_status()
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > LARGEST:
                    raise ValueError(f"an answer of more than {LARGEST} bytes")
        return body.decode(errors="replace")


def by_pod(known: _OfNode) -> dict[tuple[str, str], list[tuple[str, Use]]]:
    """The containers of each pod; none for a pod of which not all are known."""
    uses = known.uses()
    found: dict[tuple[str, str], list[tuple[str, Use]]] = {}
    partly = set()
    for namespace, pod, container in known.last:
        if not pod:
            continue
        use = uses.get((namespace, pod, container))
        if use is None:
            partly.add((namespace, pod))
        else:
            found.setdefault((namespace, pod), []).append((container, use))
    return {pod: sorted(containers) for pod, containers in found.items() if pod not in partly}


def _metadata(of: ObjectMeta, made: str) -> ObjectMeta:
    return ObjectMeta(name=of.name, namespace=of.namespace, creation_timestamp=made, labels=of.labels)


def _usage(use: Use) -> dict[str, Quantity]:
    return {"cpu": Quantity.of_nanos(use.cpu), "memory": Quantity.of_bytes(use.memory)}


def _time(at: float) -> str:
    return rfc3339(datetime.fromtimestamp(at, UTC))


def _window(seconds: float) -> str:
    return go_duration(timedelta(seconds=seconds))
