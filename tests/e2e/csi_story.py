"""The same pod with volumes of a CSI driver on podling's kubelet and on Kubernetes': the driver must be asked
the same by both.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import csi_driver
import csi_sidecars
from csi_driver import CsiDriver

if TYPE_CHECKING:
    from e2e.conftest import Podling

BUSYBOX = "podling.test/busybox:1"
NAME = "d.test"
DRIVER = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": NAME},
    "spec": {
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        "podInfoOnMount": True,
        "tokenRequests": [{"audience": "vault"}],
    },
}
ONCE = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
TOKENS = "csi.storage.k8s.io/serviceAccount.tokens"
OF_POD = {
    "csi.storage.k8s.io/ephemeral": "false",
    "csi.storage.k8s.io/pod.name": "told",
    "csi.storage.k8s.io/pod.namespace": "default",
    "csi.storage.k8s.io/pod.uid": "UID",
    "csi.storage.k8s.io/serviceAccount.name": "default",
    TOKENS: ["vault"],
}
STAGED = "1fcc08c7733965bce66a034f70cc3e226eeaa3ccd3a960cff226d786d055873a"
"""printf told | sha256sum: Kubernetes names the place where a volume is staged by the hash of its handle."""
HOW = {
    "mount": {"fs_type": "ext4", "mount_flags": ["noatime"]},
    "access_mode": {"mode": "SINGLE_NODE_WRITER"},
}


class Program:
    """One that says `serving` when it does."""

    def __init__(self, module: Any, *arguments: str | Path) -> None:
        self._command = [sys.executable, module.__file__, *map(str, arguments)]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None and self._process.stdout.readline() == "serving\n"

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


class DriverOfNode:
    """A driver and its sidecars. `kubelet_dir` is the root directory of the node's kubelet."""

    def __init__(self, podling: Podling, root: Path, kubelet_dir: Path) -> None:
        self.podling, self.kubelet_dir = podling, kubelet_dir
        self.driver = CsiDriver(NAME, root)
        self.program = Program(csi_driver, NAME, root, kubelet_dir / "plugins_registry")
        self.sidecars = Program(csi_sidecars, podling.instance.kubeconfig, root / "csi.sock")

    def registered(self, node: str) -> None:
        self.podling.kubectl("wait", "--for=create", f"csinode/{node}", "--timeout=30s")
        self.podling.wait(f"jsonpath={{.spec.drivers[0].name}}={NAME}", f"csinode/{node}")


def story(of: DriverOfNode, node: str) -> list[tuple[str, dict[str, Any]]]:
    """What the driver of the node was asked for a pod with a volume by claim and one of its own."""
    (of.driver.root / "volumes" / "told").mkdir()
    (of.driver.root / "volumes" / "told" / "file").touch(mode=0o600)
    secret = {"name": "told", "namespace": "default"}
    source = {
        "driver": NAME,
        "volumeHandle": "told",
        "fsType": "ext4",
        "volumeAttributes": {"a": "b"},
        "nodeStageSecretRef": secret,
        "nodePublishSecretRef": secret,
    }
    size = {"storage": "1Gi"}
    volume = {
        **ONCE,
        "csi": source,
        "capacity": size,
        "claimRef": secret,
        "mountOptions": ["noatime"],
        "persistentVolumeReclaimPolicy": "Retain",
    }
    container = {
        "name": "c",
        "image": BUSYBOX,
        "command": ["sh", "-c", "stat -c %g /data/file; echo x > /data/file; touch /own/file"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "own", "mountPath": "/own"}],
    }
    pod = {
        "nodeName": node,
        "restartPolicy": "Never",
        "securityContext": {"fsGroup": 4242},
        "containers": [container],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "told"}},
            {"name": "own", "csi": {"driver": NAME, "volumeAttributes": {"c": "d"}}},
        ],
    }
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("Secret", {"stringData": {"key": "value"}}),
        ("PersistentVolume", {"spec": volume}),
        ("PersistentVolumeClaim", {"spec": {**ONCE, "resources": {"requests": size}, "volumeName": "told"}}),
        ("Pod", {"spec": pod}),
    ]
    of.podling.apply(
        *({"apiVersion": "v1", "kind": kind, "metadata": {"name": "told"}, **body} for kind, body in kinds)
    )
    of.podling.wait("jsonpath={.status.phase}=Succeeded", "pod/told", timeout=120)
    assert of.podling.kubectl("logs", "told").stdout == "4242\n"
    uid = of.podling.get("pod", "told")["metadata"]["uid"]
    of.podling.kubectl("delete", "pod", "told", "--wait")
    of.podling.kubectl("wait", "--for=delete", "volumeattachments", "--all", "--timeout=60s", timeout=70)
    of.podling.kubectl("delete", "pvc/told", "pv/told", "secret/told")
    lines = (of.driver.root / "calls").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    asked = [
        (one["method"], _masked(one["request"], uid, of.kubelet_dir))
        for one in calls
        if one["method"] in ASKED and ("told" in json.dumps(one) or uid in json.dumps(one))
    ]
    # Volumes are independent of each other: what was asked of each, in its order.
    return sorted(asked, key=lambda call: call[1]["volume_id"])


ASKED = (
    "ControllerPublishVolume",
    "NodeStageVolume",
    "NodePublishVolume",
    "NodeUnpublishVolume",
    "NodeUnstageVolume",
    "ControllerUnpublishVolume",
)


def _masked(request: dict[str, Any], uid: str, root: Path) -> dict[str, Any]:
    context = request.get("volume_context", {})
    if tokens := context.get(TOKENS):
        context[TOKENS] = sorted(json.loads(tokens))
    text = json.dumps(request).replace(str(root), "ROOT").replace(uid, "UID")
    masked: dict[str, Any] = json.loads(re.sub(r"csi-[0-9a-f]{64}", "csi-OWN", text))
    return masked


def compare(asked: list[tuple[str, dict[str, Any]]]) -> None:
    """Both kubelets are held to this."""
    staging = f"ROOT/plugins/kubernetes.io/csi/{NAME}/{STAGED}/globalmount"
    place = "ROOT/pods/UID/volumes/kubernetes.io~csi"
    own = {"volume_id": "csi-OWN", "target_path": f"{place}/own/mount"}
    told = {"volume_id": "told", "target_path": f"{place}/told/mount"}
    secrets = {"secrets": {"key": "value"}, "publish_context": {"disk": "told"}}
    context = {**OF_POD, "csi.storage.k8s.io/ephemeral": "true", "c": "d"}
    plain = {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}
    assert asked == [
        ("NodePublishVolume", {**own, "volume_capability": plain, "volume_context": context}),
        ("NodeUnpublishVolume", own),
        ("ControllerPublishVolume", {"volume_id": "told", "node_id": "node-one"}),
        (
            "NodeStageVolume",
            {
                "volume_id": "told",
                "staging_target_path": staging,
                "volume_capability": HOW,
                "volume_context": {"a": "b"},
                **secrets,
            },
        ),
        (
            "NodePublishVolume",
            {
                **told,
                "staging_target_path": staging,
                "volume_capability": HOW,
                "volume_context": {**OF_POD, "a": "b"},
                **secrets,
            },
        ),
        ("NodeUnpublishVolume", told),
        ("NodeUnstageVolume", {"volume_id": "told", "staging_target_path": staging}),
        ("ControllerUnpublishVolume", {"volume_id": "told", "node_id": "node-one"}),
    ]
