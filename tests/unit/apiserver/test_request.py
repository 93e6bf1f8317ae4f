"""R-SYS-1: a path and a method are read as Kubernetes' RequestInfoFactory reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.request import RequestInfo, parse_query, request_info
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
]


@pytest.mark.parametrize("row", RESOURCES, ids=lambda row: f"{row[0]} {row[1]}")
def test_resource_requests(row: tuple[str, ...]) -> None:
    method, target, verb, group, version, namespace, resource, subresource, name = row
    path, _, query = target.partition("?")
    expected = RequestInfo(verb, path, True, group, version, namespace, resource, subresource, name)
    assert request_info(method, path, parse_query(query)) == expected


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


@given(st.text(alphabet=st.sampled_from("/apisv1watchnme%2F."), max_size=60))
def test_only_a_status_escapes(path: str) -> None:
    try:
        info = request_info("GET", path, {})
    except StatusError:
        return
    assert info.is_resource_request == bool(info.resource)
