"""Whom a node under pressure does not take."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podling.kubelet.node.pressure import MEMORY_TAINT, NodePressure
from podling.kubelet.plan.admission import Refusal
from podling.model.quantity import Quantity
from podling.model.types.container import Container, ResourceRequirements
from podling.model.types.pod import Pod, PodSpec, Toleration

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ASKS = ResourceRequirements(requests={"memory": Quantity("1Mi")})
MODEST = Pod(spec=PodSpec(containers=[Container(name="c")]))
BURSTABLE = Pod(spec=PodSpec(containers=[Container(name="c", resources=ASKS)]))
TOLERANT = Pod(
    spec=PodSpec(
        containers=[Container(name="c")],
        tolerations=[Toleration(key=MEMORY_TAINT.key, operator="Exists", effect=MEMORY_TAINT.effect)],
    )
)
CRITICAL = Pod(spec=PodSpec(containers=[Container(name="c")], priority=2_000_000_000))


@pytest.mark.parametrize(
    ("conditions", "pod", "taken"),
    [
        ((), MODEST, True),
        (("MemoryPressure",), MODEST, False),
        (("MemoryPressure",), BURSTABLE, True),
        (("MemoryPressure",), TOLERANT, True),
        (("DiskPressure",), BURSTABLE, False),
        (("DiskPressure", "MemoryPressure"), TOLERANT, False),
        (("PIDPressure", "DiskPressure"), CRITICAL, True),
    ],
)
def test_who_is_taken(conditions: tuple[str, ...], pod: Pod, taken: bool) -> None:
    pressure = NodePressure()
    pressure.conditions = frozenset(conditions)
    told = f"The node had condition: [{' '.join(sorted(conditions))}]. "
    assert pressure.refusal(pod) == (None if taken else Refusal("Evicted", told))
