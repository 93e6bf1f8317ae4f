"""R-SYS-1: whatever is sent is answered with success or a client's error; no 500, and the server lives on."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podling.apiserver.response import Response

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

bounded = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

NAMES = """
    metadata name namespace labels annotations managedFields fieldsV1 manager operation finalizers spec status
    containers initContainers ephemeralContainers image env value resources limits cpu ports containerPort
    protocol volumes emptyDir securityContext tolerations data kind apiVersion v1 Pod ConfigMap a p op path
    from add replace test move copy remove /metadata /data/k /spec/containers/0 $patch delete $retainKeys
    $setElementOrder/containers $deleteFromPrimitiveList/finalizers resourceVersion uid generateName
    creationTimestamp ownerReferences default 1 -1 1e99 0x1 null Update Apply FieldsV1
"""
WORDS = st.sampled_from(NAMES.split())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=25,
)
METADATA = st.fixed_dictionaries({"name": st.sampled_from(["a", "p"])}, optional={"managedFields": VALUES})
POD_SPEC = st.fixed_dictionaries(
    {"containers": VALUES | st.lists(st.dictionaries(WORDS, VALUES, max_size=4), max_size=3)}
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("v1") | VALUES,
        "kind": st.sampled_from(["Pod", "ConfigMap"]) | VALUES,
        "metadata": METADATA | VALUES,
        "spec": POD_SPEC | VALUES,
        "data": VALUES,
        "status": VALUES,
    },
)
SENT = (OBJECTS | VALUES).map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60)


@pytest.fixture
async def furnished(api: Any) -> Any:
    await api.post(CONFIGS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}})
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    return api


async def survives(api: Any, method: str, target: str, body: bytes = b"", **headers: str) -> Response:
    """504 says that a revision is yet to come."""
    response: Response = await api.raw(method, target, body, **headers)
    if not isinstance(response.body, bytes):
        await response.body.aclose()  # type: ignore[union-attr]
    assert response.status < 500 or response.status == 504, response.body
    return response


@bounded
@given(SENT, st.sampled_from([CONFIGS, PODS, NODES]), st.sampled_from(BODIES), st.booleans())
async def test_creating(furnished: Any, body: bytes, target: str, kind: str, strict: bool) -> None:
    query = "?dryRun=All&fieldValidation=Strict" if strict else "?dryRun=All"
    await survives(furnished, "POST", target + query, body, Content_Type=kind)


@bounded
@given(SENT, st.sampled_from([f"{CONFIGS}/a", f"{PODS}/p", f"{PODS}/p/status"]), st.sampled_from(BODIES))
async def test_updating(furnished: Any, body: bytes, target: str, kind: str) -> None:
    await survives(furnished, "PUT", f"{target}?dryRun=All", body, Content_Type=kind)


@bounded
@given(
    SENT,
    st.sampled_from(
        [f"{CONFIGS}/a", f"{PODS}/p", f"{PODS}/p/status", f"{PODS}/p/ephemeralcontainers", f"{PODS}/q"]
    ),
    st.sampled_from(PATCHES),
)
async def test_patching(furnished: Any, body: bytes, target: str, kind: str) -> None:
    query = "?dryRun=All" + ("&fieldManager=m&force=true" if kind.startswith("apply") else "")
    await survives(furnished, "PATCH", target + query, body, Content_Type=f"application/{kind}")


@bounded
@given(st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), VALUES), max_size=4))
async def test_json_patches(furnished: Any, patch: Any) -> None:
    body = json.dumps(patch).encode()
    await survives(
        furnished, "PATCH", f"{PODS}/p?dryRun=All", body, Content_Type="application/json-patch+json"
    )


@bounded
@given(SENT, st.sampled_from([f"{CONFIGS}/a", CONFIGS]))
async def test_deleting(furnished: Any, body: bytes, target: str) -> None:
    await survives(furnished, "DELETE", f"{target}?dryRun=All", body)


PARAMETERS = st.dictionaries(
    st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "limit",
            "watch",
            "timeoutSeconds",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "includeObject",
        ]
    ),
    st.text(max_size=12)
    | st.sampled_from(["1", "0", "-1", "9" * 30, "Exact", "NotOlderThan", "true", "a in (b", "!a", "a=b,c"])
    | st.integers().map(str),
    max_size=4,
)
ACCEPTED = st.sampled_from(
    [
        "",
        "*/*",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/yaml",
        "text/html",
        ";;q=,",
        "a/b;q=x",
    ]
)


@bounded
@given(PARAMETERS, ACCEPTED)
async def test_asking(furnished: Any, parameters: dict[str, str], accept: str) -> None:
    query = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in parameters.items())
    await survives(furnished, "GET", f"{CONFIGS}?{query}", Accept=accept)


@bounded
@given(st.binary(max_size=30) | VALUES.map(lambda value: json.dumps(value).encode()), st.booleans())
async def test_continue_tokens(furnished: Any, token: bytes, encoded: bool) -> None:
    text = base64.urlsafe_b64encode(token).decode() if encoded else quote(token)
    await survives(furnished, "GET", f"{CONFIGS}?limit=1&continue={text}")


DEEP = {
    "application/json": [b"[" * 100_000, b'{"metadata":' * 50_000],
    "application/yaml": [
        b"[" * 100_000,
        b"{a: " * 20_000,
        b"- " * 20_000,
        b"a: &x [*x]",
        b"!!python/object:x {}",
    ],
    "application/vnd.kubernetes.protobuf": [
        b"k8s\0" + b"\x12\xff\xff\xff\xff\x0f",
        b"k8s\0" + b"\x12\x02\x0a\x00",
    ],
}


@pytest.mark.parametrize(("kind", "body"), [(kind, body) for kind, bodies in DEEP.items() for body in bodies])
async def test_deep_bodies_are_refused(furnished: Any, kind: str, body: bytes) -> None:
    for method, target in (("POST", PODS), ("PUT", f"{PODS}/p"), ("DELETE", f"{PODS}/p")):
        refused = await survives(furnished, method, target, body, Content_Type=kind)
        assert refused.status in (400, 422), refused.body


@pytest.mark.parametrize("kind", PATCHES)
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"metadata":' * 50_000, b'{"data":' * 900 + b"1" + b"}" * 900]
)
async def test_deep_patches_are_refused(furnished: Any, kind: str, body: bytes) -> None:
    target = f"{CONFIGS}/a?fieldManager=m"
    refused = await survives(furnished, "PATCH", target, body, Content_Type=f"application/{kind}")
    assert refused.status in (400, 422), refused.body


async def test_deep_records_of_managers_are_not_kept(furnished: Any) -> None:
    fields = b'{"f:a":' * 600 + b"{}" + b"}" * 600
    entry = (
        b'[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":' + fields
    )
    body = b'{"metadata":{"managedFields":' + entry + b"}]}}"
    answer = await furnished.patch(f"{CONFIGS}/a", body)
    assert answer.status in (200, 400)
    assert b"f:a" not in (await furnished.raw("GET", f"{CONFIGS}/a")).body


async def test_a_body_beyond_the_limit(furnished: Any) -> None:
    refused = await survives(furnished, "POST", CONFIGS, b" " * (3 * 1024 * 1024 + 1))
    assert refused.status == 413
