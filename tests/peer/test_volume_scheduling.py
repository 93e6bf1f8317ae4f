"""R-SYS-8: pods with claims get the same nodes, or the same reasons why not, as by the kube-scheduler.

Two API servers of podling are sent the same; for one kube-scheduler and kube-controller-manager decide, for
the other podling's scheduler and controllers. No kubelet runs, and volumes are made by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from peer import control_plane
from peer.sequence import make_namespace
from peer.server import running
from peer.test_volume_binding import (
    ALONE,
    LOOKS,
    ONE,
    PAUSE,
    PODS,
    SAME,
    Step,
    alike,
    claim,
    patched,
    ref,
    sent,
    state,
    storage_class,
    volume,
    wait,
)
from peer.two_managers import Cluster
from ports import free_port

pytestmark = pytest.mark.interop("kube-scheduler", "API server")

NODES = "/api/v1/nodes"
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "20"}
LATER = "later"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
STORAGE = "/apis/storage.k8s.io/v1"
CSI_NODES, LIMITED = f"{STORAGE}/csinodes", "limited.test"
CAPACITIES, DRIVERS = f"{STORAGE}/namespaces/{{}}/csistoragecapacities", f"{STORAGE}/csidrivers"
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with ExitStack() as stack:
        made = []
        for directory in (there, here):
            server = stack.enter_context(control_plane.podling(directory))
            asking = stack.enter_context(server.asking())
            usual = ["--leader-elect=false", "--bind-address=127.0.0.1", f"--cert-dir={directory}"]
            own = [sys.executable, "-m", "podling"]
            binder = ["--controllers=persistentvolume-binder-controller", "--pvclaimbinder-sync-period=1s"]
            commands: list[list[Any]] = (
                [
                    [kubernetes_programs / "kube-controller-manager", *binder, *usual],
                    [kubernetes_programs / "kube-scheduler", *usual],
                ]
                if directory is there
                else [[*own, "controllers"], [*own, "scheduler"]]
            )
            processes = [
                stack.enter_context(
                    running(
                        [
                            *(str(one) for one in command),
                            f"--secure-port={free_port() if directory is there else 0}",
                            f"--kubeconfig={server.kubeconfig}",
                        ],
                        directory / f"part-{number}.log",
                    )
                )
                for number, command in enumerate(commands)
            ]
            cluster = Cluster(server, asking, processes[0])
            for name, zone in (("a", "east"), ("b", "west")):
                body = {"metadata": {"name": name, "labels": {HOST: name, ZONE: zone}}}
                sent(asking, "", Step("POST", NODES, body))
                status = {"status": {"allocatable": ALLOCATABLE, "capacity": ALLOCATABLE}}
                sent(asking, "", patched(NODES, f"{name}/status", **status))
            classes: dict[str, dict[str, Any]] = {
                "later": {},
                "static": {"provisioner": "kubernetes.io/no-provisioner"},
            }
            classes["east"] = {
                "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}]
            }
            for name, fields in classes.items():
                sent(asking, "", storage_class(name, volumeBindingMode="WaitForFirstConsumer", **fields))
            sent(asking, "", storage_class("now"))
            made.append(cluster)
        for cluster in made:
            make_namespace(cluster.asking, "begin")
            sent(cluster.asking, "begin", pod("first"))
            for _ in range(LOOKS):
                if cluster.asking.ask("GET", f"{PODS.format('begin')}/first").body["spec"].get("nodeName"):
                    break
                wait(cluster, PAUSE)
            taint = {"taints": None, "unschedulable": None}
            for name in "ab":
                sent(cluster.asking, "", patched(NODES, name, spec=taint))
        yield made[0], made[1]


def pod(name: str, *claimed: str, **spec: Any) -> Step:
    whole = {
        "containers": [{"name": "a", "image": "i"}],
        "volumes": [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": one}}
            for number, one in enumerate(claimed)
        ],
        "tolerations": [{"operator": "Exists"}],
        **spec,
    }
    return Step("POST", PODS, {"metadata": {"name": name}, "spec": whole})


def only_on(name: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [name]}]}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


def limited(name: str, most: int) -> Step:
    """The node can have so many volumes of `limited.test`."""
    driver = {"name": LIMITED, "nodeID": name, "topologyKeys": None, "allocatable": {"count": most}}
    return Step("POST", CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": [driver]}})


def of_limited(name: str) -> Step:
    return volume(name, csi={"driver": LIMITED, "volumeHandle": name})


def room(size: str, zone: str, **most: str) -> Step:
    body = {
        "metadata": {"generateName": "room-"},
        "storageClassName": "roomy",
        "nodeTopology": {"matchLabels": {ZONE: zone}},
        "capacity": size,
        **most,
    }
    return Step("POST", CAPACITIES, body)


STORIES: dict[str, list[list[Step]]] = {
    "room": [
        [
            Step("POST", DRIVERS, {"metadata": {"name": "roomy.test"}, "spec": {"storageCapacity": True}}),
            storage_class("roomy", provisioner="roomy.test", volumeBindingMode="WaitForFirstConsumer"),
        ],
        [claim("c", storageClassName="roomy"), claim("d", "3Gi", storageClassName="roomy")],
        [pod("p", "c")],
        [room("2Gi", "west")],
        [pod("q", "d")],
        [room("9Gi", "east", maximumVolumeSize="1Gi")],
    ],
    "limits": [
        [limited("a", 1), limited("b", 1), *map(of_limited, ("l1", "l2", "l3"))],
        [claim("c", volumeName="l1"), claim("d", volumeName="l2"), claim("e", volumeName="l3")],
        [pod("p", "c", nodeSelector={HOST: "a"})],
        [pod("q", "d", nodeSelector={HOST: "a"})],
        [pod("r", "e")],
        [pod("s", "c", "d")],
        [pod("t", "c", nodeSelector={HOST: "a"})],
        [
            Step("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0}),
            Step("DELETE", f"{PODS}/t", {"gracePeriodSeconds": 0}),
        ],
    ],
    "missing": [
        [pod("p", "c")],
        [claim("c", storageClassName="now")],
        [volume("s1", storageClassName="now", **only_on("b"))],
    ],
    "bound-elsewhere": [
        [volume("t1", **only_on("b"))],
        [claim("c")],
        [pod("p", "c", nodeSelector={HOST: "a"})],
        [pod("q", "c")],
        [pod("r", "c", nodeSelector={HOST: "b"})],
    ],
    "zones": [
        [volume("u1", meta={"labels": {ZONE: "west"}}), volume("u2", meta={"labels": {ZONE: "north"}})],
        [claim("c", volumeName="u1"), claim("d", volumeName="u2")],
        [pod("p", "c"), pod("q", "d")],
    ],
    "finds-on-the-node": [
        [volume("w1", storageClassName="static", **only_on("b"))],
        [claim("c", storageClassName="static")],
        [pod("p", "c")],
        [claim("d", storageClassName="static")],
        [pod("q", "d")],
        [volume("w2", storageClassName="static", **only_on("a"))],
    ],
    "is-made-for-the-node": [
        [claim("c", storageClassName=LATER)],
        [pod("p", "c", nodeSelector={HOST: "b"})],
        [volume("x1", storageClassName=LATER, **ref("c"), **only_on("b"))],
        [pod("q", "c")],
    ],
    "topologies": [
        [claim("c", storageClassName="east")],
        [pod("p", "c", nodeSelector={HOST: "b"})],
        [pod("q", "c")],
    ],
    "selected-before": [
        [claim("c", storageClassName=LATER, meta={"annotations": {SELECTED: "a"}})],
        [pod("p", "c", nodeSelector={HOST: "b"})],
        [pod("q", "c")],
    ],
    "alone": [
        [volume("y1", accessModes=[ALONE])],
        [claim("c", accessModes=[ALONE])],
        [pod("p", "c", nodeSelector={HOST: "a"})],
        [pod("q", "c", nodeSelector={HOST: "a"})],
        [Step("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})],
    ],
    "two-claims": [
        [volume("z1", storageClassName="static", **only_on("a"))],
        [volume("z2", storageClassName="static", **only_on("b"))],
        [claim("c", storageClassName="static"), claim("d", storageClassName="static")],
        [pod("p", "c", "d")],
        [volume("z3", "2Gi", storageClassName="static", accessModes=[ONE], **only_on("a"))],
    ],
}


@pytest.mark.parametrize("story", STORIES)
def test_pods_with_claims_get_the_same_nodes(both: tuple[Cluster, Cluster], story: str) -> None:
    alike(both, story, STORIES[story], _settled)


def _settled(cluster: Cluster, ns: str) -> list[str]:
    before, same = None, 0
    for _ in range(LOOKS):
        now = [*_pods(cluster, ns), *(line for line in state(cluster.asking, ns) if " by " not in line)]
        same = same + 1 if now == before else 0
        if same == 2 * SAME:
            return now
        before = now
        wait(cluster, PAUSE)
    raise AssertionError(f"it does not come to rest: {before}")


def _pods(cluster: Cluster, ns: str) -> Iterator[str]:
    for one in cluster.asking.ask("GET", PODS.format(ns)).body["items"]:
        told = [
            f"{each['type']} {each['status']} {each.get('reason')} {each.get('message')}"
            for each in one["status"].get("conditions", ())
        ]
        yield f"pod {one['metadata']['name']} on {one['spec'].get('nodeName')}: {told}"
