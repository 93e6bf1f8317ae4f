"""Probes and lifecycle hooks of real containers, as kubectl shows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
SLEEP = "trap 'exit 0' TERM; sleep 1000 & wait"
SERVE = "mkdir /www; echo fine > /www/health; trap 'exit 0' TERM; httpd -f -p 8080 -h /www & wait"


def pod(namespace: str, name: str, script: str, spec: dict[str, Any] | None = None, **container: Any) -> Any:
    app = {"name": "app", "image": BUSYBOX, "command": ["sh", "-c", script], **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [app], "terminationGracePeriodSeconds": 5, **(spec or {})},
    }


def run(command: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", command]}}


def until(podling: Podling, namespace: str, condition: str, name: str) -> None:
    podling.kubectl("wait", f"--for={condition}", f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70)


def events(podling: Podling, namespace: str) -> list[str]:
    found = podling.get("events", "-n", namespace)["items"]
    return [f"{event['reason']}: {event['message']}" for event in found]


def container(podling: Podling, namespace: str, name: str) -> Any:
    return podling.get("pod", name, "-n", namespace)["status"]["containerStatuses"][0]


def test_readiness_over_http_follows_the_server(podling: Podling, namespace: str) -> None:
    probe = {"httpGet": {"path": "/health", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1}
    ports = [{"name": "web", "containerPort": 8080}]
    podling.apply(pod(namespace, "web", SERVE, ports=ports, readinessProbe=probe))
    until(podling, namespace, "condition=Ready", "web")
    podling.kubectl("exec", "web", "-n", namespace, "--", "rm", "/www/health")
    until(podling, namespace, "condition=Ready=false", "web")
    podling.kubectl("exec", "web", "-n", namespace, "--", "touch", "/www/health")
    until(podling, namespace, "condition=Ready", "web")
    assert "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404" in events(
        podling, namespace
    )
    assert container(podling, namespace, "web")["restartCount"] == 0


def test_liveness_by_command_starts_anew_what_does_not_answer_in_time(
    podling: Podling, namespace: str
) -> None:
    script = f"test -e /work/again || touch /work/again /work/stuck; {SLEEP}"
    check = "test ! -e /work/stuck || { rm /work/stuck; sleep 20; }"
    probe = {**run(check), "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 1}
    work = [{"name": "work", "mountPath": "/work"}]
    spec = {"volumes": [{"name": "work", "emptyDir": {}}]}
    podling.apply(pod(namespace, "web", script, spec, livenessProbe=probe, volumeMounts=work))
    until(podling, namespace, "jsonpath={.status.containerStatuses[0].restartCount}=1", "web")
    until(podling, namespace, "condition=Ready", "web")
    said = events(podling, namespace)
    assert f'Unhealthy: Liveness probe failed: command timed out: "sh -c {check}" timed out after 1s' in said
    assert "Killing: Container app failed liveness probe, will be restarted" in said


def test_a_startup_probe_over_tcp_lets_a_slow_server_come_up(podling: Podling, namespace: str) -> None:
    """R-INIT-6"""
    startup = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 60}
    side = {
        "name": "side",
        "image": BUSYBOX,
        "command": ["sh", "-c", f"sleep 2; {SERVE}"],
        "restartPolicy": "Always",
        "startupProbe": startup,
    }
    script = f"wget -q -O - http://127.0.0.1:8080/health; {SLEEP}"
    podling.apply(pod(namespace, "web", script, {"initContainers": [side]}))
    until(podling, namespace, "condition=Ready", "web")
    podling.kubectl("exec", "web", "-c", "app", "-n", namespace, "--", "true")
    assert podling.kubectl("logs", "web", "-c", "app", "-n", namespace).stdout == "fine\n"
    assert any("Startup probe failed: dial tcp" in event for event in events(podling, namespace))


def test_hooks_run_after_the_start_and_before_the_end(
    podling: Podling, namespace: str, tmp_path: Path
) -> None:
    script = "trap 'echo ended >> /host/said; exit 0' TERM; sleep 1000 & wait"
    lifecycle = {
        "postStart": run("sleep 1; echo started >> /host/said"),
        "preStop": run("echo stopping >> /host/said"),
    }
    spec = {"volumes": [{"name": "host", "hostPath": {"path": str(tmp_path)}}]}
    mounts = [{"name": "host", "mountPath": "/host"}]
    podling.apply(pod(namespace, "web", script, spec, lifecycle=lifecycle, volumeMounts=mounts))
    until(podling, namespace, "condition=Ready", "web")
    assert (tmp_path / "said").read_text() == "started\n"
    podling.kubectl("delete", "pod", "web", "-n", namespace)
    assert (tmp_path / "said").read_text() == "started\nstopping\nended\n"


def test_a_failed_post_start_hook_keeps_the_pod_from_running(podling: Podling, namespace: str) -> None:
    lifecycle = {"postStart": run("echo secret; exit 3")}
    podling.apply(pod(namespace, "web", SLEEP, lifecycle=lifecycle))
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff"
    until(podling, namespace, reason, "web")
    said = events(podling, namespace)
    assert "FailedPostStartHook: PostStartHook failed" in said
    assert "Killing: FailedPostStartHook" in said
