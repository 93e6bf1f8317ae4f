"""What an evicted pod is told, to the word."""

from __future__ import annotations

from podling.kubelet.eviction.ranking import node_is_low
from podling.kubelet.eviction.thresholds import Reading, Threshold
from podling.kubelet.options.signals import MEMORY, NODEFS_INODES, Amount
from podling.kubelet.stats.summary import ContainerStats, MemoryStats, PodReference, PodStats
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec

MI = 1 << 20
NOW = "2026-01-02T03:04:05Z"


def test_memory_with_who_used_more_than_he_asked_for() -> None:
    asked = ResourceRequirements(requests={"memory": Quantity("20Mi")})
    pod = Pod(spec=PodSpec(containers=[Container(name="a", resources=asked), Container(name="b")]))
    stats = PodStats(
        PodReference(),
        containers=[
            ContainerStats(name="a", memory=MemoryStats(time=NOW, working_set_bytes=20 * MI)),
            ContainerStats(name="b", memory=MemoryStats(time=NOW, working_set_bytes=30 * MI + 4096)),
        ],
    )
    text = node_is_low(Threshold(MEMORY, Amount(100 * MI)), Reading(70 * MI + 4096, 1 << 30), pod, stats)
    assert text == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 71684Ki. "
        "Container b was using 30724Ki, request is 0, has larger consumption of memory. "
    )


def test_inodes() -> None:
    pod, stats = Pod(spec=PodSpec(containers=[Container(name="a")])), PodStats(PodReference())
    text = node_is_low(Threshold(NODEFS_INODES, Amount(share=0.05)), Reading(123, 10_000), pod, stats)
    assert text == "The node was low on resource: inodes. Threshold quantity: 500, available: 123. "
