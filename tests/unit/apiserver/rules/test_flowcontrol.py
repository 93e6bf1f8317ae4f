"""R-SYS-1: the rules of FlowSchemas and PriorityLevelConfigurations, one by one."""

from __future__ import annotations

import pytest

from podling.apiserver.rules.flowcontrol import fault_of_url, validate_queuing, validate_response
from podling.model.types.flowcontrol import LimitResponse, QueuingConfiguration


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("/", ""),
        ("/*", ""),
        ("/healthz/*", ""),
        ("", "must not be empty"),
        ("healthz", "must start with slash"),
        ("/a b", "must not contain white-space"),
        ("/a//b", "must not contain double slash"),
        ("/a*", "wildcard can only do suffix matching"),
        ("/*/*", "wildcard can only do suffix matching"),
    ],
)
def test_a_path_may_end_in_a_star(url: str, fault: str) -> None:
    assert fault_of_url(url) == fault


@pytest.mark.parametrize(
    ("queues", "hand", "faulty"),
    [
        (64, 8, []),
        (1, 1, []),
        (1, 2, ["p.handSize"]),
        (512, 8, ["p.handSize"]),
        (0, 1, ["p.queues", "p.handSize"]),
        (10_000_001, 1, ["p.queues"]),
        (-1, -1, ["p.queues", "p.handSize"]),
    ],
)
def test_a_hand_is_dealt_of_the_queues(queues: int, hand: int, faulty: list[str]) -> None:
    causes = validate_queuing(QueuingConfiguration(queues, hand, 50), "p")
    assert [cause.field for cause in causes] == faulty


def test_only_what_waits_has_queues() -> None:
    def faulty(response: LimitResponse) -> list[str]:
        return [cause.reason for cause in validate_response(response, "p")]

    queuing = QueuingConfiguration(16, 4, 50)
    assert faulty(LimitResponse("Queue", queuing)) == faulty(LimitResponse("Reject")) == []
    assert faulty(LimitResponse("Queue")) == ["FieldValueRequired"]
    assert faulty(LimitResponse("Reject", queuing)) == ["FieldValueForbidden"]
    assert faulty(LimitResponse("Odd")) == ["FieldValueNotSupported"]
