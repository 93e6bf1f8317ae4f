"""R-INIT-11: podling is killed 200 times while pods start: no init container is skipped or run out of order,
and no app container begins early.

Several pods are starting at any time; each of their containers writes down in a file when it begins and when
it ends. A life of podling ends at a random moment, before it serves or while it starts pods. Its containerd
lives on (docs/decisions/003), so the next life finds the pods at every possible point. A pod whose app has
begun is deleted, under the same kills, and another takes its place.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.client import kubeconfig
from podling.client.client import Client
from podling.machine.instance import Instance
from podling.model.codec import json
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from e2e.conftest import Podling

PROGRAM = Path(__file__).with_name("podling_lives.py")
LIVES = int(os.environ.get("PODLING_TEST_LIVES") or 200)
BUSYBOX = "podling.test/busybox:1"
INITS = 3
AT_ONCE = 5
STARTING, SERVING = 0.35, 0.5
"""Seconds within which a life ends, from its beginning, or from when pods can run. On a slow machine
the latter is longer: a life in which nothing can begin tries nothing."""
EARLY = 0.3
"""The share of lives that end before pods can run."""
LONGEST_RUN = 500
LAST_LINES = 40


def shell(name: str, script: str) -> dict[str, Any]:
    mounts = [{"name": "diary", "mountPath": "/diary"}]
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], "volumeMounts": mounts}


def diarist(name: str, directory: Path) -> dict[str, Any]:
    inits = [
        shell(f"i{n}", f"echo begin {n} >> /diary/{name}; sleep 0.05; echo end {n} >> /diary/{name}")
        for n in range(INITS)
    ]
    app = shell("app", f"echo begin {INITS} >> /diary/{name}; trap exit TERM; sleep 3600 & wait")
    volumes = [{"name": "diary", "hostPath": {"path": str(directory)}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"initContainers": inits, "containers": [app], "volumes": volumes},
    }


def judge(lines: list[str]) -> str:
    """What is wrong with a diary so far. A container may be begun again: a start that was cut off may have
    begun it already."""
    ended: set[int] = set()
    newest = 0
    for line in lines:
        word, number = line.split()
        if word == "end":
            ended.add(int(number))
            continue
        if missing := set(range(int(number))) - ended:
            return f"{number} began before {missing} had ended"
        if int(number) < newest:
            return f"{number} began after {newest}"
        newest = int(number)
    return ""


@pytest.mark.parametrize(
    ("diary", "fault"),
    [
        (["begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2", "begin 3"], ""),
        (["begin 0", "begin 0", "end 0", "begin 1"], ""),
        (["begin 1"], "1 began before {0} had ended"),
        (["begin 0", "begin 1"], "1 began before {0} had ended"),
        (["begin 0", "end 0", "begin 3"], "3 began before {1, 2} had ended"),
        (["begin 0", "end 0", "begin 1", "begin 0"], "0 began after 1"),
    ],
)
def test_the_judge_knows_what_is_out_of_order(diary: list[str], fault: str) -> None:
    assert judge(diary) == fault


@dataclass
class Diaries:
    directory: Path
    names: Iterator[str] = field(default_factory=lambda: (f"p{n}" for n in itertools.count()))
    open: set[str] = field(default_factory=set)
    """Pods whose app has not begun."""
    done: set[str] = field(default_factory=set)

    def read(self, name: str) -> list[str]:
        with suppress(FileNotFoundError):
            return (self.directory / name).read_text().splitlines()
        return []

    def close(self) -> set[str]:
        """Those whose app has begun since the last time."""
        begun = {name for name in self.open if f"begin {INITS}" in self.read(name)}
        self.open -= begun
        self.done |= begun
        return begun

    def halfway(self) -> int:
        """How many pods have begun something, and not all of it."""
        return sum(0 < len(self.read(name)) <= 2 * INITS for name in self.open)

    def faults(self) -> dict[str, tuple[str, list[str]]]:
        found = {name: (judge(self.read(name)), self.read(name)) for name in self.open | self.done}
        return {name: fault for name, fault in found.items() if fault[0]}


class Lives:
    """podling in its present life."""

    def __init__(self, said: asyncio.StreamReader, instance: Instance) -> None:
        self._said = said
        self._instance = instance
        self._pid = 0

    async def begin(self) -> None:
        self._pid = int((await self._hear("started"))[1])

    async def ready(self) -> None:
        await self._hear("ready")

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = Client(kubeconfig.read(self._instance.kubeconfig).transport())
        try:
            yield client
        finally:
            await client.close()

    async def _hear(self, word: str) -> list[str]:
        """What a life that was killed early had still to say is passed over."""
        while line := (await self._said.readline()).decode().split():
            if line[0] == word:
                return line
        last = self._instance.log_file.read_text().splitlines()[-LAST_LINES:]
        raise AssertionError("podling ended by itself; its log ends with:\n" + "\n".join(last))


async def replace_pods(client: Client, diaries: Diaries) -> None:
    """Delete what has begun, and keep AT_ONCE starting."""
    for name in diaries.close():
        await client.delete(Pod, name, "default", grace_seconds=1)
    while len(diaries.open) < AT_ONCE:
        name = next(diaries.names)
        diaries.open.add(name)
        await client.create(json.from_data(diarist(name, diaries.directory), Pod))


@asynccontextmanager
async def lives(podling: Podling) -> AsyncIterator[Lives]:
    instance = podling.instance
    with instance.log_file.open("ab") as log:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, PROGRAM, instance.data_dir, str(podling.port)),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert program.stdout
    try:
        yield Lives(program.stdout, instance)
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        await program.communicate()


@pytest.fixture
def killable(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Podling]:
    """A podling of this test's own, which has its images, and is not running."""
    podling = make_podling()
    podling.up()
    podling.command("images", "load", str(image_archives[BUSYBOX]))
    podling.command("down")
    yield podling
    podling.end()


async def test_200_kills_skip_no_init_container_and_run_none_out_of_order(
    seed: int, killable: Podling, tmp_path: Path
) -> None:
    choices = random.Random(seed)
    diaries = Diaries(tmp_path)
    halfway = 0
    async with asyncio.timeout(LONGEST_RUN), lives(killable) as life:
        await life.begin()
        await life.ready()
        serving = max(SERVING, await pace(life, killable, diaries) / 4)
        life.kill()
        await life.begin()
        for _ in range(LIVES):
            # The moment itself is what is tried here: any is as good as another.
            if choices.random() < EARLY:
                await asyncio.sleep(choices.uniform(0, STARTING))
            else:
                await life.ready()
                async with life.client() as client:
                    await replace_pods(client, diaries)
                await asyncio.sleep(choices.uniform(0, serving))
            halfway += diaries.halfway() > 0
            life.kill()
            assert not diaries.faults()
            await life.begin()
        await life.ready()
        await asyncio.to_thread(settle, killable, sorted(diaries.open))
    diaries.close()
    assert not diaries.faults()
    assert not diaries.open, "an app has not begun, though its pod is ready"
    assert len(diaries.done) > LIVES / 10
    assert halfway > LIVES / 4, "most lives ended when no pod was starting"


async def pace(life: Lives, podling: Podling, diaries: Diaries) -> float:
    """Seconds in which pods become ready that nobody disturbs."""
    began = time.monotonic()
    async with life.client() as client:
        await replace_pods(client, diaries)
    pods = [f"pod/{name}" for name in diaries.open]
    await asyncio.to_thread(
        podling.kubectl, "wait", "--for=condition=Ready", *pods, "--timeout=60s", timeout=70
    )
    return time.monotonic() - began


def settle(podling: Podling, open: list[str]) -> None:
    """In a life that is left alone every pod becomes ready, and those that were deleted go."""
    pods = [f"pod/{name}" for name in open]
    waited = podling.kubectl("wait", "--for=condition=Ready", *pods, "--timeout=60s", check=False, timeout=90)
    assert waited.returncode == 0, podling.kubectl("describe", "pods").stdout
    podling.kubectl("delete", "pods", "--all", "--grace-period=1", timeout=60)
