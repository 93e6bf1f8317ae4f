"""R-SYS-8: HorizontalPodAutoscalers ask for as many pods as by the kube-controller-manager, with its
conditions, metrics and events.

Kubernetes' API server passes the APIs of metrics on to a server of the test, which tells both the same
numbers. The same autoscalers are made for the one, then for the other, and compared after the first turn of
each. No other controller runs: the status of targets and pods is written here.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from peer import control_plane
from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking, Server, running
from podling.machine.pki import Authority
from ports import free_port

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

GROUPS = {
    "metrics.k8s.io": "v1beta1",
    "custom.metrics.k8s.io": "v1beta2",
    "external.metrics.k8s.io": "v1beta1",
}
LABELS = {"app": "web"}
NOW = datetime.now(UTC).replace(microsecond=0)
LOOKS = 600
"""At most, a tenth of a second apart: a turn comes 15 s after an autoscaler is made."""


def ago(**past: float) -> str:
    return (NOW - timedelta(**past)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pod(NamedTuple):
    """`cpu` and `memory` are what it uses of what it requests, 100m and 100Mi; `custom` is its metric `hits`.
    Those that are None are not told."""

    cpu: str | None = "100m"
    memory: str | None = "100Mi"
    custom: str | None = "10"
    phase: str = "Running"
    ready: str = "True"
    began: str = ago(hours=1)
    since: str = ago(minutes=59)
    requests: bool = True


class Scenario(NamedTuple):
    metrics: list[dict[str, Any]]
    pods: list[Pod] = [Pod()] * 2
    replicas: int = 2
    least: int = 1
    most: int = 10
    behavior: dict[str, Any] | None = None
    selector: str = "app=web"
    target: dict[str, str] = {"apiVersion": "test.podling.io/v1", "kind": "Web", "name": "web"}
    objects: dict[str, str] = {"requests": "30"}
    """Metrics of the service `s` and of the outside."""
    others: tuple[str, ...] = ()
    """Autoscalers of the same target, which have their turns before."""


def resource(name: str = "cpu", **target: Any) -> dict[str, Any]:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


def of_container(container: str, percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": container, "target": target},
    }


def of_pods(value: str, name: str = "hits") -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def of_object(type_: str, value: str, name: str = "requests", **described: str) -> dict[str, Any]:
    target = {"type": "Value", "value": value} if type_ == "Value" else {"type": type_, "averageValue": value}
    about = {"apiVersion": "v1", "kind": "Service", "name": "s", **described}
    metric = {"name": name, "selector": {"matchLabels": {"a": "b"}}}
    return {"type": "Object", "object": {"metric": metric, "describedObject": about, "target": target}}


def external(kind: str, value: str, name: str = "requests", selector: Any = None) -> dict[str, Any]:
    target = {"type": "Value", "value": value} if kind == "Value" else {"type": kind, "averageValue": value}
    metric = {"name": name, **({"selector": selector} if selector else {})}
    return {"type": "External", "external": {"metric": metric, "target": target}}


PERCENT = [resource(averageUtilization=50)]
SELECTOR = {
    "matchLabels": {"b": "c", "a": "b"},
    "matchExpressions": [
        {"key": "x", "operator": "In", "values": ["2", "1"]},
        {"key": "y", "operator": "Exists"},
    ],
}
FEW, MANY = Pod(cpu="10m"), Pod(cpu="400m")
SCENARIOS: dict[str, Scenario] = {
    "ambiguous": Scenario(PERCENT, others=("a",)),
    "up": Scenario(PERCENT),
    "at-target": Scenario([resource(averageUtilization=100)]),
    "within": Scenario([resource(averageUtilization=95)]),
    "down": Scenario(PERCENT, [FEW] * 4, 4),
    "far-up": Scenario(PERCENT, [MANY] * 2),
    "too-many": Scenario(PERCENT, [MANY] * 2, most=3),
    "too-few": Scenario(PERCENT, [FEW] * 4, 4, least=3),
    "above": Scenario(PERCENT, replicas=12),
    "below": Scenario(PERCENT, replicas=1, least=2),
    "at-zero": Scenario(PERCENT, replicas=0),
    "average": Scenario([resource(averageValue="60m")]),
    "memory": Scenario([resource("memory", averageUtilization=30), resource(averageUtilization=200)]),
    "no-request": Scenario(PERCENT, [Pod(requests=False)] * 2),
    "no-metrics": Scenario(PERCENT, [Pod(cpu=None, memory=None)] * 2),
    "no-pods": Scenario(PERCENT, []),
    "one-missing-up": Scenario(PERCENT, [MANY, Pod(cpu=None, memory=None)]),
    "one-missing-down": Scenario(PERCENT, [FEW, FEW, Pod(cpu=None, memory=None)], 3),
    "one-missing-turns": Scenario(PERCENT, [Pod(cpu="60m"), Pod(cpu=None, memory=None)]),
    "unready": Scenario(PERCENT, [MANY, Pod(phase="Pending", cpu=None, memory=None)]),
    "all-unready": Scenario(PERCENT, [Pod(ready="False", began=ago(seconds=20), since=ago(seconds=20))] * 2),
    "never-ready": Scenario(
        PERCENT, [MANY, Pod(ready="False", began=ago(hours=1), since=ago(minutes=59, seconds=50))]
    ),
    "starting": Scenario(PERCENT, [MANY, Pod(began=ago(seconds=30), since=ago(seconds=5))]),
    "failed": Scenario(PERCENT, [MANY, Pod(phase="Failed")]),
    "container": Scenario([of_container("a", 50)]),
    "container-missing": Scenario([of_container("z", 50)]),
    "pods": Scenario([of_pods("4")]),
    "pods-unknown": Scenario([of_pods("4", "nothing")]),
    "object": Scenario([of_object("Value", "10")]),
    "object-each": Scenario([of_object("AverageValue", "5")]),
    "object-unknown": Scenario([of_object("Value", "10", "nothing")]),
    "object-of-no-kind": Scenario([of_object("Value", "10", kind="Nothing")]),
    "external": Scenario([external("Value", "10")]),
    "external-each": Scenario([external("AverageValue", "5", selector=SELECTOR)]),
    "external-unknown": Scenario([external("Value", "10", "nothing", SELECTOR)]),
    "one-of-two-up": Scenario([*PERCENT, external("Value", "10", "nothing")]),
    "one-of-two-down": Scenario([*PERCENT, external("Value", "10", "nothing")], [FEW] * 4, 4),
    "largest": Scenario([*PERCENT, of_pods("2")]),
    "missing-target": Scenario(
        PERCENT, target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}
    ),
    "unknown-kind": Scenario(PERCENT, target={"apiVersion": "apps/v1", "kind": "Nothing", "name": "web"}),
    "unknown-group": Scenario(PERCENT, target={"apiVersion": "no.such/v1", "kind": "Nothing", "name": "web"}),
    "unscalable": Scenario(PERCENT, target={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"}),
    "other-version": Scenario(PERCENT, target={"apiVersion": "apps/v2", "kind": "Deployment", "name": "web"}),
    "behavior": Scenario(
        PERCENT,
        [MANY] * 2,
        behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
    ),
    "behavior-min": Scenario(
        PERCENT,
        [MANY] * 4,
        4,
        behavior={
            "scaleUp": {
                "selectPolicy": "Min",
                "policies": [
                    {"type": "Pods", "value": 3, "periodSeconds": 60},
                    {"type": "Percent", "value": 30, "periodSeconds": 60},
                ],
            }
        },
    ),
    "behavior-off": Scenario(PERCENT, [MANY] * 2, behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
    "behavior-down": Scenario(
        PERCENT,
        [FEW] * 8,
        8,
        behavior={
            "scaleDown": {
                "stabilizationWindowSeconds": 0,
                "policies": [{"type": "Percent", "value": 30, "periodSeconds": 60}],
            }
        },
    ),
    "behavior-window": Scenario(
        PERCENT, [MANY] * 2, behavior={"scaleUp": {"stabilizationWindowSeconds": 60}}
    ),
    "behavior-held": Scenario(PERCENT, [FEW] * 4, 4, behavior={"scaleDown": {"selectPolicy": "Max"}}),
    "no-selector": Scenario(PERCENT, selector=""),
    "bad-selector": Scenario(PERCENT, selector="a in b"),
    "of-the-namespace": Scenario([of_object("Value", "10", kind="Namespace")]),
    "tolerant": Scenario(PERCENT, behavior={"scaleUp": {"tolerance": "1.5"}}),
}


DEFINITION = {
    "metadata": {"name": "webs.test.podling.io"},
    "spec": {
        "group": "test.podling.io",
        "scope": "Namespaced",
        "names": {"plural": "webs", "kind": "Web"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}
"""What is scaled: a kind on which no controller acts."""


class Told:
    """What the server of metrics says, by namespace."""

    def __init__(self) -> None:
        self.scenarios: dict[str, Scenario] = {}

    def answer(self, target: str) -> Any:
        """None if there is no such page."""
        split = urlsplit(target)
        query = parse_qs(split.query)
        match [unquote(part) for part in split.path.strip("/").split("/")]:
            case ["apis"]:
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
            case ["apis", group, version]:
                return {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    "groupVersion": f"{group}/{version}",
                    "resources": [],
                }
            case ["apis", "metrics.k8s.io", _, "namespaces", ns, "pods"]:
                return self._resources(ns)
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", ns, "pods", "*", "hits"]:
                pods = self.scenarios[ns].pods
                named = [(f"p{i}", pod.custom) for i, pod in enumerate(pods) if pod.custom is not None]
                return self._values(
                    [{"kind": "Pod", "namespace": ns, "name": name, "value": value} for name, value in named]
                )
            case ["apis", "custom.metrics.k8s.io", _, "namespaces", ns, "services", "s", metric]:
                value = self.scenarios[ns].objects.get(metric)
                assert query["metricLabelSelector"] == ["a=b"]
                return self._values(
                    [{"kind": "Service", "namespace": ns, "name": "s", "value": value}] if value else []
                )
            case ["apis", "external.metrics.k8s.io", _, "namespaces", ns, metric]:
                value = self.scenarios[ns].objects.get(metric)
                assert query.get("labelSelector", [""])[0] in ("", "a=b,b=c,x in (1,2),y"), query
                items: list[Any] = [
                    {"metricName": metric, "metricLabels": {}, "timestamp": ago(), "value": one}
                    for one in (value, "5")
                    if value
                ]
                return {
                    "kind": "ExternalMetricValueList",
                    "apiVersion": "external.metrics.k8s.io/v1beta1",
                    "metadata": {},
                    "items": items,
                }
        return None

    def _resources(self, ns: str) -> Any:
        items = [
            {
                "metadata": {"name": f"p{i}", "namespace": ns},
                "timestamp": ago(),
                "window": "15s",
                "containers": [{"name": "a", "usage": {"cpu": pod.cpu, "memory": pod.memory}}],
            }
            for i, pod in enumerate(self.scenarios[ns].pods)
            if pod.cpu is not None
        ]
        return {
            "kind": "PodMetricsList",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": items,
        }

    def _values(self, found: list[dict[str, Any]]) -> Any:
        items = [
            {
                "describedObject": {"kind": one["kind"], "namespace": one["namespace"], "name": one["name"]},
                "metric": {"name": "m"},
                "timestamp": ago(),
                "value": one["value"],
            }
            for one in found
        ]
        return {
            "kind": "MetricValueList",
            "apiVersion": "custom.metrics.k8s.io/v1beta2",
            "metadata": {},
            "items": items,
        }


@contextmanager
def telling(told: Told, directory: Path) -> Iterator[int]:
    """The port of a server of metrics while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = told.answer(self.path)
            body = json.dumps(answer).encode() if answer is not None else b"404 page not found\n"
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "text/plain" if answer is None else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    authority = Authority(directory / "metrics-pki", datetime.now(UTC))
    serving = authority.server("metrics", "metrics", ["localhost", "127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(serving.certificate, serving.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()


class Cluster(NamedTuple):
    server: Server
    told: Told
    directory: Path


@pytest.fixture(scope="module")
def cluster(kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory, told = tmp_path_factory.mktemp("autoscalers"), Told()
    with telling(told, directory) as port, control_plane.kubernetes(kubernetes_programs, directory) as server:
        with server.asking() as asking:
            service = {
                "metadata": {"name": "m"},
                "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
            }
            sent(asking, "POST", "/api/v1/namespaces/default/services", service)
            sent(asking, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            for group, version in GROUPS.items():
                sent(
                    asking,
                    "POST",
                    "/apis/apiregistration.k8s.io/v1/apiservices",
                    registered(group, version, port),
                )
            until(lambda: asking.ask("GET", "/apis/test.podling.io/v1/webs").code == 200)
            until(lambda: all(available(asking, group, version) for group, version in GROUPS.items()))
        yield Cluster(server, told, directory)


def registered(group: str, version: str, port: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "default", "name": "m", "port": port},
        },
    }


def available(asking: Asking, group: str, version: str) -> bool:
    found = asking.ask("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}").body
    return any(
        one["type"] == "Available" and one["status"] == "True"
        for one in found["status"].get("conditions", ())
    )


def until(looks: Any) -> None:
    wait = threading.Event()
    for _ in range(LOOKS):
        if looks():
            return
        wait.wait(0.1)
    raise AssertionError("it does not come")


def sent(asking: Asking, method: str, target: str, body: Any, **headers: str) -> None:
    said = asking.ask(method, target, body, **headers)
    assert said.code < 300, said.body


def make(asking: Asking, ns: str, scenario: Scenario) -> None:
    make_namespace(asking, ns)
    web = {
        "apiVersion": "test.podling.io/v1",
        "kind": "Web",
        "metadata": {"name": "web"},
        "spec": {"replicas": scenario.replicas},
    }
    path = f"/apis/test.podling.io/v1/namespaces/{ns}/webs"
    sent(asking, "POST", path, web)
    status: dict[str, Any] = {"status": {"replicas": scenario.replicas, "selector": scenario.selector}}
    sent(asking, "PATCH", f"{path}/web/status", status, Content_Type=MERGE_PATCH)
    for i, pod in enumerate(scenario.pods):
        requests = {"requests": {"cpu": "100m", "memory": "100Mi"}} if pod.requests else {}
        made = {
            "metadata": {"name": f"p{i}", "labels": LABELS},
            "spec": {"containers": [{"name": "a", "image": "i", "resources": requests}]},
        }
        sent(asking, "POST", f"/api/v1/namespaces/{ns}/pods", made)
        status = {
            "phase": pod.phase,
            "startTime": pod.began,
            "conditions": [{"type": "Ready", "status": pod.ready, "lastTransitionTime": pod.since}],
        }
        sent(
            asking,
            "PATCH",
            f"/api/v1/namespaces/{ns}/pods/p{i}/status",
            {"status": status},
            Content_Type=MERGE_PATCH,
        )
    for name in scenario.others:
        scale_by(asking, ns, name, scenario)


def scale_by(asking: Asking, ns: str, name: str, scenario: Scenario) -> None:
    spec = {
        "scaleTargetRef": scenario.target,
        "minReplicas": scenario.least,
        "maxReplicas": scenario.most,
        "metrics": scenario.metrics,
        **({"behavior": scenario.behavior} if scenario.behavior else {}),
    }
    sent(
        asking,
        "POST",
        f"/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers",
        {"metadata": {"name": name}, "spec": spec},
    )


def outcome(asking: Asking, ns: str, name: str = "h") -> Any:
    """None until the autoscaler has had its turn."""
    found = asking.ask("GET", f"/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers/{name}").body
    status = found.get("status", {})
    if not status.get("conditions"):
        return None
    events = asking.ask("GET", f"/api/v1/namespaces/{ns}/events").body["items"]
    if status["conditions"][0]["reason"] in ("FailedGetScale", "SucceededRescale") and not events:
        return None
    told = sorted(
        f"{one['type']} {one['reason']} {one['message']} by {one['source']['component']}" for one in events
    )
    web = asking.ask("GET", f"/apis/test.podling.io/v1/namespaces/{ns}/webs/web").body
    shown = {
        "replicas": web["spec"]["replicas"],
        "status": {**status, "lastScaleTime": "lastScaleTime" in status},
        "events": told,
    }
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", json.dumps(shown, sort_keys=True))
    # Kubernetes takes those that it names from a map, in any order; so of pods that all fail, any one.
    text = re.sub(r"(?<=missing request for cpu in container a of Pod )p\d", "<pod>", text)
    named = re.compile(r"(?<=multiple HPAs: \[)[^]]+")
    return json.loads(
        named.sub(lambda found: " ".join(sorted(found[0].split())), text.replace(ns, "<namespace>"))
    )


def outcomes(cluster: Cluster, whose: str, command: list[Any]) -> dict[str, Any]:
    """Of all scenarios, after the first turn."""
    log = cluster.directory / f"{whose}.log"
    whole = [str(one) for one in [*command, f"--kubeconfig={cluster.server.kubeconfig}"]]
    spaces = {name: f"{whose}-{name}" for name in SCENARIOS}
    cluster.told.scenarios.update({ns: SCENARIOS[name] for name, ns in spaces.items()})
    with cluster.server.asking() as asking, running(whole, log) as process:
        for name, ns in spaces.items():
            make(asking, ns, SCENARIOS[name])
        before = [(spaces[name], other) for name, one in SCENARIOS.items() for other in one.others]
        # A controller that has just begun takes its first turns in any order.
        until(lambda: all(outcome(asking, ns, other) is not None for ns, other in before))
        for name, ns in spaces.items():
            scale_by(asking, ns, "h", SCENARIOS[name])
        found: dict[str, Any] = {}

        def looked() -> bool:
            for name, ns in spaces.items():
                if name not in found and outcome(asking, ns) is not None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
                    found[name] = outcome(asking, ns)
            return len(found) == len(spaces)

        until(looked)
        for ns in spaces.values():
            sent(asking, "DELETE", f"/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers", {})
    return found


@pytest.fixture(scope="module")
def both(cluster: Cluster, kubernetes_programs: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    flags = {
        "controllers": "horizontal-pod-autoscaler-controller",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": cluster.directory,
    }
    manager = [kubernetes_programs / "kube-controller-manager", *(f"--{k}={v}" for k, v in flags.items())]
    podling = [sys.executable, "-m", "podling", "controllers", "--secure-port=0"]
    return outcomes(cluster, "theirs", manager), outcomes(cluster, "ours", podling)


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_ask_for_the_same(both: tuple[dict[str, Any], dict[str, Any]], name: str) -> None:
    theirs, ours = both
    assert ours[name] == theirs[name]
