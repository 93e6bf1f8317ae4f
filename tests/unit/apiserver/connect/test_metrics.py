"""What nodes and pods use: kubelets are asked when somebody asks, and two samples say what the CPU did."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from podling.apiserver.assemble import ApiServer
from podling.apiserver.connect.kubelets import Kubelets
from podling.apiserver.connect.metrics import (
    LONGEST_WINDOW,
    NODE,
    RESOLUTION,
    Measures,
    Point,
    Use,
    read_sample,
    use_of,
)
from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.kinds.metrics import MEASURED
from podling.model.errors import StatusError
from podling.model.types.node import Node

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

ROOT = "/apis/metrics.k8s.io/v1beta1"
NODES, PODS = f"{ROOT}/nodes", f"{ROOT}/namespaces/default/pods"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


class Node1:
    """The kubelet of `n1`: each second of the clock its container `c` uses `rate` cores."""

    def __init__(self, api: Conversation) -> None:
        self.api, self.rate, self.used, self.asked = api, 0.25, 100.0, 0
        self.at = api.clock.now().timestamp()
        self.fault: Exception | None = None
        self.extra = ""

    async def answer(self, node: Node) -> str:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        now = self.api.clock.now().timestamp()
        self.used += self.rate * (now - self.at)
        self.at = now
        where = 'container="c",namespace="default",pod="p"'
        stamp = int(now * 1000)
        return (
            f"# TYPE container_cpu_usage_seconds_total counter\n"
            f"container_cpu_usage_seconds_total{{{where}}} {self.used} {stamp}\n"
            f"container_memory_working_set_bytes{{{where}}} 1.048576e+06 {stamp}\n"
            f"container_start_time_seconds{{{where}}} 1.7e+09\n"
            f"node_cpu_usage_seconds_total {2 * self.used} {stamp}\n"
            f"node_memory_working_set_bytes 2.097152e+06 {stamp}\n{self.extra}"
        )


@pytest.fixture
async def kubelet(api: Conversation, monkeypatch: pytest.MonkeyPatch) -> Node1:
    """Of the server that the conversation is with from now on; a wait of it moves the clock."""
    kubelet = Node1(api)

    async def sleep(seconds: float) -> None:
        api.clock.move(seconds)

    async def ask(_: Measures, node: Node) -> str:
        return await kubelet.answer(node)

    monkeypatch.setattr("podling.apiserver.connect.metrics.asyncio.sleep", sleep)
    monkeypatch.setattr(Measures, "_ask", ask)
    api.server.close()
    api.server = ApiServer.build(
        api.storage,
        (*KINDS, *MEASURED),
        clock=api.clock,
        connector=api.connector,
        kubelets=Kubelets(ssl.create_default_context),
    )
    await api.server.start()
    await api.post("/api/v1/nodes", {"metadata": {"name": "n1", "labels": {"a": "b"}}})
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    await api.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    for name in ("p", "q"):
        made = await api.post(
            "/api/v1/namespaces/default/pods",
            {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec},
        )
        assert made.status == 201, made.body
        await api.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"phase": "Running"}})
    return kubelet


async def test_who_asks_first_waits_for_a_second_sample(api: Conversation, kubelet: Node1) -> None:
    listed = (await api.get(PODS)).body
    assert listed["kind"] == "PodMetricsList"
    assert listed["items"] == [
        {
            "metadata": {
                "name": "p",
                "namespace": "default",
                "creationTimestamp": "2026-01-02T03:04:06Z",
                "labels": {"app": "p"},
            },
            "timestamp": "2026-01-02T03:04:06Z",
            "window": "1s",
            "containers": [{"name": "c", "usage": {"cpu": "250m", "memory": "1Mi"}}],
        }
    ]
    node = (await api.get(f"{NODES}/n1")).body
    assert node["usage"] == {"cpu": "500m", "memory": "2Mi"} and node["kind"] == "NodeMetrics"
    assert kubelet.asked == 2


async def test_a_kubelet_is_asked_again_when_what_it_said_is_old(api: Conversation, kubelet: Node1) -> None:
    await api.get(NODES)
    api.clock.move(RESOLUTION - 1)
    await api.get(NODES)
    assert kubelet.asked == 2
    kubelet.rate = 0.5
    api.clock.move(1)
    measured = (await api.get(f"{PODS}/p")).body
    assert (measured["window"], measured["containers"][0]["usage"]["cpu"]) == ("15s", "500m")
    assert kubelet.asked == 3
    api.clock.move(LONGEST_WINDOW + 1)
    assert (await api.get(f"{PODS}/p")).body["window"] == "1s"


async def test_what_is_not_known_is_not_found(api: Conversation, kubelet: Node1) -> None:
    missing = await api.get(f"{PODS}/q")
    assert (missing.status, missing.message) == (404, 'podmetrics.metrics.k8s.io "default/q" not found')
    assert (await api.get(f"{PODS}/r")).message == 'pods "r" not found'
    assert (await api.get(f"{NODES}/n2")).message == 'nodes "n2" not found'
    await api.patch("/api/v1/namespaces/default/pods/p/status", {"status": {"phase": "Failed"}})
    assert (await api.get(f"{PODS}/p")).message == 'pods "p" not found'
    assert (await api.get(PODS)).body["items"] == []


@pytest.mark.parametrize("fault", [OSError("no route"), TimeoutError(), StatusError(500, "", "no address")])
async def test_a_kubelet_that_does_not_answer_is_left_out_for_a_while(
    api: Conversation, kubelet: Node1, fault: Exception
) -> None:
    kubelet.fault = fault
    assert (await api.get(NODES)).body["items"] == []
    missing = await api.get(f"{NODES}/n1")
    assert (missing.status, missing.message) == (404, 'nodemetrics.metrics.k8s.io "n1" not found')
    assert kubelet.asked == 1
    kubelet.fault = None
    api.clock.move(RESOLUTION)
    assert len((await api.get(NODES)).body["items"]) == 1


async def test_a_pod_is_told_when_all_its_containers_are_known(api: Conversation, kubelet: Node1) -> None:
    where = 'container="d",namespace="default",pod="p"'
    kubelet.extra = (
        f"container_cpu_usage_seconds_total{{{where}}} 1\ncontainer_memory_working_set_bytes{{{where}}} 1\n"
    )
    await api.get(PODS)
    kubelet.extra = ""
    api.clock.move(RESOLUTION)
    assert [one["name"] for one in (await api.get(f"{PODS}/p")).body["containers"]] == ["c"]
    kubelet.extra = (
        f"container_cpu_usage_seconds_total{{{where}}} 1\ncontainer_memory_working_set_bytes{{{where}}} 1\n"
    )
    api.clock.move(RESOLUTION)
    assert (await api.get(PODS)).body["items"] == []


async def test_selectors_and_tables(api: Conversation, kubelet: Node1) -> None:
    for query, count in (
        ("labelSelector=app%3Dp", 1),
        ("labelSelector=app%3Dq", 0),
        ("fieldSelector=metadata.name%3Dp", 1),
        ("fieldSelector=metadata.name%3Dq", 0),
    ):
        assert len((await api.get(f"{PODS}?{query}")).body["items"]) == count, query
    assert (await api.get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1")).status == 400
    assert len((await api.get(f"{NODES}?labelSelector=a%3Db")).body["items"]) == 1
    table = (await api.get(PODS, **TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
    assert [row["cells"] for row in table["rows"]] == [["p", "250m", "1Mi", "1s"]]
    assert (await api.get(f"{NODES}/n1", **TABLE)).body["rows"][0]["cells"] == ["n1", "500m", "2Mi", "1s"]
    assert (await api.post(PODS, {})).status == 405
    assert (await api.get(f"{ROOT}/watch/pods")).status == 404


def point(at: float, cpu: float, begun: float = -1.0) -> Point:
    return Point(at, cpu, 7.0, begun)


@pytest.mark.parametrize(
    ("last", "before", "use"),
    [
        (point(20, 6), point(10, 1), Use(500_000_000, 7, 20, 10)),
        (point(20, 6), None, None),
        (point(20, 6, 10), None, Use(600_000_000, 7, 20, 10)),
        (point(200, 6, 10), None, None),
        (point(20, 6, 15), point(10, 100), Use(1_200_000_000, 7, 20, 5)),
        (point(20, 1), point(10, 6), None),
        (point(20, 6), point(20, 6), None),
    ],
    ids=["between two", "only one", "begun lately", "begun long ago", "begun again", "less", "the same"],
)
def test_two_points_say_what_was_used(last: Point, before: Point | None, use: Use | None) -> None:
    assert use_of(last, before) == use


def test_a_sample_has_what_has_both_cpu_and_memory() -> None:
    text = """# HELP node_cpu_usage_seconds_total x
node_cpu_usage_seconds_total 2.5 1700000001500
node_memory_working_set_bytes 1e+06
container_cpu_usage_seconds_total{container="a",namespace="n",pod="p"} 1
container_swap_usage_bytes{container="a",namespace="n",pod="p"} 0
pod_cpu_usage_seconds_total{namespace="n",pod="p"} 9
container_memory_working_set_bytes{container="b",namespace="n",pod="p"} NaN
"""
    assert read_sample(text, 5.0) == {NODE: Point(1700000001.5, 2.5, 1e6)}
