"""What pods may take of a real node: their cgroups, what happens to those who take more, who is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]
EAT = ["sh", "-c", "x=aaaaaaaaaaaaaaaa; while true; do x=$x$x; done"]


def pod(namespace: str, name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    apps = [{"name": "app", "image": BUSYBOX, "command": SLEEP, **c} for c in containers or ({},)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": apps, "terminationGracePeriodSeconds": 2, **spec},
    }


def limited(requests: dict[str, str], limits: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits}, **more}


def ready(podling: Podling, namespace: str, name: str) -> dict[str, Any]:
    podling.kubectl(
        "wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70
    )
    got: dict[str, Any] = podling.get("pod", name, "-n", namespace)
    return got


def cgroup(podling: Podling, controller: str, below: str = "") -> Path:
    """Below the podling's own cgroup, of a controller of v1 or in v2."""
    root = Path("/sys/fs/cgroup")
    mount = root / controller if (root / controller).is_dir() else root
    return mount / podling.instance.cgroup.lstrip("/") / below


def read(directory: Path, *names: str) -> str:
    """The first of the files that is there: v1's name or v2's."""
    return next((directory / name).read_text().strip() for name in names if (directory / name).exists())


def memory_limit(podling: Podling, below: str) -> int:
    return int(read(cgroup(podling, "memory", below), "memory.limit_in_bytes", "memory.max"))


def test_a_pods_cgroup_has_its_effective_resources_and_goes_with_it(podling: Podling, namespace: str) -> None:
    """R-INIT-9"""
    small = limited({"cpu": "100m", "memory": "16Mi"}, {"cpu": "500m", "memory": "32Mi"})
    init = {
        "name": "init",
        "image": BUSYBOX,
        "command": ["true"],
        **limited({}, {"cpu": "1", "memory": "64Mi"}),
    }
    podling.apply(pod(namespace, "web", small, {**small, "name": "b"}, initContainers=[init]))
    uid = ready(podling, namespace, "web")["metadata"]["uid"]

    below = f"burstable/pod{uid}"
    assert memory_limit(podling, below) == 64 << 20
    quota = read(cgroup(podling, "cpu", below), "cpu.cfs_quota_us", "cpu.max").split()[0]
    assert quota == "100000"
    containers = [path for path in cgroup(podling, "memory", below).iterdir() if path.is_dir()]
    limits = sorted(read(path, "memory.limit_in_bytes", "memory.max") for path in containers)
    assert limits[:2] == [str(32 << 20)] * 2

    podling.kubectl("delete", "pod", "web", "-n", namespace)
    assert not cgroup(podling, "memory", below).exists()


def last_end(status: dict[str, Any]) -> tuple[str, int]:
    ended = status["state"].get("terminated") or status["lastState"]["terminated"]
    return ended["reason"], ended["exitCode"]


def test_a_container_that_takes_more_memory_than_it_may_is_killed(podling: Podling, namespace: str) -> None:
    """R-SYS-5"""
    small = limited({}, {"memory": "16Mi"}, command=EAT)
    podling.apply(pod(namespace, "eater", small, restartPolicy="Never"))
    podling.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/eater", "-n", namespace)
    assert last_end(podling.get("pod", "eater", "-n", namespace)["status"]["containerStatuses"][0]) == (
        "OOMKilled",
        137,
    )


def test_a_debug_container_cannot_take_more_than_its_pod_may(podling: Podling, namespace: str) -> None:
    """R-EPH-12: the eater is killed, the pod lives."""
    small = limited({"memory": "32Mi"}, {"memory": "32Mi", "cpu": "500m"})
    podling.apply(pod(namespace, "web", small))
    ready(podling, namespace, "web")
    eat = ["debug", "web", "-c", "eater", "--image", BUSYBOX, "--profile=general", "-n", namespace, "--"]
    podling.kubectl(*eat, *EAT)
    ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}=OOMKilled"
    podling.kubectl("wait", f"--for={ended}", "pod/web", "-n", namespace)

    status = podling.get("pod", "web", "-n", namespace)["status"]
    assert last_end(status["ephemeralContainerStatuses"][0]) == ("OOMKilled", 137)
    app = status["containerStatuses"][0]
    assert (app["ready"], app["restartCount"]) == (True, 0)
    assert status["phase"] == "Running"

    # Whoever was spared ends as it likes, and is not said to have been killed.
    # The command goes with the container it ends, before or after it can say that it has succeeded.
    podling.kubectl("exec", "web", "-c", "app", "-n", namespace, "--", "kill", "1", check=False)
    restarted = "jsonpath={.status.containerStatuses[0].restartCount}=1"
    podling.kubectl("wait", f"--for={restarted}", "pod/web", "-n", namespace, "--timeout=30s")
    status = podling.get("pod", "web", "-n", namespace)["status"]
    assert last_end({**status["containerStatuses"][0], "state": {}}) == ("Completed", 0)


def resize(
    podling: Podling, namespace: str, name: str, requests: dict[str, str], limits: dict[str, str]
) -> None:
    body = {"spec": {"containers": [{"name": "app", **limited(requests, limits)}]}}
    patch = ["patch", "pod", name, "-n", namespace, "--subresource", "resize", "--patch", json.dumps(body)]
    podling.kubectl(*patch)


def test_a_running_pod_is_resized_up_and_down(podling: Podling, namespace: str) -> None:
    """R-SYS-5: cgroups of pod and container follow, nothing restarts."""
    small = limited({"cpu": "100m", "memory": "32Mi"}, {"cpu": "500m", "memory": "64Mi"})
    podling.apply(pod(namespace, "web", small))
    before = ready(podling, namespace, "web")
    below = f"burstable/pod{before['metadata']['uid']}"
    container = before["status"]["containerStatuses"][0]["containerID"].partition("://")[2]

    for cpu, memory in (("1", 128), ("200m", 48)):
        resize(podling, namespace, "web", {"cpu": cpu}, {"cpu": cpu, "memory": f"{memory}Mi"})
        shown = f"jsonpath={{.status.containerStatuses[0].resources.limits.memory}}={memory}Mi"
        podling.kubectl("wait", f"--for={shown}", "pod/web", "-n", namespace, "--timeout=20s")
        assert memory_limit(podling, f"{below}/{container}") == memory << 20
    after = podling.get("pod", "web", "-n", namespace)["status"]
    assert memory_limit(podling, below) == 48 << 20
    status = after["containerStatuses"][0]
    assert (status["restartCount"], status["allocatedResources"]["cpu"]) == (0, "200m")
    assert not [c for c in after["conditions"] if "Resize" in c["type"]]


def test_a_pod_is_resized_as_a_whole_and_in_an_init_container_that_runs(
    podling: Podling, namespace: str
) -> None:
    """R-SYS-5, R-INIT-9"""
    own = limited({"memory": "8Mi"}, {"memory": "16Mi"})
    init = {"name": "init", "image": BUSYBOX, "command": SLEEP, **own}
    whole = {"requests": {"memory": "32Mi"}, "limits": {"memory": "32Mi"}}
    podling.apply(pod(namespace, "web", own, initContainers=[init], resources=whole))
    running = "jsonpath={.status.initContainerStatuses[0].state.running.startedAt}"
    podling.kubectl("wait", f"--for={running}", "pod/web", "-n", namespace, "--timeout=60s")
    before = podling.get("pod", "web", "-n", namespace)
    below = f"burstable/pod{before['metadata']['uid']}"
    container = before["status"]["initContainerStatuses"][0]["containerID"].partition("://")[2]
    assert memory_limit(podling, below) == 32 << 20

    more = {"requests": {"memory": "48Mi"}, "limits": {"memory": "48Mi"}}
    spec = {"resources": more, "initContainers": [{"name": "init", **limited({}, {"memory": "24Mi"})}]}
    patch = ["patch", "pod", "web", "-n", namespace, "--subresource", "resize"]
    podling.kubectl(*patch, "--patch", json.dumps({"spec": spec}))
    for shown in ("resources", "initContainerStatuses[0].resources"):
        limit = "48Mi" if shown == "resources" else "24Mi"
        path = f"jsonpath={{.status.{shown}.limits.memory}}={limit}"
        podling.kubectl("wait", f"--for={path}", "pod/web", "-n", namespace, "--timeout=20s")
    assert memory_limit(podling, below) == 48 << 20
    assert memory_limit(podling, f"{below}/{container}") == 24 << 20
    after = podling.get("pod", "web", "-n", namespace)["status"]
    assert after["initContainerStatuses"][0]["restartCount"] == 0
    assert after["allocatedResources"]["memory"] == "48Mi"
    assert not [c for c in after["conditions"] if "Resize" in c["type"]]


def test_what_the_node_does_not_have_is_not_given(podling: Podling, namespace: str) -> None:
    """R-SYS-5: neither in a resize nor to a pod that names the node itself."""
    podling.apply(pod(namespace, "web", limited({"cpu": "100m"}, {})))
    node = ready(podling, namespace, "web")["spec"]["nodeName"]
    asked = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1000"}}}]}}
    patch = ["patch", "pod", "web", "-n", namespace, "--subresource", "resize", "--patch", json.dumps(asked)]
    refused = podling.kubectl(*patch, check=False)
    assert "node didn't have enough allocatable resources: cpu" in refused.stderr

    podling.apply(pod(namespace, "big", limited({"memory": "1Ti"}, {}), nodeName=node))
    podling.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/big", "-n", namespace)
    assert podling.get("pod", "big", "-n", namespace)["status"]["reason"] == "OutOfmemory"
    assert "OutOfmemory" in podling.kubectl("get", "pod", "big", "-n", namespace).stdout
