"""What is answered where nothing is, and to methods that are not served there."""

from __future__ import annotations

from typing import Any

import pytest

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize("path", ["/nowhere", "/api/v2/pods", "/apis/example.com/v1/things", "/apis/apps"])
async def test_no_such_page(api: Any, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.content_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize("path", ["/api/v1/things", f"{PODS}/a/things", "/apis/policy/v1/things"])
async def test_no_such_resource_in_a_version_that_is_served(api: Any, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body["kind"], answer.body["reason"]) == (404, "Status", "NotFound")
    assert answer.message == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", f"{PODS}/a", "DELETE, GET, PATCH, PUT"),
        ("PUT", PODS, "DELETE, GET, POST"),
        ("OPTIONS", PODS, "DELETE, GET, POST"),
        ("HEAD", PODS, "DELETE, GET, POST"),
        ("BREW", f"{PODS}/a", "DELETE, GET, PATCH, PUT"),
        ("POST", "/api/v1/pods", "GET"),
        ("POST", "/api/v1/watch/pods", "DELETE, GET, POST"),
        ("DELETE", f"{PODS}/a/status", "GET, PATCH, PUT"),
        ("GET", f"{PODS}/a/eviction", "POST"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", "POST"),
    ],
)
async def test_a_method_that_is_not_served(api: Any, method: str, path: str, allowed: str) -> None:
    answer = await api.say(method, path)
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")
    assert answer.message == "the server does not allow this method on the requested resource"
    assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (PROTOBUF, 406),
        (f"{PROTOBUF},application/json", 200),
        (f"application/json,{PROTOBUF}", 200),
        (f"{PROTOBUF};stream=watch", 406),
        ("text/html", 406),
        ("text/html,*/*;q=0.8", 200),
        ("application/json;q=0", 406),
    ],
)
async def test_what_a_client_takes(api: Any, accept: str, status: int) -> None:
    answer = await api.get(PODS, Accept=accept)
    assert (answer.status, answer.content_type) == (status, "application/json")
    if status == 406:
        assert answer.body["reason"] == "NotAcceptable"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_of_another_type(api: Any, content_type: str) -> None:
    answer = await api.post(PODS, b"{}", Content_Type=content_type)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")
