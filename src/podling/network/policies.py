"""Network policies at work: they follow NetworkPolicies, Pods and Namespaces, and keep the kernel's table as
they say.

    informers, and sandboxes that got an address ─▶ plan ─▶ a transaction

Nothing is planned before there is a policy. While a transaction is under way changes gather, and the next
takes them all. Before a container of a pod starts, `admit` waits until the kernel knows the pod's addresses,
so nothing it sends or is sent comes before them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from prometheus_client.metrics_core import Metric

from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.model.rules.status import is_mirror
from podling.model.types.core import Namespace
from podling.model.types.meta import KubeObject
from podling.model.types.networking import NetworkPolicy
from podling.model.types.pod import Pod
from podling.network.nft import Nft, NftError, Run
from podling.network.policy import Key, PodFacts, PolicyPlan, pod_facts
from podling.network.policy_metrics import CountedPolicies, policy_metrics
from podling.network.policy_table import dropped, replacement, script
from podling.network.table import IPV6, Shape, removal
from podling.process.waits import Backoff, Turn

RETRY = Backoff(0.1, 30.0)
WITHIN = 10.0
"""Seconds that a container waits for the policies of its pod."""
REMEMBERED = 4_096
"""Pods whose addresses are remembered; a node has some hundreds."""

log = logging.getLogger(__name__)


Put = tuple[str, Key, Any]
"""`policy`, `namespace` or `pod`, its key, and what it is now: a NetworkPolicy, labels, PodFacts, or None."""


class Admitted(msgspec.Struct):
    """A pod as its kubelet has it, the addresses of its sandbox, and how many were admitted before."""

    pod: Pod
    addresses: Sequence[str]
    number: int
    is_held: bool = False
    """The kernel knows them."""


class Policies:
    """Make it before its informers start, then `run()` it."""

    def __init__(
        self,
        informers: Informers,
        nft: Nft,
        shapes: Sequence[Shape],
        node: str,
        events: EventRecorder,
        exception: Callable[[], str] = str,
    ) -> None:
        """`exception` says for what pods policies do not hold, if there are such."""
        self._informers, self._nft, self._node, self._shapes = informers, nft, node, shapes
        self._events, self._exception = events, exception
        self._plans = [PolicyPlan(6 if shape.family is IPV6 else 4) for shape in shapes]
        self._policies = informers.of(NetworkPolicy)
        self._pods = informers.of(Pod)
        self._namespaces = informers.of(Namespace)
        self._admitted: dict[Key, Admitted] = {}
        self._count = 0
        self._is_active = self._has_table = False
        self._is_synced = asyncio.Event()
        self._wake = asyncio.Event()
        self._changed: dict[tuple[str, Key], None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._error = ""
        self._counted = CountedPolicies(shape.family.api for shape in shapes)
        self._reading: asyncio.Task[None] | None = None
        self._policies.subscribe(partial(self._note, "policy"))
        self._namespaces.subscribe(partial(self._note, "namespace"))
        self._pods.subscribe(self._on_pod)

    async def admit(self, pod: Pod, addresses: Sequence[str]) -> str:
        """Returns once the pod's policies hold for these addresses, which its sandbox has; with the reason if
        they do not."""
        key = pod.metadata.namespace, pod.metadata.name
        known = self._admitted.get(key)
        is_same = known and (known.pod.metadata.uid, known.addresses) == (pod.metadata.uid, addresses)
        if pod.spec.host_network or (known and is_same and known.is_held):
            return ""
        self._count += 1
        admitted = self._admitted[key] = Admitted(pod, addresses, self._count)
        while len(self._admitted) > REMEMBERED:
            del self._admitted[next(iter(self._admitted))]
        try:
            async with asyncio.timeout(WITHIN):
                await self._is_synced.wait()
                if self._is_active:
                    self._put("pod", key)
                    held = asyncio.get_running_loop().create_future()
                    self._waiting.append(held)
                    await held
        except TimeoutError:
            why = self._error or "the API server has not told them"
            return f"network policies are not enforced for {', '.join(addresses)}: {why}"
        admitted.is_held = True
        return ""

    def metrics(self) -> Iterable[Metric]:
        """What was dropped is as of the time they were asked for before, since the kernel is asked aside."""
        if self._has_table and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._nft.run(self._read))
        policies = sum(1 for _ in self._policies.items()) if self._is_active else 0
        return policy_metrics(self._counted, policies, len(self._waiting))

    def _read(self, run: Run) -> None:
        """In the thread of nftables."""
        for shape in self._shapes:
            with suppress(NftError):
                listing = run(f"list counters table {shape.family.name} {shape.table}\n")
                self._counted.dropped[shape.family.api] = dropped(listing)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            key = old.metadata.namespace, old.metadata.name
            admitted = self._admitted.get(key)
            if admitted and admitted.pod.metadata.uid == old.metadata.uid:
                del self._admitted[key]
        self._note("pod", old, new)

    def _note(self, type_: str, old: KubeObject | None, new: KubeObject | None) -> None:
        if type_ == "policy" and not self._is_active:
            self._is_active = True
            for pod in self._pods.items():
                self._note("pod", None, pod)
            for namespace in self._namespaces.items():
                self._note("namespace", None, namespace)
            for key in self._admitted:
                self._put("pod", key)
        if one := new or old:
            self._put(type_, (one.metadata.namespace, one.metadata.name))

    def _put(self, type_: str, key: Key) -> None:
        if self._is_active:
            self._changed[type_, key] = None
            self._wake.set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._events.run())
                await self._informers.start(tasks)
                await self._program(is_whole=True)
                self._is_synced.set()
                while True:
                    await self._wake.wait()
                    await self._program(is_whole=False)
        finally:
            self._nft.close()

    async def _program(self, *, is_whole: bool) -> None:
        """Bring what has changed into the kernel, however often that takes."""
        retry = RETRY.begin()
        while True:
            waiting, self._waiting = self._waiting, []
            is_active, puts = self._is_active, await self._puts()
            if exception := self._exception():
                self._say(puts, exception)
            is_whole |= is_active and not self._has_table
            began = time.perf_counter()
            try:
                await self._nft.run(partial(self._write, puts, is_active=is_active, is_whole=is_whole))
            except NftError as error:
                self._waiting += waiting
                self._counted.failures += 1
                self._error = f"nftables has refused a change: {error}"
                log.warning("network policies: %s", self._error)
                self._say(puts, self._error)
            else:
                self._error, self._has_table = "", is_active
                self._counted.changes.observe(time.perf_counter() - began)
                for one in waiting:
                    if not one.done():
                        one.set_result(None)
                return
            is_whole = True
            if (seconds := retry.next()) > RETRY.first:
                await asyncio.sleep(seconds)

    async def _puts(self) -> list[Put]:
        """What has changed, with what it is now."""
        self._wake.clear()
        changed, self._changed = self._changed, {}
        puts: list[Put] = []
        turn = Turn()
        for type_, key in changed:
            match type_:
                case "policy":
                    puts.append((type_, key, self._policies.get(*key)))
                case "namespace":
                    namespace = self._namespaces.get(*key)
                    puts.append((type_, key, namespace.metadata.labels if namespace else None))
                case _:
                    puts.append((type_, key, self._facts(key)))
            await turn.share()
        return puts

    def _say(self, puts: Sequence[Put], error: str) -> None:
        for _, _, policy in puts:
            if isinstance(policy, NetworkPolicy):
                log.warning("network policy %s: %s", policy.metadata.name, error)
                self._events.warning(policy, "NotEnforced", error)

    def _facts(self, key: Key) -> PodFacts | None:
        pod, admitted = self._pods.get(*key), self._admitted.get(key)
        if admitted and (pod is None or is_mirror(pod) or pod.metadata.uid == admitted.pod.metadata.uid):
            return pod_facts(pod or admitted.pod, self._node, admitted.addresses, admitted.number)
        return pod_facts(pod, self._node) if pod else None

    def _write(self, puts: Sequence[Put], run: Run, *, is_active: bool, is_whole: bool) -> None:
        """In the thread of nftables, which alone knows the plans. Raises NftError."""
        for plan in self._plans:
            for type_, key, value in puts:
                match type_:
                    case "policy":
                        try:
                            plan.put_policy(key, value)
                        except ValueError as error:
                            # Written before a server that validates: nobody can say which pods it selects.
                            log.warning("the network policy %s/%s is not understood: %s", *key, error)
                    case "namespace":
                        plan.put_namespace(key[1], value)
                    case _:
                        plan.put_pod(key, value)
        for shape, plan in zip(self._shapes, self._plans, strict=True):
            text = script(plan.change(), shape)
            if is_whole:
                # Without any policy there is no table.
                table = replacement(shape) if is_active else removal(shape)
                text = table + script(plan.whole(), shape)
            if text:
                run(text)
