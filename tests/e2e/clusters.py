"""The clusters on which commands for any cluster are tried: podling, and Kubernetes' own API server and
kubelet.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peer import control_plane
from podling.machine.pki import Authority
from podling.model.types.rbac import MASTERS

from .kubernetes_node import kubelet, own_places

if TYPE_CHECKING:
    from conftest import RealContainerd
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
NODE, NAMESPACE = "debugged", "debugging"


@dataclass
class Cluster:
    """Where pods are debugged. `node` is where they are put if nobody schedules them."""

    kubeconfig: Path
    node: str = ""

    def kubectl(self, *arguments: str, input: str = "") -> str:
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "-n", NAMESPACE, *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def debug(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        return self._run(self.command(*arguments), input)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(self.podling(*arguments))

    def _run(self, command: list[str], input: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=input,
            stdin=None if input else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def command(self, *arguments: str) -> list[str]:
        return self.podling("debug", "-m", BUSYBOX, *arguments)

    def podling(self, command: str, *arguments: str) -> list[str]:
        flags = ["--kubeconfig", str(self.kubeconfig), "-n", NAMESPACE]
        return [sys.executable, "-m", "podling", command, *flags, *arguments]

    def make_pod(self, name: str, **spec: Any) -> None:
        container = {"name": "app", "image": BUSYBOX, "command": ["sleep", "3600"]}
        whole = {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **({"nodeName": self.node} if self.node else {}),
            **spec,
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}
        self.kubectl("create", "--validate=false", "-f", "-", input=json.dumps(pod))
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")

    def wait_for(self, state: str, pod: str, container: str) -> None:
        """Of a debug container."""
        path = f'{{.status.ephemeralContainerStatuses[?(@.name=="{container}")].state.{state}}}'
        self.kubectl("wait", f"--for=jsonpath={path}", f"pod/{pod}", "--timeout=60s")

    def ephemeral(self, pod: str) -> list[dict[str, Any]]:
        found = json.loads(self.kubectl("get", "pod", pod, "-o", "json"))["spec"]
        listed: list[dict[str, Any]] = found.get("ephemeralContainers", [])
        return listed


@pytest.fixture(scope="module")
def kubernetes_cluster(
    make_containerd: Callable[[], AbstractContextManager[RealContainerd]],
    kubernetes_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("kubernetes")
    home = directory / "node"
    home.mkdir()
    with ExitStack() as ending:
        flags = ("--disable-admission-plugins=ServiceAccount",)
        server = ending.enter_context(control_plane.kubernetes(kubernetes_programs, directory, *flags))
        containerd = ending.enter_context(make_containerd())
        ending.enter_context(own_places(containerd))
        pair = Authority(directory / "pki", datetime.now(UTC)).client(
            "node", f"system:node:{NODE}", [MASTERS]
        )
        config = json.loads(
            subprocess.run(
                ["kubectl", "--kubeconfig", str(server.kubeconfig), "config", "view", "--raw", "-o", "json"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        config["users"][0]["user"] = {
            "client-certificate": str(pair.certificate),
            "client-key": str(pair.key),
        }
        (home / "node.conf").write_text(json.dumps(config))
        told = {"kubeconfig": home / "node.conf"}
        ending.enter_context(
            kubelet(kubernetes_programs / "kubelet", containerd, home, server.ca, NODE, told)
        )
        cluster = Cluster(server.kubeconfig, NODE)
        cluster.kubectl("wait", "--for=create", f"node/{NODE}", "--timeout=60s")
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield cluster
        cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


@pytest.fixture(scope="module", params=["podling", "kubernetes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "kubernetes":
        yield request.getfixturevalue("kubernetes_cluster")
        return
    podling: Podling = request.getfixturevalue("podling")
    made = Cluster(podling.instance.kubeconfig)
    made.kubectl("create", "namespace", NAMESPACE)
    yield made
    made.kubectl("delete", "namespace", NAMESPACE)
