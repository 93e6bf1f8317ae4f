"""A real podling with a real kubectl, started once for all end-to-end tests; what it leaves is looked for."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podling.instance import Instance

PODLING = [sys.executable, "-m", "podling"]
VENV_BIN = Path(sys.executable).parent

Completed = subprocess.CompletedProcess[str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kubectl_program() -> str:
    """The machine's kubectl, or the one the set-up put beside Python."""
    return shutil.which("kubectl") or str(VENV_BIN / "kubectl")


@dataclass(frozen=True)
class Podling:
    """One podling and the ways a user has to it."""

    instance: Instance
    port: int

    def command(self, *arguments: str, check: bool = True, timeout: float = 120) -> Completed:
        """`podling ARGUMENTS --data-dir ...`."""
        command = [*PODLING, *arguments, "--data-dir", str(self.instance.data_dir)]
        return run(command, check=check, timeout=timeout)

    def up(self, *arguments: str) -> Completed:
        return self.command("up", "--detach", "--port", str(self.port), *arguments)

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, timeout: float = 60, **env: str
    ) -> Completed:
        command = [kubectl_program(), "--kubeconfig", str(self.instance.kubeconfig), *arguments]
        return run(command, input=input, check=check, timeout=timeout, env={**os.environ, **env})

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", input=json.dumps(listed))

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)

    def wait(self, condition: str, what: str, timeout: int = 60) -> None:
        self.kubectl("wait", f"--for={condition}", what, f"--timeout={timeout}s", timeout=timeout + 10)


def run(command: list[str], *, check: bool = True, **options: Any) -> Completed:
    """Run a command; when it must succeed and does not, its output is the failure's text."""
    done: Completed = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if check and done.returncode != 0:
        pytest.fail(
            f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}", pytrace=True
        )
    return done


def traces(instance: Instance) -> list[str]:
    """What a podling has on the machine beyond its data directory: nothing, once it is down."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found = [line for line in mounts if str(instance.data_dir) in line or str(instance.run_dir) in line]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**{instance.cgroup}")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"*{instance.cgroup}")]
    found += [
        str(path) for path in [instance.run_dir, Path("/sys/class/net") / instance.bridge] if path.exists()
    ]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(instance.data_dir) in line or str(instance.run_dir) in line:
            found.append(f"{process.parent.name}: {line}")
    tables = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=False).stdout
    found += [line for line in tables.splitlines() if instance.identity in line]
    return found


@pytest.fixture(scope="session")
def make_podling(
    tmp_path_factory: pytest.TempPathFactory, image_archives: dict[str, Path]
) -> Iterator[Callable[[], Podling]]:
    """Podlings that are not started yet; whatever they leave at the end of the run fails it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made: list[Podling] = []

    def make() -> Podling:
        podling = Podling(Instance.at(tmp_path_factory.mktemp("podling") / "data"), free_port())
        made.append(podling)
        return podling

    yield make
    for podling in made:
        podling.command("down")
    left = {str(podling.instance.data_dir): traces(podling.instance) for podling in made}
    assert not any(left.values()), left


@pytest.fixture(scope="session")
def podling(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Podling:
    """One running podling with the test images, shared by every test that does not stop it."""
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    return podling


@pytest.fixture
def namespace(podling: Podling, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, emptied of pods at its end."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**8}"
    podling.kubectl("create", "namespace", name)
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
    yield name
    podling.kubectl("delete", "pods", "--all", "-n", name, "--grace-period=1", "--wait=false", check=False)
    podling.kubectl("delete", "namespace", name, "--wait=false")
