"""The life of a pod with everything, the same whichever of the parts that run it are Kubernetes' own: init
containers, a sidecar, probes, exec, `kubectl debug`, logs, and an end in order. Alone, and of workloads.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUSYBOX = "podling.test/busybox:1"
Kubectl = Callable[..., str]
"""What kubectl prints for its arguments; `input=` is what it reads."""
MOUNTS = [{"name": "shared", "mountPath": "/shared"}, {"name": "outside", "mountPath": "/outside"}]
STAY = 'trap "echo {0} >> /outside/ended; exit 0" TERM; while :; do sleep 0.1; done'
ENDED = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"


def _container(name: str, script: str, **more: Any) -> dict[str, Any]:
    command = ["sh", "-c", f"echo {name} >> /shared/began; echo {name}; {script}"]
    pulled = {"image": BUSYBOX, "imagePullPolicy": "Never"}
    return {"name": name, **pulled, "command": command, "volumeMounts": MOUNTS, **more}


def _probe(*command: str, failures: int = 1) -> dict[str, Any]:
    return {"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": failures}


def spec(outside: Path, *, app: str = STAY.format("app"), **more: Any) -> dict[str, Any]:
    """Its containers write into one file in which order they began, and into another, in the directory
    `outside`, in which they ended. `app`: what its last container runs."""
    probes = {
        "startupProbe": _probe("grep", "app", "/shared/began", failures=60),
        "readinessProbe": _probe("test", "-e", "/shared/ready"),
        "livenessProbe": _probe("test", "!", "-e", "/dead"),
    }
    began = _probe("grep", "sidecar", "/shared/began", failures=60)
    return {
        "initContainers": [
            _container("first", "true"),
            _container("sidecar", STAY.format("sidecar"), restartPolicy="Always", startupProbe=began),
            _container("second", "true"),
        ],
        "containers": [_container("app", app, **probes, resources={"requests": {"cpu": "10m"}})],
        "terminationGracePeriodSeconds": 20,
        "volumes": [
            {"name": "shared", "emptyDir": {}},
            {"name": "outside", "hostPath": {"path": str(outside)}},
        ],
        **more,
    }


def pod(name: str, outside: Path) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec(outside)}


def _workload(kind: str, outside: Path, app: str = STAY.format("app"), **more: Any) -> str:
    """In JSON; its name is that of the kind."""
    name = kind.lower()
    labels = {"app": name}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": spec(outside, app=app, **more)}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    whole = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    return json.dumps({**whole, "spec": {**selector, "template": template}})


def _create(kubectl: Kubectl, whole: str) -> None:
    kubectl("create", "--validate=false", "-f", "-", input=whole)


def live(kubectl: Kubectl, name: str) -> None:
    """It starts, is not ready before its probe says so, is looked into, and is restarted when it is dead."""

    def wait(until: str) -> None:
        kubectl("wait", f"--for={until}", f"pod/{name}", "--timeout=60s")

    def within(*command: str, input: str = "") -> str:
        return kubectl("exec", *(["-i"] if input else []), name, "-c", "app", "--", *command, input=input)

    app = "{.status.containerStatuses[0]"
    wait(f"jsonpath={app}.started}}=true")
    assert kubectl("get", "pod", name, "-o", f"jsonpath={app}.ready}}") == "false"
    within("touch", "/shared/ready")
    wait("condition=Ready")
    assert within("cat", "-", "/shared/began", input="in\n") == "in\nfirst\nsidecar\nsecond\napp\n"
    assert kubectl("logs", name, "-c", "first") == "first\n"
    debug = ["debug", name, f"--image={BUSYBOX}", "--target=app", "--profile=general", "-c", "look"]
    kubectl(*debug, "--", "sh", "-c", "ps")
    wait(ENDED)
    assert "sleep" in kubectl("logs", name, "-c", "look")
    within("touch", "/dead")
    wait(f"jsonpath={app}.restartCount}}=1")
    wait("condition=Ready")


def end(kubectl: Kubectl, name: str, outside: Path) -> None:
    """After it has lived: its containers end in order, the sidecar as the last."""
    kubectl("delete", "pod", name, "--timeout=60s")
    assert (outside / "ended").read_text() == "app\napp\nsidecar\n"


READY = "touch /shared/ready; "
"""Of an app that does not wait for somebody to say so."""


def of_deployment(kubectl: Kubectl, outside: Path, controller: str) -> None:
    """When its pod has lived, there is another. `controller`: the program that makes them."""
    outside /= "deployment"
    outside.mkdir()
    _create(kubectl, _workload("Deployment", outside))
    kubectl("wait", "--for=jsonpath={.status.unavailableReplicas}=1", "deployment/deployment")
    pods = ["get", "pods", "-l", "app=deployment", "--show-managed-fields", "-o"]
    (made,) = json.loads(kubectl(*pods, "json"))["items"]
    name, managers = made["metadata"]["name"], made["metadata"]["managedFields"]
    assert controller in {one["manager"] for one in managers}
    live(kubectl, name)
    kubectl("rollout", "status", "deployment/deployment", "--timeout=60s")
    end(kubectl, name, outside)
    assert kubectl(*pods, "name").strip() not in ("", f"pod/{name}")
    kubectl("delete", "deployment/deployment", "--cascade=foreground", "--timeout=60s")


def of_set(kubectl: Kubectl, outside: Path) -> None:
    """Each pod begins when the one before is ready, and the last one ends first."""
    outside /= "statefulset"
    outside.mkdir()
    _create(kubectl, _workload("StatefulSet", outside, READY + STAY.format("app")))
    kubectl("scale", "statefulset/statefulset", "--replicas=2")
    kubectl("rollout", "status", "statefulset/statefulset", "--timeout=80s")
    kubectl("scale", "statefulset/statefulset", "--replicas=1")
    kubectl("wait", "--for=delete", "pod/statefulset-1", "--timeout=60s")
    assert (outside / "ended").read_text() == "app\nsidecar\n"
    kubectl("wait", "--for=condition=Ready", "pod/statefulset-0")
    kubectl("delete", "statefulset/statefulset", "--cascade=foreground", "--timeout=60s")


def of_job(kubectl: Kubectl, outside: Path) -> None:
    """It is done, though its sidecar would stay."""
    outside /= "job"
    outside.mkdir()
    _create(kubectl, _workload("Job", outside, "echo done >> /outside/ended", restartPolicy="Never"))
    kubectl("wait", "--for=condition=Complete", "job/job", "--timeout=60s")
    assert (outside / "ended").read_text() == "done\nsidecar\n"
    assert kubectl("logs", "job/job", "-c", "second") == "second\n"
    kubectl("delete", "job/job", "--cascade=foreground", "--timeout=60s")
