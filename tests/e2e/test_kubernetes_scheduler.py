"""R-SYS-2: Kubernetes' own scheduler finds nodes for the pods of podling's API server; podling's own is off.

The kube-scheduler sends and watches in the forms of its release: protobuf, and WatchList.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peer.server import running
from ports import free_port

from . import whole_pod

if TYPE_CHECKING:
    from e2e.conftest import Part, Podling

pytestmark = pytest.mark.interop("kube-scheduler", "API server", "controllers", "kubelet")

BUSYBOX = "podling.test/busybox:1"
NODE = "scheduled"
READY = {"apiserver": "API server on ", "controllers": "Controlling for ", "kubelet": f"Node {NODE} of "}
FOREVER = "trap 'echo ended > /outside/{0}; exit 0' TERM; while :; do sleep 0.1; done"
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@dataclass
class Cluster:
    """podling's API server, controllers and one node, with a scheduler that is not podling's and its log."""

    podling: Podling
    log: Path

    def wait(self, what: str, name: str) -> None:
        found = self.podling.kubectl("wait", f"--for={what}", name, "--timeout=60s", check=False, timeout=70)
        told = self.podling.kubectl("describe", name, check=False).stdout
        assert found.returncode == 0, f"{found.stderr}{told[-3000:]}{self.log.read_text()[-3000:]}"


@pytest.fixture(scope="module")
def cluster(
    make_podling: Callable[[], Podling],
    make_part: Callable[..., Part],
    image_archives: dict[str, Path],
    kubernetes_programs: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    server, node = make_podling(), make_podling()
    directory = server.instance.data_dir
    directory.mkdir()
    at = ["--data-dir", str(directory), "--port", str(server.port)]
    own = ["--data-dir", str(node.instance.data_dir), "--node-name", NODE]
    arguments = {
        "apiserver": at,
        "controllers": ["--kubeconfig", str(directory / "controller-manager.conf")],
        "kubelet": ["--kubeconfig", str(directory / "kubelet.conf"), *own],
    }
    parts = {name: make_part([name, *given], directory / "parts.log") for name, given in arguments.items()}
    home = tmp_path_factory.mktemp("scheduler")
    flags = {
        "kubeconfig": directory / "scheduler.conf",
        "authentication-kubeconfig": directory / "scheduler.conf",
        "authorization-kubeconfig": directory / "scheduler.conf",
        "leader-elect": "true",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": home,
    }
    command = [str(kubernetes_programs / "kube-scheduler")]
    command += [f"--{name}={value}" for name, value in flags.items()]
    try:
        parts["apiserver"].start(READY["apiserver"])
        url = f"https://127.0.0.1:{server.port}"
        server.command("kubeconfig", "--node", NODE, "--server", url, str(directory / "kubelet.conf"))
        for name in ("controllers", "kubelet"):
            parts[name].start(READY[name])
        for archive in image_archives.values():
            node.command("images", "load", str(archive))
        server.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
        with running(command, home / "kube-scheduler.log"):
            yield Cluster(server, home / "kube-scheduler.log")
    finally:
        for part in parts.values():
            part.end()
        node.command("down")


def container(name: str, script: str, **more: Any) -> dict[str, Any]:
    outside = [{"name": "outside", "mountPath": "/outside"}]
    command = ["sh", "-c", script.format(name)]
    return {"name": name, "image": BUSYBOX, "command": command, "volumeMounts": outside, **more}


def pod(name: str, outside: Path, **spec: Any) -> dict[str, Any]:
    whole = {
        "terminationGracePeriodSeconds": 20,
        "volumes": [{"name": "outside", "hostPath": {"path": str(outside)}}],
        "containers": [container("app", FOREVER)],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def test_a_pod_with_everything_is_scheduled_and_lives(cluster: Cluster, tmp_path: Path) -> None:
    """Init containers, a sidecar, probes, exec, `kubectl debug` and a graceful end."""
    podling = cluster.podling
    podling.apply(whole_pod.pod("whole", tmp_path))
    whole_pod.live(podling.said, "whole")
    assert podling.get("pod", "whole")["spec"]["nodeName"] == NODE
    events = podling.get("events", "--field-selector=involvedObject.name=whole,reason=Scheduled")["items"]
    assert [one["reportingComponent"] for one in events] == ["default-scheduler"]
    whole_pod.end(podling.said, "whole", tmp_path)


def test_what_fits_nowhere_waits_until_it_does(cluster: Cluster, tmp_path: Path) -> None:
    """A gate, a selector of no node, too much of a resource, and a claim: the condition says which."""
    podling = cluster.podling
    too_much = container("app", FOREVER, resources={"requests": {"cpu": "1000"}})
    with_claim = [
        {"name": "outside", "hostPath": {"path": str(tmp_path)}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    waiting: dict[str, tuple[dict[str, Any], str]] = {
        "gated": ({"schedulingGates": [{"name": "podling.test/later"}]}, "non-empty scheduling gates"),
        "picky": ({"nodeSelector": {"podling.test/zone": "a"}}, "node affinity/selector"),
        "large": ({"containers": [too_much]}, "Insufficient cpu"),
        "unclaimed": ({"volumes": with_claim}, 'persistentvolumeclaim "data" not found'),
    }
    for name, (spec, message) in waiting.items():
        podling.apply(pod(name, tmp_path, **spec))
        cluster.wait("jsonpath={.status.conditions[0].message}", f"pod/{name}")
        assert message in podling.get("pod", name)["status"]["conditions"][0]["message"]
    podling.kubectl("label", "node", NODE, "podling.test/zone=a")
    opened = [{"op": "remove", "path": "/spec/schedulingGates"}]
    podling.kubectl("patch", "pod", "gated", "--type=json", "-p", json.dumps(opened))
    for name in ("gated", "picky"):
        cluster.wait("condition=Ready", f"pod/{name}")
    podling.apply(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": CLAIM}
    )
    cluster.wait(f"jsonpath={{.status.conditions[0].message}}={UNBOUND}", "pod/unclaimed")
    podling.kubectl("delete", "pods", *waiting, "--grace-period=1", "--timeout=60s", timeout=70)
    podling.kubectl("delete", "pvc", "data", "--timeout=30s", timeout=40)


def test_who_matters_more_takes_the_place(cluster: Cluster, tmp_path: Path) -> None:
    """Preemption: the scheduler nominates the node, and evicts by the API server."""
    podling = cluster.podling
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in (("little", 1), ("much", 1000))
    ]
    whole = podling.get("node", NODE)["status"]["allocatable"]["cpu"]
    most = f"{int(float(whole) * 1000) * 6 // 10}m"
    podling.apply(*classes)
    for name in ("little", "much"):
        wants = [container("app", FOREVER, resources={"requests": {"cpu": most}})]
        podling.apply(pod(name, tmp_path, priorityClassName=name, containers=wants))
        cluster.wait("condition=Ready", f"pod/{name}")
    # It may go a moment after it has ended, which is all that the scheduler waits for.
    podling.kubectl("wait", "--for=delete", "pod/little", "--timeout=60s", timeout=70)
    assert [one["metadata"]["name"] for one in podling.get("pods")["items"]] == ["much"]
    podling.kubectl("delete", "pod", "much", "--grace-period=1", "--timeout=60s", timeout=70)
