"""The life of a podling: up, status, down, up again; several side by side; refused starts; kills."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"


def sleeper(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": BUSYBOX, "command": ["sh", "-c", "trap exit TERM; sleep 3600 & wait"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def fresh(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Podling]:
    """A running podling of the test's own."""
    podling = make_podling()
    podling.up()
    podling.command("images", "load", str(image_archives[BUSYBOX]))
    yield podling
    podling.end()


def container_id(podling: Podling, pod: str) -> str:
    found: str = podling.get("pod", pod)["status"]["containerStatuses"][0]["containerID"]
    return found


def test_up_says_what_it_does_and_status_what_runs(fresh: Podling) -> None:
    status = fresh.command("status").stdout
    assert f"https://127.0.0.1:{fresh.port}" in status
    assert ": Ready" in status
    assert "pods         none" in status
    again = fresh.command("up", "--port", str(fresh.port), check=False)
    assert again.returncode == 1
    assert "already running" in again.stderr


def test_down_and_up_carries_on_with_all_objects(fresh: Podling) -> None:
    fresh.apply(sleeper("kept"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    fresh.wait("condition=Ready", "pod/kept")
    before = container_id(fresh, "kept")
    assert "Stopping" in fresh.command("down").stdout
    assert fresh.command("status", check=False).returncode == 3
    assert not fresh.instance.run_dir.exists()
    fresh.up()
    assert fresh.get("configmap", "kept")["metadata"]["name"] == "kept"
    fresh.kubectl("wait", "--for=condition=Ready", "pod/kept", "--timeout=60s")
    fresh.kubectl(
        "wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/kept", "--timeout=60s"
    )
    assert container_id(fresh, "kept") != before


def test_down_ends_pods_in_their_order_and_runs_their_hooks(fresh: Podling, tmp_path: Path) -> None:
    """Sidecars after the app containers, the last first; the next `up` runs all again."""

    def diarist(name: str, **fields: Any) -> dict[str, Any]:
        def write(words: str) -> str:
            return f"echo {words} >> /diary/ends"

        return {
            "name": name,
            "image": BUSYBOX,
            "command": ["sh", "-c", f"trap '{write(name)}; exit 0' TERM; sleep 3600 & wait"],
            "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", write(f"hook of {name}")]}}},
            "volumeMounts": [{"name": "diary", "mountPath": "/diary"}],
            **fields,
        }

    sidecars = [diarist(name, restartPolicy="Always") for name in ("first", "second")]
    volume = {"name": "diary", "hostPath": {"path": str(tmp_path)}}
    spec = {"initContainers": sidecars, "containers": [diarist("app")], "volumes": [volume]}
    fresh.apply(sleeper("ordered", **spec))
    fresh.wait("condition=Ready", "pod/ordered")
    fresh.command("down")
    said = (tmp_path / "ends").read_text().splitlines()
    ends = [line for line in said if not line.startswith("hook")]
    assert ends == ["app", "second", "first"]
    assert all(said.index(f"hook of {name}") < said.index(name) for name in ends)
    assert len(said) == 6
    fresh.up()
    fresh.wait("jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/ordered")
    fresh.wait("condition=Ready", "pod/ordered")
    status = fresh.get("pod", "ordered")["status"]
    for container in (*status["initContainerStatuses"], *status["containerStatuses"]):
        assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (1, 0)


def test_after_a_kill_the_next_up_adopts_what_still_runs(fresh: Podling) -> None:
    fresh.apply(sleeper("adopted"))
    fresh.wait("condition=Ready", "pod/adopted")
    before = container_id(fresh, "adopted")
    fresh.send_signal(signal.SIGKILL)
    fresh.up()
    assert container_id(fresh, "adopted") == before
    assert fresh.get("pod", "adopted")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert fresh.kubectl("exec", "adopted", "--", "echo", "alive").stdout == "alive\n"


def test_down_ends_what_a_killed_podling_left(fresh: Podling) -> None:
    fresh.apply(sleeper("left"))
    fresh.wait("condition=Ready", "pod/left")
    fresh.send_signal(signal.SIGKILL)
    assert "not running" in fresh.command("down").stdout
    assert not fresh.instance.run_dir.exists()


def test_down_ends_a_podling_that_does_not_answer(fresh: Podling) -> None:
    """Nor must what it ran go on; the fixture's end looks for traces."""
    fresh.apply(sleeper("left"))
    fresh.wait("condition=Ready", "pod/left")
    fresh.send_signal(signal.SIGSTOP)
    assert "does not answer: it is killed" in fresh.command("down").stdout
    assert not fresh.instance.run_dir.exists()


def test_pods_that_own_each_other_go_and_hold_nobody_up(podling: Podling) -> None:
    ring = {"a": "b", "b": "c", "c": "a"}
    podling.apply(*(sleeper(f"ring-{name}", terminationGracePeriodSeconds=0) for name in ring))
    uids = {name: podling.get("pod", f"ring-{name}")["metadata"]["uid"] for name in ring}
    for name, owner in ring.items():
        reference = {"apiVersion": "v1", "kind": "Pod", "name": f"ring-{owner}", "uid": uids[owner]}
        body = {"metadata": {"ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}
        podling.kubectl("patch", "pod", f"ring-{name}", "--type=merge", "-p", json.dumps(body))
    podling.kubectl("delete", "pod", "ring-a", "--cascade=foreground", "--timeout=30s")
    podling.kubectl("wait", "--for=delete", "pod/ring-b", "pod/ring-c", "--timeout=30s")
    assert podling.kubectl("get", "--raw", "/readyz").stdout == "ok"


def processes_of(pod: str) -> list[int]:
    """Descriptors that become readable when a process of the pod ends."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"HOSTNAME={pod}\0".encode() in environ.read_bytes():
                found.append(os.pidfd_open(int(environ.parent.name)))
    return found


def test_a_restore_keeps_the_pods_of_the_backup_and_ends_those_begun_since(
    fresh: Podling, tmp_path: Path
) -> None:
    fresh.apply(sleeper("of-the-backup"))
    fresh.wait("condition=Ready", "pod/of-the-backup")
    before = container_id(fresh, "of-the-backup")
    fresh.command("backup", str(tmp_path / "backup.tar"))
    fresh.apply(sleeper("begun-since"))
    fresh.wait("condition=Ready", "pod/begun-since")
    processes = processes_of("begun-since")
    assert processes
    fresh.send_signal(signal.SIGKILL)
    fresh.command("restore", str(tmp_path / "backup.tar"), "--force")
    fresh.up()
    assert [pod["metadata"]["name"] for pod in fresh.get("pods")["items"]] == ["of-the-backup"]
    assert container_id(fresh, "of-the-backup") == before
    for process in processes:
        assert select.select([process], [], [], 60)[0], "it goes on"
        os.close(process)


def test_a_containerd_that_dies_comes_back_and_pods_do_not_notice(fresh: Podling) -> None:
    fresh.apply(sleeper("steady"))
    fresh.wait("condition=Ready", "pod/steady")
    before = container_id(fresh, "steady")
    os.kill(int((fresh.instance.run_dir / "containerd" / "containerd.pid").read_text()), signal.SIGKILL)
    fresh.apply(sleeper("after"))
    fresh.wait("condition=Ready", "pod/after")
    assert container_id(fresh, "steady") == before


def test_two_podlings_do_not_touch_each_other(podling: Podling, fresh: Podling) -> None:
    fresh.apply(sleeper("mine"))
    fresh.wait("condition=Ready", "pod/mine")
    assert podling.kubectl("get", "pod", "mine", check=False).returncode == 1
    assert (
        fresh.get("node")["items"][0]["spec"]["podCIDR"] != podling.get("node")["items"][0]["spec"]["podCIDR"]
    )
    fresh.command("down")
    assert podling.kubectl("get", "--raw", "/readyz").stdout == "ok"


def test_a_first_start_has_nothing_to_complain_of(make_podling: Callable[[], Podling]) -> None:
    """No part looks for what another is about to make. A machine that is busy may hold the loop."""
    podling = make_podling()
    podling.up()
    podling.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s", timeout=70)
    podling.command("down")
    lines = podling.instance.log_file.read_text().splitlines()
    assert [line for line in lines if "podling.process.watchdog" not in line] == ["Stopping pods"]


def test_a_port_in_use_is_named(make_podling: Callable[[], Podling]) -> None:
    podling = make_podling()
    with socket.create_server(("127.0.0.1", podling.port)):
        refused = podling.command("up", "--port", str(podling.port), check=False)
    assert refused.returncode == 1
    assert f"port {podling.port} is in use: choose another with --port" in refused.stderr


def test_a_data_directory_of_another_version_is_refused(make_podling: Callable[[], Podling]) -> None:
    podling = make_podling()
    podling.instance.data_dir.mkdir()
    podling.instance.choices_file.write_text('{"layout": 99, "port": 1, "subnet": "x"}')
    refused = podling.command("up", check=False)
    assert refused.returncode == 1
    assert "layout 99" in refused.stderr
    # What podling left is looked for by its choices, at the end of the run.
    podling.instance.choices_file.unlink()


def test_without_root_it_says_so(make_podling: Callable[[], Podling]) -> None:
    podling = make_podling()
    # Imported first: nobody may not be allowed to read this Python.
    code = "import podling.assemble.up; from podling.cli import main, up; import os; os.setuid(65534); "
    code += "main.main()"
    refused = subprocess.run(
        [sys.executable, "-c", code, "up", "--data-dir", str(podling.instance.data_dir)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "containers need root: run podling with sudo" in refused.stderr


def test_missing_programs_are_named_with_their_packages(make_podling: Callable[[], Podling]) -> None:
    podling = make_podling()
    refused = subprocess.run(
        [sys.executable, "-m", "podling", "up", "--data-dir", str(podling.instance.data_dir)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nonexistent"},
    )
    assert refused.returncode == 1
    assert "apt-get install catatonit containerd" in refused.stderr
