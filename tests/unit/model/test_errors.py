"""Status errors are the Status objects Kubernetes clients know."""

from __future__ import annotations

import json

from podling.model import errors
from podling.model.errors import Cause


def test_not_found() -> None:
    assert errors.not_found("leases", "a", "coordination.k8s.io").status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'leases.coordination.k8s.io "a" not found',
        "reason": "NotFound",
        "details": {"name": "a", "group": "coordination.k8s.io", "kind": "leases"},
        "code": 404,
    }


def test_one_cause_stands_alone_and_several_are_listed() -> None:
    one = Cause("FieldValueRequired", "Required value", "spec.containers")
    other = Cause("FieldValueInvalid", 'Invalid value: "A": no', "metadata.name")
    assert errors.invalid("Pod", "a", [one]).message == 'Pod "a" is invalid: spec.containers: Required value'
    both = errors.invalid("Pod", "a", [one, other])
    assert both.message == (
        'Pod "a" is invalid: [spec.containers: Required value, metadata.name: Invalid value: "A": no]'
    )
    assert both.status()["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"},
        {"reason": "FieldValueInvalid", "message": 'Invalid value: "A": no', "field": "metadata.name"},
    ]


def test_a_status_without_details_has_none() -> None:
    assert "details" not in errors.bad_request("no").status()


def test_what_is_said_of_a_page_that_is_not_there_has_empty_details() -> None:
    """kubectl crashes without them where it wants to say that ephemeral containers are disabled (R-EPH-8)."""
    status = errors.page_not_found().status()
    assert (status["details"], status["code"]) == ({}, 404)


def test_retry_after() -> None:
    details = errors.service_unavailable("busy", retry_after_seconds=3).status()["details"]
    assert details == {"retryAfterSeconds": 3}


def test_what_is_alike_is_said_once_and_every_cause_is_listed() -> None:
    twice = errors.invalid("Pod", "a", [Cause("FieldValueInvalid", "no", "metadata.labels")] * 2)
    assert twice.message == 'Pod "a" is invalid: metadata.labels: no'
    assert len(twice.status()["details"]["causes"]) == 2


def test_a_refusal_is_bounded_however_much_is_wrong() -> None:
    causes = [Cause("FieldValueInvalid", "x" * 1000, f"f[{i}]") for i in range(10_000)]
    status = errors.invalid(
        "Pod", "n" * 1_000_000, [*causes, Cause("FieldValueInvalid", "y" * 10**6)]
    ).status()
    assert len(json.dumps(status)) < 8 * errors.LONGEST_TOLD
    few = errors.invalid("Pod", "a", causes)
    assert few.message.endswith(f"and {10_000 - len(few.causes)} more]")
    assert len(errors.bad_request("z" * 1_000_000).message) < errors.LONGEST_TOLD + 100


def test_without_a_reason_none_is_said() -> None:
    assert errors.StatusError(500, "", "no").status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "no",
        "code": 500,
    }
