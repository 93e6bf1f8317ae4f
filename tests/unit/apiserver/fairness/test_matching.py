"""Issue 13: which FlowSchema a request belongs to. `tests/peer/test_fairness.py` asks Kubernetes the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec import convert

from podling.apiserver.fairness.levels import seats_of
from podling.apiserver.fairness.matching import (
    covers_path,
    covers_resource,
    distinguisher,
    in_order,
    is_subject,
    matches,
)
from podling.apiserver.fairness.work import widest, width_of, width_of_list, width_of_write
from podling.apiserver.request.request import User, parse_query, request_info
from podling.model.rules.flowcontrol import flow_schemas, priority_levels
from podling.model.types.flowcontrol import (
    FlowSchema,
    FlowSubject,
    NonResourcePolicyRule,
    ResourcePolicyRule,
)

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"
PODS = "/api/v1/namespaces/default/pods"
NODE = ("system:node:n", "system:nodes", "system:authenticated")
ACCOUNT = ("system:serviceaccount:kube-system:a", "system:serviceaccounts", "system:authenticated")


@pytest.mark.parametrize(
    ("user", "method", "path", "schema"),
    [
        (("admin", "system:masters", "system:authenticated"), "GET", PODS, "exempt"),
        (("system:anonymous", "system:unauthenticated"), "GET", "/healthz", "probes"),
        (("system:anonymous", "system:unauthenticated"), "POST", "/healthz", "global-default"),
        (("system:kube-scheduler", "system:authenticated"), "PUT", LEASE, "system-leader-election"),
        (("system:kube-scheduler", "system:authenticated"), "DELETE", LEASE, "kube-scheduler"),
        (("system:kube-controller-manager", "system:authenticated"), "GET", PODS, "kube-controller-manager"),
        (NODE, "PUT", LEASE, "system-node-high"),
        (NODE, "PATCH", "/api/v1/nodes/n/status", "system-node-high"),
        (NODE, "GET", "/api/v1/nodes/n/proxy", "system-nodes"),
        (NODE, "GET", PODS, "system-nodes"),
        (ACCOUNT, "GET", LEASE, "system-leader-election"),
        (ACCOUNT, "GET", PODS, "kube-system-service-accounts"),
        (
            ("system:serviceaccount:a:b", "system:serviceaccounts", "system:authenticated"),
            "GET",
            PODS,
            "service-accounts",
        ),
        (("jane", "system:authenticated"), "GET", PODS, "global-default"),
    ],
)  # fmt: skip
def test_the_defaults(user: tuple[str, ...], method: str, path: str, schema: str) -> None:
    who, info = User(user[0], user[1:]), request_info(method, path, {})
    ordered = in_order(flow_schemas().values(), priority_levels())
    assert next(one.metadata.name for one in ordered if matches(one, who, info)) == schema


@pytest.mark.parametrize(
    ("subject", "user", "is_it"),
    [
        ({"kind": "User", "user": {"name": "*"}}, "a", True),
        ({"kind": "User", "user": {"name": "a"}}, "ab", False),
        ({"kind": "Group", "group": {"name": "*"}}, "a", True),
        ({"kind": "Group", "group": {"name": "b"}}, "b", False),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}}, "n:a", False),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}},
            "system:serviceaccount:n:a",
            True,
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}},
            "system:serviceaccount:n:b",
            True,
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}},
            "system:serviceaccount:nn:b",
            False,
        ),
    ],
)
def test_subjects(subject: Any, user: str, is_it: bool) -> None:
    assert is_subject(convert(subject, FlowSubject), User(user, ("g",))) is is_it


def test_resources() -> None:
    rule = convert(
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/status"], "namespaces": ["a"]},
        ResourcePolicyRule,
    )
    asked = {
        path: covers_resource(rule, request_info("GET", f"/api/v1/{path}", {}))
        for path in (
            "namespaces/a/pods/x",
            "namespaces/a/pods",
            "namespaces/b/pods/x",
            "namespaces/a/pods/x/status",
            "namespaces/a/pods/x/eviction",
            "nodes/x",
        )
    }
    assert [path for path, is_it in asked.items() if is_it] == [
        "namespaces/a/pods/x",
        "namespaces/a/pods/x/status",
    ]
    rule.namespaces, rule.cluster_scope, rule.resources = [], True, ["*"]
    assert covers_resource(rule, request_info("GET", "/api/v1/nodes/x", {}))
    assert not covers_resource(rule, request_info("GET", "/api/v1/namespaces/a/pods/x", {}))


@pytest.mark.parametrize(
    ("url", "path", "is_it"),
    [
        ("*", "/a", True),
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a", "/ab", False),
        ("/a/*", "/a/b/c", True),
        ("/a/*", "/a", False),
        ("/a/*", "/ab", False),
    ],
)
def test_paths(url: str, path: str, is_it: bool) -> None:
    rule = NonResourcePolicyRule(verbs=["get"], non_resource_urls=[url])
    assert covers_path(rule, request_info("GET", path, {})) is is_it


def test_flows_are_told_apart_by_user_or_namespace() -> None:
    user, info = User("a", ()), request_info("GET", PODS, {})

    def of(method: str | None) -> FlowSchema:
        spec = {"distinguisherMethod": {"type": method} if method else None}
        return convert({"metadata": {"name": "a"}, "spec": spec}, FlowSchema)

    assert [distinguisher(of(one), user, info) for one in ("ByUser", "ByNamespace", None)] == [
        "a",
        "default",
        "",
    ]


def test_a_schema_without_its_level_is_left_out() -> None:
    assert [one.metadata.name for one in in_order(flow_schemas().values(), ["catch-all"])] == ["catch-all"]


def test_seats_are_those_of_kubernetes() -> None:
    """As its `/metrics` tells of them: nominal, lower and upper limit."""
    seats = seats_of(priority_levels().values(), 600)
    assert {name: one.limits[:3] for name, one in seats.items() if one.limits} == {
        "catch-all": (13, 13, 613),
        "global-default": (49, 24, 649),
        "leader-election": (25, 25, 625),
        "node-high": (98, 73, 698),
        "system": (74, 50, 674),
        "workload-high": (98, 49, 698),
        "workload-low": (245, 24, 845),
    }
    assert seats["exempt"].limits is None


class Kept(NamedTuple):
    size: int
    bytes: int
    watchers: int = 0


WIDTHS = [
    ("GET", "", "", 5),
    ("GET", "", "labelSelector=a=b", 5),
    ("GET", "", "fieldSelector=metadata.name=a", 1),
    ("GET", "", "fieldSelector=metadata.name!=a", 5),
    ("GET", "", "limit=20&labelSelector=a=b", 1),
    ("GET", "/a", "", 1),
    ("GET", "", "watch=1", 5),
    ("GET", "", "watch=1&resourceVersion=0", 5),
    ("GET", "", "watch=1&resourceVersion=7", 1),
    ("GET", "", "watch=1&resourceVersion=7&sendInitialEvents=true", 5),
    ("GET", "", "watch=1&sendInitialEvents=false", 1),
    ("GET", "/a", "watch=1", 1),
    ("DELETE", "", "", 1),
]


@pytest.mark.parametrize(("method", "name", "query", "width"), WIDTHS)
def test_lists_and_what_begins_with_one_are_as_wide_as_what_they_read(
    method: str, name: str, query: str, width: int
) -> None:
    """As kube-apiserver's `apiserver_flowcontrol_work_estimated_seats` tells."""
    parsed = parse_query(query)
    info = request_info(method, f"/api/v1/namespaces/default/configmaps{name}", parsed)
    assert width_of(info, parsed, Kept(100, 500_000), 600) == width


def test_how_wide_a_request_is() -> None:
    assert [widest(seats) for seats in (0, 1, 13, 49, 600)] == [1, 1, 2, 8, 10]
    sizes = (0, 100_000, 100_001, 50_000_000)
    assert [width_of_list(Kept(100, size), {}, 15) for size in sizes] == [1, 1, 2, 10]
    kept = Kept(50_000, 50_000_000)
    assert [width_of_list(kept, {"limit": [limit]}, 10) for limit in ("500", "-1", "0", "x")] == [
        5,
        10,
        10,
        10,
    ]
    assert [width_of_write(count, 10) for count in (0, 10, 11, 5000)] == [1, 1, 2, 10]
