"""What the kubelet makes of pods on a real containerd, seen with real kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"]


def pod(namespace: str, name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    apps = [{"name": "app", "image": BUSYBOX, "command": SLEEP, **c} for c in containers or ({},)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": apps, "terminationGracePeriodSeconds": 5, **spec},
    }


def wait(podling: Podling, namespace: str, condition: str, name: str) -> None:
    podling.kubectl("wait", f"--for={condition}", f"pod/{name}", "-n", namespace, "--timeout=60s", timeout=70)


def init(name: str, script: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": BUSYBOX,
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    }


def test_init_containers_prepare_what_the_app_finds(podling: Podling, namespace: str) -> None:
    """R-INIT-1, R-INIT-8"""
    app = {
        "command": ["sh", "-c", "cat /work/steps; exec sleep 1000"],
        "volumeMounts": [{"name": "work", "mountPath": "/work"}],
    }
    steps = [init("one", "echo one >> /work/steps; echo said"), init("two", "echo two >> /work/steps")]
    work = {"name": "work", "emptyDir": {}}
    podling.apply(pod(namespace, "web", app, initContainers=steps, volumes=[work]))
    wait(podling, namespace, "condition=Ready", "web")
    podling.kubectl("exec", "web", "-n", namespace, "--", "true")
    assert podling.kubectl("logs", "web", "-n", namespace).stdout == "one\ntwo\n"
    assert podling.kubectl("logs", "web", "-c", "one", "-n", namespace).stdout == "said\n"
    status = podling.get("pod", "web", "-n", namespace)["status"]
    assert [s["state"]["terminated"]["reason"] for s in status["initContainerStatuses"]] == ["Completed"] * 2


def test_volumes_of_every_kind_are_seen_inside(podling: Podling, namespace: str, tmp_path: Path) -> None:
    podling.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cm", "namespace": namespace},
            "data": {"key": "from the map"},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "namespace": namespace},
            "stringData": {"key": "from the secret"},
        },
    )
    (tmp_path / "file").write_text("from the node")
    label = {"path": "label", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "host", "hostPath": {"path": str(tmp_path), "type": "Directory"}},
        {"name": "down", "downwardAPI": {"items": [label]}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]}},
    ]
    mounts = [{"name": v["name"], "mountPath": f"/v/{v['name']}"} for v in volumes]
    mounts.append({"name": "host", "mountPath": "/one", "subPath": "file"})
    script = (
        "cat /v/cm/key /v/s/key /v/host/file /v/down/label /one; echo; stat -c %a /v/s/..data/key; "
        "grep -c ' /v/memory tmpfs' /proc/mounts; touch /v/cm/x 2>&1; exec sleep 1000"
    )
    app = {"command": ["sh", "-c", script], "volumeMounts": mounts}
    podling.apply(pod(namespace, "web", app, volumes=volumes))
    wait(podling, namespace, "condition=Ready", "web")
    podling.kubectl("exec", "web", "-n", namespace, "--", "true")
    log = podling.kubectl("logs", "web", "-n", namespace).stdout.splitlines()
    assert log == [
        "from the mapfrom the secretfrom the nodewebfrom the node",
        "400",
        "1",
        "touch: /v/cm/x: Read-only file system",
    ]
    uid = podling.get("pod", "web", "-n", namespace)["metadata"]["uid"]
    podling.kubectl("delete", "pod", "web", "-n", namespace)
    assert uid not in Path("/proc/self/mountinfo").read_text()


def test_a_pod_knows_its_own_names_and_addresses(podling: Podling, namespace: str) -> None:
    env = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in (("NAME", "metadata.name"), ("IP", "status.podIP"))
    ]
    script = "echo $NAME $IP; hostname; tail -2 /etc/hosts; sleep 99"
    app = {"env": env, "command": ["sh", "-c", script]}
    aliases = [{"ip": "192.0.2.9", "hostnames": ["far", "away"]}]
    podling.apply(pod(namespace, "web", app, hostAliases=aliases))
    wait(podling, namespace, "condition=Ready", "web")
    podling.kubectl("exec", "web", "-n", namespace, "--", "true")
    ip = podling.get("pod", "web", "-n", namespace)["status"]["podIP"]
    log = podling.kubectl("logs", "web", "-n", namespace).stdout
    assert log == f"web {ip}\nweb\n# Entries added by HostAliases.\n192.0.2.9\tfar\taway\n"


def test_the_end_of_a_pod_is_told_as_kubernetes_tells_it(podling: Podling, namespace: str) -> None:
    app = {"command": ["sh", "-c", "echo sorry > /dev/termination-log; exit 3"]}
    podling.apply(pod(namespace, "web", app, restartPolicy="Never"))
    wait(podling, namespace, "jsonpath={.status.phase}=Failed", "web")
    ended = podling.get("pod", "web", "-n", namespace)["status"]["containerStatuses"][0]["state"][
        "terminated"
    ]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "sorry\n")


def test_an_image_that_does_not_exist_is_named(podling: Podling, namespace: str) -> None:
    podling.apply(pod(namespace, "web", {"image": "localhost:1/nope:1"}))
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff"
    wait(podling, namespace, reason, "web")
    events = podling.get("events", "-n", namespace, "--field-selector=involvedObject.name=web")["items"]
    said = {(e["type"], e["reason"], e["message"].partition(":")[0]) for e in events}
    assert ("Normal", "Pulling", 'Pulling image "localhost') in said
    assert ("Warning", "Failed", 'Failed to pull image "localhost') in said
    assert ("Warning", "Failed", "Error") in said


def test_a_debug_container_sees_its_targets_processes(podling: Podling, namespace: str) -> None:
    """R-EPH-4"""
    podling.apply(pod(namespace, "web"))
    wait(podling, namespace, "condition=Ready", "web")
    debug = {
        "name": "debug",
        "image": BUSYBOX,
        "targetContainerName": "app",
        "command": ["sh", "-c", "ps -o args; exec sleep 1000"],
    }
    podling.kubectl(
        "patch",
        "pod",
        "web",
        "-n",
        namespace,
        "--subresource=ephemeralcontainers",
        "-p",
        json.dumps({"spec": {"ephemeralContainers": [debug]}}),
    )
    running = "jsonpath={.status.ephemeralContainerStatuses[0].state.running.startedAt}"
    wait(podling, namespace, running, "web")
    podling.kubectl("exec", "web", "-c", "debug", "-n", namespace, "--", "true")
    assert "trap 'exit 0' TERM" in podling.kubectl("logs", "web", "-c", "debug", "-n", namespace).stdout


def test_deleting_a_pod_leaves_nothing_of_it_on_the_node(podling: Podling, namespace: str) -> None:
    podling.apply(
        pod(namespace, "web", initContainers=[{"name": "one", "image": BUSYBOX, "command": ["true"]}])
    )
    wait(podling, namespace, "condition=Ready", "web")
    uid = podling.get("pod", "web", "-n", namespace)["metadata"]["uid"]
    data = podling.instance.data_dir
    assert list(data.rglob(f"*{uid}"))
    podling.kubectl("delete", "pod", "web", "-n", namespace)
    # A second pod's start and end comes after the first one's last files are gone.
    podling.apply(pod(namespace, "other"))
    wait(podling, namespace, "condition=Ready", "other")
    assert not list(data.rglob(f"*{uid}"))
    assert not list(Path("/sys/fs/cgroup").glob(f"*{podling.instance.cgroup}/*/pod{uid}"))
