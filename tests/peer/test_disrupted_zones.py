"""R-SYS-8: lost nodes are given up, while few, most or all of a zone are lost, as by the
kube-controller-manager.

The test is the kubelets, as in `test_lost_nodes.py`. Kubernetes looks how many are lost after it has queued
the last of them, and takes from the queue meanwhile if the rate allows it: the node by which a zone is
disrupted is given up or not, by chance. So in the stories either the rate does not allow it, or nobody looks
at that node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from peer.sequence import MERGE_PATCH
from peer.server import Asking
from peer.test_lost_nodes import (
    GRACE,
    LIVES,
    NODES,
    UNREACHABLE,
    joins,
    living,
    lost,
    pod,
    silent,
    speaks,
    state,
    taints,
    taken,
    untainted,
    until,
)
from peer.two_managers import Step, Told, both_running, lived, sent, together, unlike

pytestmark = pytest.mark.interop("kube-controller-manager", "API server")

CONTROLLERS = "node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller"
OPTIONS = {
    "node-monitor-grace-period": GRACE,
    "node-monitor-period": "1s",
    "node-eviction-rate": "0.06",
    "secondary-node-eviction-rate": "50",
    "large-cluster-size-threshold": "4",
}
OWN = {"node-startup-grace-period": GRACE}
EXECUTES, SCHEDULES = (UNREACHABLE, "NoExecute"), (UNREACHABLE, "NoSchedule")


def zone(names: str) -> Step:
    """Of nodes that live."""

    def step(asking: Asking, ns: str) -> None:
        label = {"topology.kubernetes.io/zone": ns}
        together(*(joins(name, **label) for name in names), *map(untainted, names))(asking, ns)

    return step


def unknown(name: str) -> Step:
    return lambda asking, ns: until(lambda: SCHEDULES in taints(taken(asking, ns, name)))


def stays(name: str) -> Step:
    """Its pods are not evicted any more: Kubernetes takes the taints off one node after another."""
    return lambda asking, ns: until(lambda: EXECUTES not in taints(taken(asking, ns, name)))


def nobody_lives(asking: Asking, ns: str) -> None:
    """In any story."""
    for one in asking.ask("GET", f"{NODES}?labelSelector={LIVES}").body["items"]:
        body = {"metadata": {"labels": {LIVES: None}}}
        sent(asking, "PATCH", f"{NODES}/{one['metadata']['name']}", body, Content_Type=MERGE_PATCH)


def waiting(asking: Asking, ns: str) -> None:
    """For the other stories."""


# What is waited for in a step has begun in the one before, for all stories.
STORIES: dict[str, Sequence[Step]] = {
    # Three of four are too many, so the third one is only given up once another is back. It is noticed before
    # the sixteen seconds are over in which a second one may not be given up.
    "small": [
        together(zone("abcd"), silent("a"), silent("b")),
        together(lost("a"), lost("b"), silent("c")),
        unknown("c"),
        together(speaks("b"), lost("c")),
    ],
    "large": [
        together(zone("abcde"), silent("a"), silent("b")),
        together(lost("a"), lost("b"), silent("c")),
        lost("c"),
    ],
    "whole": [together(zone("ab"), silent("a"), silent("b")), together(lost("a"), lost("b"))],
    "every": [
        together(zone("ab"), pod("p", "a", 600), silent("a")),
        together(lost("a"), silent("b")),
        lost("b"),
        waiting,
        together(nobody_lives, stays("a"), stays("b")),
        together(speaks("b"), lost("a")),
    ],
}


@pytest.fixture(scope="module")
def told(
    kubernetes_programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, Told]]]:
    there, here = (tmp_path_factory.mktemp(name) for name in ("kubernetes", "podling"))
    with (
        both_running(kubernetes_programs, there, here, CONTROLLERS, OWN, **OPTIONS) as clusters,
        living(clusters),
    ):
        yield lived(clusters, STORIES, state)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_comes_to_the_same(told: list[dict[str, Told]], story: str) -> None:
    if found := unlike(*(one[story] for one in told)):
        pytest.fail("\n".join(found), pytrace=False)
