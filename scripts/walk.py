"""How far a request walks through the source: rooms and files entered, and how many calls leave their file.

    python scripts/walk.py

Two walks, each in one process: a pod with two init containers from its POST until it is Ready, and an
ephemeral container from its PATCH until it runs. API server and kubelet are real, the runtime is the one in
memory. `docs/architecture.md` shows the result.
"""

from __future__ import annotations

import asyncio
import dis
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

from podling.apiserver.assemble import ApiServer
from podling.apiserver.http.local import LocalTransport
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.request.request import User
from podling.client.client import Client
from podling.client.events import EventRecorder
from podling.client.informer import until
from podling.cri.hollow.runtime import HollowRuntime
from podling.cri.hollow.script import HollowImage, Script
from podling.kubelet.config import KubeletConfig
from podling.kubelet.kubelet import Kubelet
from podling.model.time import SystemClock
from podling.model.types.container import Container, EphemeralContainer
from podling.model.types.core import Namespace, ServiceAccount
from podling.model.types.meta import ObjectMeta
from podling.model.types.pod import Pod, PodSpec
from podling.storage.memory import MemoryStorage

NODE, APP, INIT, TOOLS = "hollow", "podling.local/app:1", "podling.local/init:1", "podling.local/tools:1"
PACKAGE = str(Path(__file__).parents[1] / "src/podling") + "/"
RESUME = dis.opmap["RESUME"]


class Walk:
    """Counts the calls of podling's functions while it is entered."""

    def __init__(self) -> None:
        self.functions: set[Any] = set()
        self.calls = self.leaving = 0

    def __enter__(self) -> Walk:
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        opcode, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
        if opcode == RESUME and argument:
            # A coroutine goes on after an await: it was called before.
            return
        self.functions.add(frame.f_code)
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
            self.calls += 1
            self.leaving += caller.f_code.co_filename != frame.f_code.co_filename

    def __str__(self) -> str:
        files = {code.co_filename for code in self.functions}
        rooms = {str(Path(file).parent) for file in files}
        share = 100 * self.leaving / self.calls
        return f"{len(rooms)} | {len(files)} | {len(self.functions)} | {self.calls:,} | {share:.0f} %"


def is_ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def is_debugged(pod: Pod) -> bool:
    return any(status.state.running for status in pod.status.ephemeral_container_statuses)


async def walked(client: Client, act: Any, holds: Callable[[Pod], bool]) -> Walk:
    with Walk() as walk:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(until(client, Pod, "default", "walker", holds))
            tasks.create_task(act)
    return walk


async def walks(directory: Path) -> tuple[Walk, Walk]:
    # One thread, so that what is asked of it is done in that order.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    clock = SystemClock()
    server = ApiServer.build(MemoryStorage(), KINDS, clock=clock, connector=None)  # type: ignore[arg-type]
    await server.start()
    client = Client(LocalTransport(server.handle, User("root", ("system:masters",))))
    for namespace in ("default", "kube-node-lease"):
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    ends = HollowImage((Script(exit_code=0),), present=True)
    runtime = HollowRuntime({APP: HollowImage(present=True), TOOLS: HollowImage(present=True), INIT: ends})
    config = KubeletConfig(NODE, directory / "kubelet", directory / "logs", cgroup_mount=directory)
    events = EventRecorder(client, clock, "kubelet", NODE)
    kubelet = Kubelet(client, runtime, events, clock, config)
    inits = [Container(name=name, image=INIT) for name in ("first", "second")]
    spec = PodSpec(node_name=NODE, init_containers=inits, containers=[Container(name="app", image=APP)])
    pod = Pod(metadata=ObjectMeta(name="walker", namespace="default"), spec=spec)
    async with asyncio.TaskGroup() as tasks:
        acting = [tasks.create_task(events.run()), tasks.create_task(kubelet.run())]
        await kubelet.wait_ready()
        # What a kubelet still begins with then is no part of a pod's walk: the directory of plugins is made,
        # followed and read.
        for _ in range(2):
            await asyncio.to_thread(bool)
        post = await walked(client, client.create(pod), is_ready)
        debugger = EphemeralContainer(name="debugger", image=TOOLS, target_container_name="app")
        change = {"spec": {"ephemeralContainers": [debugger]}}
        patch = client.patch(Pod, "walker", "default", change, subresource="ephemeralcontainers")
        debug = await walked(client, patch, is_debugged)
        for task in acting:
            task.cancel()
    return post, debug


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="podling-walk-") as directory:
        post, debug = asyncio.run(walks(Path(directory)))
    lines = [
        "| walk | rooms | files | functions | calls | of them leave their file |",
        "|---|---|---|---|---|---|",
        f"| a pod with two init containers, POST → Ready | {post} |",
        f"| an ephemeral container, PATCH → running | {debug} |",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
