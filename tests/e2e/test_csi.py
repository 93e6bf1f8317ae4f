"""Volumes of a CSI driver: made, attached, mounted, given back, whoever is killed meanwhile.

Driver and sidecars are programs of their own that speak CSI's gRPC (`csi_driver.py`, `csi_sidecars.py`).
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from podling.process.mounts import mounts_under

from .csi_story import BUSYBOX, DRIVER, NAME, DriverOfNode, compare, story

if TYPE_CHECKING:
    from e2e.conftest import Podling

WITHIN = 30.0
"""Seconds."""
WAITS = "trap 'exit 0' TERM; sleep 1000 & wait"


class Csi(DriverOfNode):
    def mounted(self) -> list[Path]:
        """What is mounted of CSI volumes."""
        found = mounts_under(self.kubelet_dir)
        return [place for place in found if "kubernetes.io/csi" in str(place) or "~csi" in str(place)]

    def until_given_back(self) -> None:
        """Returns once nothing is mounted. A pod that has ended is deleted before that, as in Kubernetes."""
        end = time.monotonic() + WITHIN
        while self.mounted():
            assert time.monotonic() < end, self.mounted()

    def told(self, pod: str, reason: str) -> None:
        """Returns when there is such an event of the pod."""
        about = f"--field-selector=involvedObject.name={pod},reason={reason}"
        kubectl = ["kubectl", "--kubeconfig", str(self.podling.instance.kubeconfig), "get", "events", about]
        command = [*kubectl, "--watch", "--no-headers", "--request-timeout=60s"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None and reason in watching.stdout.readline()
            watching.kill()

    @property
    def node(self) -> str:
        name: str = self.podling.get("nodes")["items"][0]["metadata"]["name"]
        return name


def claim(name: str, **spec: Any) -> dict[str, Any]:
    wants = {
        "storageClassName": "csi",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Mi"}},
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": wants}


def pod(name: str, command: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    use = more.pop("use", {"volumeMounts": [{"name": "data", "mountPath": "/data"}]})
    container = {"name": "c", "image": BUSYBOX, "command": ["sh", "-c", command], **use}
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "data", **source}],
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def of(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


@pytest.fixture(scope="module")
def csi(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Csi]:
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    # A socket has no longer path than 107 characters.
    with TemporaryDirectory(prefix="csi-") as place:
        made = Csi(podling, Path(place), podling.instance.kubelet_dir)
        of_class = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "csi"},
            "provisioner": NAME,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
        }
        podling.apply(DRIVER, of_class)
        made.program.start()
        made.sidecars.start()
        made.registered(made.node)
        try:
            yield made
        finally:
            podling.command("down")
            made.sidecars.kill()
            made.program.kill()
        assert made.mounted() == []


def ran(csi: Csi, one: dict[str, Any]) -> str:
    """What the pod has said, once it has ended well; it is deleted."""
    name = one["metadata"]["name"]
    csi.podling.apply(one)
    csi.podling.wait("jsonpath={.status.phase}=Succeeded", f"pod/{name}")
    said = csi.podling.kubectl("logs", name).stdout
    csi.podling.kubectl("delete", "pod", name, "--wait")
    return said


def test_what_a_pod_writes_the_next_reads_and_the_claim_takes_with_it(csi: Csi) -> None:
    csi.podling.apply(claim("data"))
    ran(csi, pod("writer", "echo kept > /data/file", of("data")))
    # Or the next pod finds the volume attached.
    csi.until_given_back()
    csi.podling.kubectl("wait", "--for=delete", "volumeattachments", "--all", "--timeout=30s")
    assert ran(csi, pod("reader", "cat /data/file", of("data"))) == "kept\n"
    csi.until_given_back()
    volume = csi.podling.get("pvc", "data")["spec"]["volumeName"]
    csi.podling.kubectl("wait", "--for=delete", "volumeattachments", "--all", "--timeout=30s")
    csi.podling.kubectl("delete", "pvc", "data", "--wait")
    csi.podling.kubectl("wait", "--for=delete", f"pv/{volume}", "--timeout=30s")
    assert not (csi.driver.root / "volumes" / volume).exists()
    order = [one for one in csi.driver.methods() if not one.startswith("NodeGet")]
    once = [
        "ControllerPublishVolume",
        "NodeStageVolume",
        "NodePublishVolume",
        "NodeUnpublishVolume",
        "NodeUnstageVolume",
        "ControllerUnpublishVolume",
    ]
    assert order[order.index("CreateVolume") :] == ["CreateVolume", *once, *once, "DeleteVolume"]


def test_the_driver_is_asked_as_by_kubernetes_kubelet(csi: Csi) -> None:
    """Which tests/e2e/test_kubernetes_kubelet.py holds to the same."""
    compare(story(csi, csi.node))
    assert csi.mounted() == []


def test_a_volume_of_the_pod_is_told_whose_it_is(csi: Csi) -> None:
    inline = {"csi": {"driver": NAME, "volumeAttributes": {"a": "b"}}}
    assert ran(csi, pod("inline", "echo x > /data/f; cat /data/f", inline)) == "x\n"
    context = csi.driver.calls("NodePublishVolume")[-1]["volume_context"]
    assert context["a"] == "b" and context["csi.storage.k8s.io/pod.name"] == "inline"
    assert context["csi.storage.k8s.io/ephemeral"] == "true"
    csi.until_given_back()
    told = json.loads(context["csi.storage.k8s.io/serviceAccount.tokens"])["vault"]
    claims = jwt.decode(told["token"], options={"verify_signature": False})
    assert claims["aud"] == ["vault"] and claims["kubernetes.io"]["pod"]["name"] == "inline"
    assert datetime.fromisoformat(told["expirationTimestamp"]).timestamp() == claims["exp"]


def test_a_block_device_is_a_device_in_the_container(csi: Csi) -> None:
    csi.podling.apply(claim("disk", volumeMode="Block"))
    use = {"volumeDevices": [{"name": "data", "devicePath": "/dev/disk"}]}
    ran(csi, pod("writes", "printf kept | dd of=/dev/disk conv=fsync 2>/dev/null", of("disk"), use=use))
    said = ran(csi, pod("reads", "stat -c %F /dev/disk; head -c 4 /dev/disk", of("disk"), use=use))
    assert said == "block special file\nkept"
    csi.podling.kubectl("delete", "pvc", "disk", "--wait")
    csi.until_given_back()


def test_a_driver_that_is_killed_is_waited_for(csi: Csi) -> None:
    csi.podling.apply(claim("waits"), pod("first", WAITS, of("waits")))
    csi.podling.wait("condition=Ready", "pod/first")
    node = f"/api/v1/nodes/{csi.node}/proxy"
    (shown,) = json.loads(csi.podling.kubectl("get", "--raw", f"{node}/stats/summary").stdout)["pods"]
    (data,) = (one for one in shown["volume"] if one["name"] == "data")
    assert data["pvcRef"] == {"name": "waits", "namespace": "default"}
    assert (data["capacityBytes"], data["usedBytes"], data["inodesFree"]) == (100, 40, 59)
    told = csi.podling.kubectl("get", "--raw", f"{node}/metrics").stdout
    labels = '{namespace="default",persistentvolumeclaim="waits"}'
    assert f"kubelet_volume_stats_available_bytes{labels} 59" in told
    csi.program.kill()
    csi.podling.kubectl("delete", "pod", "first", "--wait=false")
    csi.podling.apply(pod("second", "cat /data/* ; echo there", of("waits")))
    csi.told("second", "FailedMount")
    assert csi.mounted()
    csi.program.start()
    csi.podling.kubectl("wait", "--for=delete", "pod/first", "--timeout=60s", timeout=70)
    csi.podling.wait("jsonpath={.status.phase}=Succeeded", "pod/second")
    csi.podling.kubectl("delete", "pod/second", "--wait")
    csi.until_given_back()
    csi.podling.kubectl("delete", "pvc", "waits", "--wait")


def test_volumes_outlive_podling_and_grow(csi: Csi) -> None:
    csi.podling.apply(claim("stays"), pod("stays", f"echo kept > /data/file; {WAITS}", of("stays")))
    csi.podling.wait("condition=Ready", "pod/stays")
    before = csi.mounted()
    csi.podling.send_signal(signal.SIGKILL)
    csi.podling.up()
    csi.registered(csi.node)
    assert csi.podling.kubectl("exec", "stays", "--", "cat", "/data/file").stdout == "kept\n"
    assert csi.mounted() == before
    csi.sidecars.kill()
    csi.sidecars.start()
    more = {"spec": {"resources": {"requests": {"storage": "20Mi"}}}}
    csi.podling.kubectl("patch", "pvc", "stays", "-p", json.dumps(more))
    csi.podling.wait("jsonpath={.status.capacity.storage}=20Mi", "pvc/stays", timeout=90)
    assert len(csi.driver.calls("NodeExpandVolume")) == 1
    csi.podling.kubectl("delete", "pod", "stays", "--wait")
    assert csi.mounted() == []
    csi.podling.kubectl("delete", "pvc", "stays", "--wait")
