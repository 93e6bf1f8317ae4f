"""Init containers as a user of kubectl sees them: in order, failing, and with podling killed under them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BUSYBOX = "podling.test/busybox:1"
KILLS_AFTER = (0.02, 0.08, 0.15, 0.22, 0.3, 0.45, 0.7)
"""Seconds from a pod's creation to the kill: from before its sandbox is there to after its app started."""


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **fields}


def pod(name: str, namespace: str, inits: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    app = shell("app", "trap exit TERM; sleep 3600 & wait")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"initContainers": inits, "containers": [app], **spec},
    }


def shown(podling: Any, namespace: str, name: str) -> str:
    """The STATUS column."""
    line: str = podling.kubectl("get", "pod", name, "-n", namespace, "--no-headers").stdout
    return line.split()[2]


def test_a_failing_init_container_fails_a_pod_that_never_restarts(podling: Any, namespace: str) -> None:
    """R-INIT-2, R-INIT-3."""
    podling.apply(pod("never", namespace, [shell("bad", "exit 3")], restartPolicy="Never"))
    podling.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Failed", "pod/never", "-n", namespace, "--timeout=60s"
    )
    assert shown(podling, namespace, "never") == "Init:Error"
    status = podling.get("pod", "never", "-n", namespace)["status"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "containerID" not in status["containerStatuses"][0]


def test_a_failing_init_container_is_tried_again_with_backoff(podling: Any, namespace: str) -> None:
    """R-INIT-2, R-INIT-3."""
    podling.apply(pod("again", namespace, [shell("good", "true"), shell("bad", "echo tried; exit 1")]))
    crashing = "jsonpath={.status.initContainerStatuses[1].state.waiting.reason}=CrashLoopBackOff"
    podling.kubectl("wait", f"--for={crashing}", "pod/again", "-n", namespace, "--timeout=60s")
    assert shown(podling, namespace, "again") == "Init:CrashLoopBackOff"
    status = podling.get("pod", "again", "-n", namespace)["status"]
    initialized = next(c for c in status["conditions"] if c["type"] == "Initialized")
    assert (initialized["status"], initialized["reason"]) == ("False", "ContainersNotInitialized")
    assert initialized["message"] == "containers with incomplete status: [bad]"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert podling.kubectl("logs", "again", "-c", "bad", "-n", namespace).stdout == "tried\n"


@pytest.fixture
def killable(make_podling: Callable[[], Any], image_archives: dict[str, Path]) -> Any:
    """A podling of this test's own."""
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.command("down")


def test_kills_skip_no_init_container_and_run_none_out_of_order(killable: Any, tmp_path: Path) -> None:
    """R-INIT-11: podling is killed at many moments of a pod's start; the next one carries on."""
    for number, delay in enumerate(KILLS_AFTER):
        diary = tmp_path / f"pod{number}"
        diary.mkdir()
        killable.apply(diarist(f"p{number}", diary))
        # The moment itself is what is tried here: any is as good as another.
        threading.Event().wait(delay)
        os.kill(killable.instance.running(), signal.SIGKILL)
        killable.up()
        killable.wait("condition=Ready", f"pod/p{number}")
        # Ready may be what a start before the kill had said; the app's own line is not.
        wait_for_line(killable, number)
        check(diary / "diary", delay)
    assert len(killable.get("pods")["items"]) == len(KILLS_AFTER), "nothing acknowledged is lost"


def diarist(name: str, directory: Path) -> dict[str, Any]:
    """A pod of which every container writes down when it begins and ends."""
    mount = {"volumeMounts": [{"name": "diary", "mountPath": "/diary"}]}
    inits = [
        shell(f"i{n}", f"echo begin {n} >> /diary/diary; sleep 0.1; echo end {n} >> /diary/diary", **mount)
        for n in range(3)
    ]
    made = pod(name, "default", inits, volumes=[{"name": "diary", "hostPath": {"path": str(directory)}}])
    script = "echo begin 3 >> /diary/diary; echo up; trap exit TERM; sleep 3600 & wait"
    made["spec"]["containers"] = [shell("app", script, **mount)]
    return made


def wait_for_line(podling: Any, number: int) -> None:
    assert podling.kubectl("exec", f"p{number}", "--", "cat", "/diary/diary").stdout.endswith("begin 3\n")


def check(diary: Path, delay: float) -> None:
    """Each container begins only when the one before it has ended, and the app once, last."""
    lines = diary.read_text().splitlines()
    ended = -1
    for line in lines:
        word, _, number = line.partition(" ")
        if word == "begin":
            assert int(number) <= ended + 1, f"killed after {delay} s: {lines}"
        else:
            ended = int(number)
    assert lines[-1] == "begin 3" and lines.count("begin 3") == 1, f"killed after {delay} s: {lines}"
    assert {f"end {n}" for n in range(3)} <= set(lines), f"killed after {delay} s: {lines}"
