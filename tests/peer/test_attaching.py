"""Volumes of CSI drivers are attached and detached as by the kube-controller-manager.

The test says of each attachment what the driver's external-attacher would, and of each node what its kubelet
would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from peer.sequence import MERGE_PATCH
from peer.server import Asking
from peer.two_managers import Seen, Step, Told, both_running, deleted, lived, made, masked, sent, unlike
from podling.model.rules.attachments import MANAGED, attachment_name, unique_name

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = "persistentvolume-attach-detach-controller,persistentvolume-binder-controller"
NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
STORAGE = "/apis/storage.k8s.io/v1"
DRIVER = "d.test"
ONCE = ["ReadWriteOnce"]


def driver(name: str, **spec: Any) -> Step:
    body = {"metadata": {"name": name}, "spec": spec}
    return lambda asking, ns: sent(asking, "POST", f"{STORAGE}/csidrivers", body)


def node(name: str, **status: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        meta = {"name": f"{ns}-{name}", "annotations": {MANAGED: "true"}}
        sent(asking, "POST", NODES, {"metadata": meta})
        sent(asking, "PATCH", f"{NODES}/{ns}-{name}/status", ready(), Content_Type=MERGE_PATCH)

    return step


def ready() -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def volume(name: str, modes: list[str] = ONCE, driver: str = DRIVER) -> Step:
    def step(asking: Asking, ns: str) -> None:
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": modes,
            "csi": {"driver": driver, "volumeHandle": f"{ns}-{name}"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": ns, "name": name},
            "storageClassName": "",
        }
        sent(asking, "POST", VOLUMES, {"metadata": {"name": f"{ns}-{name}"}, "spec": spec})
        wants = {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
        made("persistentvolumeclaims", wants, name)(asking, ns)

    return step


def pod(name: str, on: str, *claims: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        spec = {
            "nodeName": f"{ns}-{on}",
            "containers": [{"name": "a", "image": "i"}],
            "volumes": [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims],
        }
        made("pods", spec, name)(asking, ns)

    return step


def gone(name: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        target = f"/api/v1/namespaces/{ns}/pods/{name}"
        sent(asking, "DELETE", target, {"gracePeriodSeconds": 0})

    return step


def ended(name: str, phase: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        target = f"/api/v1/namespaces/{ns}/pods/{name}/status"
        sent(asking, "PATCH", target, {"status": {"phase": phase}}, Content_Type=MERGE_PATCH)

    return step


def attacher(on: str, name: str, **status: Any) -> Step:
    """What the external-attacher says."""

    def step(asking: Asking, ns: str) -> None:
        attachment = attachment_name(DRIVER, f"{ns}-{name}", f"{ns}-{on}")
        target = f"{STORAGE}/volumeattachments/{attachment}/status"
        sent(asking, "PATCH", target, {"status": status}, Content_Type=MERGE_PATCH)

    return step


def uses(on: str, *volumes: str) -> Step:
    """What the kubelet says."""

    def step(asking: Asking, ns: str) -> None:
        names = [unique_name(DRIVER, f"{ns}-{name}") for name in volumes]
        body = {"status": {"volumesInUse": names or None}}
        sent(asking, "PATCH", f"{NODES}/{ns}-{on}/status", body, Content_Type=MERGE_PATCH)

    return step


def state(seen: Seen, ns: str) -> list[str]:
    told = [
        f"attachment {one['metadata']['name']} {one['spec']} {one['metadata'].get('finalizers')} "
        f"{one['status']} {'deletionTimestamp' in one['metadata']}"
        for one in seen.every("volumeattachments")
        if one["spec"]["nodeName"].startswith(f"{ns}-")
    ]
    told += [
        f"node {one['metadata']['name']} {sorted(map(str, one['status'].get('volumesAttached', [])))}"
        for one in seen.every("nodes")
        if one["metadata"]["name"].startswith(f"{ns}-")
    ]
    return sorted(map(masked, told))


STORIES: dict[str, Sequence[Step]] = {
    "comes-and-goes": [
        node("n1"),
        volume("v"),
        pod("p", "n1", "v"),
        attacher("n1", "v", attached=True, attachmentMetadata={"disk": "sdb"}),
        uses("n1", "v"),
        gone("p"),
        uses("n1"),
    ],
    "two-pods": [
        node("n1"),
        volume("v"),
        pod("p", "n1", "v"),
        attacher("n1", "v", attached=True),
        pod("q", "n1", "v"),
        gone("p"),
        gone("q"),
    ],
    "exclusive": [
        node("n1"),
        node("n2"),
        volume("v"),
        pod("p", "n1", "v"),
        attacher("n1", "v", attached=True),
        pod("q", "n2", "v"),
        gone("p"),
        attacher("n2", "v", attached=True),
    ],
    "shared": [
        node("n1"),
        node("n2"),
        volume("v", ["ReadWriteMany"]),
        pod("p", "n1", "v"),
        pod("q", "n2", "v"),
        attacher("n1", "v", attached=True),
        attacher("n2", "v", attached=True),
    ],
    "ended": [
        node("n1"),
        volume("v"),
        pod("p", "n1", "v"),
        attacher("n1", "v", attached=True),
        ended("p", "Succeeded"),
    ],
    "not-attached-by-its-driver": [
        driver("light.test", attachRequired=False),
        node("n1"),
        volume("v", driver="light.test"),
        pod("p", "n1", "v"),
        deleted("pods", "p"),
    ],
    "several": [
        node("n1"),
        volume("v"),
        volume("w"),
        pod("p", "n1", "v", "w"),
        attacher("n1", "w", attached=True),
        attacher("n1", "v", attached=True),
    ],
}


@pytest.fixture(scope="module")
def told(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as clusters:
        yield lived(clusters, STORIES, state)


def told_by_attacher(events: list[str]) -> list[str]:
    """What becomes of nodes is not its business, nor whether a claim was seen before its volume."""
    others = "by node-controller", "by persistentvolume-controller"
    return [line for line in events if not line.endswith(others)]


@pytest.mark.parametrize("story", STORIES)
def test_a_story_comes_to_the_same(told: list[dict[str, Told]], story: str) -> None:
    theirs, _ = told
    assert any("attachment" in line for step in theirs[story].steps for line in step) or "driver" in story
    assert unlike(*(Told(one[story].steps, told_by_attacher(one[story].events)) for one in told)) == []
