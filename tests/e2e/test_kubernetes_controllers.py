"""R-SYS-2: Kubernetes' own controllers run on podling's API server, and podling runs the pods they make.

The kube-controller-manager sends and watches in the forms of its release: protobuf, and WatchList.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peer.server import running
from ports import free_port

from . import whole_pod

if TYPE_CHECKING:
    from e2e.conftest import Podling

pytestmark = pytest.mark.interop("kube-controller-manager", "API server", "scheduler", "kubelet")

BUSYBOX = "podling.test/busybox:1"
CONTROLLERS = ("deployment", "replicaset", "daemonset", "replicationcontroller", "statefulset", "job")


@pytest.fixture(scope="module")
def podling(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Podling:
    """One that leaves workloads to others."""
    made = make_podling()
    made.up("--no-workloads")
    for archive in image_archives.values():
        made.command("images", "load", str(archive))
    return made


@pytest.fixture(scope="module")
def controllers(
    podling: Podling, kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The log of a kube-controller-manager that runs."""
    directory = tmp_path_factory.mktemp("controllers")
    log = directory / "kube-controller-manager.log"
    flags = {
        "kubeconfig": podling.instance.kubeconfig,
        "controllers": ",".join(f"{name}-controller" for name in CONTROLLERS),
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": directory,
    }
    command = [str(kubernetes_programs / "kube-controller-manager")]
    with running([*command, *(f"--{name}={value}" for name, value in flags.items())], log):
        yield log


def workload(kind: str, name: str, version: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    app = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [app], "terminationGracePeriodSeconds": 1},
    }
    selector = labels if version == "v1" else {"matchLabels": labels}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": selector, "template": template, **spec},
    }


@pytest.mark.usefixtures("controllers")
def test_pods_with_everything_live(podling: Podling, namespace: str, tmp_path: Path) -> None:
    """Of a Deployment, of a StatefulSet and of a Job, made by Kubernetes' controllers."""

    def kubectl(*arguments: str, input: str = "") -> str:
        return podling.said("-n", namespace, *arguments, input=input)

    whole_pod.of_deployment(kubectl, tmp_path, "kube-controller-manager")
    whole_pod.of_set(kubectl, tmp_path)
    whole_pod.of_job(kubectl, tmp_path)


def test_deployments_roll_and_scale(podling: Podling, namespace: str, controllers: Path) -> None:
    here = ("-n", namespace)
    deployment = workload("Deployment", "web", "apps/v1", replicas=2)
    try:
        podling.kubectl("apply", *here, "-f", "-", input=json.dumps(deployment))
        podling.kubectl("rollout", "status", "deployment/web", *here, "--timeout=60s", timeout=70)
        podling.kubectl("scale", "deployment/web", "--replicas=3", *here)
        podling.kubectl("rollout", "status", "deployment/web", *here, "--timeout=60s", timeout=70)
        assert len(podling.get("pods", "-l", "app=web", *here)["items"]) == 3
        podling.kubectl("set", "env", "deployment/web", "NEW=1", *here)
        podling.kubectl("rollout", "status", "deployment/web", *here, "--timeout=90s", timeout=100)
        podling.kubectl("rollout", "undo", "deployment/web", *here)
        podling.kubectl("rollout", "status", "deployment/web", *here, "--timeout=90s", timeout=100)
        assert len(podling.get("replicasets", *here)["items"]) == 2
        podling.kubectl("delete", "deployment/web", *here, "--wait", "--cascade=foreground", timeout=70)
        assert podling.get("pods", "-l", "app=web", *here)["items"] == []
    except BaseException as error:
        error.add_note(controllers.read_text()[-4000:])
        raise


def test_each_node_gets_its_pod(podling: Podling, namespace: str, controllers: Path) -> None:
    here = ("-n", namespace)
    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(workload("DaemonSet", "each", "apps/v1")))
    podling.kubectl("rollout", "status", "daemonset/each", *here, "--timeout=60s", timeout=70)
    old = workload("ReplicationController", "old", "v1", replicas=1)
    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(old))
    podling.kubectl(
        "wait", "--for=jsonpath={.status.readyReplicas}=1", "rc/old", *here, "--timeout=60s", timeout=70
    )
