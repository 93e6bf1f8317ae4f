"""Pods leave nodes they do not tolerate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from podling.controllers.nodes import TaintEviction, eviction_time
from podling.model.codec.json import from_data
from podling.model.types.node import Node, Taint
from podling.model.types.pod import Pod, Toleration

if TYPE_CHECKING:
    from unit.controllers.conftest import Cluster

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ADDED = "2026-01-02T03:04:00Z"
KEY = "node.kubernetes.io/unreachable"
TAINT = {"key": KEY, "effect": "NoExecute", "timeAdded": ADDED}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], -5),
        ([{"key": KEY, "operator": "Exists", "effect": "NoExecute"}], None),
        ([{"operator": "Exists", "tolerationSeconds": 300}], 295),
        ([{"operator": "Exists", "tolerationSeconds": -1}], -5),
        (
            [
                {"operator": "Exists", "tolerationSeconds": 60},
                {"operator": "Exists", "tolerationSeconds": 30},
            ],
            25,
        ),
        ([{"key": "other", "operator": "Exists"}], -5),
    ],
)
def test_when_a_pod_must_go(tolerations: list[Any], seconds: int | None) -> None:
    tolerating = [from_data(one, Toleration) for one in tolerations]
    due = eviction_time([from_data(TAINT, Taint)], tolerating, NOW)
    assert due == (None if seconds is None else NOW + timedelta(seconds=seconds))


async def test_a_pod_stays_when_the_taint_goes_in_time(cluster: Cluster) -> None:
    await cluster.make(Node, "n", "", spec={"taints": [TAINT]})
    await cluster.pod("p", node="n")
    of = cluster.informers.of
    await cluster.run(
        TaintEviction(cluster.account("node-controller"), of(Node), of(Pod), cluster.events, cluster.clock)
    )
    for taints in ([], [TAINT], []):
        await cluster.client.patch(Node, "n", "", {"spec": {"taints": taints or None}})
        await cluster.settle()
    cancelled = "TaintManagerEviction: Cancelling deletion of Pod ns/p"
    assert cluster.events.said == [cancelled, cancelled]


async def test_a_pod_goes_when_its_toleration_has_run_out(cluster: Cluster) -> None:
    await cluster.make(Node, "n", "")
    await cluster.pod("p", node="n")
    of = cluster.informers.of
    await cluster.run(
        TaintEviction(cluster.account("node-controller"), of(Node), of(Pod), cluster.events, cluster.clock)
    )
    await cluster.client.patch(Node, "n", "", {"spec": {"taints": [TAINT]}})
    await cluster.settle()
    assert not (await cluster.client.get(Pod, "p", "ns")).metadata.deletion_timestamp
    cluster.clock.move(300)
    await cluster.reconcile(("ns", "p"))
    pod = await cluster.client.get(Pod, "p", "ns")
    assert pod.metadata.deletion_timestamp
    assert [(c.type, c.reason) for c in pod.status.conditions] == [
        ("DisruptionTarget", "DeletionByTaintManager")
    ]
    assert cluster.events.said == ["TaintManagerEviction: Marking for deletion Pod ns/p"]
