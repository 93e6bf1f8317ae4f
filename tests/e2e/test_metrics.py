"""What real pods use, as `kubectl top` shows it and autoscalers see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
BURNS = "trap 'exit 0' TERM; while true; do :; done"
WAITS = "trap 'exit 0' TERM; sleep 1000 & wait"
METRICS = "/apis/metrics.k8s.io/v1beta1"


def pod(name: str, **commands: str) -> dict[str, Any]:
    """With a container of each name, which runs its command."""
    containers = [
        {
            "name": container,
            "image": BUSYBOX,
            "command": ["sh", "-c", command],
            "resources": {"limits": {"cpu": "200m", "memory": "32Mi"}},
        }
        for container, command in commands.items()
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 1},
    }


def milli(cpu: str) -> int:
    assert cpu.endswith("m"), cpu
    return int(cpu.removesuffix("m"))


def test_kubectl_top_shows_who_burns_cpu(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)
    for made in (pod("busy", burn=BURNS, rest=WAITS), pod("lazy", rest=WAITS)):
        podling.kubectl("apply", *here, "-f", "-", input=json.dumps(made))
    podling.kubectl("wait", "--for=condition=Ready", "pod", "--all", *here, "--timeout=60s", timeout=70)

    def top(*arguments: str) -> list[list[str]]:
        shown = podling.kubectl("top", *arguments, "--no-headers").stdout
        return [line.split() for line in shown.splitlines()]

    pods = {name: milli(cpu) for name, cpu, _ in top("pod", *here)}
    assert pods.keys() == {"busy", "lazy"}
    assert pods["busy"] > 50 > pods["lazy"]
    containers = {
        (name, container): milli(cpu) for name, container, cpu, _ in top("pod", "--containers", *here)
    }
    assert containers.keys() == {("busy", "burn"), ("busy", "rest"), ("lazy", "rest")}
    assert containers["busy", "burn"] > 50 > containers["busy", "rest"]
    assert [row[0] for row in top("pod", "-l", "app=busy", *here)] == ["busy"]
    assert [row[0] for row in top("pod", "--sort-by=cpu", *here)] == ["busy", "lazy"]
    [[node, cpu, _, memory, _]] = top("node")
    assert milli(cpu) > 50 and memory.endswith("Mi")
    assert podling.kubectl("get", "podmetrics", *here).stdout.split()[:4] == [
        "NAME",
        "CPU",
        "MEMORY",
        "WINDOW",
    ]
    got = json.loads(podling.kubectl("get", "--raw", f"{METRICS}/nodes/{node}").stdout)
    assert got["kind"] == "NodeMetrics" and got["usage"].keys() == {"cpu", "memory"}
    missing = podling.kubectl("get", "--raw", f"{METRICS}/namespaces/{namespace}/pods/none", check=False)
    assert '(NotFound): pods "none" not found' in missing.stderr
    shown = podling.kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "--no-headers").stdout
    assert shown.split()[1:3] == ["Local", "True"]
    for user, may in (("viewer", "yes"), ("nobody", "no")):
        if user == "viewer":
            podling.kubectl("create", "rolebinding", user, "--clusterrole=view", f"--user={user}", *here)
        asked = podling.kubectl(
            "auth", "can-i", "list", "pods.metrics.k8s.io", f"--as={user}", *here, check=False
        )
        assert asked.stdout.split()[0] == may


def deployment(name: str, command: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "app",
        "image": BUSYBOX,
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": "150m"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def test_an_autoscaler_scales_what_burns_cpu_and_leaves_what_does_not(
    podling: Podling, namespace: str
) -> None:
    """Through `kubectl autoscale`: within its bounds, and no other deployment."""
    here = ("-n", namespace)
    for name, command in (("busy", BURNS), ("lazy", WAITS)):
        made = json.dumps(deployment(name, command))
        podling.kubectl("apply", *here, "-f", "-", input=made)
        warned = podling.kubectl(
            "autoscale", f"deployment/{name}", "--cpu-percent=50", "--min=1", "--max=3", *here
        ).stderr
        assert "Warning:" not in warned
    ready = ("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/busy", "--timeout=90s")
    podling.kubectl(*ready, *here, timeout=100)
    active = ("wait", "--for=condition=ScalingActive", "hpa", "--all", "--timeout=60s")
    podling.kubectl(*active, *here, timeout=70)
    [busy, lazy] = podling.get("hpa", *here)["items"]
    assert busy["status"]["desiredReplicas"] == 3 and lazy["status"]["desiredReplicas"] == 1
    assert podling.get("deployment", "lazy", *here)["spec"]["replicas"] == 1
    said = podling.kubectl("describe", "hpa", "busy", *here).stdout
    assert "SuccessfulRescale" in said
    assert "cpu resource utilization (percentage of request) above target" in said
