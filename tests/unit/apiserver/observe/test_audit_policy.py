"""Issue 13, audit: a policy says how much of which request is recorded, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podling.apiserver.observe import audit_policy
from podling.apiserver.observe.audit_policy import DEFAULT, FAILURES, PolicyError, Recording, read_policy
from podling.apiserver.request.context import ANONYMOUS
from podling.apiserver.request.recorded import Level
from podling.apiserver.request.request import RepeatedRequest, User, parse_query, request_info

BOB = User("bob", ("dev", "system:authenticated"))
LABEL = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def policy(*rules: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **more})


def level(rule: dict[str, Any], target: str, user: User | None = BOB) -> Level:
    """Of a request that the one rule is asked about."""
    method, _, path = target.partition(" ")
    path, _, query = path.partition("?")
    recording = Recording(read_policy(policy({"level": "Request", **rule})))
    return recording.of(user, request_info(method, path, parse_query(query))).level


POD = "/api/v1/namespaces/a/pods/p"


@pytest.mark.parametrize(
    ("rule", "target", "matches"),
    [
        ({}, f"GET {POD}", True),
        ({"users": ["bob"]}, f"GET {POD}", True),
        ({"users": ["eve"]}, f"GET {POD}", False),
        ({"userGroups": ["ops", "dev"]}, f"GET {POD}", True),
        ({"userGroups": ["ops"]}, f"GET {POD}", False),
        ({"verbs": ["get"]}, f"GET {POD}", True),
        ({"verbs": ["get"]}, f"DELETE {POD}", False),
        ({"verbs": ["*"]}, f"GET {POD}", False),
        ({"namespaces": ["a"]}, f"GET {POD}", True),
        ({"namespaces": ["b"]}, f"GET {POD}", False),
        ({"namespaces": [""]}, "GET /api/v1/nodes/n", True),
        ({"namespaces": [""]}, "GET /healthz", False),
        ({"resources": [{"group": ""}]}, f"GET {POD}/log", True),
        ({"resources": [{"group": "apps"}]}, f"GET {POD}", False),
        ({"resources": [{"group": "*"}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["pods"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["pods"]}]}, f"GET {POD}/log", False),
        ({"resources": [{"resources": ["pods/log"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods/log"]}]}, f"GET {POD}", False),
        ({"resources": [{"resources": ["*/log"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["*/log"]}]}, f"GET {POD}", False),
        ({"resources": [{"resources": ["pods/*"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods/*"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["*"]}]}, f"GET {POD}/log", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["p"]}]}, f"GET {POD}", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["q"]}]}, f"GET {POD}", False),
        ({"resources": [{"resources": ["pods"]}]}, "GET /healthz", False),
        ({"nonResourceURLs": ["/healthz"]}, "GET /healthz", True),
        ({"nonResourceURLs": ["/healthz"]}, "GET /healthz/ping", False),
        ({"nonResourceURLs": ["/healthz*"]}, "GET /healthz/ping", True),
        ({"nonResourceURLs": ["*"]}, "GET /metrics", True),
        ({"nonResourceURLs": ["*"]}, f"GET {POD}", False),
    ],
)
def test_what_a_rule_is_about(rule: dict[str, Any], target: str, matches: bool) -> None:
    assert bool(level(rule, target)) is matches


def test_who_is_unknown_is_nobody_a_rule_is_about() -> None:
    for rule in ({"users": ["eve"]}, {"userGroups": ["ops"]}):
        assert level(rule, f"GET {POD}", None) is Level.NONE
    assert level({}, f"GET {POD}", None) is Level.REQUEST


def test_the_first_rule_that_matches_decides_with_its_stages_and_those_of_all() -> None:
    rules = (
        {"level": "None", "verbs": ["get"]},
        {"level": "Metadata", "omitStages": ["Panic"], "omitManagedFields": False},
        {"level": "Request"},
    )
    recording = Recording(read_policy(policy(*rules, omitStages=["RequestReceived"], omitManagedFields=True)))
    assert recording.of(BOB, request_info("GET", POD, {})).level is Level.NONE
    amount = recording.of(BOB, request_info("DELETE", POD, {}))
    assert (amount.level, amount.without_managed_fields) == (Level.METADATA, False)
    assert amount.omitted == {"RequestReceived", "Panic"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"[]", "the policy is no object but []"),
        (b'"x"', 'the policy is no object but "x"'),
        (b"{}", 'apiVersion: Unsupported value: "": supported values: "audit.k8s.io/v1"'),
        (
            b'{"apiVersion":"audit.k8s.io/v1","kind":"Event"}',
            'kind: Unsupported value: "Event": supported values: "Policy"',
        ),
        (policy(), "loaded illegal policy with 0 rules"),
        (
            policy({"level": "none"}),
            'rules[0].level: Unsupported value: "none": supported values: "None", "Metadata", '
            '"Request", "RequestResponse"',
        ),
        (policy({"level": "None"}, None), "rules[1].level: Required value"),
        (
            policy({"level": 3}),
            "failed decoding: json: cannot unmarshal number into Go struct field "
            "PolicyRule.rules.level of type string",
        ),
        (
            policy({"level": "None", "users": "a"}),
            "failed decoding: json: cannot unmarshal string into Go struct field "
            "PolicyRule.rules.users of type []string",
        ),
        (
            policy({"level": "None", "user": ["a"]}, foo=1),
            'failed decoding: strict decoding error: unknown field "rules[0].user", unknown field "foo"',
        ),
        (
            policy({"level": "None", "omitStages": ["Panic", "Bar"]}, omitStages=["Foo"]),
            '[omitStages[0]: Invalid value: "Foo": allowed stages are RequestReceived,ResponseStarted,'
            'ResponseComplete,Panic, rules[0].omitStages[1]: Invalid value: "Bar": allowed stages are '
            "RequestReceived,ResponseStarted,ResponseComplete,Panic]",
        ),
        (
            policy({"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["a"]}),
            'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources '
            "and non-resource URLs",
        ),
        (
            policy({"level": "None", "nonResourceURLs": ["*", "/a*", "**"]}),
            '[rules[0].nonResourceURLs[2]: Invalid value: "**": non-resource URL rules must begin with a '
            "'/' character, rules[0].nonResourceURLs[2]: Invalid value: \"**\": non-resource URL wildcards "
            "'*' must be the final character of the rule]",
        ),
        (
            policy({"level": "None", "resources": [{"group": "a/b"}]}),
            f'rules[0].resources.group: Invalid value: "a/b": {LABEL}',
        ),
        (
            policy({"level": "None", "resources": [{"group": "", "resourceNames": ["a"]}]}),
            'rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least '
            "one resource",
        ),
    ],
)
def test_a_policy_that_cannot_be_used_says_where_and_why(given: bytes, why: str) -> None:
    with pytest.raises(PolicyError) as refused:
        read_policy(given)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (f"PATCH {POD}/ephemeralcontainers", Level.REQUEST),
        (f"GET {POD}/ephemeralcontainers", FAILURES),
        (f"POST {POD}/exec", Level.METADATA),
        (f"GET {POD}/attach", Level.METADATA),
        (f"GET {POD}/portforward", Level.METADATA),
        (f"PUT {POD}", Level.METADATA),
        ("POST /api/v1/namespaces/a/secrets", Level.METADATA),
        ("GET /api/v1/namespaces/a/secrets/s", FAILURES),
        ("GET /healthz", FAILURES),
    ],
)
def test_podlings_own_policy(target: str, expected: Any) -> None:
    method, _, path = target.partition(" ")
    amount = Recording(DEFAULT, failures=True).of(BOB, request_info(method, path, {}))
    assert (amount if expected is FAILURES else amount.level) == expected
    assert amount.level < Level.REQUEST_RESPONSE, "no answer is ever recorded"


def test_podlings_own_policy_is_one_that_is_accepted() -> None:
    assert read_policy(msgspec.json.encode(DEFAULT)) == DEFAULT


def test_decisions_about_targets_are_kept_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_policy, "MOST_REPEATED", 3)
    recording = Recording(DEFAULT)
    for number in range(10):
        repeated = RepeatedRequest(BOB, request_info("PUT", f"{POD}{number}", {}))
        assert recording.of_repeated(repeated) is recording.of_repeated(repeated)
        for user in (BOB, ANONYMOUS, None):
            assert recording.of(user, repeated.info) == recording.of_repeated(repeated)
        assert 1 <= len(recording._remembered) <= 3
