"""R-SYS-5 on a real node: what pods use is told, and what uses too much goes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.conftest import Podling

NODE = "/api/v1/nodes"


def raw(podling: Podling, path: str) -> str:
    said: str = podling.kubectl("get", "--raw", path).stdout
    return said


def node_name(podling: Podling) -> str:
    name: str = podling.get("nodes")["items"][0]["metadata"]["name"]
    return name


def pod(name: str, namespace: str, script: str, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": "podling.test/busybox:1",
        "command": ["sh", "-c", script],
        **spec.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def test_what_a_pod_uses_is_told(podling: Podling, namespace: str) -> None:
    script = "dd if=/dev/zero of=/file bs=1M count=8; echo here; httpd -f -p 8080 -h /etc"
    podling.apply(pod("web", namespace, script, container={"ports": [{"containerPort": 8080}]}))
    podling.kubectl("wait", "--for=condition=Ready", "pod/web", "-n", namespace, "--timeout=60s")
    proxy = f"{NODE}/{node_name(podling)}/proxy"
    summary = json.loads(raw(podling, f"{proxy}/stats/summary"))
    [shown] = [p for p in summary["pods"] if p["podRef"]["namespace"] == namespace]
    [container] = shown["containers"]
    assert container["cpu"]["usageCoreNanoSeconds"] > 0
    assert 0 < container["memory"]["workingSetBytes"] <= shown["memory"]["workingSetBytes"]
    assert container["logs"]["usedBytes"] > 0
    assert shown["network"]["name"] == "eth0"
    assert shown["process_stats"]["process_count"] >= 2
    assert summary["node"]["runtime"]["imageFs"]["capacityBytes"] > 0
    assert 'pod="web"' in raw(podling, f"{proxy}/metrics/resource")
    assert "kubelet_runtime_operations_total" in raw(podling, f"{proxy}/metrics")
    assert raw(podling, f"{proxy}/healthz") == "ok"
    assert json.loads(raw(podling, f"{proxy}/configz"))["kubeletconfig"]["kind"] == "KubeletConfiguration"
    inside = raw(podling, f"/api/v1/namespaces/{namespace}/pods/web/proxy/hostname")
    assert inside.strip() == "web"


@pytest.mark.parametrize("writer", ["app", "debugger"])
def test_a_pod_that_writes_more_than_its_limit_is_evicted(
    podling: Podling, namespace: str, writer: str
) -> None:
    """R-EPH-12: what a debug container writes is its pod's."""
    limits = {"resources": {"limits": {"ephemeral-storage": "10Mi"}}}
    writes, waits = "dd if=/dev/zero of=/file bs=1M count=30; sleep 1000", "sleep 1000"
    podling.apply(pod("greedy", namespace, writes if writer == "app" else waits, container=limits))
    where = ("pod/greedy", "-n", namespace)
    if writer == "debugger":
        podling.kubectl("wait", "--for=condition=Ready", *where, "--timeout=60s")
        image = "--image=podling.test/busybox:1"
        podling.kubectl("debug", "greedy", "-n", namespace, image, "--", "sh", "-c", writes)
    podling.kubectl("wait", "--for=jsonpath={.status.reason}=Evicted", *where, "--timeout=55s")
    status = podling.get(*where)["status"]
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "
    assert (status["phase"], status["message"]) == ("Failed", message)
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")


LINES = 150_000


def test_no_line_of_a_log_is_lost_when_it_is_rotated(podling: Podling, namespace: str) -> None:
    """Twice while it is followed, and read from the end afterwards."""
    batches = [f"seq {start + 1} {start + LINES}" for start in range(0, 3 * LINES, LINES)]
    # Its last words are said in time: a runtime may lose them with the container.
    lines = f"{'; sleep 12; '.join(batches)}; sleep 2"
    podling.apply(pod("writer", namespace, lines, restartPolicy="Never"))
    where = ("-n", namespace)
    podling.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/writer", *where, "--timeout=30s")
    expected = [str(number) for number in range(1, 3 * LINES + 1)]
    assert podling.kubectl("logs", "-f", "writer", *where).stdout.split() == expected
    parts = list(podling.instance.pod_logs_dir.glob(f"{namespace}_writer_*/app/0.log.*"))
    assert len(parts) >= 1, "nothing was rotated"
    assert podling.kubectl("logs", "writer", *where).stdout.split() == expected
    tail = podling.kubectl("logs", "writer", "--tail", str(LINES + 10), *where).stdout.split()
    assert tail == expected[-LINES - 10 :]
