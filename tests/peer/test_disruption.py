"""PodDisruptionBudgets of all workloads come to the same as by the kube-controller-manager: counts,
conditions, and what is told of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from peer.sequence import MERGE_PATCH
from peer.server import Asking
from peer.two_managers import (
    CORE,
    PATHS,
    Seen,
    Step,
    Told,
    both_running,
    deleted,
    listed,
    lived,
    made,
    masked,
    sent,
    unlike,
)

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = (
    "disruption-controller,deployment-controller,replicaset-controller,replicationcontroller-controller,"
    "statefulset-controller"
)
POLICY = "/apis/policy/v1/namespaces/{}"
LABELS = {"app": "work"}
POD = {"containers": [{"name": "a", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
SELECTOR = {"selector": {"matchLabels": LABELS}}
PLACES = {**PATHS, "deployments": "/apis/apps/v1/namespaces/{}", "replicasets": "/apis/apps/v1/namespaces/{}"}


def budget(name: str = "budget", selector: Any = None, **spec: Any) -> Step:
    chosen = SELECTOR if selector is None else {"selector": selector}
    body = {"metadata": {"name": name}, "spec": {**chosen, **spec}}
    return lambda asking, ns: sent(asking, "POST", f"{POLICY.format(ns)}/poddisruptionbudgets", body)


def workload(plural: str, **spec: Any) -> Step:
    body = {"metadata": {"name": "work"}, "spec": {**SELECTOR, "template": TEMPLATE, **spec}}
    place = PLACES.get(plural, CORE)
    return lambda asking, ns: sent(asking, "POST", f"{place.format(ns)}/{plural}", body)


def scaled(plural: str, replicas: int) -> Step:
    def step(asking: Asking, ns: str) -> None:
        target = f"{PLACES.get(plural, CORE).format(ns)}/{plural}/work"
        body = {"spec": {"replicas": replicas}}
        sent(asking, "PATCH", target, body, Content_Type=MERGE_PATCH)

    return step


def pods_ready(asking: Asking, ns: str) -> None:
    _all_pods(asking, ns, "True")


def one_unready(asking: Asking, ns: str) -> None:
    _all_pods(asking, ns, "False", 1)


def one_evicted(asking: Asking, ns: str) -> None:
    name = min(one["metadata"]["name"] for one in listed(asking, ns, "pods"))
    asking.ask("POST", f"{CORE.format(ns)}/pods/{name}/eviction", {"metadata": {"name": name}})


def _all_pods(asking: Asking, ns: str, ready: str, most: int | None = None) -> None:
    pods = sorted(listed(asking, ns, "pods"), key=lambda one: one["metadata"]["name"])
    for one in pods[:most]:
        conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-02T03:04:05Z"}]
        body = {"status": {"phase": "Running", "conditions": conditions}}
        target = f"{CORE.format(ns)}/pods/{one['metadata']['name']}/status"
        sent(asking, "PATCH", target, body, Content_Type=MERGE_PATCH)


def state(seen: Seen, ns: str) -> list[str]:
    told = []
    for one in seen.of(ns, "poddisruptionbudgets"):
        status = one["status"]
        # Whose names are generated.
        status["disruptedPods"] = len(status.get("disruptedPods") or {})
        told.append(masked(f"{one['metadata']['name']} {sorted(status.items(), key=str)}"))
    return sorted(told)


def of(plural: str, **spec: Any) -> list[Step]:
    return [
        budget(**(spec or {"minAvailable": "50%"})),
        workload(plural, replicas=3),
        pods_ready,
        one_unready,
        pods_ready,
        scaled(plural, 1),
    ]


STORIES: dict[str, Sequence[Step]] = {
    "deployment": of("deployments"),
    "deployment-max": of("deployments", maxUnavailable=1),
    "replica-set": of("replicasets", maxUnavailable="34%"),
    "stateful-set": [budget(maxUnavailable=1), workload("statefulsets", serviceName="s", replicas=2)]
    + [pods_ready] * 3
    + [one_unready],
    "bare-pods": [
        budget(minAvailable=1),
        made("pods", POD, "one", labels=LABELS),
        made("pods", POD, "two", labels=LABELS),
        pods_ready,
        one_unready,
        deleted("pods", "one"),
    ],
    "bare-pods-by-share": [
        budget(maxUnavailable="50%"),
        made("pods", POD, "one", labels=LABELS),
        pods_ready,
    ],
    "nothing-selected": [budget(minAvailable=1, selector={"matchLabels": {"app": "none"}})],
    "everything-selected": [
        budget(minAvailable=1, selector={}),
        made("pods", POD, "one", labels={"any": "thing"}),
        pods_ready,
    ],
    "evicted": [
        budget(minAvailable=1),
        workload("replicasets", replicas=2),
        pods_ready,
        one_evicted,
        pods_ready,
    ],
    "unhealthy-may-go": [
        budget(minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow"),
        workload("replicasets", replicas=2),
        pods_ready,
        one_unready,
        one_evicted,
    ],
}


@pytest.fixture(scope="module")
def told(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as clusters:
        yield lived(clusters, STORIES, state)


@pytest.mark.parametrize("story", STORIES)
def test_a_budget_comes_to_the_same(told: list[dict[str, Told]], story: str) -> None:
    theirs, ours = told
    assert all(theirs[story].steps)
    theirs[story].events[:] = [line for line in theirs[story].events if "PodDisruptionBudget" in line]
    ours[story].events[:] = [line for line in ours[story].events if "PodDisruptionBudget" in line]
    assert unlike(theirs[story], ours[story]) == []
