"""The README's first command, as a user runs it, and what its pod is like afterwards."""

from __future__ import annotations

import re
import runpy
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ports import free_port

if TYPE_CHECKING:
    from e2e.conftest import Podling

ROOT = Path(__file__).parents[2]
TRANSCRIPT = runpy.run_path(str(ROOT / "examples/neato/transcript.py"))


@dataclass(frozen=True)
class Demo:
    podling: Podling
    registry_port: int
    directory: Path

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *("scripts/demo.sh", "--data-dir", str(self.podling.instance.data_dir)),
                *("--port", str(self.podling.port), "--registry-port", str(self.registry_port)),
                *("--transcript", str(self.directory / "transcript")),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    @property
    def transcript(self) -> str:
        return (self.directory / "transcript").read_text()

    def answer(self, command: str, prompt: str = "$ ") -> str:
        """What `command` printed, up to the next one."""
        pattern = rf"^{re.escape(prompt)}{command}\n(.*?)(?=^# |^\$ |^/ # )"
        found = re.search(pattern, self.transcript, re.MULTILINE | re.DOTALL)
        assert found, f"no {command} in\n{self.transcript}"
        return found.group(1)

    @property
    def pod(self) -> dict[str, Any]:
        pod: dict[str, Any] = self.podling.get("pod", "neato")
        return pod


@pytest.fixture(scope="module")
def demo(make_podling: Callable[[], Podling], tmp_path_factory: pytest.TempPathFactory) -> Demo:
    demo = Demo(make_podling(), free_port(), tmp_path_factory.mktemp("demo"))
    done = demo.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "podling down" in done.stdout
    return demo


def condition(pod: dict[str, Any], type_: str) -> str:
    found: str = next(one["status"] for one in pod["status"]["conditions"] if one["type"] == type_)
    return found


def test_the_readme_shows_the_same_steps(demo: Demo) -> None:
    shown = TRANSCRIPT["in_readme"]((ROOT / "README.md").read_text())
    assert TRANSCRIPT["steps"](demo.transcript) == TRANSCRIPT["steps"](shown)


def test_kubectl_shows_the_pod_initializing_then_running(demo: Demo) -> None:
    """R-INIT-3"""
    rows = [line.split() for line in demo.answer("kubectl get pod neato --watch").splitlines()[1:]]
    shown = [(row[1], row[2]) for row in rows if row[0] == "neato"]
    order = list(dict.fromkeys(shown))
    assert order[0] in [("0/1", "Pending"), ("0/1", "Init:0/2")]
    assert ("0/1", "Init:0/2") in order
    assert order[-1] == ("1/1", "Running")
    stages = ["Pending", "Init:0/2", "Init:1/2", "PodInitializing", "Running"]
    passed = [stage for _, stage in order]
    assert passed == [stage for stage in stages if stage in passed]


def test_init_containers_ran_one_after_the_other_before_the_app(demo: Demo) -> None:
    """R-INIT-1"""
    status = demo.pod["status"]
    wait, configure = (one["state"]["terminated"] for one in status["initContainerStatuses"])
    (app,) = status["containerStatuses"]
    assert (wait["exitCode"], configure["exitCode"]) == (0, 0)
    assert wait["finishedAt"] <= configure["startedAt"]
    assert configure["finishedAt"] <= app["state"]["running"]["startedAt"]
    assert condition(demo.pod, "Initialized") == "True"


def test_logs_of_a_finished_init_container_are_readable(demo: Demo) -> None:
    """R-INIT-8"""
    assert demo.answer("kubectl logs neato -c wait") == "waiting\ndone waiting\n"


def test_images_were_pulled_from_the_registry_they_were_pushed_to(demo: Demo) -> None:
    said = demo.answer(r"python examples/neato/images\.py [^\n]*").strip()
    pushed = dict(line.split() for line in said.splitlines())
    (app,) = demo.pod["status"]["containerStatuses"]
    assert app["imageID"].endswith(pushed[f"127.0.0.1:{demo.registry_port}/neato:1"])


def test_the_debug_shell_sees_the_target(demo: Demo) -> None:
    """R-EPH-4: its process, its files, its network."""
    page = f"Neat: neato at {demo.pod['status']['podIP']}\n"
    assert re.search(r"^ +1 /neato$", demo.answer("ps -o pid,args", "/ # "), re.MULTILINE)
    assert demo.answer("cat /proc/1/root/etc/neato/page", "/ # ") == page
    assert demo.answer("wget -qO- localhost:8080", "/ # ") == page


def test_the_shell_outlives_its_terminal(demo: Demo) -> None:
    """R-EPH-6"""
    assert demo.answer(r"echo I was \$mark", "/ # ") == "I was here before\n"


def test_the_debug_container_ran_once_and_the_pod_goes_on(demo: Demo) -> None:
    """R-EPH-3"""
    status = demo.pod["status"]
    (debugger,) = status["ephemeralContainerStatuses"]
    assert debugger["restartCount"] == 0
    assert debugger["state"]["terminated"]["reason"] == "Completed"
    assert status["phase"] == "Running"
    assert condition(demo.pod, "Ready") == "True"


def test_describe_shows_the_debug_container_and_get_does_not_count_it(demo: Demo) -> None:
    """R-CLI-4"""
    described = demo.answer(r"kubectl describe pod neato \| [^\n]*")
    (debugger,) = demo.pod["spec"]["ephemeralContainers"]
    assert debugger["targetContainerName"] == "neato"
    for text in (f"{debugger['name']}:", "127.0.0.1:5000/busybox:1", "Command:\n      sh", "Completed"):
        assert text in described
    row = demo.podling.kubectl("get", "pod", "neato", "--no-headers").stdout.split()
    assert row[:4] == ["neato", "1/1", "Running", "0"]


def test_it_can_be_run_again_on_the_running_podling(demo: Demo) -> None:
    before = demo.pod["metadata"]["uid"]
    done = demo.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert demo.pod["metadata"]["uid"] != before


def test_a_registry_port_in_use_is_named(demo: Demo) -> None:
    with socket.create_server(("127.0.0.1", demo.registry_port)):
        done = demo.run()
    assert done.returncode == 1
    assert f"no registry on port {demo.registry_port} (choose another with --registry-port)" in done.stderr


def test_it_leaves_nothing_but_the_podling(demo: Demo) -> None:
    assert not (demo.podling.instance.data_dir / "demo").exists()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            assert f"{demo.podling.instance.data_dir}/demo".encode() not in process.read_bytes()


def test_the_debugged_pod_comes_back_after_down_and_up_and_can_be_deleted(demo: Demo) -> None:
    """R-EPH-13, R-INIT-11: however often; each time one restart, which says what the one before came to."""
    podling, before = demo.podling, demo.pod["status"]
    for restart in (1, 2, 3):
        (was,) = demo.pod["status"]["containerStatuses"]
        podling.command("down")
        podling.up()
        podling.wait(f"jsonpath={{.status.containerStatuses[0].restartCount}}={restart}", "pod/neato")
        podling.wait("condition=Ready", "pod/neato")
        status = demo.pod["status"]
        (app,) = status["containerStatuses"]
        ended = app["lastState"]["terminated"]
        assert ended["containerID"] == was["containerID"]
        assert ended["startedAt"] == was["state"]["running"]["startedAt"]
        assert ended["startedAt"] <= ended["finishedAt"] <= app["state"]["running"]["startedAt"]
        assert ended["reason"] in ("Completed", "Error"), ended
        assert status["ephemeralContainerStatuses"] == before["ephemeralContainerStatuses"]
    assert "not written" not in podling.instance.log_file.read_text()
    podling.kubectl("delete", "pod", "neato", "--timeout=30s")
