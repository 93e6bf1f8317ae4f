"""What is answered where nothing is, and to methods that are not served there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from podling.apiserver.request.request import User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/apis//policy/v1",
        "/openapi/v2/",
        "/openapi/v3/",
        "/openapi/v3/api/v1/",
        "/apis/example.com/v1/things",
        "/apis/apps",
        "//api/v1/namespaces/default",
        "/%2Fapi/v1/namespaces/default",
        "//livez",
        "/livez/",
        "/healthz/../metrics",
    ],
)
async def test_no_such_page(api: Conversation, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.content_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/things",
        f"{PODS}/a/things",
        "/apis/policy/v1/things",
        "/api/v2/pods",
        "/api//v1",
        "/api/./v1/pods",
        "/apis/policy/v9/things",
        "/apis/policy//v1",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/namespaces/default/namespaces/default",
        "/api/v1/namespaces/default/namespaces/default/status",
        "/api/v1//namespaces/default",
        "/api/v1/namespaces/default//pods",
        "/api/v1/namespaces/default/./pods",
        "/api/v1/namespaces/default/%2e%2e/default",
        f"{PODS}//a",
        f"{PODS}/a//log",
        f"{PODS}/a%2Fb",
        f"{PODS}/a/log/b",
        f"{PODS}/a/status/b",
    ],
)
async def test_no_such_resource_in_a_group_that_is_served(api: Conversation, path: str) -> None:
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
async def test_a_method_that_is_not_served(api: Conversation, method: str, path: str, allowed: str) -> None:
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
        ("application/json;q=0", 200),
    ],
)
async def test_what_a_client_takes(api: Conversation, accept: str, status: int) -> None:
    answer = await api.get(PODS, Accept=accept)
    assert (answer.status, answer.content_type) == (status, "application/json")
    if status == 406:
        assert answer.body["reason"] == "NotAcceptable"


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_of_another_type(api: Conversation, content_type: str) -> None:
    answer = await api.post(PODS, b"{}", Content_Type=content_type)
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/namespaces%2Fdefault/pods", "PodList"),
        ("/api/v1/namespaces/default/pods//", "PodList"),
        ("/api/v1/namespaces//pods", "PodList"),
        ("/ap%69/v1/namespaces/default//", "Namespace"),
    ],
)
async def test_a_path_is_decoded_before_it_is_divided(api: Conversation, path: str, kind: str) -> None:
    assert (await api.get(path)).body["kind"] == kind


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("namespace", ["..", ".", "%2e%2e"])
async def test_a_namespace_that_cannot_be_is_refused(api: Conversation, method: str, namespace: str) -> None:
    answer = await api.say(method, f"/api/v1/namespaces/{namespace}/pods", {})
    assert answer.status == 400 and "Namespace parameter invalid" in answer.message


@pytest.mark.parametrize("path", ["/index.html", "/openid/v1/jwks/", "/.well-known/openid-configuration/"])
async def test_other_names_of_pages(api: Conversation, path: str) -> None:
    assert (await api.get(path)).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("..", "\"..\": may not be '..'"),
        ("%2e", "\".\": may not be '.'"),
        ("a%25b", "\"a%b\": may not contain '%'"),
    ],
)
async def test_what_can_be_no_name(api: Conversation, method: str, name: str, why: str) -> None:
    answer = await api.say(method, f"{PODS}/{name}")
    assert (answer.status, answer.message) == (400, f"Name parameter invalid: {why}")


async def test_a_subresource_is_of_something(api: Conversation) -> None:
    answer = await api.get(f"{PODS}//log")
    assert (answer.status, answer.message) == (400, "name must be provided")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_proxy_is_reached_by_every_method_kubernetes_has(api: Conversation, method: str) -> None:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert (await api.post(PODS, pod)).status == 201
    answer = await api.say(method, f"{PODS}/web/proxy/a")
    assert (answer.status, answer.body) == (200, b"proxy of web")
    assert (await api.say("BREW", f"{PODS}/web/proxy/a")).status == 405


async def test_options_of_a_proxy_are_allowed_by_no_verb(api: Conversation) -> None:
    """As in Kubernetes: who may do only what rules say may not ask for them."""
    api.user = User("eve", ())
    answer = await api.say("OPTIONS", f"{PODS}/web/proxy/a")
    assert answer.status == 403
    assert 'User "eve" cannot  resource "pods/proxy" in API group ""' in answer.message


REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


@pytest.mark.parametrize("path", [REVIEW, TOKEN, f"{PODS}/web/eviction", f"{PODS}/web/binding"])
async def test_what_is_no_object_has_no_columns(api: Conversation, path: str) -> None:
    answer = await api.post(path, {}, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert (answer.status, answer.body["reason"]) == (406, "NotAcceptable")
    either = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    assert (await api.post(path, {}, Accept=either)).status != 406


@pytest.mark.parametrize("path", [REVIEW, TOKEN])
async def test_what_is_no_object_has_metadata(api: Conversation, path: str) -> None:
    metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    answer = await api.post(path, {}, Accept=metadata)
    assert (answer.status, answer.body["kind"]) == (201, "PartialObjectMetadata")
    assert set(answer.body) == {"kind", "apiVersion", "metadata"}


@pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch", "json-patch"])
async def test_a_patch_is_utf8(api: Conversation, kind: str) -> None:
    configs = "/api/v1/namespaces/default/configmaps"
    await api.post(configs, {"metadata": {"name": "a"}})
    merge, steps = b'{"data":{"a":"\xff"}}', b'[{"op":"add","path":"/data","value":{"a":"\xff"}}]'
    answer = await api.patch(f"{configs}/a", steps if kind == "json-patch" else merge, kind)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert answer.message.startswith("the patch is not UTF-8")
