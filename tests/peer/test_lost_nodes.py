"""R-SYS-8: what becomes of a node whose kubelet is silent, and of its pods and volumes, is the same as by the
kube-controller-manager.

The test is the kubelets: it renews the leases of nodes that live, and says of pods that they are ready.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from peer import test_attaching as attaching
from peer.sequence import MERGE_PATCH
from peer.server import Asking, Server
from peer.test_set_controllers import bound, daemons, daemons_to, said, stateful, template
from peer.two_managers import (
    CORE,
    Cluster,
    Seen,
    Step,
    Told,
    both_running,
    changed,
    listed,
    lived,
    made,
    plain,
    sent,
    together,
    unlike,
)
from podling.model.rules.attachments import MANAGED
from podling.model.time import rfc3339

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller,"
    "persistentvolume-attach-detach-controller,persistentvolume-binder-controller,daemonset-controller,"
    "statefulset-controller,replicaset-controller"
)
GRACE = "5s"
OWN = {"node-startup-grace-period": GRACE}
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LIVES = "lives"
"""The label of nodes whose leases are renewed."""
LOOKS = 1200
"""A tenth of a second apart: Kubernetes collects pods every twenty seconds, and those of a node that is gone
when it has been for forty."""
UNREACHABLE = "node.kubernetes.io/unreachable"
HASH = re.compile(r"\bwork-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b|(?<='controller-revision-hash': ')\w+")
ENDED = "Cancelling deletion of Pod evicted/done"
"""Kubernetes tells this, too, if a pod is gone before its deletion has been answered."""
OFF = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def renewed(asking: Asking) -> None:
    """What the kubelets of all nodes that live do."""
    spec = {"renewTime": now()}
    for one in asking.ask("GET", f"{NODES}?labelSelector={LIVES}").body["items"]:
        asking.ask("PATCH", f"{LEASES}/{one['metadata']['name']}", {"spec": spec}, Content_Type=MERGE_PATCH)


def joins(name: str, **labels: str) -> Step:
    """One that lives."""

    def step(asking: Asking, ns: str) -> None:
        usual = {"of": ns, LIVES: "yes", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        meta = {"name": f"{ns}-{name}", "labels": {**usual, **labels}, "annotations": {MANAGED: "true"}}
        sent(
            asking,
            "POST",
            LEASES,
            {"metadata": {"name": meta["name"]}, "spec": {"holderIdentity": "x", "renewTime": now()}},
        )
        sent(asking, "POST", NODES, {"metadata": meta})
        speaks(name)(asking, ns)

    return step


def untainted(name: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        until(lambda: "spec" in taken(asking, ns, name) and not taints(taken(asking, ns, name)))

    return step


def node(name: str) -> Step:
    return together(joins(name), untainted(name))


def speaks(name: str) -> Step:
    """Its kubelet says that all is well."""

    def step(asking: Asking, ns: str) -> None:
        at = rfc3339(datetime.now(UTC))
        well = [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False")]
        conditions = [
            {
                "type": type,
                "status": status,
                "reason": "Well",
                "message": "all is well",
                "lastHeartbeatTime": at,
            }
            for type, status in well
        ]
        target = f"{NODES}/{ns}-{name}"
        sent(asking, "PATCH", target, {"metadata": {"labels": {LIVES: "yes"}}}, Content_Type=MERGE_PATCH)
        status = {"status": {"conditions": conditions}}
        sent(asking, "PATCH", f"{target}/status", status, Content_Type=MERGE_PATCH)
        renewed(asking)

    return step


def silent(name: str) -> Step:
    """Its lease is not renewed any more."""

    def step(asking: Asking, ns: str) -> None:
        body = {"metadata": {"labels": {LIVES: None}}}
        sent(asking, "PATCH", f"{NODES}/{ns}-{name}", body, Content_Type=MERGE_PATCH)

    return step


def lost(name: str) -> Step:
    """Returns when the silence has been noticed."""

    def step(asking: Asking, ns: str) -> None:
        until(lambda: (UNREACHABLE, "NoExecute") in taints(taken(asking, ns, name)))

    return step


def taken(asking: Asking, ns: str, name: str) -> dict[str, Any]:
    body: dict[str, Any] = asking.ask("GET", f"{NODES}/{ns}-{name}").body
    return body


def taints(node: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["key"], one["effect"]) for one in node["spec"].get("taints", ())}


def tainted(name: str, *taints: dict[str, str]) -> Step:
    """And what follows from its state."""

    def step(asking: Asking, ns: str) -> None:
        body = {"spec": {"taints": [*taken(asking, ns, name)["spec"].get("taints", []), *taints]}}
        sent(asking, "PATCH", f"{NODES}/{ns}-{name}", body, Content_Type=MERGE_PATCH)

    return step


def until(holds: Callable[[], bool]) -> None:
    for _ in range(LOOKS):
        if holds():
            return
        threading.Event().wait(0.1)
    # What it has not come to shows in what is compared.


def tolerated(seconds: int | None) -> list[dict[str, Any]]:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", **limit}
        for key in ("unreachable", "not-ready")
    ]


def pod(name: str, on: str, seconds: int | None = None, **spec: Any) -> Step:
    """Which stays for so long on a node that is lost; without, for ever."""

    def step(asking: Asking, ns: str) -> None:
        whole = {"nodeName": f"{ns}-{on}", "containers": [{"name": "a", "image": "i"}]}
        made("pods", {**whole, "tolerations": tolerated(seconds), **spec}, name)(asking, ns)
        ready(asking, ns)

    return step


def ready(asking: Asking, ns: str) -> None:
    """All pods that are not and have a node."""
    for one in listed(asking, ns, "pods"):
        if one["spec"].get("nodeName") and one["status"]["phase"] == "Pending":
            target = f"{CORE.format(ns)}/pods/{one['metadata']['name']}/status"
            sent(asking, "PATCH", target, said("Running"), Content_Type=MERGE_PATCH)


def leaves(*names: str) -> Step:
    """Until the pods are being deleted."""

    def step(asking: Asking, ns: str) -> None:
        def going() -> bool:
            pods = listed(asking, ns, "pods")
            left = {one["metadata"]["name"] for one in pods if "deletionTimestamp" not in one["metadata"]}
            return not left & set(names)

        until(going)

    return step


def gone(*names: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        until(lambda: not {one["metadata"]["name"] for one in listed(asking, ns, "pods")} & set(names))

    return step


def removed(name: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        sent(asking, "DELETE", f"{NODES}/{ns}-{name}", {})

    return step


def sick(name: str) -> Step:
    """Its kubelet says so."""

    def step(asking: Asking, ns: str) -> None:
        body = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Sick"}]}}
        target = f"{NODES}/{ns}-{name}/status"
        sent(asking, "PATCH", target, body, Content_Type="application/strategic-merge-patch+json")

    return step


def bound_to(name: str, on: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": f"{ns}-{on}"}}
        sent(asking, "POST", f"{CORE.format(ns)}/pods/{name}/binding", body)

    return step


STORIES: dict[str, Sequence[Step]] = {
    "evicted": [
        together(
            node("a"),
            pod("soon", "a", 1),
            pod("later", "a", 600),
            pod("stays", "a"),
            pod("done", "a", 1),
            changed("pods", "done/status", status={"phase": "Succeeded"}),
        ),
        silent("a"),
        together(lost("a"), leaves("soon", "done")),
        speaks("a"),
    ],
    # Once somebody says so, its pods and volumes are taken away, and a StatefulSet makes its pod anew.
    "off": [
        together(
            node("a"),
            attaching.volume("v"),
            pod("p", "a", 1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]),
            pod("held", "a", 1),
            changed("pods", "held", metadata={"finalizers": ["example.com/held"]}),
            stateful(1, template=template(tolerations=tolerated(1))),
        ),
        together(
            attaching.attacher("a", "v", attached=True),
            attaching.uses("a", "v"),
            bound_to("work-0", "a"),
            ready,
            silent("a"),
        ),
        together(lost("a"), leaves("p", "held", "work-0")),
        together(tainted("a", OFF), gone("p")),
    ],
    "daemon": [
        together(node("a"), daemons()),
        together(bound, ready),
        # Kubernetes does not always look again by itself.
        together(silent("a"), lost("a"), daemons_to(revisionHistoryLimit=3)),
        together(speaks("a"), daemons_to(revisionHistoryLimit=4)),
    ],
    "not-ready": [together(node("a"), pod("soon", "a", 1)), sick("a"), leaves("soon")],
    "removed": [
        together(
            node("a"),
            pod("p", "a"),
            pod("held", "a"),
            changed("pods", "held", metadata={"finalizers": ["example.com/held"]}),
        ),
        together(removed("a"), gone("p"), leaves("held")),
    ],
    # So that not all are lost at once.
    "others": [together(*map(node, "abcde"))],
}


def state(seen: Seen, ns: str) -> list[str]:
    lines = [line for line in attaching.state(seen, ns) if line.startswith("attachment")]
    for one in seen.every("nodes"):
        if one["metadata"]["labels"].get("of") == ns:
            status = one["status"]
            told = {"conditions": status.get("conditions"), "attached": status.get("volumesAttached")}
            # Kubernetes adds those of different effects when it comes to them.
            spec = {**one["spec"], "taints": sorted(one["spec"].get("taints", ()), key=itemgetter("effect"))}
            lines.append(f"nodes {plain({**one, 'spec': spec, 'status': told})}")
    for plural in ("pods", "daemonsets", "statefulsets"):
        lines += [f"{plural} {plain(one)}" for one in seen.of(ns, plural)]
    return sorted(HASH.sub("<hash>", line) for line in lines)


@contextmanager
def living(clusters: Sequence[Cluster]) -> Iterator[None]:
    """The kubelets of nodes that live, while the block runs."""
    over = threading.Event()

    def live(server: Server) -> None:
        with server.asking() as asking:
            while not over.wait(0.5):
                renewed(asking)

    with ThreadPoolExecutor(len(clusters)) as together:
        living = [together.submit(live, cluster.server) for cluster in clusters]
        try:
            yield
        finally:
            over.set()
        for one in living:
            one.result()


@pytest.fixture(scope="module")
def told(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    options = {"node-monitor-grace-period": GRACE, "node-monitor-period": "1s", "node-eviction-rate": "100"}
    with (
        both_running(kubernetes_programs, there, here, CONTROLLERS, OWN, **options) as clusters,
        living(clusters),
    ):
        yield lived(clusters, STORIES, state)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_comes_to_the_same(told: list[dict[str, Told]], story: str) -> None:
    theirs, ours = (Told(one[story].steps, [e for e in one[story].events if ENDED not in e]) for one in told)
    if found := unlike(theirs, ours):
        pytest.fail("\n".join(found), pytrace=False)
