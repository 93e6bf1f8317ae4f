"""What a node has already need not be pulled (R-SYS-3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podling.model.types.node import ContainerImage, Node
from podling.scheduler.cluster import Cluster
from podling.scheduler.info import PodInfo
from podling.scheduler.score import MIB, locality_scores

Having = Callable[..., Node]


@pytest.fixture
def having(node: Callable[..., Node]) -> Having:
    """`having("n1", **{"a:1": 500})`: a node with images of so many MiB."""

    def make(name: str, **images: int) -> Node:
        made = node(name)
        made.status.images = [
            ContainerImage(names=[image], size_bytes=size * MIB) for image, size in images.items()
        ]
        return made

    return make


@pytest.mark.parametrize(
    ("first", "second", "images", "scores"),
    [
        # Half of the nodes have it, so half of it counts; 23 MiB are left out of account.
        ({"a:1": 500}, {}, ["a:1"], [(250 - 23) * 100 // 977, 0]),
        ({"a:1": 500}, {"a:1": 500}, ["a:1"], [(500 - 23) * 100 // 977] * 2),
        ({"a:latest": 4000}, {}, ["a"], [100, 0]),
        ({"r:5000/a:latest": 4000}, {}, ["r:5000/a"], [100, 0]),
        ({"a:1": 40}, {}, ["a:1"], None),
        ({"a:1": 1000}, {}, ["a:1", "b:1"], [(500 - 23) * 100 // 1977, 0]),
        ({"a:1": 1000}, {}, ["b:1"], None),
    ],
)
def test_by_size_and_by_how_many_have_it(
    first: dict[str, int],
    second: dict[str, int],
    images: list[str],
    scores: list[int] | None,
    having: Having,
    pod: Callable[..., PodInfo],
) -> None:
    cluster = Cluster()
    for node in (having("one", **first), having("two", **second)):
        cluster.put_node(node)
    wanting = pod(containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])
    assert locality_scores(wanting, cluster, list(cluster.nodes.values())) == scores


def test_images_come_and_go(having: Having, pod: Callable[..., PodInfo]) -> None:
    cluster = Cluster()
    wanting = pod(containers=[{"name": "c", "image": "a:1"}])
    cluster.put_node(having("one", **{"a:1": 4000}))
    cluster.put_node(having("one", **{"a:1": 4000, "b:1": 1}))
    assert locality_scores(wanting, cluster, list(cluster.nodes.values())) == [100]
    cluster.put_node(having("one"))
    assert locality_scores(wanting, cluster, list(cluster.nodes.values())) is None
    cluster.put_node(having("one", **{"a:1": 4000}))
    cluster.drop_node("one")
    assert not cluster.having
