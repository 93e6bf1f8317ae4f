"""The patch from one status to another says what changed and nothing else."""

from __future__ import annotations

from typing import Any

from podling.kubelet.status.writer import status_patch
from podling.model.types.pod_status import PodCondition, PodIP, PodStatus

NO_TIMES = {"lastProbeTime": None, "lastTransitionTime": None}


def condition(type_: str, status: str = "True", **more: Any) -> PodCondition:
    return PodCondition(type=type_, status=status, **more)


def test_nothing_new_is_no_patch() -> None:
    status = PodStatus(phase="Running", conditions=[condition("Ready")])
    assert status_patch(status, PodStatus(phase="Running", conditions=[condition("Ready")]), "u") is None


def test_changed_fields_are_sent_and_gone_ones_are_null() -> None:
    patch = status_patch(PodStatus(phase="Pending", reason="Slow"), PodStatus(phase="Running"), "u")
    assert patch == {"metadata": {"uid": "u"}, "status": {"phase": "Running", "reason": None}}


def test_of_conditions_only_the_changed_are_sent_without_what_they_no_longer_say() -> None:
    """Those of others are never written, and the order is Kubernetes' own."""
    old = PodStatus(conditions=[condition("Other"), condition("Ready", "False", reason="R", message="m")])
    new = PodStatus(conditions=[condition("Other"), condition("Ready")])
    assert status_patch(old, new, "u") == {
        "metadata": {"uid": "u"},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": None, "message": None, **NO_TIMES},
            ],
            "$setElementOrder/conditions": [{"type": "Other"}, {"type": "Ready"}],
        },
    }


def test_an_address_that_is_gone_is_deleted_by_name() -> None:
    patch = status_patch(PodStatus(pod_ips=[PodIP(ip="1")]), PodStatus(pod_ips=[PodIP(ip="2")]), "u")
    assert patch is not None
    assert patch["status"]["podIPs"] == [{"ip": "2"}, {"$patch": "delete", "ip": "1"}]
