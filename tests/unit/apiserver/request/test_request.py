"""R-SYS-1: a path and a method are read as Kubernetes' RequestInfoFactory reads them."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.request import request as request_module
from podling.apiserver.request.request import (
    RepeatedRequests,
    Request,
    RequestInfo,
    User,
    parse_query,
    request_info,
)
from podling.model.errors import StatusError

RESOURCES = [
    # method, path?query, verb, group, version, namespace, resource, subresource, name
    ("GET", "/api/v1/namespaces", "list", "", "v1", "", "namespaces", "", ""),
    ("GET", "/api/v1/namespaces/a", "get", "", "v1", "a", "namespaces", "", "a"),
    ("PUT", "/api/v1/namespaces/a/status", "update", "", "v1", "a", "namespaces", "status", "a"),
    ("PUT", "/api/v1/namespaces/a/finalize", "update", "", "v1", "a", "namespaces", "finalize", "a"),
    ("GET", "/api/v1/namespaces/a/pods", "list", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a/pods?watch=true", "watch", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a/pods?watch", "watch", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a/pods?watch=1", "watch", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a/pods?watch=0", "list", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a/pods?watch=False", "list", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/pods", "list", "", "v1", "", "pods", "", ""),
    ("GET", "/api/v1/pods/", "list", "", "v1", "", "pods", "", ""),
    ("HEAD", "/api/v1/namespaces/a/pods/b", "get", "", "v1", "a", "pods", "", "b"),
    ("GET", "/api/v1/namespaces/a/pods/b", "get", "", "v1", "a", "pods", "", "b"),
    ("GET", "/api/v1/namespaces/a/pods/b?watch=1", "get", "", "v1", "a", "pods", "", "b"),
    ("POST", "/api/v1/namespaces/a/pods", "create", "", "v1", "a", "pods", "", ""),
    ("POST", "/api/v1/namespaces/a/pods/b/exec", "create", "", "v1", "a", "pods", "exec", "b"),
    ("GET", "/api/v1/namespaces/a/pods/b/log", "get", "", "v1", "a", "pods", "log", "b"),
    ("PATCH", "/api/v1/namespaces/a/pods/b", "patch", "", "v1", "a", "pods", "", "b"),
    ("DELETE", "/api/v1/namespaces/a/pods/b", "delete", "", "v1", "a", "pods", "", "b"),
    ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "", "v1", "a", "pods", "", ""),
    ("GET", "/api/v1/watch/pods", "watch", "", "v1", "", "pods", "", ""),
    ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch", "", "v1", "a", "pods", "", "b"),
    ("GET", "/api/v1/proxy/namespaces/a/pods/b/x/y", "proxy", "", "v1", "a", "pods", "", "b"),
    (
        "GET",
        "/apis/apps/v1/namespaces/a/deployments/b/scale",
        "get",
        "apps",
        "v1",
        "a",
        "deployments",
        "scale",
        "b",
    ),
    ("GET", "/apis/coordination.k8s.io/v1/leases", "list", "coordination.k8s.io", "v1", "", "leases", "", ""),
    ("GET", "/api/v1/nodes/n%3A1", "get", "", "v1", "", "nodes", "", "n:1"),
    ("OPTIONS", "/api/v1/nodes/n", "", "", "v1", "", "nodes", "", "n"),
    # Decoded first and divided then; what is empty at the end is nothing, what is empty between is a part.
    ("GET", "/api/v1/namespaces/a/pods/b%2Flog", "get", "", "v1", "a", "pods", "log", "b"),
    ("GET", "/api/v1/namespaces%2Fa/pods", "list", "", "v1", "a", "pods", "", ""),
    ("GET", "/api%2Fv1/namespaces%2fa/pods//", "list", "", "v1", "a", "pods", "", ""),
    ("GET", "//api/v1/nodes/n", "get", "", "v1", "", "nodes", "", "n"),
    ("GET", "/api/v1/namespaces//pods", "list", "", "v1", "", "pods", "", ""),
    ("GET", "/api/v1/namespaces/a//pods", "get", "", "v1", "a", "", "", "pods"),
    ("GET", "/api/v1/namespaces/a/pods//log", "list", "", "v1", "a", "pods", "log", ""),
    ("GET", "/api/v1/namespaces/a/pods/%2e%2e/log", "get", "", "v1", "a", "pods", "log", ".."),
    ("GET", "/api/v1/nodes/%2561", "get", "", "v1", "", "nodes", "", "%61"),
    ("GET", "/api/v1/nodes/%ff", "get", "", "v1", "", "nodes", "", "\ufffd"),
]


@pytest.mark.parametrize("row", RESOURCES, ids=lambda row: f"{row[0]} {row[1]}")
def test_resource_requests(row: tuple[str, ...]) -> None:
    method, target, verb, group, version, namespace, resource, subresource, name = row
    path, _, query = target.partition("?")
    found = request_info(method, path, parse_query(query))
    assert found[:1] + found[2:9] == (verb, True, group, version, namespace, resource, subresource, name)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/healthz",
        "/version",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/openapi/v3/api/v1",
    ],
)
def test_other_requests(path: str) -> None:
    assert request_info("GET", path, {}) == RequestInfo("get", path)


def test_a_verb_in_the_path_needs_a_resource() -> None:
    with pytest.raises(StatusError) as raised:
        request_info("GET", "/api/v1/watch", {})
    assert raised.value.code == 400


def test_what_follows_is_kept_whatever_comes_before_it() -> None:
    assert request_info("GET", "/api/v1/namespaces/a/pods/b//log", {}).rest == ("log",)
    assert request_info("GET", "/api/v1/namespaces/a/pods/b/proxy/c%2Fd", {}).rest == ("c", "d")


@given(st.text(alphabet=st.sampled_from("/apisv1watchnme%2F."), max_size=60))
def test_only_a_status_escapes(path: str) -> None:
    try:
        info = request_info("GET", path, {})
    except StatusError:
        return
    parts = unquote(path, errors="replace").strip("/").split("/")
    named = (info.api_group, info.api_version, info.namespace, info.resource, info.name, info.subresource)
    assert set(named) | set(info.rest) <= {"", *parts}, "what is authorized is what the path says"


def test_a_query_has_only_so_many_parameters() -> None:
    assert len(parse_query("&".join(f"p{n}" for n in range(10_000)))) == 10_000
    with pytest.raises(StatusError) as raised:
        parse_query("a&" * 10_001)
    assert raised.value.code == 400


def test_requests_alike_have_one_target() -> None:
    requests, jane = RepeatedRequests(), User("jane", ("dev",))
    asked = Request("GET", "/api/v1/namespaces/a/pods")
    repeated = requests.of(jane, asked, watch=False)
    assert repeated is not None and (repeated.user, repeated.info) == (
        jane,
        request_info("GET", asked.path, {}),
    )
    assert requests.of(User("jane", ("dev",)), Request("GET", asked.path), watch=False) is repeated
    others = [
        requests.of(User("jane", ("ops",)), asked, watch=False),
        requests.of(User("jane", ("dev",), "1"), asked, watch=False),
        requests.of(jane, asked, watch=True),
        requests.of(jane, Request("HEAD", asked.path), watch=False),
        requests.of(jane, Request("GET", f"{asked.path}/"), watch=False),
    ]
    assert len({repeated, *others}) == 6


def test_targets_are_bounded_in_number_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_module, "MOST_REPEATED", 3)
    requests, much = RepeatedRequests(), "u" * 2000
    for user, path in (
        (User("jane"), f"/{much}"),
        (User(much), "/"),
        (User("jane", (much,)), "/"),
        (User("jane", (), much), "/"),
        (User("jane", extra=(("key", ("short", much)),)), "/"),
    ):
        assert requests.of(user, Request("GET", path), watch=False) is None
    for number in range(10):
        assert requests.of(User("jane"), Request("GET", f"/{number}"), watch=False) is not None
        assert 1 <= len(requests._known) <= 3
