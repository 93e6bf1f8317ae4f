"""R-SYS-8: HorizontalPodAutoscalers in both versions are defaulted, converted, validated and changed as by
Kubernetes.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from peer.mutations import GONE, changed, created, updated
from peer.named_differences import unnamed
from peer.sequence import APPLY, MERGE_PATCH, STRATEGIC_PATCH, Ask, Compared, differences, shown
from peer.server import Server

V1 = "/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers"
V2 = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
MERGED = {"Content_Type": MERGE_PATCH}
KEPT = "autoscaling.alpha.kubernetes.io/"
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
SCALER: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h"},
    "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
}
SCALER_V1: dict[str, Any] = {**SCALER, "apiVersion": "autoscaling/v1"}
SELECTED = {"name": "m", "selector": {"matchLabels": {"Aa": "b"}}}
UTILIZATION = {"type": "Utilization", "averageUtilization": 50}
AVERAGE = {"type": "AverageValue", "averageValue": "100m"}
VALUE = {"type": "Value", "value": "1k"}
UP = {"type": "Pods", "value": 1, "periodSeconds": 1}


def metric(type_: str, **source: Any) -> dict[str, Any]:
    return {"type": type_, f"{type_[0].lower()}{type_[1:]}": source}


def by_source(target: Any) -> list[dict[str, Any]]:
    """A metric of each source with this target."""
    return [
        metric("Object", describedObject=TARGET, metric=SELECTED, target=target),
        metric("External", metric=SELECTED, target=target),
        metric("Pods", metric=SELECTED, target=target),
        metric("Resource", name="cpu", target=target),
        metric("Resource", name="memory", target=target),
        metric("ContainerResource", name="cpu", container="c", target=target),
    ]


def kept(annotations: dict[str, Any]) -> dict[str, str]:
    """Annotations of v1, as JSON unless they are text."""
    return {
        f"{KEPT}{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in annotations.items()
    }


AMOUNTS = (("value", "1"), ("averageValue", "2"), ("averageUtilization", 3))
TARGETS: list[dict[str, Any]] = [
    {},
    {"type": "Odd"},
    *(
        {"type": type_, **dict(amounts)}
        for type_ in ("Value", "AverageValue", "Utilization")
        for count in range(4)
        for amounts in itertools.combinations(AMOUNTS, count)
    ),
    *({"type": "Value", name: amount} for name, _ in AMOUNTS[:2] for amount in ("0", "-1", "1n", "x")),
    *({"type": "Utilization", "averageUtilization": percent} for percent in (0, -1, 1)),
]
EVERY_SOURCE = [metric for target in (AVERAGE, VALUE, UTILIZATION) for metric in by_source(target)]
GOOD = [
    *by_source(AVERAGE),
    *by_source(VALUE)[:2],
    *by_source(UTILIZATION)[3:],
    metric("Resource", name="cpu", target={**UTILIZATION, "averageUtilization": 60}),
]
SPECS: list[tuple[str, Any]] = [
    *(("spec.minReplicas", count) for count in (0, -1, 1, 3, 4)),
    *(("spec.maxReplicas", count) for count in (0, -1, 1, GONE)),
    ("spec", {**SCALER["spec"], "minReplicas": -1, "maxReplicas": -1}),
    ("spec", {**SCALER["spec"], "minReplicas": 0, "maxReplicas": 0}),
    ("spec", GONE),
    *(("spec.scaleTargetRef", reference) for reference in (
        {},
        {"kind": "a/b", "name": ".."},
        {"kind": "a%b", "name": ".", "apiVersion": "a/b/c"},
        {**TARGET, "apiVersion": ""},
        {**TARGET, "apiVersion": "v1"},
        {**TARGET, "apiVersion": "/v1"},
        {**TARGET, "apiVersion": "v1/"},
        {**TARGET, "apiVersion": "A_/v1"},
    )),
    ("metadata.name", "No_Name"),
    ("metadata.name", "a.b"),
    ("metadata.annotations", {"a": "b"}),
    ("metadata.generation", 4),
    ("status", {"currentReplicas": 4}),
    ("spec.odd", 1),
]  # fmt: skip
RULES: list[dict[str, Any]] = [
    {},
    {"policies": []},
    {"policies": None},
    {"policies": [{}]},
    {"policies": [UP]},
    {"policies": [{**UP, "type": "Odd"}]},
    {"policies": [{**UP, "value": 0, "periodSeconds": 1800}]},
    {"policies": [{**UP, "value": -1, "periodSeconds": 1801}]},
    {"stabilizationWindowSeconds": -1},
    {"stabilizationWindowSeconds": 3600},
    {"stabilizationWindowSeconds": 3601},
    {"selectPolicy": "Min"},
    {"selectPolicy": "Odd"},
    {"selectPolicy": ""},
    {"tolerance": "-1"},
    {"tolerance": "50m"},
    {"tolerance": "x"},
]
BEHAVIORS: list[Any] = [
    {},
    "null",
    "[]",
    {"scaleUp": {}},
    {"scaleUp": {"policies": [UP]}},
    {"SCALEUP": {"Policies": [{"Type": "Pods", "VALUE": 1, "periodSeconds": 1}], "Tolerance": "50m"}},
    {"scaleDown": {"policies": [UP], "selectPolicy": "Odd"}},
    {"scaleDown": {"policies": "odd"}},
    {"scaleDown": None},
    {"odd": 1},
]
OF_V2: list[tuple[str, Any]] = [
    *SPECS,
    *(("spec.behavior", {way: rules}) for way in ("scaleUp", "scaleDown") for rules in RULES),
    ("spec.behavior", {}),
    ("spec.metrics", []),
    ("spec.metrics", GOOD),
    *(("spec.metrics", [{"type": type_}]) for type_ in (
        "", "Odd", "Object", "External", "Pods", "Resource", "ContainerResource"
    )),
    *(("spec.metrics", [{"type": type_, name: {}}]) for type_, name in (
        ("Object", "object"), ("External", "external"), ("Pods", "pods"), ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
    )),
    ("spec.metrics", [{"type": "Object", **by_source(AVERAGE)[2]}]),
    ("spec.metrics", [{**by_source(AVERAGE)[2], "type": "Object"}]),
    ("spec.metrics", [{**by_source(VALUE)[0], "pods": {}, "type": "Pods"}]),
    ("spec.metrics", [{**by_source(VALUE)[0], "pods": {}}]),
    ("spec.metrics", [metric("Object", describedObject={"kind": "a/b"}, metric={"name": "a/b"})]),
    ("spec.metrics", [metric("Pods", metric={"name": "a%b", "selector": {"matchLabels": {"-": "-"}}})]),
    ("spec.metrics", [metric("Resource", name="A_ b/c", target=AVERAGE)]),
    *(("spec.metrics", [metric("ContainerResource", name=name, container=container, target=AVERAGE)])
      for name, container in (
        ("m", "c"), ("", ""), ("A_ b/c", "a/b"), ("hugepages-2Mi", "c"), ("a.b/c", "c")
    )),
    *(("spec.metrics", [one]) for target in TARGETS for one in by_source(target)),
    *(("metadata.annotations", kept({name: "[]", "x": "y"})) for name in (
        "metrics", "behavior", "conditions", "current-metrics",
    )),
]  # fmt: skip
OLDER: list[Any] = [
    [{"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 50}}],
    [{"Type": "Resource", "RESOURCE": {"Name": "memory", "targetaverageutilization": 50}}],
    [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 5}}],
    [{"type": "Resource", "resource": {"name": "cpu", "targetAverageValue": 5}}],
    [{"type": "Resource", "resource": {"name": "cpu"}}],
    [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 5,
                                       "targetAverageValue": "4"}}],
    [{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
                                                         "targetAverageUtilization": 5}}],
    [{"type": "Object", "object": {"target": TARGET, "metricName": "m", "targetValue": "2"}}],
    [{"type": "Object", "object": {"target": TARGET, "metricName": "m", "targetValue": "0",
                                   "averageValue": "1"}}],
    [{"type": "Object", "object": {"target": TARGET, "metricName": "m", "targetValue": "2",
                                   "averageValue": "1", "selector": {"matchLabels": {"Aa": "Bb"}}}}],
    [{"type": "Object", "object": {}}],
    [{"type": "Pods", "pods": {"metricName": "m"}}],
    [{"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "1", "selector": {}}}],
    [{"type": "External", "external": {"metricName": "m", "targetValue": "1",
                                       "metricSelector": {"matchExpressions": [
                                           {"key": "a", "operator": "In", "values": ["b"]}]}}}],
    [{"type": "External", "external": {"metricName": "m", "targetAverageValue": "1500m"}}],
    [{"type": "External", "external": {"metricName": "m", "targetValue": "1", "targetAverageValue": "1"}}],
    [{"type": "External", "external": {"metricName": "m"}}],
    [{"type": "Odd"}, {}],
    [{"type": 1}],
    [{"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": "x"}}],
    [None],
    [{"type": None, "resource": None}],
    {},
    "null",
    "[]",
    "bad",
    "[] x",
    "",
]  # fmt: skip
OF_V1: list[tuple[str, Any]] = [
    *SPECS,
    *(("spec.targetCPUUtilizationPercentage", percent) for percent in (0, -1, 1, 200, "x")),
    *(("metadata.annotations", {"x": "y", **kept({"metrics": metrics})}) for metrics in OLDER),
    *(("metadata.annotations", kept({"behavior": behavior})) for behavior in BEHAVIORS),
    ("metadata.annotations", kept({"conditions": [{"type": "A", "status": "True"}]})),
    ("metadata.annotations", kept({"current-metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]})),
    ("status", {"currentCPUUtilizationPercentage": 4, "currentReplicas": 2}),
]  # fmt: skip
UPDATES: list[tuple[str, Any]] = [
    ("metadata.labels", {"x": "y"}),
    ("metadata.annotations", {"x": "y"}),
    ("spec.minReplicas", 2),
    ("spec.minReplicas", 0),
    ("spec.maxReplicas", 9),
    ("spec.maxReplicas", None),
    ("spec.scaleTargetRef", {"name": "e"}),
    ("spec.scaleTargetRef", {"apiVersion": None}),
    ("status", {"currentReplicas": 9}),
]
UPDATES_V2 = [
    *UPDATES,
    ("spec.metrics", GOOD),
    ("spec.behavior", {"scaleUp": {"selectPolicy": "Min"}}),
    ("spec.behavior", {"scaleUp": {"policies": []}}),
    ("spec.metrics", None),
    ("spec.behavior", None),
]
UPDATES_V1 = [
    *UPDATES,
    ("spec.targetCPUUtilizationPercentage", 33),
    ("spec.targetCPUUtilizationPercentage", None),
    *(("metadata.annotations", kept({"metrics": metrics})) for metrics in OLDER),
    ("metadata.annotations", kept({"behavior": {"scaleUp": {"policies": [UP]}}})),
    ("metadata.annotations", kept({"conditions": [{"type": "A", "status": "True"}]})),
    ("metadata.annotations", None),
]


def current(type_: str, **source: Any) -> dict[str, Any]:
    amounts = {name: source.pop(name) for name, _ in AMOUNTS if name in source}
    return metric(type_, **source, current=amounts)


AMOUNT = {"value": "7", "averageValue": "5", "averageUtilization": 3}
STATUSES: list[dict[str, Any]] = [
    {"currentReplicas": -1, "desiredReplicas": -1},
    {"currentReplicas": 2, "desiredReplicas": 3, "observedGeneration": 4},
    {"lastScaleTime": "2026-01-01T00:00:00Z"},
    {"conditions": [
        {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
         "reason": "R", "message": "<unknown> & more"},
        {"type": "B", "status": "False"},
    ]},
    *({"currentMetrics": [
        current("Object", describedObject=TARGET, metric=SELECTED, **amount),
        current("External", metric=SELECTED, **amount),
        current("Pods", metric=SELECTED, **amount),
        current("Resource", name="cpu", **amount),
        current("Resource", name="memory", **amount),
        current("ContainerResource", name="cpu", container="c", **amount),
    ]} for amount in (AMOUNT, {}, {"value": "1"}, {"averageValue": "2"}, {"averageUtilization": 6})),
    {"currentMetrics": [current("Resource", name="cpu", averageUtilization=4),
                        current("Resource", name="cpu", averageUtilization=5),
                        current("Resource", name="cpu")]},
    {"currentMetrics": [{"type": "Odd"}]},
    {"currentMetrics": None},
]  # fmt: skip
STATUSES_V1: list[dict[str, Any]] = [
    {"status": {"currentCPUUtilizationPercentage": 4, "currentReplicas": 3, "desiredReplicas": 1}},
    {"metadata": {"annotations": kept({
        "conditions": [{"type": "x<&", "status": "True"}],
        "metrics": [{"type": "Odd"}],
        "behavior": {"scaleUp": {"policies": [UP]}},
    })}, "spec": {"maxReplicas": 7}},
    {"metadata": {"annotations": kept({"conditions": [{"type": "x", "lastTransitionTime": "bad"}]})}},
    {"metadata": {"annotations": kept({"current-metrics": [
        {"type": "Resource", "resource": {"name": "cpu"}},
        {"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 4}},
        {"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 5}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c"}},
        {"type": "Object", "object": {"target": TARGET, "averageValue": "3"}},
        {"type": "Pods", "pods": {"metricName": "m", "selector": {}}},
        {"type": "External", "external": {"currentAverageValue": "3"}},
    ]})}},
    {"metadata": {"annotations": {f"{KEPT}current-metrics": None}}},
    {"status": {"currentReplicas": -1}},
]  # fmt: skip


def seen(*asks: Ask) -> list[Ask]:
    """After each, the object in both versions."""
    return [one for ask in asks for one in (ask, Ask("GET", f"{V1}/h"), Ask("GET", f"{V2}/h"))]


def patched(target: str, body: Any, who: str = "peer", **headers: str) -> Ask:
    return Ask("PATCH", target, body, {**MERGED, "User_Agent": f"{who}/1", **headers})


def status_writes(target: str, bodies: list[dict[str, Any]]) -> list[Ask]:
    writes = [patched(f"{target}/h/status", body) for body in bodies]
    return seen(Ask("POST", V2, changed(SCALER, "spec.metrics", GOOD)), *writes)


TYPES_OF_PATCH = [
    patched(f"{V2}/h", [{"op": "add", "path": "/spec/minReplicas", "value": 2}],
            Content_Type="application/json-patch+json"),
    patched(f"{V1}/h", [{"op": "remove", "path": "/spec/targetCPUUtilizationPercentage"}],
            Content_Type="application/json-patch+json"),
    patched(f"{V2}/h", {"spec": {"metrics": [by_source(AVERAGE)[3]]}}, Content_Type=STRATEGIC_PATCH),
    patched(f"{V2}/h", {"status": {"conditions": [{"type": "A", "status": "True"}]}},
            Content_Type=STRATEGIC_PATCH),
    patched(f"{V2}/h/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}},
            Content_Type=STRATEGIC_PATCH),
    patched(f"{V2}/h/status", {"status": {"conditions": [{"type": "B", "status": "True"}]}},
            Content_Type=STRATEGIC_PATCH),
    patched(f"{V1}/h", {"spec": {"maxReplicas": 5}}, Content_Type=STRATEGIC_PATCH),
    Ask("PUT", f"{V1}/h", SCALER_V1),
    Ask("PUT", f"{V2}/h", SCALER),
    Ask("PUT", f"{V1}/h", SCALER),
    Ask("PUT", f"{V2}/h", SCALER_V1),
    Ask("POST", f"{V2}/h/status", {}),
    Ask("GET", f"{V1}/h/status"),
]  # fmt: skip
SHOWN = [
    Ask("POST", V1, changed(SCALER_V1, "spec.targetCPUUtilizationPercentage", 20)),
    Ask("POST", V2, changed(changed(SCALER, "spec.metrics", GOOD), "metadata.name", "i")),
    Ask("GET", V1),
    Ask("GET", V2),
    Ask("GET", f"{V1}?limit=1"),
    Ask("GET", f"{V1}?fieldSelector=metadata.name%3Di"),
    Ask("GET", f"{V2}?fieldSelector=spec.maxReplicas%3D3"),
    Ask("GET", V1, headers=TABLE),
    Ask("GET", f"{V2}/i", headers=TABLE),
    Ask("GET", f"{V1}/i", headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}),
    Ask("GET", f"{V1}?watch=1&timeoutSeconds=1"),
    Ask("GET", f"{V2}?watch=1&timeoutSeconds=1"),
    Ask("DELETE", f"{V1}/h"),
    Ask("GET", f"{V2}/h"),
    Ask("DELETE", V2),
    Ask("GET", V1),
    Ask("GET", "/apis/autoscaling"),
    Ask("GET", "/apis/autoscaling/v1"),
    Ask("GET", "/apis/autoscaling/v2"),
    Ask("GET", "/apis/autoscaling/v2beta2"),
]


def row(metrics: list[dict[str, Any]], amounts: dict[str, Any], name: str) -> list[Ask]:
    """A new object, whose age is still nothing, with a status, as a row."""
    statuses = [
        current(one["type"], **{key: value for key, value in source.items() if key != "target"}, **amounts)
        for one in metrics
        for field, source in one.items()
        if field != "type"
    ]
    scaler = changed(changed(SCALER, "metadata.name", name), "spec.metrics", metrics)
    return [
        Ask("POST", V2, scaler),
        patched(f"{V2}/{name}/status", {"status": {"currentMetrics": statuses}}),
        Ask("GET", f"{V1}/{name}", headers=TABLE),
    ]


ROWS = [
    ask
    for i, (one, amounts, count) in enumerate(itertools.product(GOOD, ({}, AMOUNT), (0, 1)))
    for ask in row([one, *GOOD[3 : 3 + 2 * count]], amounts, f"h{i}")
]
V2_BODY = changed(SCALER, "spec.metrics", [by_source(VALUE)[0]])
FOREIGN = [
    {"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
     "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}
    for manager, operation, version in (
        ("x", "Update", "autoscaling/v9"), ("y", "Apply", "v1"), ("z", "Apply", "autoscaling/v1"),
    )
]  # fmt: skip


def applied(target: str, body: Any, who: str, force: str = "") -> Ask:
    return Ask("PATCH", f"{target}/h?fieldManager={who}{force}", body, {"Content_Type": APPLY})


FORCED = "&force=true"
MANAGED = seen(
    Ask("POST", V2, V2_BODY),
    patched(f"{V1}/h", {"spec": {"targetCPUUtilizationPercentage": 44, "maxReplicas": 4,
                                 "scaleTargetRef": {"name": "e"}}}, "other"),
    patched(f"{V2}/h", {"spec": {"maxReplicas": 9, "behavior": {"scaleUp": {}}}}, "third"),
    patched(f"{V1}/h", {"metadata": {"annotations": None}}, "fourth"),
    patched(f"{V2}/h", {"metadata": {"managedFields": FOREIGN}, "spec": {"maxReplicas": 20}}),
    patched(f"{V2}/h", {"spec": {"minReplicas": 3}}),
    applied(V1, changed(SCALER_V1, "metadata.annotations", kept({"metrics": []})), "z"),
    applied(V1, changed(SCALER_V1, "spec.targetCPUUtilizationPercentage", 10), "z", FORCED),
    applied(V1, changed(SCALER_V1, "spec.targetCPUUtilizationPercentage", 10), "w"),
    applied(V2, changed(SCALER, "spec.maxReplicas", 7), "z"),
    applied(V2, changed(SCALER, "spec.maxReplicas", 7), "z", FORCED),
    applied(V2, V2_BODY, "z", FORCED),
    applied(V1, SCALER_V1, "z", FORCED),
    applied(V1, SCALER_V1, "w", FORCED),
    applied(V2, SCALER, "v", FORCED),
    patched(f"{V1}/h/status", {"status": {"currentReplicas": 3}}, "controller"),
    patched(f"{V2}/h/status", {"status": {"currentReplicas": 4}}, "other"),
)  # fmt: skip
NEW, OLD = (f"/{base}/namespaces/{{ns}}/events" for base in ("apis/events.k8s.io/v1", "api/v1"))
NOON = "2026-01-02T00:00:10.000000Z"
SERIES = {"count": 2, "lastObservedTime": NOON}
EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "eventTime": NOON,
    "reportingController": "c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "events-in-both"},
    "note": "n",
    "type": "Normal",
}
EVENTS = [
    Ask("GET", f"{NEW}/e"),
    Ask("POST", NEW, {**EVENT, "eventTime": None, "regarding": None}),
    Ask("POST", NEW, {**EVENT, "type": 1}),
    Ask("POST", NEW, EVENT),
    Ask("POST", NEW, EVENT),
    Ask("GET", f"{OLD}/e"),
    patched(f"{NEW}/e", {"note": "m"}),
    patched(f"{NEW}/e", {"series": SERIES}),
    patched(f"{NEW}/e", {"metadata": {"resourceVersion": "1"}}),
    patched(f"{OLD}/e", {"series": {**SERIES, "count": 4}}, "other"),
    patched(f"{OLD}/e", {"message": "o"}, "other"),
    patched(f"{NEW}/e", {"series": {**SERIES, "count": 5}}),
    Ask("GET", f"{NEW}/e"),
    Ask("GET", f"{NEW}?fieldSelector=regarding.name%3Dp"),
    Ask("GET", f"{NEW}?fieldSelector=involvedObject.name%3Dp"),
    Ask("GET", f"{NEW}/e", headers=TABLE),
    Ask("GET", f"{NEW}?watch=1&timeoutSeconds=1"),
    Ask("PUT", f"{NEW}/f", changed(EVENT, "metadata.name", "f")),
    Ask("DELETE", f"{NEW}/e", {"preconditions": {"uid": "x"}}),
    Ask("DELETE", f"{NEW}/e"),
    Ask("GET", f"{OLD}/e"),
    Ask("DELETE", OLD),
    Ask("GET", "/apis/events.k8s.io/v1"),
]
SEQUENCES = [
    Compared("scalers: created", created(V2, SCALER, OF_V2)),
    Compared("scalers v1: created", created(V1, SCALER_V1, OF_V1)),
    Compared("scalers v1: seen by v2", [*created(V1, SCALER_V1, OF_V1), Ask("GET", V2)]),
    Compared("scalers: seen by v1", [*created(V2, SCALER, OF_V2), Ask("GET", V1)]),
    Compared("scalers: updated", updated(V2, SCALER, UPDATES_V2)),
    Compared("scalers v1: updated", updated(V1, SCALER_V1, UPDATES_V1)),
    Compared("scalers: status", status_writes(V2, [{"status": one} for one in STATUSES])),
    Compared("scalers v1: status", status_writes(V1, STATUSES_V1)),
    Compared("scalers: patches", seen(Ask("POST", V2, SCALER), *TYPES_OF_PATCH)),
    Compared("scalers: shown", SHOWN),
    Compared("scalers: rows", ROWS),
    Compared("scalers: managed in both versions", MANAGED),
    Compared("events in both", EVENTS),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.name)
def test_autoscaling(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"
