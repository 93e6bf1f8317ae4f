"""R-SYS-1: kr8s, which finds its kinds by discovery and streams over `v4.channel.k8s.io`."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import APIObject, ConfigMap, Node, Pod, PodDisruptionBudget, Secret, Service

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.usefixtures("no_socket_left"),
    # It leaves its HTTP client, and a watch that it waited by, to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    # It knows versions up to 1.35, and speaks to 1.36 all the same.
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]

Manifest = dict[str, Any]
PATIENCE = 60


@pytest.fixture
async def cluster(admin: str, space: str) -> kr8s.asyncio.Api:
    return await kr8s.asyncio.api(kubeconfig=admin, namespace=space)


@pytest.fixture
async def running(cluster: kr8s.asyncio.Api, web: Manifest) -> Pod:
    """A pod called `web` that is ready."""
    pod: Pod = await Pod(web, namespace=cluster.namespace, api=cluster)
    await pod.create()
    await pod.wait("condition=Ready", timeout=PATIENCE)
    return pod


def listed(found: APIObject | dict[Any, Any]) -> APIObject:
    assert isinstance(found, APIObject)
    return found


async def make(cluster: kr8s.asyncio.Api, *names: str, **labels: str) -> list[Secret]:
    made = []
    for name in names:
        secret = await Secret({"metadata": {"name": name, "labels": labels}}, api=cluster)
        await secret.create()
        made.append(secret)
    return made


def describe(event: tuple[str, Any]) -> str:
    return f"{event[0]} {event[1].name}"


async def test_what_a_server_serves(cluster: kr8s.asyncio.Api) -> None:
    assert (await cluster.version())["gitVersion"].startswith("v1.36")
    assert await cluster.whoami() == "kubernetes-admin"
    assert {version async for version in cluster.api_versions()} >= {"v1", "policy/v1", "node.k8s.io/v1"}
    kinds = {resource["kind"] for resource in await cluster.api_resources()}
    assert kinds >= {"Pod", "Lease", "EndpointSlice", "RoleBinding", "PodDisruptionBudget"}
    assert await cluster.lookup_kind("po") == ("pod/v1", "pods", True)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("leases.coordination.k8s.io", {"spec": {"holderIdentity": "x"}}),
        ("resourcequotas", {"spec": {"hard": {"pods": "9"}}}),
        ("endpointslices.discovery.k8s.io", {"addressType": "IPv4", "endpoints": []}),
        ("rolebindings.rbac.authorization.k8s.io", {"roleRef": {"kind": "Role", "name": "r"}}),
        ("podtemplates", {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}),
    ],
)
async def test_kinds_found_by_discovery(cluster: kr8s.asyncio.Api, kind: str, body: Manifest) -> None:
    plural = kind.partition(".")[0]
    found = next(r for r in await cluster.api_resources() if r["name"] == plural)
    class_ = kr8s.asyncio.objects.new_class(found["kind"], found["version"], asyncio=True, namespaced=True)
    class_.plural = class_.endpoint = plural
    made = await class_({"metadata": {"name": "one"}, **body}, api=cluster)
    await made.create()
    assert [listed(one).name async for one in cluster.get(kind, "one")] == ["one"]
    await made.annotate(seen="yes")
    assert made.annotations.seen == "yes"
    await made.delete()
    assert not await made.exists()


async def test_objects_are_made_changed_and_deleted(cluster: kr8s.asyncio.Api) -> None:
    config = await ConfigMap({"metadata": {"name": "c"}, "data": {"k": "v"}}, api=cluster)
    await config.create()
    assert config.metadata.uid and await config.exists()
    await config.label(app="web")
    await config.label({"example.com/plain": ""})
    assert config.labels == {"app": "web", "example.com/plain": ""}
    await config.remove_label("example.com/plain")
    await config.patch({"data": {"k": None, "m": "1"}})
    await config.patch([{"op": "add", "path": "/data/j", "value": "2"}], type="json")
    again = await ConfigMap.get("c", namespace=cluster.namespace, api=cluster)
    assert (again.data, again.labels) == ({"m": "1", "j": "2"}, {"app": "web"})
    await config.delete()
    with pytest.raises(kr8s.NotFoundError):
        await config.refresh()


async def test_an_owner_is_followed(cluster: kr8s.asyncio.Api) -> None:
    owner, child = await make(cluster, "owner", "child")
    await child.set_owner(owner)
    await owner.delete(propagation_policy="Background")
    await child.wait("delete", timeout=PATIENCE)
    assert not await child.exists()


async def test_a_long_list_comes_in_pages(cluster: kr8s.asyncio.Api) -> None:
    """kr8s asks for 100 at a time."""
    names = [f"s{number:03}" for number in range(120)]
    await asyncio.gather(*(make(cluster, *names[start::4]) for start in range(4)))
    assert [listed(secret).name async for secret in cluster.get("secrets")] == names


async def test_selectors(cluster: kr8s.asyncio.Api) -> None:
    await make(cluster, "a", "b", tier="front")
    await make(cluster, "c", tier="back")

    async def found(**selectors: Any) -> list[str]:
        return [listed(secret).name async for secret in cluster.get("secrets", **selectors)]

    assert await found(label_selector={"tier": "front"}) == ["a", "b"]
    assert await found(label_selector="tier notin (front)") == ["c"]
    assert await found(field_selector={"metadata.name": "b"}, label_selector="tier") == ["b"]


async def test_a_table_for_people(cluster: kr8s.asyncio.Api, running: Pod) -> None:
    tables = [t async for t in cluster.get("pods", as_object=kr8s.asyncio.objects.Table)]
    table = listed(tables[0])
    assert len(tables) == 1
    assert [column["name"] for column in table.raw["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
    assert table.raw["rows"][0]["cells"][:3] == ["web", "1/1", "Running"]


async def test_a_watch_from_a_version(cluster: kr8s.asyncio.Api) -> None:
    (first,) = await make(cluster, "first")
    since = first.metadata.resourceVersion
    await make(cluster, "second")
    await first.label(x="1")
    await first.delete()
    events = cluster.watch("secrets", since=since)
    async with asyncio.timeout(PATIENCE), aclosing(events):
        told = [describe(await anext(events)) for _ in range(3)]
    assert told == ["ADDED second", "MODIFIED first", "DELETED first"]


async def test_a_watch_of_a_version_that_is_gone_says_so(cluster: kr8s.asyncio.Api, forgotten: str) -> None:
    """What kr8s looks for, to begin anew: a Status of 410 in the first line."""
    wanted = {"watch": "1", "resourceVersion": forgotten}
    async with cluster.call_api("GET", url="secrets", params=wanted, stream=True) as response:
        event = json.loads(await anext(response.aiter_lines()))
    assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_refusal_carries_the_status(cluster: kr8s.asyncio.Api) -> None:
    pod = await Pod({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "A"}]}}, api=cluster)
    with pytest.raises(kr8s.ServerError) as raised:
        await pod.create()
    status: Any = raised.value.status
    assert (status["code"], status["reason"], status["details"]["kind"]) == (422, "Invalid", "Pod")
    assert {cause["field"] for cause in status["details"]["causes"]} >= {
        "spec.containers[0].name",
        "spec.containers[0].image",
    }


async def test_fields_nobody_knows_are_refused_or_warned_of(cluster: kr8s.asyncio.Api) -> None:
    async def create(validation: str) -> Any:
        body = json.dumps({"metadata": {"name": "c"}, "datum": {"a": 1}})
        call = cluster.call_api(
            "POST",
            url="configmaps",
            namespace=cluster.namespace,
            content=body,
            params={"fieldValidation": validation},
        )
        async with call as response:
            return response

    with pytest.raises(kr8s.ServerError) as raised:
        await create("Strict")
    assert 'strict decoding error: unknown field "datum"' in str(raised.value)
    assert (await create("Warn")).headers["Warning"] == '299 - "unknown field \\"datum\\""'


async def test_exec(running: Pod) -> None:
    done = await running.exec(["sh", "-c", "echo out; echo err >&2"])
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 0)
    assert (await running.exec(["sh", "-c", "exit 7"], check=False)).returncode == 7


async def test_logs(cluster: kr8s.asyncio.Api, make_pod: Callable[..., Manifest]) -> None:
    pod = await Pod(make_pod("talk", "seq 5; sleep 1000 & wait"), namespace=cluster.namespace, api=cluster)
    await pod.create()
    await pod.wait("condition=Ready", timeout=PATIENCE)
    lines = pod.logs(follow=True, timeout=PATIENCE)
    async with aclosing(lines):
        assert [await anext(lines) for _ in range(5)] == list("12345")
    assert [line async for line in pod.logs(tail_lines=2)] == ["4", "5"]


async def test_a_port_is_forwarded(running: Pod) -> None:
    async with running.portforward(8080, local_port="auto") as port:
        assert await asyncio.to_thread(fetch, port) == b"served\n"


def fetch(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as page:
        return bytes(page.read())


async def test_a_service_knows_its_pods(cluster: kr8s.asyncio.Api, running: Pod) -> None:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}
    service = await Service({"metadata": {"name": "web"}, "spec": spec}, api=cluster)
    await service.create()
    assert [pod.name for pod in await service.ready_pods()] == ["web"]
    assert await service.ready()


async def test_a_pod_waits_and_goes(running: Pod) -> None:
    await running.wait("jsonpath='{.status.phase}'=Running", timeout=PATIENCE)
    await running.delete(grace_period=1)
    await running.wait("delete", timeout=PATIENCE)
    assert not await running.exists()


async def test_an_eviction_waits_for_its_budget(cluster: kr8s.asyncio.Api, running: Pod) -> None:
    budget = await PodDisruptionBudget(
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}},
        api=cluster,
    )
    await budget.create()
    await budget.wait("condition=DisruptionAllowed=False", timeout=PATIENCE)

    async def evict() -> int:
        body = json.dumps({"metadata": {"name": "web", "namespace": cluster.namespace}})
        call = cluster.call_api(
            "POST",
            url="pods/web/eviction",
            namespace=cluster.namespace,
            content=body,
            raise_for_status=False,
        )
        async with call as response:
            return int(response.status_code)

    assert await evict() == 429
    await budget.delete()
    assert await evict() == 201
    await running.wait("delete", timeout=PATIENCE)


async def test_a_node_is_cordoned_and_tainted(cluster: kr8s.asyncio.Api) -> None:
    """With what does not drive out the pods that run."""
    (node,) = [node async for node in Node.list(api=cluster)]
    assert isinstance(node, Node)
    await node.cordon()
    await until_tainted(node, {"node.kubernetes.io/unschedulable"})
    await node.uncordon()
    await until_tainted(node, set())
    await node.taint("tests", "here", effect="PreferNoSchedule")
    assert [(taint.key, taint.value, taint.effect) for taint in node.taints] == [
        ("tests", "here", "PreferNoSchedule")
    ]
    await node.taint("tests", "here", effect="PreferNoSchedule-")
    assert not node.taints


async def until_tainted(node: Node, keys: set[str]) -> None:
    async with asyncio.timeout(PATIENCE):
        async for _ in node.watch():
            if {taint.key for taint in node.taints} == keys:
                return
