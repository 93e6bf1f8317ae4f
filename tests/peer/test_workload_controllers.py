"""R-SYS-8: the same Deployments, ReplicaSets and ReplicationControllers come to the same as by the
kube-controller-manager.

Two API servers of podling are sent the same; beside one run podling's controllers, beside the other those of
the kube-controller-manager. No kubelet runs: the status of pods is written here. After each step both must
come to the same objects, and have told the same events in the same order.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking
from peer.two_managers import Cluster, both_running

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "deployment-controller,replicaset-controller,replicationcontroller-controller,"
    "garbage-collector-controller,resourcequota-controller"
)
LOOKS = 300
"""At most, a tenth of a second apart."""
SAME = 5
"""Looks in a row that must find nothing changed."""
APPS, CORE = "/apis/apps/v1/namespaces/{}", "/api/v1/namespaces/{}"
LABELS = {"app": "web"}
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]
HASHED = re.compile(
    r"\b(web)-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b(-[a-z0-9]{5}\b)?|\b(web|old|orphan)-[a-z0-9]{5}\b"
)

COMBINED = "(combined from similar events)"
"""What kube-controller-manager tells in place of the eleventh event of a kind about an object."""

Step = Callable[[Asking, str], None]


@pytest.fixture(scope="module")
def both(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as made:
        yield made[0], made[1]


def template(image: str = "one") -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "a", "image": image}]}}


def made(kind: str, name: str = "web", **spec: Any) -> Step:
    path = (CORE if kind == "replicationcontrollers" else APPS) + f"/{kind}"
    selector = LABELS if kind == "replicationcontrollers" else {"matchLabels": LABELS}
    body = {"metadata": {"name": name}, "spec": {"selector": selector, "template": template(), **spec}}
    return lambda asking, ns: _sent(asking, "POST", path.format(ns), body)


def changed(kind: str, name: str = "web", **body: Any) -> Step:
    path = (CORE if kind in ("replicationcontrollers", "pods") else APPS) + f"/{kind}/{name}"
    return lambda asking, ns: _sent(asking, "PATCH", path.format(ns), body, Content_Type=MERGE_PATCH)


def deleted(kind: str, name: str = "web", policy: str = "Background") -> Step:
    path = (CORE if kind in ("replicationcontrollers", "pods") else APPS) + f"/{kind}/{name}"
    return lambda asking, ns: _sent(asking, "DELETE", path.format(ns), {"propagationPolicy": policy})


def ready(asking: Asking, ns: str, image: str = "", most: int = 100) -> None:
    """Those that are not, oldest first."""
    for pod in sorted(listed(asking, CORE, ns, "pods"), key=lambda pod: str(pod["metadata"]["name"])):
        used = pod["spec"]["containers"][0]["image"]
        if "conditions" not in pod["status"] and image in ("", used) and most:
            most -= 1
            status = {"status": {"phase": "Running", "conditions": READY}}
            target = f"{CORE.format(ns)}/pods/{pod['metadata']['name']}/status"
            asking.ask("PATCH", target, status, Content_Type=MERGE_PATCH)


def _sent(asking: Asking, method: str, target: str, body: Any, **headers: str) -> None:
    said = asking.ask(method, target, body, **headers)
    assert said.code < 300, said.body


def listed(asking: Asking, path: str, ns: str, plural: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = asking.ask("GET", f"{path.format(ns)}/{plural}").body["items"]
    return items


def state(asking: Asking, ns: str) -> list[str]:
    """All objects and events, as lines, without what no two clusters have alike."""
    lines = []
    for path, plural in (
        (APPS, "deployments"),
        (APPS, "replicasets"),
        (CORE, "replicationcontrollers"),
        (CORE, "pods"),
    ):
        lines += sorted(f"{plural} {_plain(one)}" for one in listed(asking, path, ns, plural))
    return lines


def events(asking: Asking, ns: str) -> list[str]:
    """In the order in which they were told of each object."""
    found = listed(asking, CORE, ns, "events")
    told = [
        (
            str(one["involvedObject"]["kind"]),
            _masked(one["involvedObject"]["name"]),
            f"{one['type']} {one['reason']} {_masked(one['message'])} by {one['source']['component']}",
        )
        for one in found
        if one["reason"] != "FailedScheduling"
    ]
    # Those of one object whose pods come and go in no order are counted, not ordered.
    return sorted(" ".join(one) for one in told)


def _plain(one: dict[str, Any]) -> str:
    meta = one["metadata"]
    kept = {
        "name": _masked(meta["name"]),
        "labels": meta.get("labels"),
        "annotations": meta.get("annotations"),
        "generation": meta.get("generation"),
        "owners": [
            {**ref, "uid": "", "name": _masked(ref["name"])} for ref in meta.get("ownerReferences", ())
        ],
        "finalizers": meta.get("finalizers"),
        "deleted": "deletionTimestamp" in meta,
        "spec": one["spec"],
        "status": one["status"],
    }
    return _masked(_without_times(repr(_sorted(kept))))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def _without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", text)


def _masked(text: str) -> str:
    text = re.sub(r"('pod-template-hash': )'\w+'", r"\1<hash>", text)
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-<suffix>", text)
    return HASHED.sub("<name>", text)


def settled(cluster: Cluster, ns: str) -> list[str]:
    """What has not changed for a while."""
    before, same = None, 0
    for _ in range(LOOKS):
        now = state(cluster.asking, ns)
        same = same + 1 if now == before else 0
        if same == SAME:
            return now
        before = now
        _wait(cluster, 0.1)
    return before or []


def compared(both: tuple[Cluster, Cluster], ns: str, *steps: Step) -> None:
    """After each step both have come to the same."""
    for cluster in both:
        make_namespace(cluster.asking, ns)
        _until_they_run(cluster)
    for number, step in enumerate(steps):
        for cluster in both:
            step(cluster.asking, ns)
        with ThreadPoolExecutor(2) as together:
            theirs, ours = together.map(lambda one: settled(one, ns), both)
        unlike = "\n".join(_unlike(theirs, ours))
        assert not unlike, f"step {number}"
    theirs, ours = (_told(cluster, ns) for cluster in both)
    if not any(COMBINED in line for line in theirs):
        assert not _unlike(theirs, ours)


def _unlike(theirs: list[str], ours: list[str]) -> list[str]:
    one, other = Counter(theirs), Counter(ours)
    return [f"kubernetes: {line}" for line in one - other] + [f"podling: {line}" for line in other - one]


def _told(cluster: Cluster, ns: str) -> list[str]:
    before: list[str] = []
    for _ in range(20):
        now = events(cluster.asking, ns)
        if now and now == before:
            return now
        before = now
        _wait(cluster, 0.3)
    return before


def _wait(cluster: Cluster, seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        cluster.controllers.wait(seconds)


def _until_they_run(cluster: Cluster) -> None:
    """Until the controllers make the pods of a ReplicaSet, which at a start takes a while."""
    asking, ns = cluster.asking, "begin"
    make_namespace(asking, ns)
    asking.ask(
        "POST",
        f"{APPS.format(ns)}/replicasets",
        {
            "metadata": {"name": "first"},
            "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template()},
        },
    )
    for _ in range(LOOKS):
        if listed(asking, CORE, ns, "pods"):
            return
        _wait(cluster, 0.1)


def test_a_deployment_lives(both: tuple[Cluster, Cluster]) -> None:
    compared(
        both,
        "lives",
        made("deployments", replicas=3, progressDeadlineSeconds=600),
        ready,
        changed("deployments", spec={"replicas": 5}),
        ready,
        changed("deployments", spec={"replicas": 2}),
        changed("deployments", metadata={"annotations": {"why": "because"}}),
        changed("deployments", spec={"template": template("two")}),
        lambda asking, ns: ready(asking, ns, "two", 1),
        ready,
        ready,
        changed("deployments", spec={"paused": True}),
        changed("deployments", spec={"template": template("three"), "replicas": 4}),
        ready,
        changed("deployments", spec={"paused": False}),
        ready,
        ready,
        ready,
        ready,
        changed("deployments", spec={"template": template("two")}),
        ready,
        ready,
        ready,
        ready,
    )


def late(asking: Asking, ns: str) -> None:
    """Returns when the deadline is over."""
    for _ in range(LOOKS):
        (one,) = listed(asking, APPS, ns, "deployments")
        if "ProgressDeadlineExceeded" in [each["reason"] for each in one["status"]["conditions"]]:
            return
        threading.Event().wait(0.1)


def test_a_bad_image_is_late_and_rolled_back(both: tuple[Cluster, Cluster]) -> None:
    compared(
        both,
        "late",
        made("deployments", replicas=3, progressDeadlineSeconds=4, minReadySeconds=1),
        ready,
        changed("deployments", spec={"template": template("bad")}),
        late,
        changed("deployments", spec={"template": template("one")}),
    )


def test_a_rollout_that_is_scaled_keeps_its_parts(both: tuple[Cluster, Cluster]) -> None:
    strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    compared(
        both,
        "parts",
        made("deployments", replicas=6, strategy=strategy),
        ready,
        changed("deployments", spec={"template": template("two")}),
        changed("deployments", spec={"replicas": 9}),
        changed("deployments", spec={"replicas": 4}),
        changed("deployments", spec={"template": template("three")}),
        changed("deployments", spec={"replicas": 0}),
    )


def test_recreate(both: tuple[Cluster, Cluster]) -> None:
    compared(
        both,
        "recreate",
        made("deployments", replicas=2, strategy={"type": "Recreate"}, revisionHistoryLimit=1),
        ready,
        changed("deployments", spec={"template": template("two")}),
        ready,
        changed("deployments", spec={"template": template("three")}),
        ready,
        changed("deployments", spec={"template": template("four")}),
        ready,
    )


@pytest.mark.parametrize("kind", ["replicasets", "replicationcontrollers"])
def test_replicas(both: tuple[Cluster, Cluster], kind: str) -> None:
    compared(
        both,
        f"of-{kind}",
        made(kind, replicas=3),
        lambda asking, ns: ready(asking, ns, "", 2),
        changed(kind, spec={"replicas": 2}),
        ready,
        changed(kind, metadata={"labels": {"a": "b"}}),
        deleted(kind, policy="Orphan"),
        made(kind, replicas=3),
        ready,
        changed(kind, spec={"replicas": 0}),
        deleted(kind, policy="Foreground"),
    )


def test_a_deployment_is_orphaned_and_adopted(both: tuple[Cluster, Cluster]) -> None:
    compared(
        both,
        "orphans",
        made("deployments", replicas=2),
        ready,
        deleted("deployments", policy="Orphan"),
        made("deployments", replicas=3),
        ready,
        deleted("deployments", policy="Foreground"),
    )


def test_a_quota_keeps_pods_away(both: tuple[Cluster, Cluster]) -> None:
    def quota(asking: Asking, ns: str) -> None:
        body = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
        _sent(asking, "POST", f"{CORE.format(ns)}/resourcequotas", body)
        for _ in range(LOOKS):
            if listed(asking, CORE, ns, "resourcequotas")[0].get("status", {}).get("used"):
                return
            threading.Event().wait(0.1)

    for cluster in both:
        make_namespace(cluster.asking, "quota")
        quota(cluster.asking, "quota")
        made("deployments", replicas=3)(cluster.asking, "quota")
    theirs, ours = (settled(cluster, "quota") for cluster in both)
    assert not _unlike(theirs, ours)
