"""Which webhooks and policies are asked about a debug container."""

from __future__ import annotations

from typing import Any

import pytest

from podling.debug.judges import Asked, policies, webhooks
from podling.model.codec import json
from podling.model.types.admissionregistration import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
)

RULE = {
    "operations": ["UPDATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods/ephemeralcontainers"],
}
OF_NAMESPACE, OF_POD = {"team": "a"}, {"app": "web"}
ADDED = Asked("UPDATE", "ephemeralcontainers", OF_POD, OF_NAMESPACE)


@pytest.mark.parametrize(
    ("rule", "more", "is_asked"),
    [
        ({}, {}, True),
        ({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, {}, True),
        ({"resources": ["pods/*"], "scope": "Namespaced"}, {}, True),
        ({"resources": ["*/ephemeralcontainers"]}, {}, True),
        ({"resources": ["pods"]}, {}, False),
        ({"resources": ["*"]}, {}, False),
        ({"operations": ["CREATE", "CONNECT"]}, {}, False),
        ({"apiGroups": ["apps"]}, {}, False),
        ({"scope": "Cluster"}, {}, False),
        ({}, {"namespaceSelector": {"matchLabels": {"team": "a"}}}, True),
        ({}, {"namespaceSelector": {"matchLabels": {"team": "b"}}}, False),
        ({}, {"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, False),
    ],
)
def test_who_is_asked(rule: dict[str, Any], more: dict[str, Any], is_asked: bool) -> None:
    """As a webhook, as a policy, and as a policy whose binding says so."""
    rules = [{**RULE, **rule}]
    hook = {"name": "h", "rules": rules, **more}
    configuration = json.from_data({"webhooks": [hook]}, ValidatingWebhookConfiguration)
    assert webhooks([configuration], ADDED) == (["h"] if is_asked else [])

    def asked(of_policy: dict[str, Any], of_binding: dict[str, Any]) -> list[str]:
        policy = {"metadata": {"name": "p"}, "spec": {"matchConstraints": of_policy}}
        spec = {"policyName": "p", "validationActions": ["Warn", "Deny"], **of_binding}
        found = json.from_data(policy, ValidatingAdmissionPolicy)
        binding = json.from_data({"spec": spec}, ValidatingAdmissionPolicyBinding)
        return list(policies([found], [binding], ADDED))

    match = {"resourceRules": rules, **more}
    told = ["p (Deny, Warn)"] if is_asked else []
    assert asked(match, {}) == told
    assert asked({"resourceRules": [RULE]}, {"matchResources": match}) == told


def test_a_policy_that_nothing_binds_is_not_asked() -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}}
    policy = json.from_data({"metadata": {"name": "p"}, "spec": spec}, ValidatingAdmissionPolicy)
    assert not list(policies([policy], [], ADDED))


@pytest.mark.parametrize(
    ("resources", "operations", "is_asked"),
    [
        (["pods"], ["CREATE"], True),
        (["*"], ["*"], True),
        (["pods/*"], ["CREATE"], True),
        (["*/*"], ["CREATE"], True),
        (["pods/ephemeralcontainers"], ["CREATE"], False),
        (["pods"], ["UPDATE"], False),
    ],
)
def test_who_is_asked_about_a_pod(resources: list[str], operations: list[str], is_asked: bool) -> None:
    rule = {**RULE, "operations": operations, "resources": resources}
    configuration = json.from_data(
        {"webhooks": [{"name": "h", "rules": [rule]}]}, ValidatingWebhookConfiguration
    )
    assert webhooks([configuration], Asked("CREATE", "", {}, {})) == (["h"] if is_asked else [])
