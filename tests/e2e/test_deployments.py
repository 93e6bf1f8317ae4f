"""Deployments of real pods, as kubectl makes, changes, watches and takes back them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
WAITS = "trap 'exit 0' TERM; sleep 1000 & wait"
STATUS = ("rollout", "status", "deployment/web", "--timeout=60s")


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", WAITS]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def test_kubectl_rolls_a_deployment(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)

    def rolled() -> str:
        return podling.kubectl(*STATUS, *here, timeout=70).stdout

    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(deployment(2)))
    assert 'deployment "web" successfully rolled out' in rolled()
    podling.kubectl("scale", "deployment/web", "--replicas=3", *here)
    rolled()
    assert len(podling.get("pods", "-l", "app=web", *here)["items"]) == 3
    podling.kubectl("set", "env", "deployment/web", "NEW=1", *here)
    rolled()
    history = podling.kubectl("rollout", "history", "deployment/web", *here).stdout
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    podling.kubectl("rollout", "pause", "deployment/web", *here)
    podling.kubectl("set", "image", "deployment/web", "app=podling.test/none:1", *here)
    podling.kubectl("rollout", "resume", "deployment/web", *here)
    podling.kubectl("rollout", "undo", "deployment/web", *here)
    rolled()
    podling.kubectl("rollout", "restart", "deployment/web", *here)
    rolled()
    pods = podling.get("pods", "-l", "app=web", *here)["items"]
    running = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    assert len(running) == 3
    assert {pod["spec"]["containers"][0]["image"] for pod in running} == {BUSYBOX}
    podling.kubectl("wait", "--for=condition=Available", "deployment/web", *here, "--timeout=10s")
    podling.kubectl("delete", "deployment/web", *here, "--wait", "--cascade=foreground", timeout=70)
    assert podling.get("pods", "-l", "app=web", *here)["items"] == []
    assert podling.get("replicasets", *here)["items"] == []
