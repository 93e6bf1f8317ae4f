"""What a node lives through: its runtime killed, its containers killed from outside, its disk full.

Each time pods that run go on, and what was lost comes back to the state Kubernetes would show.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podling.machine.instance import Instance
from podling.machine.node_runtime import settings
from podling.process.programs import command_line, processes

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
FOREVER = "trap exit TERM; sleep 3600 & wait"
MARK = "the-one-that-is-struck"
DISK = 256 << 20
MOMENTS = {
    "applied": "",
    "begun": "jsonpath={.status.initContainerStatuses[0].state.running}",
    "initialized": "condition=Initialized",
}


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **fields}


def pod(name: str, *inits: dict[str, Any], script: str = FOREVER, **spec: Any) -> dict[str, Any]:
    containers = [shell("app", script)]
    spec = {"initContainers": inits, "containers": containers, "terminationGracePeriodSeconds": 2, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def running(podling: Podling, name: str) -> tuple[str, int]:
    status = podling.get("pod", name)["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def restarted(podling: Podling, name: str, count: int = 1) -> dict[str, Any]:
    """The pod's status once its app has been begun again, and is ready."""
    again = f"jsonpath={{.status.containerStatuses[0].restartCount}}={count}"
    podling.wait(again, f"pod/{name}")
    podling.wait("condition=Ready", f"pod/{name}")
    status: dict[str, Any] = podling.get("pod", name)["status"]
    return status


def process_of(word: str) -> int:
    """The process that has `word` in its arguments."""
    (found,) = [pid for pid in processes() if word in " ".join(command_line(pid))]
    return found


def kill_containerd(podling: Podling) -> None:
    os.kill(int(settings(podling.instance).pid_file.read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def survivor(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Podling]:
    """A podling of these tests' own."""
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.command("down")


def test_pods_do_not_notice_that_containerd_was_killed(survivor: Podling) -> None:
    survivor.apply(pod("steady"))
    survivor.wait("condition=Ready", "pod/steady")
    before = running(survivor, "steady")
    kill_containerd(survivor)
    survivor.apply(pod("later", shell("first", "true")))
    survivor.wait("condition=Ready", "pod/later")
    assert survivor.kubectl("exec", "steady", "--", "echo", "here").stdout == "here\n"
    assert running(survivor, "steady") == before
    (node,) = survivor.get("nodes")["items"]
    survivor.wait("condition=Ready", f"node/{node['metadata']['name']}")


@pytest.mark.parametrize("moment", ["applied", "begun", "initialized"])
def test_containerd_killed_while_pods_start_costs_them_nothing_but_time(
    survivor: Podling, tmp_path: Path, moment: str
) -> None:
    """R-INIT-1: the order holds, whatever call was under way. Some of the init containers end while nobody
    can be told of it."""
    names = [f"{moment}{n}" for n in range(4)]
    volumes = [{"name": "diary", "hostPath": {"path": str(tmp_path)}}]
    mounts = [{"name": "diary", "mountPath": "/diary"}]
    for name in names:
        note = f"echo begin >> /diary/{name}; sleep 0.3; echo end >> /diary/{name}"
        inits = [shell(f"i{n}", note, volumeMounts=mounts) for n in range(2)]
        survivor.apply(pod(name, *inits, volumes=volumes))
    if condition := MOMENTS[moment]:
        survivor.wait(condition, f"pod/{names[-1]}")
    kill_containerd(survivor)
    for name in names:
        survivor.wait("condition=Ready", f"pod/{name}")
        diary = (tmp_path / name).read_text().split()
        assert diary.count("end") >= 2 and diary[-1] == "end", diary


def test_a_container_killed_from_outside_is_begun_again(survivor: Podling) -> None:
    """Init containers are not: they have done their work."""
    survivor.apply(pod("struck", shell("first", "echo first"), script=f": {MARK}; {FOREVER}"))
    survivor.wait("condition=Ready", "pod/struck")
    os.kill(process_of(MARK), signal.SIGKILL)
    status = restarted(survivor, "struck")
    ended = status["containerStatuses"][0]["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "Error")
    assert status["initContainerStatuses"][0]["restartCount"] == 0


def test_a_sandbox_killed_from_outside_begins_the_whole_pod_again(survivor: Podling) -> None:
    """R-INIT-4"""
    survivor.apply(pod("uprooted", shell("first", "echo first")))
    survivor.wait("condition=Ready", "pod/uprooted")
    before = survivor.get("pod", "uprooted")
    os.kill(sandbox_process(survivor.instance, before["metadata"]["uid"]), signal.SIGKILL)
    status = restarted(survivor, "uprooted")
    assert status["initContainerStatuses"][0]["restartCount"] == 1
    events = survivor.kubectl("get", "events", "--field-selector=involvedObject.name=uprooted").stdout
    assert "SandboxChanged" in events


def sandbox_process(instance: Instance, uid: str) -> int:
    """The pause process, by its cgroup."""
    for pid in processes():
        words = command_line(pid)
        if words and "pause" in words[0] and uid in Path(f"/proc/{pid}/cgroup").read_text():
            return pid
    raise AssertionError("no pause process")


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1 << 20))
        except OSError:
            return


def test_a_full_disk_stops_writes_and_nothing_else(on_small_disk: Callable[..., Podling]) -> None:
    """Whoever writes is told; pods run on and can be read from; with room again everything goes on."""
    cramped = on_small_disk(DISK)
    cramped.apply(pod("before"))
    cramped.wait("condition=Ready", "pod/before")
    before = running(cramped, "before")
    filler = cramped.instance.data_dir / "filler"
    fill(filler)
    refused = cramped.kubectl("create", "configmap", "big", f"--from-literal=a={'x' * 100_000}", check=False)
    assert refused.returncode == 1
    assert "disk is full" in refused.stderr
    assert cramped.kubectl("exec", "before", "--", "echo", "here").stdout == "here\n"
    assert cramped.get("pod", "before")["status"]["phase"] == "Running"
    filler.unlink()
    cramped.apply(pod("after", shell("first", "true")))
    cramped.wait("condition=Ready", "pod/after")
    assert running(cramped, "before") == before
