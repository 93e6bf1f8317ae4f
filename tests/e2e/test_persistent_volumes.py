"""What pods write to the volumes of their claims is there for the next pod, and gone with the claim."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quota_disk import quota_disk

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
WAITS = "trap 'exit 0' TERM; sleep 1000 & wait"
RETAINED = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}


@pytest.fixture(scope="module")
def own(make_podling: Callable[[], Podling], image_archives: dict[str, Path]) -> Iterator[Podling]:
    """One that is stopped and killed by these tests."""
    podling = make_podling()
    podling.up()
    for archive in image_archives.values():
        podling.command("images", "load", str(archive))
    yield podling
    podling.command("down")


def claim(name: str, **spec: Any) -> dict[str, Any]:
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": wants}


def pod(name: str, command: str, volume: dict[str, Any], **spec: Any) -> dict[str, Any]:
    mounts = [{"name": "data", "mountPath": "/data", **spec.pop("mount", {})}]
    container = {"name": "c", "image": BUSYBOX, "command": ["sh", "-c", command], "volumeMounts": mounts}
    whole = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "data", **volume}],
        **spec,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def of(name: str, **more: Any) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name, **more}}


def ran(podling: Podling, one: dict[str, Any]) -> str:
    """What the pod has said, once it has ended well; it is deleted."""
    podling.apply(one)
    name = one["metadata"]["name"]
    podling.wait("jsonpath={.status.phase}=Succeeded", f"pod/{name}")
    said = podling.kubectl("logs", name).stdout
    podling.kubectl("delete", "pod", name, "--wait")
    return said


def said_of(podling: Podling, pod: str, reason: str) -> str:
    """The message of the first event of this reason about the pod, which is waited for."""
    chosen = f"--field-selector=reason={reason},involvedObject.name={pod}"
    return podling.first_line("get", "events", chosen, "--watch", "-o", "jsonpath={.message}{'\\n'}")


def place_of(podling: Podling, name: str) -> Path:
    bound = podling.get("pvc", name)["spec"]["volumeName"]
    return Path(podling.get("pv", bound)["spec"]["local"]["path"])


def test_what_a_pod_writes_the_next_reads_and_the_claim_takes_with_it(own: Podling) -> None:
    own.apply(claim("data"))
    ran(own, pod("writer", "echo kept > /data/file; ln -s / /data/root", of("data")))
    own.command("down")
    own.up()
    assert ran(own, pod("reader", "cat /data/file", of("data"))) == "kept\n"
    own.apply(pod("stays", WAITS, of("data")))
    own.wait("condition=Ready", "pod/stays")
    own.send_signal(signal.SIGKILL)
    own.up()
    assert own.kubectl("exec", "stays", "--", "cat", "/data/file").stdout == "kept\n"
    node = own.get("nodes")["items"][0]["metadata"]["name"]
    told = own.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics").stdout
    assert re.search(r'kubelet_volume_stats_used_bytes{.*persistentvolumeclaim="data"} [1-9]', told)
    own.kubectl("delete", "pvc", "data", "--wait=false")
    own.kubectl("delete", "pod", "stays", "--wait")
    place = place_of(own, "data") if own.kubectl("get", "pvc", "data", check=False).returncode == 0 else None
    own.kubectl("wait", "--for=delete", "pvc/data", "--timeout=30s")
    own.kubectl("wait", "--for=delete", "pv", "--all", "--timeout=30s")
    assert place is None or not place.exists()
    assert os.listdir(own.instance.volumes_dir) == []


def test_a_volume_is_given_as_it_is_asked_for(own: Podling) -> None:
    own.apply(claim("parts", accessModes=["ReadWriteMany"]))
    group = {"securityContext": {"fsGroup": 4242, "runAsUser": 1000, "runAsGroup": 1000}}
    said = ran(
        own, pod("one", "mkdir /data/sub; echo x > /data/sub/f; stat -c %g /data", of("parts"), **group)
    )
    assert said == "4242\n"
    below = {"mount": {"subPath": "sub"}}
    assert ran(own, pod("two", "cat /data/f", of("parts"), **below)) == "x\n"
    only = pod("three", "touch /data/f 2>&- && echo written || echo refused", of("parts", readOnly=True))
    assert ran(own, only) == "refused\n"
    place = place_of(own, "parts")
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    told = own.kubectl("get", "events", "--field-selector", "involvedObject.name=parts", "-o", "json").stdout
    reasons = {one["reason"] for one in json.loads(told)["items"]}
    assert {"ProvisioningSucceeded", "SizeNotEnforced"} <= reasons
    own.kubectl("patch", "pv", place.name, "-p", json.dumps(RETAINED))
    own.kubectl("delete", "pvc", "parts", "--wait")
    own.wait("jsonpath={.status.phase}=Released", f"pv/{place.name}")
    assert (place / "sub/f").read_text() == "x\n"
    own.kubectl("delete", "pv", place.name, "--wait")
    assert (place / "sub/f").read_text() == "x\n"


def test_a_volume_takes_no_more_than_its_claim(
    make_podling: Callable[[], Podling], image_archives: dict[str, Path], tmp_path: Path
) -> None:
    """Where the file system keeps project quotas; and what is asked for later."""
    podling = make_podling()
    with quota_disk("ext4", tmp_path / "image", podling.instance.data_dir):
        podling.up()
        try:
            podling.command("images", "load", str(image_archives[BUSYBOX]))
            # In an emulated machine kubectl does not wait long enough for what it would validate by.
            podling.kubectl("get", "--raw", "/openapi/v3/api/v1", timeout=300)
            podling.kubectl("get", "--raw", "/openapi/v2", timeout=300)
            podling.apply(claim("little"))
            fills = "dd if=/dev/zero of=/data/f bs=1M count=20 conv=fsync 2>&1; df -k /data | tail -n 1"
            said = ran(podling, pod("fills", fills, of("little")))
            assert "Disk quota exceeded" in said and " 10240 " in said
            more = {"spec": {"resources": {"requests": {"storage": "40Mi"}}}}
            podling.kubectl("patch", "pvc", "little", "-p", json.dumps(more))
            podling.wait("jsonpath={.status.capacity.storage}=40Mi", "pvc/little")
            assert "20+0 records out" in ran(podling, pod("fits", fills, of("little")))
            told = podling.get("events", "--field-selector", "involvedObject.name=little")["items"]
            assert "SizeNotEnforced" not in {one["reason"] for one in told}
        finally:
            podling.command("down")


def test_a_pod_brings_its_claim_and_takes_it_with_it(own: Podling) -> None:
    template = {"volumeClaimTemplate": {"spec": claim("")["spec"]}}
    own.apply(pod("brings", "echo x > /data/f; cat /data/f", {"ephemeral": template}))
    own.wait("jsonpath={.status.phase}=Succeeded", "pod/brings")
    place = place_of(own, "brings-data")
    own.kubectl("delete", "pod", "brings", "--wait")
    own.kubectl("wait", "--for=delete", "pvc/brings-data", "--timeout=30s")
    own.kubectl("wait", "--for=delete", f"pv/{place.name}", "--timeout=30s")
    assert not place.exists()


def test_each_pod_of_a_stateful_set_keeps_its_volume(own: Podling) -> None:
    labels = {"app": "db"}
    command = "cat /data/name 2>/dev/null > /dev/termination-log; hostname > /data/name; " + WAITS
    template = pod("", command, {})["spec"]
    del template["volumes"], template["restartPolicy"]
    of_class = {"metadata": {"name": "data"}, "spec": claim("")["spec"]}
    spec = {
        "serviceName": "db",
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
        "volumeClaimTemplates": [of_class],
    }
    own.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
    own.kubectl("rollout", "status", "statefulset/db", "--timeout=60s", timeout=70)
    own.kubectl("delete", "pod", "db-0", "db-1", "--wait")
    own.kubectl("rollout", "status", "statefulset/db", "--timeout=60s", timeout=70)
    for name in ("db-0", "db-1"):
        own.wait("condition=Ready", f"pod/{name}")
        assert (place_of(own, f"data-{name}") / "name").read_text() == f"{name}\n"
    own.kubectl("delete", "statefulset", "db", "--wait")
    own.kubectl("delete", "pvc", "data-db-0", "data-db-1", "--wait")


def test_a_block_device_of_the_node_is_a_device_in_the_container(own: Podling, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr}")
    device = made.stdout.strip()
    try:
        volume = local_volume(own, "disk", Path(device), volumeMode="Block")
        own.apply(volume, claim("disk", storageClassName="", volumeMode="Block"))
        use = {"volumeDevices": [{"name": "data", "devicePath": "/dev/disk"}], "volumeMounts": []}
        one = pod("disk", "printf kept | dd of=/dev/disk conv=fsync 2>&-; stat -c %F /dev/disk", of("disk"))
        one["spec"]["containers"][0].update(use)
        assert ran(own, one) == "block special file\n"
        assert image.read_bytes()[:4] == b"kept"
        own.kubectl("delete", "pvc/disk", "pv/disk", "--wait")
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def local_volume(own: Podling, name: str, place: Path, **spec: Any) -> dict[str, Any]:
    node = own.get("nodes")["items"][0]["metadata"]["name"]
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    wanted = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": str(place)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "persistentVolumeReclaimPolicy": "Retain",
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": wanted}


def test_a_volume_of_the_host_that_is_not_there_is_waited_for(own: Podling, tmp_path: Path) -> None:
    place = tmp_path / "disk"
    volume = local_volume(own, "by-hand", place)
    own.apply(volume, claim("by-hand", storageClassName=""), pod("waits", "echo x > /data/f", of("by-hand")))
    why = f'MountVolume.SetUp failed for volume "by-hand" : path "{place}" does not exist'
    assert why in said_of(own, "waits", "FailedMount")
    place.mkdir()
    own.wait("jsonpath={.status.phase}=Succeeded", "pod/waits")
    assert (place / "f").read_text() == "x\n"
    own.kubectl("delete", "pod/waits", "pvc/by-hand", "pv/by-hand", "--wait")
    assert place.exists()
