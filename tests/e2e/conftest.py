"""A real podling with a real kubectl, started once for all end-to-end tests; what it leaves is looked for."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

import leftovers
from e2e.alone import alone, proxied
from podling.kubelet.files.tree import remove
from podling.machine.instance import Instance
from podling.model.scheme import by_kind
from ports import free_port
from untold import check_told

__all__ = ["alone", "proxied"]

PODLING = [sys.executable, "-m", "podling"]
VENV_BIN = Path(sys.executable).parent

Completed = subprocess.CompletedProcess[str]


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

    def end(self) -> None:
        """Where it has ended already, it is not asked again: that takes a start of Python."""
        if self.instance.run_dir.exists():
            self.command("down")

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, timeout: float = 60, **env: str
    ) -> Completed:
        command = [kubectl_program(), "--kubeconfig", str(self.instance.kubeconfig), *arguments]
        return run(command, input=input, check=check, timeout=timeout, env={**os.environ, **env})

    def first_line(self, *arguments: str) -> str:
        """What kubectl prints first in a minute, as of a watch; it is ended then."""
        command = [kubectl_program(), "--kubeconfig", str(self.instance.kubeconfig), *arguments]
        with subprocess.Popen([*command, "--request-timeout=60s"], stdout=subprocess.PIPE, text=True) as said:
            assert said.stdout
            line = said.stdout.readline()
            said.kill()
        return line

    def said(self, *arguments: str, input: str = "") -> str:
        """What kubectl printed."""
        return str(self.kubectl(*arguments, input=input, timeout=90).stdout)

    def send_signal(self, number: signal.Signals) -> None:
        """Sends it to the one process of a podling that runs."""
        running = self.instance.running()
        assert running
        os.kill(running, number)

    def apply(self, *objects: dict[str, Any], timeout: float = 60) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", input=json.dumps(listed), timeout=timeout)

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


def chosen(instance: Instance) -> set[str]:
    """The subnets of its pods and services."""
    kept = instance.choices()
    return {kept.subnet, *kept.service_range.split(",")} if kept else set()


def traces(instance: Instance) -> list[str]:
    """What a podling has on the machine beyond its data directory: nothing, once it is down."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found = [line for line in mounts if str(instance.data_dir) in line or str(instance.run_dir) in line]
    # Other cgroups come and go meanwhile: os.walk passes over what is gone.
    found += [place for place, _, _ in os.walk("/sys/fs/cgroup") if place.endswith(instance.cgroup)]
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
    # What was this podling's to choose is another's once it is down.
    subnets = chosen(instance).difference(*(chosen(up) for up in leftovers.running() if up != instance))
    for version in ("-4", "-6"):
        routes = run(["ip", version, "route", "show", "table", "all"]).stdout.splitlines()
        found += [line for line in routes if subnets & {*line.split()}]
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
        leftovers.note(podling.instance.data_dir)
        made.append(podling)
        return podling

    yield make
    for podling in made:
        podling.end()
    left = {str(podling.instance.data_dir): traces(podling.instance) for podling in made}
    assert not any(left.values()), left
    for podling in made:
        check_told(podling.instance.log_file)
    for podling in made:
        # Pods of a test that failed may have made trees deeper than pytest's own clean-up can go.
        with suppress(FileNotFoundError):
            remove(podling.instance.kubelet_dir)


@dataclass
class Part:
    """A `podling` command that runs until it is told to stop."""

    arguments: list[str]
    log: Path
    process: subprocess.Popen[str] | None = None

    def start(self, ready: str) -> None:
        """Returns when it has said `ready`."""
        if "--data-dir" in self.arguments:
            leftovers.note(Path(self.arguments[self.arguments.index("--data-dir") + 1]))
        with self.log.open("a") as log:
            command = [sys.executable, "-m", "podling", *self.arguments]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith(ready):
                return
        pytest.fail(f"{self.arguments[0]} ended: {said} {self.log.read_text()}")

    @property
    def running(self) -> subprocess.Popen[str]:
        assert self.process
        return self.process

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        self.process.wait(30)
        assert self.process.stdout
        self.process.stdout.close()
        self.process = None
        check_told(self.log)


@pytest.fixture(scope="session")
def make_part() -> Callable[..., Part]:
    """Parts of a podling that run alone, not started yet: `make_part(ARGUMENTS, LOG)`."""
    return Part


@pytest.fixture(scope="session")
def podling(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Podling:
    """One running podling with the test images, shared by every test that does not stop it."""
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    return podling


@pytest.fixture
def on_small_disk(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path]
) -> Iterator[Callable[..., Podling]]:
    """Starts a podling whose data directory is a disk of its own, of `size` bytes, and loads the images; `up`
    is what else it is told."""
    podling = make_podling()
    directory = podling.instance.data_dir
    directory.mkdir()

    def start(size: int, *up: str) -> Podling:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], check=True)
        podling.up(*up)
        for archive in image_archives.values():
            podling.command("images", "load", str(archive))
        return podling

    try:
        yield start
    finally:
        podling.end()
        if directory.is_mount():
            subprocess.run(["umount", directory], check=True)


@pytest.fixture
def namespace(podling: Podling, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, emptied of pods at its end."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**8}"
    podling.kubectl("create", "namespace", name)
    podling.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
    yield name
    podling.kubectl("delete", "pods", "--all", "-n", name, "--grace-period=1", "--wait=false", check=False)
    podling.kubectl("delete", "namespace", name, "--wait=false")


@dataclass(frozen=True)
class Plain:
    """An API server that takes whoever comes for an administrator, over HTTP."""

    url: str

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The code and what was answered, None of a watch: that is left. A body is data, or bytes as is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json", **named}
        asked = Request(self.url + target, data, sent, method=method)
        try:
            with urlopen(asked, timeout=10) as answer:
                return answer.status, None if "watch=1" in target else json.load(answer)
        except HTTPError as refused:
            return refused.code, json.load(refused)


HISTORY = 20
"""Changes of each resource that an API server alone remembers: few, so that it can be made to forget."""


@pytest.fixture
def seed() -> int:
    """Of what a test chooses by chance: another in each run, and said if the test fails."""
    chosen = int(os.environ.get("PODLING_TEST_SEED") or random.randrange(10**6))
    logging.getLogger("seed").warning("PODLING_TEST_SEED=%d", chosen)
    return chosen


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    """Storage and API server alone, with an object named `sample` of every kind that is stored."""
    program = [sys.executable, str(Path(__file__).with_name("api_server.py"))]
    data = tmp_path_factory.mktemp("api") / "podling.db"
    running = subprocess.Popen(
        [*program, str(data), str(HISTORY)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout
    with running.stdout as said:
        try:
            words = [said.readline().split() for _ in ("started", "serving")]
            server = Plain(f"http://127.0.0.1:{words[1][1]}")
            fill(server)
            yield server
            assert server.ask("GET", "/version")[0] == 200, "the server is dead"
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def fill(server: Plain) -> None:
    """Create what is in `samples.yaml`, and change one of it more often than is remembered."""
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    # Services get addresses of it; with the controllers, it would be there from the start.
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    server.ask("POST", ranges, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}})
    for sample in yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text()):
        resource = by_kind(sample["apiVersion"], sample["kind"])
        assert resource
        base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        within = "namespaces/default/" if resource.namespaced else ""
        code, said = server.ask("POST", f"{base}/{within}{resource.plural}", sample)
        assert code == 201, (sample["kind"], said)
    for i in range(2 * HISTORY):
        label = {"metadata": {"labels": {"change": str(i)}}}
        config = "/api/v1/namespaces/default/configmaps/sample"
        server.ask("PATCH", config, label, Content_Type="application/merge-patch+json")
