"""The published description is complete in itself and says what kubectl reads from it (R-SYS-1)."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.paths.openapi import gnostic
from podling.apiserver.paths.openapi.documents import OpenAPI
from podling.apiserver.protobuf.wire import fields
from podling.apiserver.request.context import RequestContext
from podling.apiserver.request.request import Request, RequestInfo
from podling.apiserver.request.response import TEXT, Response

OPENAPI = OpenAPI(KINDS, "v1.36.0")
POD = {"group": "", "kind": "Pod", "version": "v1"}


def asked(path: str, **headers: str) -> RequestContext:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request("GET", path, headers=named)
    return RequestContext(request, "audit", datetime(2026, 1, 1, tzinfo=UTC), {}, RequestInfo("get", path))


def serve(path: str, **headers: str) -> Response | None:
    return asyncio.run(OPENAPI.serve(asked(path, **headers)))


def get(path: str) -> Any:
    response = serve(path)
    assert response is not None and isinstance(response.body, bytes)
    return msgspec.json.decode(response.body)


def schemas(path: str = "/openapi/v3/api/v1") -> dict[str, Any]:
    found: dict[str, Any] = get(path)["components"]["schemas"]
    return found


def test_the_index_leads_to_every_group() -> None:
    paths = get("/openapi/v3")["paths"]
    versions = {kind.resource.api_version for kind in KINDS} - {"v1"}
    groups = {f"apis/{name}" for version in versions for name in (version, version.partition("/")[0])}
    told = {"api", "apis", "version", ".well-known/openid-configuration", "openid/v1/jwks"}
    assert list(paths) == sorted({"api/v1", *groups, *told})
    for entry in paths.values():
        assert get(entry["serverRelativeURL"].partition("?")[0])["openapi"] == "3.0.0"


@pytest.mark.parametrize("path", ["/openapi/v3/api/v1", "/openapi/v3/apis/events.k8s.io/v1", "/openapi/v2"])
def test_every_reference_has_its_schema(path: str) -> None:
    document = get(path)
    known = document.get("definitions") or document["components"]["schemas"]
    references = set(
        re.findall(
            r'"\$ref":"#/(?:definitions|components/schemas)/([^"]+)"', msgspec.json.encode(document).decode()
        )
    )
    assert references
    assert references <= known.keys()


@pytest.mark.parametrize(
    ("type_", "field", "expected"),
    [
        (
            "PodSpec",
            "containers",
            {
                "x-kubernetes-patch-merge-key": "name",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
        ("PodSpec", "volumes", {"x-kubernetes-patch-strategy": "merge,retainKeys"}),
        ("PodSpec", "tolerations", {"x-kubernetes-list-type": "atomic"}),
        ("Container", "ports", {"x-kubernetes-list-map-keys": ["containerPort", "protocol"]}),
        ("PodSpec", "terminationGracePeriodSeconds", {"type": "integer", "format": "int64"}),
        ("ContainerPort", "containerPort", {"type": "integer", "format": "int32"}),
        (
            "HTTPGetAction",
            "port",
            {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}]},
        ),
        (
            "PodStatus",
            "startTime",
            {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}]},
        ),
        ("PodSpec", "restartPolicy", {"type": "string", "enum": ["Always", "Never", "OnFailure"]}),
        ("Secret", "data", {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}),
    ],
)
def test_fields(type_: str, field: str, expected: dict[str, Any]) -> None:
    found = schemas()[f"io.k8s.api.core.v1.{type_}"]["properties"][field]
    assert {key: found.get(key) for key in expected} == expected


def test_what_is_required() -> None:
    core = schemas()
    assert core["io.k8s.api.core.v1.PodSpec"]["required"] == ["containers"]
    assert core["io.k8s.api.core.v1.Container"]["required"] == ["name"]
    assert core["io.k8s.api.core.v1.PodList"]["required"] == ["items"]


def test_kinds_are_found_by_group_version_and_kind() -> None:
    assert schemas()["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"] == [POD]


@pytest.mark.parametrize(
    ("path", "method", "action", "name"),
    [
        ("/pods", "get", "list", "listCoreV1PodForAllNamespaces"),
        ("/watch/pods", "get", "watchlist", "watchCoreV1PodListForAllNamespaces"),
        ("/watch/nodes/{name}", "get", "watch", "watchCoreV1Node"),
        ("/namespaces/{namespace}/pods", "post", "post", "createCoreV1NamespacedPod"),
        ("/namespaces/{namespace}/pods", "delete", "deletecollection", "deleteCoreV1CollectionNamespacedPod"),
        ("/namespaces/{namespace}/pods/{name}", "patch", "patch", "patchCoreV1NamespacedPod"),
        ("/namespaces/{namespace}/pods/{name}/status", "put", "put", "replaceCoreV1NamespacedPodStatus"),
        ("/namespaces/{namespace}/pods/{name}/log", "get", "get", "readCoreV1NamespacedPodLog"),
        (
            "/namespaces/{namespace}/pods/{name}/exec",
            "post",
            "connect",
            "connectCoreV1PostNamespacedPodExec",
        ),
        ("/nodes/{name}/proxy/{path}", "head", "connect", "connectCoreV1HeadNodeProxyWithPath"),
        ("/namespaces/{name}", "get", "get", "readCoreV1Namespace"),
    ],
)
def test_operations(path: str, method: str, action: str, name: str) -> None:
    operation = get("/openapi/v3/api/v1")["paths"][f"/api/v1{path}"][method]
    assert (operation["x-kubernetes-action"], operation["operationId"]) == (action, name)


@pytest.mark.parametrize(
    ("path", "method", "said"),
    [
        ("/pods", "get", "List objects of kind Pod, or watch them."),
        ("/namespaces/{namespace}/events", "post", "Create an Event."),
        ("/namespaces/{namespace}/pods/{name}/status", "patch", "Change parts of status of the Pod."),
        ("/namespaces/{namespace}/pods/{name}/log", "get", "Read log of the Pod."),
        ("/nodes/{name}/proxy", "put", "Pass a PUT request on to proxy of the Node."),
    ],
)
def test_an_operation_says_what_it_does(path: str, method: str, said: str) -> None:
    assert get("/openapi/v3/api/v1")["paths"][f"/api/v1{path}"][method]["description"] == said


def test_every_operation_and_parameter_has_words() -> None:
    for document in (get("/openapi/v2"), get("/openapi/v3/api/v1"), get("/openapi/v3/apis")):
        for item in document["paths"].values():
            operations = [said for method, said in item.items() if method != "parameters"]
            assert all(one["description"] for one in operations)
            taken = [item, *operations]
            parameters = [each for one in taken for each in one.get("parameters", ())]
            assert all(one.get("description") or one["in"] == "body" for one in parameters)


def test_what_all_operations_of_a_path_take_is_said_of_the_path() -> None:
    paths = get("/openapi/v3/apis/rbac.authorization.k8s.io/v1")["paths"]
    item = paths["/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{name}"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["name", "namespace", "pretty"]
    assert "parameters" not in item["get"]
    assert [parameter["name"] for parameter in item["put"]["parameters"]] == [
        "dryRun",
        "fieldManager",
        "fieldValidation",
    ]
    assert item["get"]["tags"] == ["rbacAuthorization_v1"]


@pytest.mark.parametrize(
    ("path", "method", "code", "answered"),
    [
        ("/configmaps", "get", "200", "io.k8s.api.core.v1.ConfigMapList"),
        ("/configmaps", "post", "201", "io.k8s.api.core.v1.ConfigMap"),
        ("/configmaps", "delete", "200", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        ("/configmaps/{name}", "put", "200", "io.k8s.api.core.v1.ConfigMap"),
        ("/configmaps/{name}", "delete", "200", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        ("/pods/{name}", "delete", "200", "io.k8s.api.core.v1.Pod"),
    ],
)
def test_answers(path: str, method: str, code: str, answered: str) -> None:
    item = get("/openapi/v3/api/v1")["paths"][f"/api/v1/namespaces/{{namespace}}{path}"]
    schema = item[method]["responses"][code]["content"]["application/json"]["schema"]
    assert schema == {"$ref": f"#/components/schemas/{answered}"}


def test_kubectl_finds_that_fields_are_validated_and_dry_runs_known() -> None:
    patch = get("/openapi/v3/api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == POD
    assert {"fieldValidation", "dryRun"} <= {parameter["name"] for parameter in patch["parameters"]}


def test_version_2_has_no_words_of_version_3() -> None:
    text = msgspec.json.encode(get("/openapi/v2")).decode()
    for word in ('"allOf":[', '"oneOf":[', '"requestBody"', "#/components"):
        assert word not in text


def test_what_a_client_has_is_not_sent_again() -> None:
    first = serve("/openapi/v2")
    assert first is not None
    again = serve("/openapi/v2", If_None_Match=first.headers["ETag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


def test_version_2_in_protobuf_for_those_who_ask_for_it() -> None:
    response = serve("/openapi/v2", Accept=gnostic.MEDIA_TYPE)
    assert response is not None
    assert response.content_type == gnostic.CONTENT_TYPE
    assert dict(fields(bytes(response.body)))[1] == b"2.0"  # type: ignore[arg-type]


def test_other_formats_are_refused() -> None:
    response = serve("/openapi/v2", Accept="application/yaml")
    assert response is not None
    assert (response.status, response.body, response.content_type) == (406, b"", "")


def test_the_index_is_for_everybody() -> None:
    response = serve("/openapi/v3", Accept="application/yaml")
    assert response is not None
    assert (response.status, response.content_type) == (200, TEXT)


def test_a_group_without_a_document() -> None:
    response = serve("/openapi/v3/apis/nothing/v1")
    assert response is not None
    assert (response.status, response.body, response.content_type) == (404, b"", "")


@pytest.mark.parametrize("path", ["/openapi", "/api/v1"])
def test_other_paths_are_left_to_others(path: str) -> None:
    assert serve(path) is None


def by_hash(digest: str) -> Response:
    path = "/openapi/v3/apis/policy/v1"
    context = asked(path)
    context.query = {"hash": (digest,)}
    response = asyncio.run(OPENAPI.serve(context))
    assert response is not None
    return response


def test_what_is_asked_for_by_its_hash_is_kept_for_good() -> None:
    """As kubectl keeps it: on disk, without asking again."""
    url = get("/openapi/v3")["paths"]["apis/policy/v1"]["serverRelativeURL"]
    kept = by_hash(url.partition("=")[2])
    assert kept.status == 200
    assert kept.headers["Cache-Control"] == "public, immutable"
    assert kept.headers["Expires"] == "Fri, 01 Jan 2027 00:00:00 GMT"
    moved = by_hash("OLD")
    assert (moved.status, moved.headers["Location"]) == (301, url)
