"""R-SYS-5 for a node that really runs out of disk: its data directory is a small one of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
FOREVER = "trap exit TERM; sleep 3600 & wait"
DISK = 256 << 20
LEAST = 100
"""MiB that the node wants left."""
LIMITS = f"""
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {{nodefs.available: {LEAST}Mi}}
evictionMinimumReclaim: {{nodefs.available: 10Mi}}
evictionPressureTransitionPeriod: 15s
"""
TAINT = "node.kubernetes.io/disk-pressure"


def pod(name: str, script: str = FOREVER, **spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", script]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def small(on_small_disk: Callable[..., Podling], tmp_path: Path) -> Podling:
    """A podling with little disk, that wants 100 MiB of it left."""
    limits = tmp_path / "kubelet.yaml"
    limits.write_text(LIMITS)
    return on_small_disk(DISK, "--config", str(limits))


def condition(podling: Podling, name: str, kind: str) -> tuple[str, str, str]:
    conditions = podling.get("node", name)["status"]["conditions"]
    [found] = [(c["status"], c["reason"], c["message"]) for c in conditions if c["type"] == kind]
    return found


def taints(podling: Podling, name: str) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in podling.get("node", name)["spec"].get("taints", ())}


def test_a_node_short_of_disk_ends_the_fattest_pod_and_recovers(small: Podling) -> None:
    """The room comes with the evicted pod's dead container; nobody else has to go."""
    (node,) = small.get("nodes")["items"]
    name = node["metadata"]["name"]
    small.apply(pod("lean"), pod("done", "echo done", restartPolicy="Never"))
    small.wait("condition=Ready", "pod/lean")
    small.wait("jsonpath={.status.phase}=Succeeded", "pod/done")
    assert condition(small, name, "DiskPressure")[:2] == ("False", "KubeletHasNoDiskPressure")
    left = shutil.disk_usage(small.instance.data_dir).free >> 20
    small.apply(pod("fat", f"dd if=/dev/zero of=/file bs=1M count={left - LEAST // 2}; {FOREVER}"))
    small.wait("condition=DiskPressure", f"node/{name}")
    assert condition(small, name, "DiskPressure") == (
        "True",
        "KubeletHasDiskPressure",
        "kubelet has disk pressure",
    )
    small.wait("jsonpath={.spec.taints[*].key}=" + TAINT, f"node/{name}")
    assert (TAINT, "NoSchedule") in taints(small, name)
    small.wait("jsonpath={.status.reason}=Evicted", "pod/fat")
    status = small.get("pod", "fat")["status"]
    assert status["phase"] == "Failed"
    said = status["message"]
    assert said.startswith(
        "The node was low on resource: ephemeral-storage. Threshold quantity: 100Mi, available: "
    )
    assert "Container app was using " in said
    assert said.endswith("request is 0, has larger consumption of ephemeral-storage. ")
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    small.apply(pod("late"))
    small.wait("jsonpath={.status.conditions[0].reason}=Unschedulable", "pod/late")
    small.wait("condition=DiskPressure=false", f"node/{name}")
    small.wait("condition=Ready", "pod/late")
    assert taints(small, name) == set()
    assert small.get("pod", "lean")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert small.get("pod", "done")["status"]["phase"] == "Succeeded"
    events = {(e["reason"], e["message"]) for e in small.get("events")["items"]}
    assert ("EvictionThresholdMet", "Attempting to reclaim ephemeral-storage") in events
    assert ("Evicted", said) in events
    told = json.loads(small.kubectl("get", "--raw", f"/api/v1/nodes/{name}/proxy/configz").stdout)
    assert told["kubeletconfig"]["evictionHard"] == {"nodefs.available": "100Mi"}
