"""What a lease may say, in Kubernetes' words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from podling.apiserver.kinds.nodes import Leases
from podling.model.codec.json import from_data
from podling.model.types.coordination import Lease

META = {"name": "x", "namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"}


def faults(**spec: Any) -> list[str]:
    lease = from_data({"metadata": META, "spec": spec}, Lease)
    return [f"{cause.field}: {cause.message}" for cause in Leases().validate(lease)]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"leaseTransitions": -1},
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
def test_refusals(spec: dict[str, Any], fault: str) -> None:
    assert faults(**spec) == [fault]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"holderIdentity": "a", "leaseDurationSeconds": 1, "leaseTransitions": 0},
        {"holderIdentity": "", "leaseDurationSeconds": 1},
    ],
)
def test_a_leader_leads_and_lets_go(spec: dict[str, Any]) -> None:
    """Who lets go of a lease leaves it without a holder, and all else as it was."""
    assert faults(**spec) == []


def test_who_should_lead_is_behind_a_gate_that_is_off() -> None:
    spec = {"strategy": "example.com/own", "preferredHolder": "a"}
    made = from_data({"metadata": META, "spec": spec}, Lease)
    Leases().prepare_create(made, datetime.min)
    assert (made.spec.strategy, made.spec.preferred_holder) == (None, None)
