"""The order in which pods go is Kubernetes'."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from podling.controllers.workloads.scale_down import cost, to_delete
from podling.model.codec.json import from_data
from podling.model.types.pod import Pod

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def pod(
    name: str, *, node: str = "n", phase: str = "Running", ready: str = "01-02T11:00:00", **rest: Any
) -> Pod:
    since = {"type": "Ready", "status": "True", "lastTransitionTime": f"2026-{ready}Z"}
    body = {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": f"2026-{rest.get('created', '01-02T10:00:00')}Z",
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": rest.get("cost", "0")},
        },
        "spec": {"nodeName": node, "containers": [{"name": "a", "image": "i"}]},
        "status": {
            "phase": phase,
            "conditions": [since] if ready else [],
            "containerStatuses": [{"name": "a", "restartCount": rest.get("restarts", 0)}],
        },
    }
    return from_data(body, Pod)


@pytest.mark.parametrize(
    "first, then",
    [
        (pod("b", node=""), pod("a", phase="Pending")),
        (pod("b", phase="Pending"), pod("a", ready="")),
        (pod("b", phase="Unknown"), pod("a", ready="")),
        (pod("b", ready=""), pod("a", cost="-1")),
        (pod("b", cost="-1"), pod("a", ready="01-02T11:59:59")),
        (pod("b", ready="01-02T11:59:00"), pod("a", restarts=3)),
        (pod("b", restarts=3), pod("a", created="01-02T11:00:00")),
        (pod("b", created="01-02T11:00:00"), pod("a")),
        # Their ages are of one power of two.
        (pod("a", ready="01-02T11:00:00"), pod("b", ready="01-02T10:59:59")),
        (pod("a", ready="01-02T10:59:59"), pod("b", ready="01-02T11:00:00")),
    ],
)
def test_order(first: Pod, then: Pod) -> None:
    for pods in ([first, then], [then, first]):
        assert to_delete(pods, (), 1, NOW) == [first]


def test_those_on_a_node_with_most_siblings_go_first() -> None:
    pods = [pod("a", node="one"), pod("b", node="two"), pod("c", node="two")]
    assert to_delete(pods, [*pods, pod("d", node="one"), pod("e", node="one")], 1, NOW) == [pods[0]]
    assert to_delete(pods, pods, 1, NOW) == [pods[1]]


@pytest.mark.parametrize(
    "text, number",
    [("5", 5), ("-5", -5), ("+5", 0), ("05", 0), ("", 0), ("-0", 0), ("2147483648", 0), ("x", 0), ("٣", 0)],
)
def test_cost(text: str, number: int) -> None:
    assert cost(text) == number
