"""How soon a network policy holds, with few and with many of them and of pods: write → nftables' commit, and
how long a pod's first container waits; and how long it takes to load all there is.

API server and enforcement are in one process, as in `podling up`. All of it runs in a network namespace of
its own, so root is needed. Run with `python bench/policies.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from services import Commits
from table import Measurement, report

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.apiserver.request.response import Response
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import Informers
from podling.model.time import SystemClock
from podling.model.types.container import Container
from podling.model.types.core import Namespace
from podling.model.types.meta import LabelSelector, ObjectMeta
from podling.model.types.networking import (
    IPBlock,
    NetworkPolicy,
    NetworkPolicyIngressRule,
    NetworkPolicyPeer,
    NetworkPolicyPort,
    NetworkPolicySpec,
)
from podling.model.types.pod import Pod, PodSpec
from podling.model.types.rbac import MASTERS
from podling.network.nft import Nft
from podling.network.policies import Policies
from podling.network.table import IPV4, Shape
from podling.storage.memory import MemoryStorage

SIZES = (10, 1000)
CHANGES = 50
NODE = "bench"


async def nowhere(*_: Any) -> Response:
    raise AssertionError("there are no nodes")


def selector(number: int) -> LabelSelector:
    return LabelSelector(match_labels={"app": f"app-{number}"})


def pod(number: int, app: int) -> Pod:
    spec = PodSpec(node_name=NODE, containers=[Container(name="app", image="app:1")])
    meta = ObjectMeta(name=f"pod-{number}", namespace="default", labels={"app": f"app-{app}"})
    return Pod(metadata=meta, spec=spec)


def address(number: int) -> tuple[str, ...]:
    return (f"10.64.{number // 250}.{number % 250 + 2}",)


def policy(number: int, size: int, last: int = 0) -> NetworkPolicy:
    """From the next application, all pods of the team `x`, and a subnet."""
    peers = [
        NetworkPolicyPeer(pod_selector=selector((number + 1) % size)),
        NetworkPolicyPeer(namespace_selector=LabelSelector(match_labels={"team": "x"})),
        NetworkPolicyPeer(ip_block=IPBlock(cidr=f"192.0.2.{last}/32")),
    ]
    rule = NetworkPolicyIngressRule(ports=[NetworkPolicyPort(port=8080)], from_=peers)
    spec = NetworkPolicySpec(pod_selector=selector(number), ingress=[rule])
    return NetworkPolicy(metadata=ObjectMeta(name=f"policy-{number}", namespace="default"), spec=spec)


async def timed(commits: Commits, change: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds from each change to the commit that follows it."""
    took = []
    for number in range(CHANGES):
        commits.drain()
        began = time.perf_counter()
        await change(number)
        took.append((await commits.next(60) - began) * 1000)
        await asyncio.sleep(0.02)
    return took


async def measure(size: int) -> list[Measurement]:
    server = ApiServer.build(MemoryStorage(), KINDS, connector=nowhere, clock=SystemClock(), plugins=())
    await server.start()
    client = Client(LocalTransport(server.handle, User("admin", (MASTERS,))))
    await client.create(Namespace(metadata=ObjectMeta(name="default", labels={"team": "x"})))
    for number in range(size):
        made = await client.create(pod(number, number))
        await client.patch(
            Pod,
            made.metadata.name,
            "default",
            {"status": {"podIP": address(number)[0], "podIPs": [{"ip": address(number)[0]}]}},
            subresource="status",
        )
        await client.create(policy(number, size))
    commits, nft = Commits(), Nft()
    events = EventRecorder(client, SystemClock(), "bench", NODE)
    table = Policies(Informers(client), nft, [Shape(IPV4, "bench-policies")], NODE, events)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(table.run())
        await commits.next(60)
        loaded = (time.perf_counter() - began) * 1000
        await asyncio.sleep(1)

        async def other_subnet(number: int) -> None:
            await client.update(policy(0, size, 1 + number))

        async def other_label(number: int) -> None:
            labels = {"metadata": {"labels": {"app": f"app-{1 + number % 2}"}}}
            await client.patch(Pod, "pod-0", "default", labels)

        async def all_pods(number: int) -> None:
            meta = ObjectMeta(name="all", namespace="default")
            if number % 2:
                await client.delete(NetworkPolicy, "all", "default")
            else:
                everybody = NetworkPolicyPeer(pod_selector=LabelSelector())
                rule = NetworkPolicyIngressRule(from_=[everybody])
                await client.create(NetworkPolicy(metadata=meta, spec=NetworkPolicySpec(ingress=[rule])))

        what = f"{size} policies and pods"
        measured = [
            Measurement(
                f"a rule of a policy, {what}", "ms", await timed(commits, other_subnet), None, "≤ 10 ms"
            ),
            Measurement(f"a pod's label, {what}", "ms", await timed(commits, other_label), None, "≤ 10 ms"),
            Measurement(f"a policy of all pods, {what}", "ms", await timed(commits, all_pods)),
            Measurement(f"loaded, {what}", "ms", [loaded], None, "≤ 1,000 ms"),
        ]
        took = []
        for number in range(CHANGES):
            made = await client.create(pod(size + number, number % size))
            began = time.perf_counter()
            assert not await table.admit(made, address(size + number))
            took.append((time.perf_counter() - began) * 1000)
        measured.append(Measurement(f"a new pod waits, {what}", "ms", took, None, "≤ 10 ms"))
        running.cancel()
    await server.ended()
    return measured


async def main() -> None:
    report("policies", [one for size in SIZES for one in await measure(size)], "")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        apart = ["unshare", "--net", sys.executable, __file__, "apart"]
        sys.exit(subprocess.run(apart, check=False).returncode)
    asyncio.run(main())
