"""StatefulSets and DaemonSets of real pods, as kubectl makes, rolls and takes back them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
WAITS = "hostname; trap 'exit 0' TERM; sleep 1000 & wait"


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", WAITS]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
            **spec,
        },
    }


def test_kubectl_rolls_a_stateful_set(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)

    def rolled() -> str:
        status = ("rollout", "status", "statefulset/web", "--timeout=60s")
        return podling.kubectl(*status, *here, timeout=70).stdout

    def pods() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = podling.get("pods", "-l", "app=web", *here)["items"]
        return found

    made = workload("StatefulSet", replicas=2, serviceName="web")
    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(made))
    assert "statefulset rolling update complete 2 pods" in rolled() or len(pods()) == 2
    assert [pod["metadata"]["name"] for pod in pods()] == ["web-0", "web-1"]
    assert podling.kubectl("logs", "web-1", *here).stdout == "web-1\n"
    podling.kubectl("scale", "statefulset/web", "--replicas=3", *here)
    rolled()
    before = {pod["metadata"]["uid"] for pod in pods()}
    podling.kubectl("set", "env", "statefulset/web", "NEW=1", *here)
    rolled()
    assert len(pods()) == 3 and not before & {pod["metadata"]["uid"] for pod in pods()}
    history = podling.kubectl("rollout", "history", "statefulset/web", *here).stdout
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    podling.kubectl("rollout", "undo", "statefulset/web", *here)
    rolled()
    assert all("env" not in pod["spec"]["containers"][0] for pod in pods())
    podling.kubectl("rollout", "restart", "statefulset/web", *here)
    rolled()
    podling.kubectl("delete", "statefulset/web", *here, "--wait", "--cascade=foreground", timeout=70)
    assert pods() == []
    assert podling.get("controllerrevisions", *here)["items"] == []


def test_kubectl_rolls_a_daemon_set(podling: Podling, namespace: str) -> None:
    here = ("-n", namespace)

    def rolled() -> str:
        return podling.kubectl(
            "rollout", "status", "daemonset/web", "--timeout=60s", *here, timeout=70
        ).stdout

    def pod() -> dict[str, Any]:
        found = podling.get("pods", "-l", "app=web", *here)["items"]
        (one,) = [one for one in found if "deletionTimestamp" not in one["metadata"]]
        return dict(one)

    podling.kubectl("apply", *here, "-f", "-", input=json.dumps(workload("DaemonSet")))
    assert 'daemon set "web" successfully rolled out' in rolled()
    first = pod()
    assert first["spec"]["nodeName"] and first["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    podling.kubectl("set", "env", "daemonset/web", "NEW=1", *here)
    rolled()
    assert pod()["metadata"]["uid"] != first["metadata"]["uid"]
    history = podling.kubectl("rollout", "history", "daemonset/web", *here).stdout
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["1", "2"]
    surge = {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}}
    podling.kubectl("patch", "daemonset/web", "-p", json.dumps(surge), *here)
    podling.kubectl("rollout", "undo", "daemonset/web", *here)
    rolled()
    assert "env" not in pod()["spec"]["containers"][0]
    podling.kubectl("rollout", "restart", "daemonset/web", *here)
    rolled()
    podling.kubectl("delete", "daemonset/web", *here, "--wait", "--cascade=foreground", timeout=70)
    assert podling.get("pods", "-l", "app=web", *here)["items"] == []
