"""The gates of the earlier designs, and the gate of ephemeral containers off and on, on a real podling."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podling.cri.images.push import push_image
from ports import free_port

if TYPE_CHECKING:
    from e2e.conftest import Podling

ROOT = Path(__file__).parents[2]
BUSYBOX = "podling.test/busybox:1"
ALL = "EphemeralContainerRemoval=true,DebugSubresource=true,ExecEphemeralContainer=true"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry on loopback; its address."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("needs docker-registry")
    directory = tmp_path_factory.mktemp("registry")
    address = f"127.0.0.1:{free_port()}"
    config = directory / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {directory}/files}}}}\n"
        f"http: {{addr: '{address}'}}\nlog: {{level: info, accesslog: {{disabled: true}}}}\n"
    )
    with serving([program, "serve", str(config)]):
        yield address


@contextmanager
def serving(command: list[str]) -> Iterator[None]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        assert any("listening on" in line for line in server.stderr)
        yield
    finally:
        server.terminate()
        server.communicate()


@pytest.fixture(scope="module")
def gated(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path], registry: str
) -> Iterator[Podling]:
    """A podling with the gates on. Docker Hub is, for it, the registry, which has a busybox:1.36."""
    asyncio.run(push_image(image_archives[BUSYBOX], f"{registry}/library/busybox:1.36"))
    podling = make_podling()
    podling.up("--feature-gates", ALL, "--registry-mirror", f"docker.io=http://{registry}")
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.kubectl("delete", "pod", "web", "--ignore-not-found")


def shell(podling: Podling, script: str) -> str:
    """Run a script of the documentation; what it printed."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = {
        **os.environ,
        "KUBECONFIG": str(podling.instance.kubeconfig),
        "PATH": os.pathsep.join(paths),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_of_the_documentation(gated: Podling) -> None:
    """R-EPH-11, R-DBG-1, R-DBG-2"""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/gates.md").read_text(), re.MULTILINE | re.DOTALL)
    up, *steps = blocks
    assert ALL in up
    printed = [shell(gated, step) for step in steps]
    assert "PodDebugContainer" in printed[2] and '"status":"Success"' in printed[2]
    assert re.search(r"httpd -f -p 8080.*page\n$", printed[3], re.DOTALL)
    gated.wait("jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0", "pod/web")
    pod = gated.get("pod", "web")
    assert [entry["name"] for entry in pod["spec"]["ephemeralContainers"]] == ["tools"]
    assert [status["name"] for status in pod["status"]["ephemeralContainerStatuses"]] == ["tools"]
    assert pod["status"]["debugContainerStatuses"] == pod["status"]["ephemeralContainerStatuses"]
    events = gated.kubectl("get", "events", "-o", "custom-columns=:.reason,:.message").stdout
    killed = re.findall(r"^Killing +Stopping container (\w+)$", events, re.MULTILINE)
    assert sorted(killed) == ["look", "shell"]


def test_the_name_of_an_exited_container_is_used_again(gated: Podling) -> None:
    """R-DBG-1: on a real runtime, where the old container goes first."""
    path = "/api/v1/namespaces/default/pods/web/debug/again"
    for word in ("first", "second"):
        container = {"image": BUSYBOX, "imagePullPolicy": "Never", "command": ["echo", word]}
        body = {"kind": "PodDebugContainer", "apiVersion": "v1", "container": container}
        gated.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(body))
        ended = '{.status.debugContainerStatuses[?(@.name=="again")].state.terminated.exitCode}'
        gated.wait(f"jsonpath={ended}=0", "pod/web")
        assert gated.kubectl("logs", "web", "-c", "again").stdout == f"{word}\n"


def test_a_one_shot_in_a_new_container_is_shown_whole(gated: Podling) -> None:
    """R-DBG-2: also when it has ended before it could be attached to."""
    once = "python3 examples/exec_container.py web once$n busybox:1.36 sh -c 'echo first; echo last'"
    printed = shell(gated, f"for n in 1 2 3 4 5; do : | {once}; done")
    assert printed == "first\nlast\n" * 5
    failing = "python3 examples/exec_container.py web failing busybox:1.36 sh -c 'exit 3'"
    assert shell(gated, f": | {failing} || echo $?") == "3\n"
    unsaid = "python3 examples/exec_container.py web Bad busybox:1.36 sh 2>&1"
    refused = shell(gated, f": | {unsaid} || echo $?")
    assert re.search(r"^refused: HTTP 422\n.*Invalid value: \"Bad\".*\n1\n$", refused, re.DOTALL)


def test_the_gate_off_and_on_again_and_only_images_that_are_allowed(gated: Podling) -> None:
    """R-EPH-8, R-DBG-2: what runs goes on, what is stored stays, what was not started is started later."""
    gated.kubectl("debug", "web", f"--image={BUSYBOX}", "-c", "before", "--", "sleep", "600")
    running = '{.status.ephemeralContainerStatuses[?(@.name=="before")].state.running.startedAt}'
    gated.wait(f"jsonpath={running}", "pod/web")
    stored = gated.get("pod", "web")["spec"]["ephemeralContainers"]

    gated.send_signal(signal.SIGKILL)
    gated.up("--feature-gates", "EphemeralContainers=false")
    refused = gated.kubectl("debug", "web", f"--image={BUSYBOX}", "-c", "late", check=False)
    assert "ephemeral containers are disabled for this cluster" in refused.stderr
    gated.kubectl("label", "pod", "web", "seen=off")
    assert gated.get("pod", "web")["spec"]["ephemeralContainers"] == stored
    assert gated.kubectl("exec", "web", "-c", "before", "--", "echo", "alive").stdout == "alive\n"

    gated.send_signal(signal.SIGKILL)
    gated.up("--feature-gates", "EphemeralContainers=true", "--debug-image-allowlist", "podling.test/*")
    assert gated.kubectl("exec", "web", "-c", "before", "--", "echo", "alive").stdout == "alive\n"
    gated.kubectl("debug", "web", f"--image={BUSYBOX}", "-c", "allowed", "--", "sleep", "600")
    gated.kubectl("debug", "web", "--image=busybox:1.36", "-c", "refused", "--", "sleep", "600")
    allowed = '{.status.ephemeralContainerStatuses[?(@.name=="allowed")].state.running.startedAt}'
    gated.wait(f"jsonpath={allowed}", "pod/web")
    why = '{.status.ephemeralContainerStatuses[?(@.name=="refused")].state.waiting.reason}'
    gated.wait(f"jsonpath={why}=ErrImageNotAllowed", "pod/web")
