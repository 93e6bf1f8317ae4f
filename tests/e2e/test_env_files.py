"""Variables from files that other containers of the pod have written (`fileKeyRef`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
MOUNT = [{"name": "shared", "mountPath": "/shared"}]


def variable(name: str, key: str, *, optional: bool = False) -> dict[str, Any]:
    ref = {"volumeName": "shared", "path": "made/app.env", "key": key, "optional": optional}
    return {"name": name, "valueFrom": {"fileKeyRef": ref}}


def container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": BUSYBOX, "command": ["sh", "-c", script], **fields}


def pod(namespace: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "containers": list(containers),
            "volumes": [{"name": "shared", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def test_a_container_has_what_an_init_container_wrote(podling: Podling, namespace: str) -> None:
    """R-INIT-12: without mounting the volume."""
    file = "GREETING='hello  # $HOME' # of the app\nLINES='one\ntwo'\n"
    script = 'mkdir /shared/made && printf %s "$FILE" > /shared/made/app.env'
    init = container("init", script, volumeMounts=MOUNT, env=[{"name": "FILE", "value": file}])
    env = [
        variable("TEXT", "GREETING"),
        variable("LINES", "LINES"),
        variable("NONE", "NOTHING", optional=True),
        {"name": "BOTH", "value": "<$(TEXT)>$(NONE)"},
    ]
    show = 'printf "%s|" "$TEXT" "$LINES" "$BOTH" "${NONE-unset}" "$0"; test -e /shared || echo alone'
    app = container("app", show, env=env, args=["$(LINES)"])
    podling.apply(pod(namespace, app, initContainers=[init], restartPolicy="Never"))
    over = "--for=jsonpath={.status.phase}=Succeeded"
    podling.kubectl("wait", over, "pod/web", "-n", namespace, "--timeout=60s")
    said = podling.kubectl("logs", "-n", namespace, "web").stdout
    greeting, lines = "hello  # $HOME", "one\ntwo"
    assert said == f"{greeting}|{lines}|<{greeting}>$(NONE)|unset|{lines}|alone\n"


def test_a_container_waits_for_the_file_that_another_writes(podling: Podling, namespace: str) -> None:
    """R-INIT-12"""
    writer = container("writer", "sleep 3600", volumeMounts=MOUNT)
    app = container("app", 'echo "$TEXT"; sleep 3600', env=[variable("TEXT", "GREETING")])
    podling.apply(pod(namespace, writer, app))
    where = ("-n", namespace, "web")
    message = "jsonpath={.status.containerStatuses[?(@.name=='app')].state.waiting.message}"
    podling.kubectl(
        "wait", f"--for={message}=couldn't parse env file", "pod/web", "-n", namespace, "--timeout=60s"
    )
    status = podling.get("pod", "web", "-n", namespace)["status"]
    waiting = next(one["state"]["waiting"] for one in status["containerStatuses"] if one["name"] == "app")
    assert waiting["reason"] == "CreateContainerConfigError"
    assert "Error: couldn't parse env file" in podling.kubectl("get", "events", "-n", namespace).stdout
    write = "mkdir /shared/made && echo \"GREETING='at last'\" > /shared/made/app.env"
    podling.kubectl("exec", *where, "-c", "writer", "--", "sh", "-c", write)
    podling.kubectl("wait", "--for=condition=Ready", "pod/web", "-n", namespace, "--timeout=60s")
    assert podling.kubectl("logs", *where, "-c", "app").stdout == "at last\n"
