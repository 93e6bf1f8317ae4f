"""R-SYS-8: Endpoints and EndpointSlices come to the same as by the kube-controller-manager, with the time of
what they tell of.

Two API servers of podling are sent the same; beside one run podling's controllers, beside the other those of
the kube-controller-manager. No kubelet runs: the status of pods is written here.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from peer.sequence import MERGE_PATCH, make_namespace
from peer.server import Asking
from peer.two_managers import LOOKED_AT, both_running

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = "endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller"
LOOKS, SAME = 300, 5
"""How often is looked, a tenth of a second apart, and how often in a row nothing must have changed."""
CORE, DISCOVERY = "/api/v1/namespaces/{}", "/apis/discovery.k8s.io/v1/namespaces/{}"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
LABELS = {"app": "web"}
NODES = {"n1": "", "n2": "east", "n3": "west"}
"""With the zone of each."""


class Cluster(NamedTuple):
    asking: Asking
    controllers: subprocess.Popen[bytes]
    namespace: str

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        said = self.asking.ask(method, CORE.format(self.namespace) + path, body, **headers)
        assert said.code < 300, said.body
        return said.body

    def patch(self, path: str, **body: Any) -> None:
        self.send("PATCH", path, body, Content_Type=MERGE_PATCH)

    def service(self, name: str = "web", **spec: Any) -> None:
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        body = {"metadata": {"name": name}, "spec": {"selector": LABELS, "ports": ports, **spec}}
        self.send("POST", "/services", body)

    def pod(self, name: str, number: int, at: str = "", status: str = "True", node: str = "n1") -> None:
        """With an address; with a condition since a time, if one is given."""
        body = {
            "metadata": {"name": name, "labels": LABELS},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "a"}]},
        }
        self.send("POST", "/pods", body)
        address = f"10.0.0.{number}"
        told: dict[str, Any] = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        self.patch(f"/pods/{name}/status", status=told | self._conditions(at, status))

    def ready(self, name: str, at: str, status: str = "True") -> None:
        self.patch(f"/pods/{name}/status", status=self._conditions(at, status))

    def _conditions(self, at: str, status: str) -> dict[str, Any]:
        condition = {"type": "Ready", "status": status, "lastTransitionTime": f"2026-01-02T03:04:{at}Z"}
        return {"conditions": [condition]} if at else {}

    def state(self) -> list[str]:
        times = {
            one["metadata"]["creationTimestamp"]: "when the service was made"
            for one in self.send("GET", "/services")["items"]
        }
        found = list(self.send("GET", "/endpoints")["items"])
        found += self.slices()
        return sorted(_plain(one, times) for one in found)

    def slices(self) -> list[Any]:
        path = f"{DISCOVERY.format(self.namespace)}/endpointslices"
        items: list[Any] = self.asking.ask("GET", path).body["items"]
        return items

    def settled(self) -> list[str]:
        before, same = list[str](), 0
        for _ in range(LOOKS):
            now = self.state()
            same = same + 1 if now == before else 0
            if same == SAME:
                break
            before = now
            with suppress(subprocess.TimeoutExpired):
                self.controllers.wait(0.1)
        return before


def _plain(one: dict[str, Any], times: dict[str, str]) -> str:
    """Without what no two clusters have alike."""
    meta = one["metadata"]
    annotations = dict(meta.get("annotations", {}))
    if (at := annotations.get(TRIGGER)) in times:
        annotations[TRIGGER] = times[at]
    owners = [{**owner, "uid": ""} for owner in meta.get("ownerReferences", ())]
    for endpoint in (*(one.get("endpoints") or ()), *_addresses(one)):
        endpoint.get("targetRef", {}).pop("uid", None)
    if one.get("endpoints"):
        # A mirror has them in no order.
        one["endpoints"].sort(key=lambda endpoint: str(endpoint["addresses"]))
    kept = {key: one.get(key) for key in ("subsets", "addressType", "endpoints", "ports")}
    name = re.sub(r"-[a-z0-9]{5}$", "-", meta["name"])
    about = {"name": name, "labels": meta.get("labels"), "annotations": annotations, "owners": owners}
    return json.dumps({**about, **kept}, sort_keys=True)


def _addresses(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for subset in one.get("subsets") or ():
        yield from (*subset.get("addresses", ()), *subset.get("notReadyAddresses", ()))


class Both(NamedTuple):
    kubernetes: Cluster
    podling: Cluster

    def do(self, what: str, *args: Any, **options: Any) -> None:
        """In both, who must come to the same. Where they differ, one may have had no processor for as long as
        the rest that is waited for: both are looked at again."""
        for cluster in self:
            getattr(cluster, what)(*args, **options)
        with ThreadPoolExecutor(2) as together:
            for _ in range(LOOKED_AT):
                theirs, ours = together.map(Cluster.settled, self)
                if theirs == ours:
                    break
        unlike = [f"{one}\n{other}" for one, other in zip_longest(theirs, ours) if one != other]
        assert not unlike, "\n".join([f"{what} {args} {options}", *unlike])


@pytest.fixture(scope="module")
def clusters(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Cluster]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with both_running(kubernetes_programs, there, here, CONTROLLERS) as clusters:
        made = [Cluster(one.asking, one.controllers, "") for one in clusters]
        for cluster in made:
            for name, zone in NODES.items():
                labels = {"topology.kubernetes.io/zone": zone} if zone else {}
                body = {"metadata": {"name": name, "labels": labels}}
                assert cluster.asking.ask("POST", "/api/v1/nodes", body).code == 201
            _until_it_runs(cluster._replace(namespace="begin"))
        yield made[0], made[1]


def _until_it_runs(cluster: Cluster) -> None:
    make_namespace(cluster.asking, cluster.namespace)
    cluster.service("first")
    for _ in range(LOOKS):
        if len(cluster.state()) == 2:
            return
        with suppress(subprocess.TimeoutExpired):
            cluster.controllers.wait(0.1)
    raise AssertionError("no endpoints were made")


@pytest.fixture
def both(clusters: tuple[Cluster, Cluster], request: pytest.FixtureRequest) -> Both:
    namespace = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    made = Both(*(cluster._replace(namespace=namespace) for cluster in clusters))
    for cluster in made:
        make_namespace(cluster.asking, namespace)
    return made


def test_when_it_happened(both: Both) -> None:
    """Of pods that come, get ready and unready, and go; of a change without a time; and what people write."""
    both.do("pod", "early", 1, "01")
    both.do("service")
    both.do("pod", "second", 2)
    both.do("ready", "second", "07")
    both.do("ready", "second", "07", "True")
    both.do("ready", "early", "09", "False")
    both.do("patch", "/services/web", metadata={"labels": {"tier": "x"}})
    both.do("ready", "early", "05", "True")
    both.do("patch", "/pods/second", metadata={"labels": {"app": "other"}})
    both.do("patch", "/endpoints/web", metadata={"annotations": {"by": "hand", TRIGGER: "then"}})
    both.do("patch", "/pods/second", metadata={"labels": LABELS})
    both.do("send", "DELETE", "/pods/early", {"gracePeriodSeconds": 0})
    both.do("service", "late")


def test_a_slice_is_used_for_other_ports(both: Both) -> None:
    """That of a service without pods becomes that of its pods, and back."""
    both.do("service")
    uids = [{one["metadata"]["uid"] for one in cluster.slices()} for cluster in both]
    both.do("pod", "a", 1, "01")
    ports = [{"name": "http", "port": 80, "targetPort": 9090}]
    both.do("patch", "/services/web", spec={"ports": ports})
    both.do("send", "DELETE", "/pods/a", {"gracePeriodSeconds": 0})
    assert [{one["metadata"]["uid"] for one in cluster.slices()} for cluster in both] == uids


def test_annotations_of_slices_stay(both: Both) -> None:
    both.do("pod", "a", 1, "01")
    both.do("service")
    for cluster in both:
        (one,) = cluster.slices()
        path = f"{DISCOVERY.format(cluster.namespace)}/endpointslices/{one['metadata']['name']}"
        body = {"metadata": {"annotations": {"by": "hand"}, "labels": {"by": "hand"}}}
        assert cluster.asking.ask("PATCH", path, body, Content_Type=MERGE_PATCH).code == 200
    both.do("ready", "a", "03", "False")
    both.do("patch", "/services/web", metadata={"annotations": {"a": "b"}})


def test_mirrored(both: Both) -> None:
    both.do("service", selector=None)
    addresses = [{"ip": "192.0.2.1"}]
    subsets = [{"addresses": addresses, "ports": [{"name": "http", "port": 80}]}]
    annotations = {"a": "b", TRIGGER: "2026-01-02T03:04:05Z"}
    body = {"metadata": {"name": "web", "annotations": annotations}, "subsets": subsets}
    both.do("send", "POST", "/endpoints", body)
    uids = [{one["metadata"]["uid"] for one in cluster.slices()} for cluster in both]
    both.do("patch", "/endpoints/web", subsets=[{**subsets[0], "ports": [{"name": "http", "port": 81}]}])
    assert [{one["metadata"]["uid"] for one in cluster.slices()} for cluster in both] == uids
    addresses.append({"ip": "192.0.2.2"})
    both.do("patch", "/endpoints/web", subsets=subsets, metadata={"annotations": {TRIGGER: None}})


@pytest.mark.parametrize("distribution", ["PreferClose", "PreferSameZone", "PreferSameNode"])
def test_hints(both: Both, distribution: str) -> None:
    """Of endpoints with zones, without, not ready, and on a node that is not there."""
    both.do("pod", "a", 1, "01", node="n2")
    both.do("pod", "b", 2, "02", node="n3")
    both.do("pod", "c", 3, "03", "False", node="n3")
    both.do("pod", "lost", 4, "04", node="nowhere")
    both.do("service", trafficDistribution=distribution)
    both.do("service", "published", trafficDistribution=distribution, publishNotReadyAddresses=True)
    both.do("ready", "c", "05")
    both.do("pod", "d", 5, "06", node="n1")
    both.do("patch", "/services/web", spec={"trafficDistribution": None})
