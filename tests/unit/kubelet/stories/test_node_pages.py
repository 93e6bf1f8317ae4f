"""What the kubelet tells of itself and its node, asked of a kubelet that runs a pod in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from podling.cri.hollow.script import ExecOutcome, HollowImage, Script
from podling.kubelet.options.table import configuration
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.kubelet.stories.conftest import Node, Play


async def page(node: Node, target: str) -> str:
    path = target.partition("?")[0]
    response = await node.kubelet.pages[path](make_mocked_request("GET", target))
    assert isinstance(response, web.Response) and isinstance(response.body, bytes)
    return response.body.decode()


def test_the_summary_shows_pods_and_their_containers(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        pod = await node.until("web", node.is_ready)
        summary = json.loads(await page(node, "/stats/summary"))
        [shown] = summary["pods"]
        assert shown["podRef"] == {"name": "web", "namespace": "default", "uid": pod.metadata.uid}
        [container] = shown["containers"]
        assert container["name"] == "app"
        assert container["rootfs"]["usedBytes"] == 4096
        assert shown["ephemeral-storage"]["usedBytes"] >= 4096
        assert summary["node"]["nodeName"] == "n1"
        assert summary["node"]["memory"]["availableBytes"] > 0
        assert summary["node"]["fs"]["capacityBytes"] > summary["node"]["fs"]["availableBytes"] > 0
        assert {"kubelet", "pods"} == {part["name"] for part in summary["node"]["systemContainers"]}

    play(story, app=HollowImage((Script(written_bytes=4096),), present=True))


def test_a_summary_of_cpu_and_memory_asks_the_runtime_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        summary = json.loads(await page(node, "/stats/summary?only_cpu_and_memory=true"))
        assert "fs" not in summary["node"]
        assert "rootfs" not in summary["pods"][0]["containers"][0]
        assert "list_container_stats" not in await page(node, "/metrics")

    play(story)


def test_what_was_counted_is_told(play: Play) -> None:
    """R-EPH-9"""

    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        text = await page(node, "/metrics")
        for line in (
            'kubelet_node_name{node="n1"} 1.0',
            "kubelet_running_pods 1.0",
            'kubelet_running_containers{container_state="running"} 1.0',
            'kubelet_desired_pods{static=""} 1.0',
            "kubelet_managed_ephemeral_containers 0.0",
            'kubelet_started_containers_total{container_type="container"} 1.0',
            "kubelet_started_pods_total 1.0",
            'kubelet_pod_start_duration_seconds_bucket{le="+Inf"} 1.0',
            'kubelet_runtime_operations_total{operation_type="run_podsandbox"} 1.0',
        ):
            assert line in text.splitlines(), line

    play(story)


def test_probes_are_counted_while_their_pod_is_there(play: Play) -> None:
    async def story(node: Node) -> None:
        probe = {"exec": {"command": ["check"]}, "periodSeconds": 5}
        pod = await node.create("web", {"readinessProbe": probe})
        await node.until("web", node.is_ready)
        meta = f'namespace="default",pod="web",pod_uid="{pod.metadata.uid}"'
        line = f'prober_probe_total{{container="app",{meta},probe_type="Readiness",result="successful"}} 1.0'
        assert line in await page(node, "/metrics/probes")
        await node.client.delete(Pod, "web", "default")
        await node.until_gone("web")
        await node.until_idle("web")
        assert "web" not in await page(node, "/metrics/probes")

    checked = Script(executes={("check",): ExecOutcome()})
    play(story, app=HollowImage((checked,), present=True))


def test_what_runs_is_listed(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        pod = await node.until("web", node.is_ready)
        [item] = json.loads(await page(node, "/runningpods/"))["items"]
        assert item["metadata"] == {"name": "web", "namespace": "default", "uid": pod.metadata.uid}
        assert item["spec"]["containers"] == [{"name": "app", "image": "app:1", "resources": {}}]

    play(story)


def test_usage_is_told_as_metrics(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.create("web")
        await node.until("web", node.is_ready)
        text = await page(node, "/metrics/resource")
        assert "node_memory_working_set_bytes " in text
        assert 'container_start_time_seconds{container="app",namespace="default",pod="web"}' in text
        assert "resource_scrape_error 0.0" in text.splitlines()
        cadvisor = await page(node, "/metrics/cadvisor")
        assert 'container_fs_usage_bytes{container="app",namespace="default",pod="web"} 0.0' in cadvisor
        assert "machine_cpu_cores" in cadvisor

    play(story)


def test_the_configuration_is_told(play: Play) -> None:
    async def story(node: Node) -> None:
        told = json.loads(await page(node, "/configz"))["kubeletconfig"]
        assert told == configuration(node.config)
        assert (told["kind"], told["maxPods"]) == ("KubeletConfiguration", 110)
        assert (told["containerLogMaxSize"], told["evictionPressureTransitionPeriod"]) == ("10Mi", "5m0s")

    play(story)
