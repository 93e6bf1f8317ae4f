"""Init containers that fail, as a user of kubectl sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **fields}


def pod(name: str, namespace: str, inits: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    app = shell("app", "trap exit TERM; sleep 3600 & wait")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"initContainers": inits, "containers": [app], **spec},
    }


def shown(podling: Podling, namespace: str, name: str) -> str:
    """The STATUS column."""
    line: str = podling.kubectl("get", "pod", name, "-n", namespace, "--no-headers").stdout
    return line.split()[2]


def test_a_failing_init_container_fails_a_pod_that_never_restarts(podling: Podling, namespace: str) -> None:
    """R-INIT-2, R-INIT-3."""
    podling.apply(pod("never", namespace, [shell("bad", "exit 3")], restartPolicy="Never"))
    podling.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Failed", "pod/never", "-n", namespace, "--timeout=60s"
    )
    assert shown(podling, namespace, "never") == "Init:Error"
    status = podling.get("pod", "never", "-n", namespace)["status"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "containerID" not in status["containerStatuses"][0]


def test_a_failing_init_container_is_tried_again_with_backoff(podling: Podling, namespace: str) -> None:
    """R-INIT-2, R-INIT-3."""
    podling.apply(pod("again", namespace, [shell("good", "true"), shell("bad", "echo tried; exit 1")]))
    crashing = "jsonpath={.status.initContainerStatuses[1].state.waiting.reason}=CrashLoopBackOff"
    podling.kubectl("wait", f"--for={crashing}", "pod/again", "-n", namespace, "--timeout=60s")
    assert shown(podling, namespace, "again") == "Init:CrashLoopBackOff"
    status = podling.get("pod", "again", "-n", namespace)["status"]
    initialized = next(c for c in status["conditions"] if c["type"] == "Initialized")
    assert (initialized["status"], initialized["reason"]) == ("False", "ContainersNotInitialized")
    assert initialized["message"] == "containers with incomplete status: [bad]"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert podling.kubectl("logs", "again", "-c", "bad", "-n", namespace).stdout == "tried\n"
