"""What a user of `podling debug` waits for, beside `kubectl debug` in the same run: help, the first byte to
the API, a one-shot container, a prompt, and 50 pods.

`python bench/cli.py [ROUNDS] [alone] [one] [fleet]` starts a podling of its own in a temporary directory and
ends it; without root only `alone` is measured, what needs no pods. The two programs take turns. `first byte`
is a command that asks a server which ends the connection at once, so that all of it is start, imports and
connecting; the floor of both is Python that does nothing. kubectl debugs one pod at a time: its rate is that
of a loop. The floor of the fleet is as many containers in sandboxes that are there, by raw CRI calls, as many
at a time: `containers` of them a second is what the runtime can do on this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import yaml
from cri_floor import IMAGE as FLOOR_IMAGE
from cri_floor import bench_image, measuring
from pods import podling
from streams import image
from table import Measurement, report

from podling.cri.grpc.client import GrpcRuntime
from podling.cri.images.archive import load_images
from podling.machine import node_runtime
from podling.machine.instance import SUBNETS, Instance

INSTALLED = Path(sys.executable).with_name("podling")
PODLING = [str(INSTALLED)] if INSTALLED.exists() else [sys.executable, "-m", "podling"]
KUBECTL = shutil.which("kubectl") or "kubectl"
IMAGE = "podling.local/bench-streams:1"
PORT = 16996
FLEET = 50
PARALLEL = 20
"""As many at a time as `podling debug` does unless told otherwise."""
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 60.0


def ms(command: list[str]) -> float:
    """How long it takes to its end."""
    began = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1000


def ms_to_prompt(command: list[str]) -> float:
    """How long until its shell asks for input, on a terminal."""
    began = time.perf_counter()
    shell = pexpect.spawn(command[0], command[1:], timeout=PATIENCE, encoding="utf-8")
    shell.expect_exact("/ # ")
    took = (time.perf_counter() - began) * 1000
    shell.send("exit\r")
    shell.expect(pexpect.EOF)
    shell.close()
    return took


async def ms_to_first_byte(program: list[str], file: Path) -> float:
    """From the start of a command to its first byte at a server."""
    came = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        came.set()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cluster = {"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "x", "context": {"cluster": "x"}}
    config = {"clusters": [cluster], "contexts": [context], "current-context": "x"}
    file.write_text(yaml.safe_dump(config, default_flow_style=False))
    began = time.perf_counter()
    nothing = asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(
        *program, "--kubeconfig", str(file), stdout=nothing, stderr=nothing
    )
    await came.wait()
    took = (time.perf_counter() - began) * 1000
    running.kill()
    await running.wait()
    server.close()
    return took


def in_turns(
    ours: Callable[[], float], theirs: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """After one round that is not counted."""
    pairs = [(ours(), theirs()) for _ in range(rounds + 1)][1:]
    return [one for one, _ in pairs], [other for _, other in pairs]


def busy() -> float:
    """Milliseconds of processor time that this machine has spent."""
    user, nice, system, _, _, irq, softirq, *_ = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq))) * 1000 / TICKS


def alone(rounds: int, directory: Path) -> list[Measurement]:
    file = directory / "nowhere.conf"
    bare = [ms([sys.executable, "-S", "-c", ""]) for _ in range(rounds)]
    with_site = [ms([sys.executable, "-c", ""]) for _ in range(rounds)]
    helped = in_turns(
        lambda: ms([*PODLING, "debug", "--help"]), lambda: ms([KUBECTL, "debug", "--help"]), rounds
    )
    begun = in_turns(
        lambda: asyncio.run(ms_to_first_byte([*PODLING, "debug", "web"], file)),
        lambda: asyncio.run(ms_to_first_byte([KUBECTL, "get", "pods"], file)),
        rounds,
    )
    return [
        Measurement("python -S -c ''", "ms", bare),
        Measurement("python -c ''", "ms", with_site),
        Measurement("podling debug --help", "ms", *helped, goal="≤ 100 ms"),
        Measurement("first byte to the API", "ms", *begun, goal="≤ 150 ms"),
    ]


async def fleet_floor(directory: Path) -> tuple[float, float]:
    """Containers that run `true` in sandboxes that are there: how many a second, from the first call to the
    last exit, and milliseconds of processor time for each."""
    instance = Instance.at(directory / "floor")
    containerd = await node_runtime.start(instance, SUBNETS[-1], {})
    try:
        archive = directory / "floor.tar"
        archive.write_bytes(bench_image())
        await load_images(containerd.settings.socket, archive)
        runtime = GrpcRuntime(str(containerd.settings.socket))
        async with measuring(runtime, FLOOR_IMAGE, instance.cgroup, directory / "logs") as measured:
            sandboxes = [await measured.pods.sandbox() for _ in range(FLEET)]
            gate = asyncio.Semaphore(PARALLEL)

            async def one(sandbox: Any) -> None:
                async with gate:
                    await measured.pods.init(sandbox, "debug")

            before, began = busy(), time.perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for sandbox in sandboxes:
                    tasks.create_task(one(sandbox))
            found = FLEET / (time.perf_counter() - began), (busy() - before) / FLEET
            async with asyncio.TaskGroup() as tasks:
                for sandbox_id, _ in sandboxes:
                    tasks.create_task(measured.pods.delete(sandbox_id, []))
        await runtime.close()
    finally:
        await node_runtime.end(instance)
    return found


def fleet(config: list[str], how: list[str], directory: Path) -> list[Measurement]:
    make_pods(config, [f"fleet-{number}" for number in range(FLEET)])
    command = [
        *PODLING,
        "debug",
        "-l",
        "bench=fleet",
        *config,
        *how,
        "--parallel",
        str(PARALLEL),
        "--",
        "true",
    ]
    before = busy()
    rate = FLEET * 1000 / ms(command)
    spent = (busy() - before) / FLEET
    loop = [
        ms([KUBECTL, *config, "debug", f"fleet-{number}", *how, "-i", "-q", "--", "true"])
        for number in range(5)
    ]
    floor, floor_spent = asyncio.run(fleet_floor(directory))
    return [
        Measurement(
            f"{FLEET} pods, beside containers of the runtime", "pods/s", [rate], floor, goal="≥ 10/s"
        ),
        Measurement(f"{FLEET} pods, beside a loop", "pods/s", [rate], len(loop) * 1000 / sum(loop)),
        Measurement("a pod: processor of the machine", "ms", [spent], floor_spent),
    ]


def make_pods(config: list[str], names: list[str]) -> None:
    container = {"name": "app", "image": IMAGE, "command": ["sleep", "100000"]}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"bench": name.partition("-")[0]}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        }
        for name in names
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}).encode()
    subprocess.run([KUBECTL, *config, "create", "-f", "-"], input=listed, check=True, capture_output=True)
    waiting = ["wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s"]
    subprocess.run([KUBECTL, *config, *waiting], check=True, capture_output=True)


def one(config: list[str], how: list[str], rounds: int) -> list[Measurement]:
    make_pods(config, ["web"])
    shots = in_turns(
        lambda: ms([*PODLING, "debug", "web", *config, *how, "--", "true"]),
        lambda: ms([KUBECTL, *config, "debug", "web", *how, "-i", "-q", "--", "true"]),
        rounds,
    )
    prompts = in_turns(
        lambda: ms_to_prompt([*PODLING, "debug", "web", *config, *how, "--new", "-it", "--", "sh"]),
        lambda: ms_to_prompt([KUBECTL, *config, "debug", "web", *how, "-it", "--", "sh"]),
        rounds,
    )
    return [
        Measurement("one-shot container, to its end", "ms", *shots, goal="≤ kubectl + 50 ms"),
        Measurement("to a prompt, warm image", "ms", *prompts, goal="≤ 400 ms"),
    ]


def main(rounds: int, parts: list[str]) -> None:
    # As installed: bytecode is there.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="podling-bench-") as name:
        directory = Path(name)
        rows = alone(rounds, directory) if "alone" in parts else []
        if os.geteuid() == 0 and {"one", "fleet"} & {*parts}:
            archive, data = directory / "bench.tar", directory / "data"
            archive.write_bytes(image())
            config = ["--kubeconfig", str(Instance.at(data).kubeconfig)]
            how = ["--image", IMAGE, "--profile=general"]
            try:
                podling("up", "--detach", "--port", str(PORT), directory=data)
                podling("images", "load", str(archive), directory=data)
                if "one" in parts:
                    rows += one(config, how, rounds)
                if "fleet" in parts:
                    rows += fleet(config, how, directory)
            finally:
                podling("down", directory=data)
    report("cli", rows)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 5,
        sys.argv[2:] or ["alone", "one", "fleet"],
    )
