from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podling.scheduler.info import DEFAULT_CPU, DEFAULT_MEMORY, NANO, PodInfo

INIT = [{"name": "i", "resources": {"requests": {"cpu": "2"}}}]


def test_amounts_are_those_of_the_whole_pod(pod: Callable[..., PodInfo]) -> None:
    """R-INIT-9: an init container that needs more than the app decides."""
    info = pod(cpu="500m", initContainers=INIT, overhead={"cpu": "250m"})
    assert info.requests == {"cpu": 2 * NANO + NANO // 4}


def test_who_asks_for_nothing_is_compared_as_if_it_did(pod: Callable[..., PodInfo]) -> None:
    info = pod(cpu="1")
    assert (info.cpu, info.memory) == (NANO, DEFAULT_MEMORY)
    two = pod(containers=[{"name": "a"}, {"name": "b"}])
    assert (two.requests, two.cpu) == ({}, 2 * DEFAULT_CPU)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"cpu": "1"}, {"cpu": "1000m"}, True),
        ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, True),
        ({"cpu": "1"}, {"cpu": "2"}, False),
        ({"nodeSelector": {"disk": "ssd"}}, {}, False),
        ({"tolerations": [{"operator": "Exists"}]}, {}, False),
    ],
)
def test_pods_are_alike_when_every_node_answers_them_alike(
    one: dict[str, Any], other: dict[str, Any], alike: bool, pod: Callable[..., PodInfo]
) -> None:
    assert (pod("p", **one).shape() == pod("q", **other).shape()) is alike
