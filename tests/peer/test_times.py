"""R-SYS-8: the time that Go takes for none is none, however it is spelt, and is asked for where a time must
be given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peer.named_differences import unnamed
from peer.sequence import MERGE_PATCH, Ask, Compared, differences, shown
from peer.server import Server

NS, BATCH, POLICY = (f"/{group}/namespaces/{{ns}}" for group in ("api/v1", "apis/batch/v1", "apis/policy/v1"))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
SCALERS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
NODE = "/api/v1/nodes/{ns}-node"
DRY = "?dryRun=All"
MERGED = {"Content_Type": MERGE_PATCH}
TIMES = ("0001-01-01T00:00:00Z", None, "0001-01-01T00:00:01Z", "0001-01-01T02:00:00+02:00")
MICRO = (*TIMES, "0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000001Z")
READ_AS_ONE = "0001-01-01T00:00:00.000000Z"
"""Where it must be given Kubernetes takes it for one, and then shows none."""
POD_SPEC: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "containers": [{"name": "c", "image": "i"}],
}
REASONED = {"action": "a", "reason": "r", "reportingInstance": "i"}


def made() -> Iterator[Ask]:
    yield Ask("POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": POD_SPEC})
    yield Ask("POST", "/api/v1/nodes", {"metadata": {"name": "{ns}-node"}})
    yield Ask("POST", LEASES, {"metadata": {"name": "l"}})
    job = {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}}
    cron = {"schedule": "0 0 * * *", "jobTemplate": job}
    yield Ask("POST", f"{BATCH}/cronjobs", {"metadata": {"name": "c"}, "spec": cron})
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}
    yield Ask("POST", f"{POLICY}/poddisruptionbudgets", budget)
    scaled = {"kind": "A", "name": "b", "apiVersion": "a/v1"}
    yield Ask(
        "POST", SCALERS, {"metadata": {"name": "h"}, "spec": {"maxReplicas": 1, "scaleTargetRef": scaled}}
    )


def patched(target: str, body: Any, what: object) -> Ask:
    return Ask("PATCH", f"{target}{DRY}", body, MERGED, str(what))


def seconds(time: str | None) -> Iterator[Ask]:
    ours = {"metadata": {"name": "q", "creationTimestamp": time, "deletionTimestamp": time}}
    yield Ask("POST", f"{NS}/pods{DRY}", {**ours, "spec": POD_SPEC}, what=str(time))
    yield patched(f"{NS}/pods/p", {"metadata": {"creationTimestamp": time}}, time)
    condition = {"type": "a", "status": "True"}
    between = {"lastProbeTime": time, "lastTransitionTime": time}
    ended = {"terminated": {"exitCode": 1, "startedAt": time, "finishedAt": time}}
    container = {"name": "c", "image": "i", "imageID": "x", "ready": True, "restartCount": 0}
    states = {"state": {"running": {"startedAt": time}}, "lastState": ended}
    for status in (
        {"startTime": time},
        {"conditions": [{**condition, **between}]},
        {"containerStatuses": [{**container, **states}]},
    ):
        yield patched(f"{NS}/pods/p/status", {"status": status}, time)
    taint = {"key": "a", "effect": "NoExecute", "timeAdded": time}
    yield patched(NODE, {"spec": {"taints": [taint]}}, time)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time}
    yield patched(f"{NODE}/status", {"status": {"conditions": [ready]}}, time)
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "{ns}"}}
    yield Ask("POST", f"{NS}/events{DRY}", {**event, "firstTimestamp": time, "lastTimestamp": time})
    last = {"lastScheduleTime": time, "lastSuccessfulTime": time}
    yield patched(f"{BATCH}/cronjobs/c/status", {"status": last}, time)
    budget: tuple[Any, ...] = (
        {"disruptedPods": {"p": time}},
        {"conditions": [{**condition, "reason": "x", "lastTransitionTime": time}]},
    )
    for status in budget:
        yield patched(f"{POLICY}/poddisruptionbudgets/b/status", {"status": status}, time)
    yield patched(f"{SCALERS}/h/status", {"status": {"lastScaleTime": time}}, time)


def micro(time: str | None) -> Iterator[Ask]:
    yield patched(f"{LEASES}/l", {"spec": {"renewTime": time, "acquireTime": time}}, time)
    if time == READ_AS_ONE:
        return
    event = {**REASONED, "metadata": {"name": "e"}, "eventTime": time}
    older = {"involvedObject": {"namespace": "{ns}"}, "reportingComponent": "c/d"}
    series = {"series": {"count": 2, "lastObservedTime": time}}
    yield Ask("POST", f"{NS}/events{DRY}", {**event, **older, **series}, what=str(time))
    newer = {"type": "Normal", "reportingController": "c/d"}
    yield Ask("POST", f"{EVENTS}{DRY}", {**event, **newer}, what=str(time))


def test_the_time_of_none(kubernetes: Server, podling: Server) -> None:
    asks = [*made(), *(ask for time in TIMES for ask in seconds(time))]
    asks += [*(ask for time in MICRO for ask in micro(time)), Ask("DELETE", NODE)]
    sequence = Compared("times", asks, apart=True)
    found = unnamed(differences(sequence, "times", kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
