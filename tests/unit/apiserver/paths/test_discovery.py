"""Clients find out what is served, in the old form and in the aggregated one (R-SYS-1)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.discovery import Discovery
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, RequestInfo
from podling.apiserver.request.response import Response
from podling.model.errors import StatusError

DISCOVERY = Discovery(KINDS, "0.1.0")
GROUPS = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
]
KUBECTL = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


def ask(path: str, **headers: str) -> Response | None:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request("GET", path, headers=named)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    context = RequestContext(request, "audit", now, {}, RequestInfo("get", path))
    return asyncio.run(DISCOVERY.serve(context))


def get(path: str, **headers: str) -> Any:
    response = ask(path, **headers)
    assert response is not None and isinstance(response.body, bytes)
    assert response.status == 200
    return msgspec.json.decode(response.body)


def test_the_tree_leads_from_groups_to_resources() -> None:
    assert get("/api")["versions"] == ["v1"]
    groups = get("/apis")["groups"]
    assert [group["name"] for group in groups] == GROUPS
    for group in groups:
        assert get(f"/apis/{group['name']}")["preferredVersion"] == group["preferredVersion"]
        found = get(f"/apis/{group['preferredVersion']['groupVersion']}")
        assert found["groupVersion"] == group["preferredVersion"]["groupVersion"]


def resources() -> dict[str, Any]:
    return {resource["name"]: resource for resource in get("/api/v1")["resources"]}


def test_a_resource_is_described() -> None:
    pods = resources()["pods"]
    assert (pods["kind"], pods["singularName"], pods["namespaced"]) == ("Pod", "pod", True)
    assert (pods["shortNames"], pods["categories"]) == (["po"], ["all"])
    assert pods["verbs"] == [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]


@pytest.mark.parametrize(
    ("name", "kind", "verbs"),
    [
        ("pods/status", "Pod", ["get", "patch", "update"]),
        ("pods/ephemeralcontainers", "Pod", ["get", "patch", "update"]),
        ("pods/binding", "Binding", ["create"]),
        ("pods/eviction", "Eviction", ["create"]),
        ("pods/exec", "PodExecOptions", ["create", "get"]),
        ("pods/attach", "PodAttachOptions", ["create", "get"]),
        ("pods/portforward", "PodPortForwardOptions", ["create", "get"]),
        ("pods/log", "Pod", ["get"]),
        ("pods/proxy", "PodProxyOptions", ["create", "delete", "get", "patch", "update"]),
        ("nodes/proxy", "NodeProxyOptions", ["create", "delete", "get", "patch", "update"]),
        ("services/proxy", "ServiceProxyOptions", ["create", "delete", "get", "patch", "update"]),
        ("nodes/status", "Node", ["get", "patch", "update"]),
        ("namespaces/status", "Namespace", ["get", "patch", "update"]),
        ("namespaces/finalize", "Namespace", ["update"]),
    ],
)
def test_subresources(name: str, kind: str, verbs: list[str]) -> None:
    assert (resources()[name]["kind"], resources()[name]["verbs"]) == (kind, verbs)


def test_a_body_of_another_group_says_which() -> None:
    eviction = resources()["pods/eviction"]
    assert (eviction["group"], eviction["version"]) == ("policy", "v1")


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_all_of_a_tree_in_one_answer(path: str) -> None:
    response = ask(path, Accept=KUBECTL)
    assert response is not None and isinstance(response.body, bytes)
    assert response.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = msgspec.json.decode(response.body)
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    names = {item["metadata"].get("name", "") for item in found["items"]}
    assert names == ({""} if path == "/api" else set(GROUPS))


def test_both_forms_agree() -> None:
    aggregated = get("/api", Accept=KUBECTL)["items"][0]["versions"][0]["resources"]
    names = {entry["resource"] for entry in aggregated}
    for entry in aggregated:
        names |= {f"{entry['resource']}/{sub['subresource']}" for sub in entry.get("subresources", ())}
    assert names == resources().keys()


def test_what_a_client_has_is_not_sent_again() -> None:
    first = ask("/apis", Accept=KUBECTL)
    assert first is not None
    again = ask("/apis", Accept=KUBECTL, If_None_Match=first.headers["ETag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_the_version_names_kubernetes_and_podling() -> None:
    found = get("/version")
    assert (found["major"], found["minor"], found["gitVersion"]) == ("1", "36", "v1.36.0+podling-0.1.0")


@pytest.mark.parametrize("path", ["/", "/apis/nothing", "/apis/nothing/v1", "/healthz"])
def test_other_paths_are_left_to_others(path: str) -> None:
    assert ask(path) is None


@pytest.mark.parametrize("path", ["/api/v2", "/api/v2/", "/apis/policy/v9"])
def test_a_version_that_is_not_served_is_no_resource(path: str) -> None:
    with pytest.raises(StatusError, match="the server could not find the requested resource"):
        ask(path)
