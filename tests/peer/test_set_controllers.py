"""R-SYS-8: the same StatefulSets and DaemonSets come to the same as by the kube-controller-manager.

No kubelet and no scheduler run: pods are bound and their status is written here. After each step of a story
both must come to the same objects, and at the end have told the same events.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking
from peer.two_managers import (
    APART,
    CORE,
    LOOKS,
    PATHS,
    Cluster,
    Seen,
    Step,
    Told,
    both_running,
    changed,
    deleted,
    listed,
    lived,
    made,
    plain,
    sent,
    together,
    unlike,
)
from podling.model.time import rfc3339

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "statefulset-controller,daemonset-controller,garbage-collector-controller,resourcequota-controller,"
    "persistentvolumeclaim-protection-controller"
)
OWN_CLAIMS = ("retain-delete", "delete-retain", "delete-delete", "claims-parallel")
"""Stories of sets to which their claims belong."""
UPDATED = re.compile("SuccessfulUpdate|could not update claim .* the object has been modified")
TELLERS = ("statefulset-controller", "daemonset-controller")
LABELS = {"app": "work"}
LONG_AGO, FAR = "2026-01-02T03:04:05Z", "2099-01-01T00:00:00Z"
STATEFUL, DAEMON = "statefulsets", "daemonsets"
PARALLEL = {"podManagementPolicy": "Parallel"}
DATA = {
    "metadata": {"name": "data", "labels": {"a": "b"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def template(image: str = "one", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}], **spec}}


BEGIN = "begin"
"""A namespace that is no story's, with a node."""
HELD_LABELS = {"labels": LABELS, "finalizers": ["example.com/held"]}


def held(image: str = "one") -> dict[str, Any]:
    """One whose pods stay when they are deleted, until they are `gone`. Those without a node Kubernetes lets
    fail, some time."""
    return {**template(image, nodeName=f"{BEGIN}-n0"), "metadata": HELD_LABELS}


def of(**spec: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": LABELS}, "template": template(), **spec}


def stateful(replicas: int = 3, **spec: Any) -> Step:
    return made(STATEFUL, of(replicas=replicas, serviceName="work", **spec), annotations={"told": "on"})


def set_to(**spec: Any) -> Step:
    return changed(STATEFUL, spec=spec)


def rolling(image: str, partition: int = 0, **spec: Any) -> Step:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    return set_to(template=template(image), updateStrategy=strategy, **spec)


def said(phase: str, is_ready: bool = True, since: str = LONG_AGO) -> dict[str, Any]:
    ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": since}
    return {"status": {"phase": phase, "conditions": [ready]}}


def pods(phase: str, *names: str, **how: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        for name in names:
            target = f"{CORE.format(ns)}/pods/{name}/status"
            # One that is not there shows in what is compared.
            asking.ask("PATCH", target, said(phase, **how), Content_Type=MERGE_PATCH)

    return step


def ready(*ordinals: int, since: str = LONG_AGO) -> Step:
    return pods("Running", *(f"work-{n}" for n in ordinals), since=since)


def each_ready(*ordinals: int) -> list[Step]:
    return [ready(n) for n in ordinals]


def all_ready(asking: Asking, ns: str) -> None:
    """Those that are not and not being deleted."""
    for pod in listed(asking, ns, "pods"):
        is_told = any(one["type"] == "Ready" for one in pod["status"].get("conditions", ()))
        if not is_told and "deletionTimestamp" not in pod["metadata"]:
            pods("Running", pod["metadata"]["name"])(asking, ns)


def gone(asking: Asking, ns: str) -> None:
    """Pods that are being deleted."""
    for pod in listed(asking, ns, "pods"):
        if "deletionTimestamp" in pod["metadata"]:
            target = f"{CORE.format(ns)}/pods/{pod['metadata']['name']}"
            asking.ask("PATCH", target, {"metadata": {"finalizers": None}}, Content_Type=MERGE_PATCH)
            # It may have gone with its finalizer already, and another one have come by the same name.
            only = {"uid": pod["metadata"]["uid"]}
            asking.ask("DELETE", target, {"gracePeriodSeconds": 0, "preconditions": only})


def lost(name: str) -> Step:
    def step(asking: Asking, ns: str) -> None:
        asking.ask("DELETE", f"{CORE.format(ns)}/pods/{name}")

    return step


def by_hand(name: str, **metadata: Any) -> Step:
    return made("pods", template()["spec"], **{"name": name, "labels": LABELS, **metadata})


def quota(**hard: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        body = {"metadata": {"name": "few"}, "spec": {"hard": hard}}
        sent(asking, "POST", f"{CORE.format(ns)}/resourcequotas", body)

    return step


def restored(revision: int, plural: str = STATEFUL) -> Step:
    """What `kubectl rollout undo` sends."""

    def step(asking: Asking, ns: str) -> None:
        (data,) = [
            one["data"] for one in listed(asking, ns, "controllerrevisions") if one["revision"] == revision
        ]
        target = f"{PATHS[plural].format(ns)}/{plural}/work"
        sent(asking, "PATCH", target, data, Content_Type="application/strategic-merge-patch+json")

    return step


def retention(deleted: str, scaled: str) -> dict[str, Any]:
    return {
        "volumeClaimTemplates": [DATA],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
    }


def retained(deleted_: str, scaled: str) -> list[Step]:
    return [
        stateful(2, **retention(deleted_, scaled), template=held()),
        *each_ready(0, 1),
        set_to(replicas=1),
        gone,
        set_to(replicas=2),
        ready(1),
        set_to(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"}),
        deleted(STATEFUL, policy="Foreground"),
        gone,
    ]


STATEFULS: dict[str, Sequence[Step]] = {
    "ordered": [
        stateful(),
        *each_ready(0, 1, 2),
        set_to(replicas=1),
        set_to(replicas=2),
        ready(1),
        set_to(ordinals={"start": 4}),
        *each_ready(4, 5),
        set_to(replicas=0),
        deleted(STATEFUL),
    ],
    "parallel": [
        stateful(4, **PARALLEL, ordinals={"start": 2}),
        ready(2, 4),
        all_ready,
        set_to(template=template("two"), replicas=5),
        all_ready,
        all_ready,
        all_ready,
        all_ready,
        all_ready,
        set_to(replicas=2),
    ],
    "rolls": [
        stateful(),
        *each_ready(0, 1, 2),
        set_to(template=template("two")),
        *each_ready(2, 1, 0),
        restored(1),
        *each_ready(2, 1, 0),
    ],
    "partition": [
        stateful(),
        *each_ready(0, 1, 2),
        rolling("two", 2),
        ready(2),
        lost("work-0"),
        lost("work-2"),
        *each_ready(0, 2),
        rolling("three", 1),
        *each_ready(2, 1),
        rolling("three", 0),
        ready(0),
    ],
    "rolls-and-grows": [
        stateful(2),
        *each_ready(0, 1),
        set_to(template=template("two"), replicas=4),
        *each_ready(2, 3, 1, 0),
    ],
    "rolls-and-shrinks": [
        stateful(),
        *each_ready(0, 1, 2),
        set_to(template=template("two"), replicas=1),
        ready(0),
    ],
    "on-delete": [
        stateful(2, updateStrategy={"type": "OnDelete"}),
        *each_ready(0, 1),
        set_to(template=template("two")),
        lost("work-1"),
        ready(1),
        lost("work-0"),
        ready(0),
    ],
    "stuck": [
        stateful(2),
        *each_ready(0, 1),
        set_to(template=template("bad")),
        set_to(template=template("one")),
        lost("work-1"),
        ready(1),
    ],
    "stuck-parallel": [
        stateful(3, **PARALLEL),
        all_ready,
        set_to(template=template("bad")),
        set_to(template=template("one")),
        all_ready,
    ],
    "three-at-once": [
        stateful(3),
        *each_ready(0, 1, 2),
        set_to(template=template("two")),
        set_to(template=template("three")),
        *each_ready(2, 1, 0),
    ],
    "ends": [
        stateful(2),
        *each_ready(0, 1),
        pods("Failed", "work-1", is_ready=False),
        ready(1),
        pods("Succeeded", "work-0", is_ready=False),
        ready(0),
    ],
    "ends-parallel": [
        stateful(3, **PARALLEL, template=held()),
        all_ready,
        pods("Failed", "work-1", is_ready=False),
        gone,
        all_ready,
    ],
    "unhealthy-goes": [
        stateful(),
        *each_ready(0, 1, 2),
        pods("Running", "work-1", is_ready=False),
        set_to(replicas=0),
        ready(1),
    ],
    "highest-unhealthy-goes": [
        stateful(),
        *each_ready(0, 1, 2),
        pods("Running", "work-2", is_ready=False),
        set_to(replicas=1),
    ],
    "terminating": [
        stateful(3, template=held()),
        *each_ready(0, 1, 2),
        set_to(replicas=1),
        gone,
        gone,
        set_to(template=held("two")),
        gone,
        ready(0),
        lost("work-0"),
        set_to(replicas=2),
        gone,
        *each_ready(0, 1),
    ],
    "min-ready": [
        stateful(2, minReadySeconds=5),
        ready(0, since=FAR),
        set_to(template=template("two")),
        ready(0),
        ready(1, since=FAR),
        set_to(replicas=0),
        ready(1),
    ],
    "forgets": [
        stateful(1, revisionHistoryLimit=1),
        ready(0),
        set_to(template=template("two")),
        ready(0),
        set_to(template=template("three")),
        ready(0),
        set_to(template=template("four")),
        ready(0),
    ],
    "orphans": [
        stateful(2),
        *each_ready(0, 1),
        deleted(STATEFUL, policy="Orphan"),
        stateful(3),
        ready(2),
        deleted(STATEFUL, policy="Foreground"),
    ],
    "by-hand": [
        together(by_hand("work-0"), by_hand("work-x"), by_hand("other-0"), by_hand("work-7")),
        stateful(2),
        ready(0, 7),
        # Nobody hears of the end of a pod let go: when its name is used again is each one's own time to try.
        changed("pods", "work-0", metadata={"labels": {"app": "else"}}),
    ],
    "relabelled": [
        stateful(1),
        ready(0),
        changed("pods", "work-0", metadata={"labels": {"statefulset.kubernetes.io/pod-name": "other"}}),
    ],
    "quota": [
        quota(pods="1"),
        stateful(2),
        ready(0),
    ],
    "no-claims": [
        quota(persistentvolumeclaims="1"),
        stateful(2, **retention("Retain", "Retain")),
        ready(0),
    ],
    "claims": [
        stateful(2, volumeClaimTemplates=[DATA]),
        deleted("persistentvolumeclaims", "data-work-0"),
        *each_ready(0, 1),
        set_to(replicas=0),
        set_to(replicas=1),
        deleted(STATEFUL),
    ],
    "retain-delete": retained("Retain", "Delete"),
    "delete-retain": retained("Delete", "Retain"),
    "delete-delete": retained("Delete", "Delete"),
    "claims-parallel": [
        stateful(2, **PARALLEL, **retention("Delete", "Delete")),
        all_ready,
        set_to(replicas=1),
        deleted(STATEFUL),
    ],
}


def on_nodes(count: int, **labels: str) -> Step:
    """So many nodes of the namespace's own, which are ready."""

    def step(asking: Asking, ns: str) -> None:
        for number in range(count):
            name = f"{ns}-n{number}"
            body = {"metadata": {"name": name, "labels": {"of": ns, **labels}}}
            sent(asking, "POST", "/api/v1/nodes", body)
            node(number, spec={"taints": []})(asking, ns)
        alive(asking, ns)

    return step


def alive(asking: Asking, ns: str = "") -> None:
    """The kubelets of the namespace's nodes say so, or those of all."""
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(datetime.now(UTC))}
    for one in asking.ask("GET", f"/api/v1/nodes?labelSelector=of{f'={ns}' if ns else ''}").body["items"]:
        target = f"/api/v1/nodes/{one['metadata']['name']}/status"
        asking.ask("PATCH", target, {"status": {"conditions": [ready]}}, Content_Type=MERGE_PATCH)


def node(number: int, **body: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        target = f"/api/v1/nodes/{ns}-n{number}"
        sent(asking, "PATCH", target, body, Content_Type=MERGE_PATCH)

    return step


def node_gone(number: int) -> Step:
    return lambda asking, ns: sent(asking, "DELETE", f"/api/v1/nodes/{ns}-n{number}", None)


def daemons(**spec: Any) -> Step:
    """Only on the nodes of the namespace."""

    def step(asking: Asking, ns: str) -> None:
        whole = of(**{**spec, "template": own(spec.get("template", template()), ns)})
        made(DAEMON, whole, annotations={"told": "on"})(asking, ns)

    return step


def own(one: Mapping[str, Any], ns: str) -> dict[str, Any]:
    chosen = {"of": ns, **one["spec"].get("nodeSelector", {})}
    return {**one, "spec": {**one["spec"], "nodeSelector": chosen}}


def daemons_to(**spec: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        if "template" in spec:
            spec["template"] = own(spec["template"], ns)
        changed(DAEMON, spec=spec)(asking, ns)

    return step


def bound(asking: Asking, ns: str) -> None:
    """Each pod to the node it is made for."""
    for pod in listed(asking, ns, "pods"):
        if not pod["spec"].get("nodeName"):
            name = pod["metadata"]["name"]
            required = pod["spec"]["affinity"]["nodeAffinity"][
                "requiredDuringSchedulingIgnoredDuringExecution"
            ]
            node_name = required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
            body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node_name}}
            sent(asking, "POST", f"{CORE.format(ns)}/pods/{name}/binding", body)


def the_pods(phase: str, **how: Any) -> Step:
    def step(asking: Asking, ns: str) -> None:
        for pod in listed(asking, ns, "pods"):
            if "deletionTimestamp" not in pod["metadata"]:
                pods(phase, pod["metadata"]["name"], **how)(asking, ns)

    return step


def surging(surge: int | str, **spec: Any) -> dict[str, Any]:
    return {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0},
        },
        **spec,
    }


def lacking(count: int | str) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": count}}}


OF_DAEMONS = "d-"
UP = together(bound, all_ready)
DAEMONS: dict[str, Sequence[Step]] = {
    "each": [
        on_nodes(3),
        daemons(),
        UP,
        daemons_to(template=template("two")),
        UP,
        UP,
        UP,
        restored(1, DAEMON),
        gone,
    ],
    "two-at-once": [
        on_nodes(3),
        daemons(**lacking(2)),
        UP,
        daemons_to(template=template("two")),
        gone,
        UP,
        gone,
        UP,
    ],
    "percent": [on_nodes(4), daemons(**lacking("30%")), UP, daemons_to(template=template("two")), gone],
    "surge": [
        on_nodes(3),
        daemons(**surging(1)),
        UP,
        daemons_to(template=template("two")),
        UP,
        gone,
        UP,
        gone,
    ],
    "surge-all": [
        on_nodes(2),
        daemons(**surging("100%", minReadySeconds=1)),
        UP,
        daemons_to(template=template("two")),
        the_pods("Running", since=FAR),
        the_pods("Running"),
        gone,
    ],
    "surge-of-unready": [
        on_nodes(2),
        daemons(**surging(1)),
        UP,
        the_pods("Running", is_ready=False),
        daemons_to(template=template("two")),
        gone,
    ],
    "unready-roll-at-once": [
        on_nodes(3),
        daemons(),
        bound,
        daemons_to(template=template("two")),
        gone,
    ],
    "on-delete": [
        on_nodes(1),
        daemons(updateStrategy={"type": "OnDelete"}),
        UP,
        daemons_to(template=template("two")),
    ],
    "nodes": [
        on_nodes(2, disk="ssd"),
        daemons(template=template(nodeSelector={"disk": "ssd"})),
        UP,
        node(0, metadata={"labels": {"disk": None}}),
        gone,
        node(0, metadata={"labels": {"disk": "ssd"}}),
        node(1, spec={"unschedulable": True}),
        UP,
    ],
    "affinity": [
        on_nodes(2, zone="x"),
        daemons(
            template=template(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]},
                                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                            ]
                        },
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                            }
                        ],
                    }
                },
                hostNetwork=True,
                tolerations=[
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                    {"operator": "Exists", "key": "mine"},
                ],
            )
        ),
        UP,
        node(1, metadata={"labels": {"zone": None}}),
    ],
    # Kubernetes looks again when something else changes.
    "waiting-node-gone": [
        on_nodes(2),
        daemons(),
        together(node_gone(1), daemons_to(revisionHistoryLimit=3)),
    ],
    "fails": [on_nodes(1), daemons(), bound, the_pods("Failed", is_ready=False), gone],
    "succeeds": [on_nodes(1), daemons(), bound, the_pods("Succeeded", is_ready=False), gone, UP],
    "forgets": [
        on_nodes(1),
        daemons(revisionHistoryLimit=1),
        daemons_to(template=template("two")),
        daemons_to(template=template("three")),
        daemons_to(template=template("four")),
        daemons_to(template=template("three")),
    ],
    "orphans": [
        on_nodes(2),
        daemons(),
        UP,
        deleted(DAEMON, policy="Orphan"),
        daemons(),
        daemons_to(template=template("two")),
        gone,
        deleted(DAEMON, policy="Foreground"),
        gone,
    ],
    "relabelled": [
        on_nodes(1),
        daemons(),
        lambda asking, ns: changed(
            "pods", listed(asking, ns, "pods")[0]["metadata"]["name"], metadata={"labels": {"app": "else"}}
        )(asking, ns),
    ],
    "quota": [on_nodes(2), quota(pods="1"), daemons()],
    "none": [daemons(), on_nodes(1)],
}


def is_ready(pod: Mapping[str, Any]) -> bool:
    return any(
        (one["type"], one["status"]) == ("Ready", "True") for one in pod["status"].get("conditions", ())
    )


def state(seen: Seen, ns: str) -> list[str]:
    """A revision is named by its number, a node of several only by its namespace."""
    lines = []
    masks = [(rf"\b{ns}-n\d\b", f"{ns}-n")]
    # Revisions of a set that waits for its pods may go before it or with it.
    is_going = any(one["metadata"].get("deletionTimestamp") for one in seen.of(ns, STATEFUL))
    revisions = [] if is_going else ["controllerrevisions"]
    for one in seen.of(ns, "controllerrevisions"):
        number, hashed = one["revision"], one["metadata"]["name"].rpartition("-")[2]
        masks.append((rf"\b{hashed}\b", "<hash>" if is_going else f"<hash of {number}>"))
    # One that is gone while its pods are not.
    masks.append((r"('controller-revision-hash': ')\w+'", r"\1<hash>'"))
    masks.append((r"\bwork-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b", "work-<hash>"))
    ready = {one["metadata"]["name"] for one in seen.of(ns, "pods") if is_ready(one)}
    for plural in ("pods", STATEFUL, DAEMON, *revisions, "persistentvolumeclaims"):
        for one in seen.of(ns, plural):
            if plural == "persistentvolumeclaims":
                # What becomes of it is not the set's business.
                one = {**one, "status": None}
                one["metadata"] = {**one["metadata"], "annotations": None}
                if one["metadata"]["name"].removeprefix("data-") not in ready:
                    # It has its owner at once if its maker knows of it then, else with the pod's next change.
                    one["metadata"]["ownerReferences"] = None
            text = plain(one)
            for pattern, mask in masks:
                text = re.sub(pattern, mask, text)
            lines.append(f"{plural} {text}")
    return sorted(lines)


def until_it_runs(cluster: Cluster) -> None:
    make_namespace(cluster.asking, BEGIN)
    on_nodes(1)(cluster.asking, BEGIN)
    stateful(1)(cluster.asking, BEGIN)
    for _ in range(LOOKS):
        if listed(cluster.asking, BEGIN, "pods"):
            return
        with suppress(subprocess.TimeoutExpired):
            cluster.controllers.wait(APART)


@pytest.fixture(scope="module")
def told(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as clusters:
        for cluster in clusters:
            until_it_runs(cluster)
        prefixed = {f"{OF_DAEMONS}{name}": steps for name, steps in DAEMONS.items()}
        yield lived(clusters, {**STATEFULS, **prefixed}, state, alive)


def told_by_sets(events: list[str], *, own_claims: bool) -> list[str]:
    """How often something failed is a matter of time; and so is, for claims that get owners, whether they get
    them when the pod is made or in an update, in which another may have written the claim meanwhile."""
    told = [re.sub(r" \d+ (Warning)", r" \1", line) for line in events if line.endswith(TELLERS)]
    return [line for line in told if not (own_claims and UPDATED.search(line))]


def check(told: list[dict[str, Told]], story: str) -> None:
    own = story in OWN_CLAIMS
    theirs, ours = (Told(one[story].steps, told_by_sets(one[story].events, own_claims=own)) for one in told)
    if found := unlike(theirs, ours):
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("story", STATEFULS)
def test_stateful_sets(told: list[dict[str, Told]], story: str) -> None:
    check(told, story)


@pytest.mark.parametrize("story", DAEMONS)
def test_daemon_sets(told: list[dict[str, Told]], story: str) -> None:
    check(told, f"{OF_DAEMONS}{story}")
