"""What only cgroup v2 shows, on a machine that has nothing else: `scripts/vm.sh` makes one."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

ROOT = Path("/sys/fs/cgroup")
BUSYBOX = "podling.test/busybox:1"
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]
EAT = "x=aaaaaaaaaaaaaaaa; while true; do x=$x$x; done"
LIMITS = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
singleProcessOOMKill: true
podPidsLimit: 40
"""

pytestmark = pytest.mark.skipif(
    not (ROOT / "cgroup.controllers").exists(), reason="cgroup v2 is not all there is: see scripts/vm.sh"
)


def pod(namespace: str, name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    apps = [{"name": "app", "image": BUSYBOX, "command": SLEEP, **c} for c in containers or ({},)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": apps, "terminationGracePeriodSeconds": 1, **spec},
    }


def given(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return {"requests": requests, "limits": limits}


def ready(podling: Podling, namespace: str, name: str) -> dict[str, Any]:
    podling.kubectl(
        "wait", "--for=condition=Ready", f"pod/{name}", "-n", namespace, "--timeout=120s", timeout=130
    )
    got: dict[str, Any] = podling.get("pod", name, "-n", namespace)
    return got


def status_of(got: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    [found] = [status for status in got["status"]["containerStatuses"] if status["name"] == name]
    return found


def pods_root(podling: Podling) -> Path:
    return ROOT / podling.instance.cgroup.lstrip("/")


def cgroup(podling: Podling, got: dict[str, Any], container: str = "") -> Path:
    """Of a pod that was got, or of one of its containers."""
    quality = got["status"]["qosClass"].lower()
    parent = pods_root(podling) / ("" if quality == "guaranteed" else quality)
    directory = parent / f"pod{got['metadata']['uid']}"
    if not container:
        return directory
    container_id: str = status_of(got, container)["containerID"]
    return directory / container_id.partition("://")[2]


def read(directory: Path, *names: str) -> list[str]:
    return [(directory / name).read_text().strip() for name in names]


def ended(podling: Podling, namespace: str, name: str, container: str = "app") -> tuple[str, int]:
    """Why and with which code, once it has."""
    path = f"{{.status.containerStatuses[?(@.name=='{container}')].state.terminated.exitCode}}"
    podling.kubectl("wait", f"--for=jsonpath={path}", f"pod/{name}", "-n", namespace, "--timeout=60s")
    state = status_of(podling.get("pod", name, "-n", namespace), container)["state"]["terminated"]
    return state["reason"], state["exitCode"]


def asked(podling: Podling, path: str) -> str:
    """Of the node's kubelet."""
    node = podling.get("nodes")["items"][0]["metadata"]["name"]
    told: str = podling.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy{path}").stdout
    return told


def test_each_level_is_allowed_what_kubernetes_allows_it(podling: Podling, namespace: str) -> None:
    """R-SYS-5, R-INIT-9: 250m are 256 shares, and those a weight of 10."""
    app = {"resources": given({"cpu": "250m", "memory": "32Mi"}, {"cpu": "500m", "memory": "64Mi"})}
    podling.apply(pod(namespace, "web", app))
    got = ready(podling, namespace, "web")
    of_pod, of_app = cgroup(podling, got), cgroup(podling, got, "app")

    assert read(of_pod, "cpu.weight", "cpu.max", "memory.max", "pids.max") == [
        "10",
        "50000 100000",
        str(64 << 20),
        "max",
    ]
    limits = ["cpu.max", "memory.max", "memory.oom.group", "memory.swap.max"]
    assert read(of_app, *limits) == ["50000 100000", str(64 << 20), "1", "0"]
    assert read(pods_root(podling) / "besteffort", "cpu.weight", "memory.max") == ["1", "max"]
    seen = ["exec", "web", "-n", namespace, "--", "cat", "/proc/self/cgroup", "/sys/fs/cgroup/memory.max"]
    assert podling.kubectl(*seen).stdout.split() == ["0::/", str(64 << 20)]

    [node] = podling.get("nodes")["items"]
    memory = int(node["status"]["capacity"]["memory"].removesuffix("Ki")) << 10
    assert read(pods_root(podling), "memory.max") == [str(memory)]
    shares = int(node["status"]["capacity"]["cpu"]) * 1024
    assert read(pods_root(podling), "cpu.weight") == [str(1 + (shares - 2) * 9999 // 262142)]


def test_a_qos_class_weighs_what_its_pods_ask_for(podling: Podling, namespace: str) -> None:
    burstable = pods_root(podling) / "burstable/cpu.weight"
    # Pods of other tests may still be on their way out.
    podling.kubectl("wait", "--for=delete", "pods", "--all", "-A", "--timeout=60s", timeout=70, check=False)
    before = int(burstable.read_text())
    podling.apply(pod(namespace, "web", {"resources": given({"cpu": "500m"}, {})}))
    ready(podling, namespace, "web")
    assert int(burstable.read_text()) in (before + 19, before + 20)
    podling.kubectl("delete", "pod", "web", "-n", namespace)
    assert int(burstable.read_text()) == before


def test_a_container_dies_as_a_whole_when_one_of_its_processes_takes_too_much(
    podling: Podling, namespace: str
) -> None:
    """R-SYS-5"""
    script = f"sh -c '{EAT}'; echo the rest lives on; sleep 1000"
    small = {"command": ["sh", "-c", script], "resources": given({}, {"memory": "16Mi"})}
    podling.apply(pod(namespace, "eater", small, restartPolicy="Never"))
    assert ended(podling, namespace, "eater") == ("OOMKilled", 137)
    assert podling.kubectl("logs", "eater", "-n", namespace).stdout == ""


@pytest.fixture
def one_by_one(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path], tmp_path: Path
) -> Iterator[Podling]:
    """A podling whose kernel kills processes one by one, and whose pods have no more than 40."""
    podling, limits = make_podling(), tmp_path / "kubelet.yaml"
    limits.write_text(LIMITS)
    podling.up("--config", str(limits))
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.command("down")


def test_a_node_may_have_processes_killed_one_by_one_and_pods_few_of_them(one_by_one: Podling) -> None:
    script = f"sh -c '{EAT}'; echo the rest lives on"
    small = {"command": ["sh", "-c", script], "resources": given({}, {"memory": "16Mi"})}
    forks = {"command": ["sh", "-c", "for i in $(seq 50); do sleep 1000 & done"]}
    one_by_one.apply(
        pod("default", "eater", small, restartPolicy="Never"),
        pod("default", "forks", forks, restartPolicy="Never"),
        pod("default", "web"),
    )
    web = ready(one_by_one, "default", "web")
    assert read(cgroup(one_by_one, web), "pids.max") == ["40"]
    assert read(cgroup(one_by_one, web, "app"), "memory.oom.group") == ["0"]
    assert ended(one_by_one, "default", "eater")[1] == 0
    assert "the rest lives on" in one_by_one.kubectl("logs", "eater").stdout.splitlines()
    assert ended(one_by_one, "default", "forks")[1] != 0
    assert "can't fork" in one_by_one.kubectl("logs", "forks").stdout


def test_a_pod_over_its_limit_loses_the_container_that_went_over_it(podling: Podling, namespace: str) -> None:
    """R-INIT-9: neither container is over its own."""
    volumes = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
    holds = "dd if=/dev/zero of=/memory/file bs=1M count=64; touch /done; exec sleep 1000"
    takes = "dd if=/dev/zero of=/dev/null bs=48M count=1; echo taken"
    own = given({"memory": "1Mi"}, {"memory": "88Mi"})
    holder = {
        "name": "holder",
        "command": ["sh", "-c", holds],
        "resources": own,
        "volumeMounts": [{"name": "memory", "mountPath": "/memory"}],
        "startupProbe": {"exec": {"command": ["test", "-e", "/done"]}, "periodSeconds": 1},
        "restartPolicy": "Always",
        "image": BUSYBOX,
    }
    taker = {"command": ["sh", "-c", takes], "resources": own}
    whole = given({"memory": "96Mi"}, {"memory": "96Mi"})
    spec = {"volumes": volumes, "initContainers": [holder], "restartPolicy": "Never", "resources": whole}
    podling.apply(pod(namespace, "web", taker, **spec))
    assert ended(podling, namespace, "web") == ("OOMKilled", 137)
    [held] = podling.get("pod", "web", "-n", namespace)["status"]["initContainerStatuses"]
    assert held["restartCount"] == 0


def test_what_waits_for_a_processor_is_said_to_wait(podling: Podling, namespace: str) -> None:
    """Pressure stall information of the container, the pod, all pods and the node."""
    burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; touch /done; exec sleep 1000"
    burner = {
        "command": ["sh", "-c", burn],
        "resources": given({}, {"cpu": "100m", "memory": "32Mi"}),
        "readinessProbe": {"exec": {"command": ["test", "-e", "/done"]}, "periodSeconds": 1},
    }
    podling.apply(pod(namespace, "web", burner))
    ready(podling, namespace, "web")

    summary = json.loads(asked(podling, "/stats/summary"))
    [told] = [p for p in summary["pods"] if p["podRef"]["namespace"] == namespace]
    [app] = told["containers"]
    [pods] = [c for c in summary["node"]["systemContainers"] if c["name"] == "pods"]
    for level in (app, told, pods, summary["node"]):
        assert level["cpu"]["psi"]["some"]["total"] > 0
        assert level["memory"]["psi"].keys() == level["io"]["psi"].keys() == {"full", "some"}
        assert level["memory"]["workingSetBytes"] > 0
    assert app["cpu"]["psi"]["full"]["total"] > 0
    assert app["memory"]["availableBytes"] == (32 << 20) - app["memory"]["workingSetBytes"]
    assert app["swap"]["swapUsageBytes"] == 0
    assert told["process_stats"]["process_count"] >= 2

    labels = f'container="app",namespace="{namespace}",pod="web"'
    metric = rf"^container_pressure_cpu_waiting_seconds_total{{{labels}}} ([0-9.e-]+)"
    [waited] = re.findall(metric, asked(podling, "/metrics/cadvisor"), re.MULTILINE)
    assert float(waited) >= app["cpu"]["psi"]["some"]["total"] / 1e6


def test_systemd_takes_no_controller_away(podling: Podling, namespace: str) -> None:
    """It minds the root of the tree, where the pods' cgroup is a stranger to it."""
    if not Path("/run/systemd/system").is_dir():
        pytest.skip("needs systemd as the machine's first process")
    app = {"resources": given({"cpu": "250m"}, {"cpu": "500m", "memory": "64Mi"})}
    podling.apply(pod(namespace, "before", app))
    before = ready(podling, namespace, "before")
    unit = Path("/run/systemd/system/podling-test.service")
    unit.write_text("[Service]\nType=oneshot\nExecStart=true\nCPUWeight=50\nIOWeight=50\n")
    try:
        for words in (["daemon-reload"], ["start", unit.name]):
            subprocess.run(["systemctl", *words], check=True)
    finally:
        unit.unlink()
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    assert {"cpu", "memory", "pids"} <= set(read(ROOT, "cgroup.subtree_control")[0].split())
    podling.apply(pod(namespace, "after", app))
    for got in (before, ready(podling, namespace, "after")):
        assert read(cgroup(podling, got), "cpu.max", "memory.max") == ["50000 100000", str(64 << 20)]


def mapped(podling: Podling, namespace: str, name: str) -> tuple[int, int, int]:
    told = podling.kubectl("exec", name, "-n", namespace, "--", "cat", "/proc/self/uid_map").stdout.split()
    inside, outside, length = map(int, told)
    return inside, outside, length


def test_pods_have_users_of_their_own(podling: Podling, namespace: str) -> None:
    """`hostUsers: false`: root inside is nobody outside, and writes what its pod can read."""
    [node] = podling.get("nodes")["items"]
    handlers = node["status"].get("runtimeHandlers", [])
    if not any(handler.get("features", {}).get("userNamespaces") for handler in handlers):
        pytest.skip("needs a runtime with user namespaces: containerd 2 and runc 1.2")
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "kube-root-ca.crt"}}]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "c", "mountPath": "/c"}]
    for name in ("one", "two"):
        spec = {"volumes": volumes, "hostUsers": False, "securityContext": {"fsGroup": 2000}}
        podling.apply(pod(namespace, name, {"volumeMounts": mounts}, **spec))
    uids = [ready(podling, namespace, name)["metadata"]["uid"] for name in ("one", "two")]

    ranges = [mapped(podling, namespace, name) for name in ("one", "two")]
    assert [(inside, length) for inside, _, length in ranges] == [(0, 65536)] * 2
    firsts = {outside for _, outside, _ in ranges}
    assert len(firsts) == 2
    assert all(first >= 65536 and first % 65536 == 0 for first in firsts)

    script = "id -u; touch /v/file; stat -c %u:%g /v/file; test -s /c/ca.crt && echo read"
    done = podling.kubectl("exec", "one", "-n", namespace, "--", "sh", "-c", script).stdout.split()
    assert done == ["0", "0:2000", "read"]
    owners = [
        os.stat(f"/proc/{process}").st_uid
        for uid in uids
        for procs in (pods_root(podling) / f"besteffort/pod{uid}").glob("*/cgroup.procs")
        for process in procs.read_text().split()
    ]
    assert set(owners) == firsts
