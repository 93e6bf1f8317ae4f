"""R-SYS-1: whatever is sent is answered with success or a client's error; no 500, and the server lives on."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from functools import reduce
from itertools import count
from operator import getitem
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podling.apiserver.kinds.kinds import KINDS
from podling.apiserver.kinds.pods.pods import Pods
from podling.apiserver.request.response import Response
from podling.model.codec.json import decoder_of
from podling.model.types.pod import Pod

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")

bounded = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

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
async def furnished(api: Conversation) -> Conversation:
    await api.post(CONFIGS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}})
    await api.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    return api


async def survives(
    api: Conversation, method: str, target: str, body: bytes = b"", **headers: str
) -> Response:
    """504 says that a revision is yet to come."""
    response = await api.raw(method, target, body, **headers)
    if not isinstance(response.body, bytes):
        assert isinstance(response.body, AsyncGenerator)
        await response.body.aclose()
    assert response.status < 500 or response.status == 504, response.body
    return response


@bounded
@given(SENT, st.sampled_from([CONFIGS, PODS, NODES]), st.sampled_from(BODIES), st.booleans())
async def test_creating(furnished: Conversation, body: bytes, target: str, kind: str, strict: bool) -> None:
    query = "?dryRun=All&fieldValidation=Strict" if strict else "?dryRun=All"
    await survives(furnished, "POST", target + query, body, Content_Type=kind)


@bounded
@given(SENT, st.sampled_from([f"{CONFIGS}/a", f"{PODS}/p", f"{PODS}/p/status"]), st.sampled_from(BODIES))
async def test_updating(furnished: Conversation, body: bytes, target: str, kind: str) -> None:
    await survives(furnished, "PUT", f"{target}?dryRun=All", body, Content_Type=kind)


@bounded
@given(
    SENT,
    st.sampled_from(
        [f"{CONFIGS}/a", f"{PODS}/p", f"{PODS}/p/status", f"{PODS}/p/ephemeralcontainers", f"{PODS}/q"]
    ),
    st.sampled_from(PATCHES),
)
@example(
    body=b'{"apiVersion":null,"metadata":true,"data":{"managedFields":""}}',
    target=f"{CONFIGS}/a",
    kind="merge-patch+json",
)
async def test_patching(furnished: Conversation, body: bytes, target: str, kind: str) -> None:
    query = "?dryRun=All" + ("&fieldManager=m&force=true" if kind.startswith("apply") else "")
    await survives(furnished, "PATCH", target + query, body, Content_Type=f"application/{kind}")


WHOLE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {}, "finalizers": ["a.b/c"]},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "E", "value": "v"}],
                "ports": [{"containerPort": 80, "name": "http"}],
                "resources": {"limits": {"cpu": "1"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*at, key)
        yield from places(child, (*at, key))


def spoiled(changes: list[tuple[tuple[Any, ...], Any]]) -> bytes:
    """A good pod with something else in some places."""
    pod: Any = json.loads(json.dumps(WHOLE))
    for (*way, last), value in changes:
        # The change before may have taken the place away.
        with suppress(KeyError, IndexError, TypeError):
            reduce(getitem, way, pod)[last] = value
    return json.dumps(pod).encode()


PLAUSIBLE = """
    c i a-b A_B a.b/c /x ../x 1 1Gi -1 Always Never OnFailure UDP Memory Exists Equal $(E) http v p
"""
CHANGES = st.sampled_from(["", 0, -1, 80, 65536, True, [], {}, *PLAUSIBLE.split()])
NUMBERS = count()
SPOILED = st.lists(st.tuples(st.sampled_from([*places(WHOLE)]), CHANGES | CHANGES | VALUES), max_size=2).map(
    spoiled
)


@bounded
@given(SPOILED, st.sampled_from(PATCHES))
async def test_nothing_is_stored_that_is_not_valid(furnished: Conversation, body: bytes, kind: str) -> None:
    anew = body.replace(b'"name": "p"', b'"name": "p-%d"' % next(NUMBERS))
    await survives(furnished, "POST", PODS, anew, Content_Type="application/json")
    await survives(furnished, "PUT", f"{PODS}/p", body, Content_Type="application/json")
    target = f"{PODS}/p?fieldManager=m&force=true" if kind.startswith("apply") else f"{PODS}/p"
    await survives(furnished, "PATCH", target, body, Content_Type=f"application/{kind}")
    for item in (await furnished.get(PODS)).body["items"]:
        assert not Pods().validate(decoder_of(Pod).decode(json.dumps(item).encode()))


@bounded
@given(st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), VALUES), max_size=4))
async def test_json_patches(furnished: Conversation, patch: Any) -> None:
    body = json.dumps(patch).encode()
    await survives(
        furnished, "PATCH", f"{PODS}/p?dryRun=All", body, Content_Type="application/json-patch+json"
    )


@bounded
@given(SENT, st.sampled_from([f"{CONFIGS}/a", CONFIGS]))
async def test_deleting(furnished: Conversation, body: bytes, target: str) -> None:
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
    | st.sampled_from(
        [
            "1",
            "0",
            "-1",
            "9" * 30,
            "9" * 5000,
            "-" + "9" * 5000,
            "Exact",
            "NotOlderThan",
            "true",
            "a in (b",
            "!a",
            "a=b,c",
        ]
    )
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


SELECTOR_WORDS = """
    a b.c/d x/y/z spec.nodeName status.phase metadata.name metadata.namespace
    = == != in notin ( ) , ! < > " \\ \\, 1 -1 - . ..
"""
SELECTORS = st.lists(
    st.sampled_from(SELECTOR_WORDS.split()) | st.text(max_size=3),
    max_size=8,
).map("".join)


@bounded
@given(SELECTORS, SELECTORS, st.sampled_from([PODS, "/api/v1/pods", NODES, "/apis/events.k8s.io/v1/events"]))
async def test_selecting(furnished: Conversation, labels: str, fields: str, target: str) -> None:
    chosen = f"labelSelector={quote(labels)}&fieldSelector={quote(fields)}"
    await survives(furnished, "GET", f"{target}?{chosen}")
    await survives(furnished, "GET", f"{target}?watch=1&{chosen}")
    await survives(furnished, "DELETE", f"{target}?dryRun=All&{chosen}")


EVERYWHERE = [
    f"{base}/namespaces/default/{kind.resource.plural}"
    if kind.resource.namespaced
    else f"{base}/{kind.resource.plural}"
    for kind in KINDS
    for base in [
        f"/apis/{kind.resource.api_version}" if kind.resource.group else f"/api/{kind.resource.version}"
    ]
]


@bounded
@given(
    SENT,
    st.sampled_from(EVERYWHERE),
    st.sampled_from(["", "/a", "/a/status", "/a/b/c"]),
    st.sampled_from(PATCHES),
)
async def test_every_kind(
    furnished: Conversation, body: bytes, collection: str, name: str, kind: str
) -> None:
    target = f"{collection}{name}?dryRun=All&fieldManager=m"
    for method in ("POST", "PUT", "DELETE"):
        await survives(furnished, method, target, body, Content_Type="application/json")
    await survives(furnished, "PATCH", target, body, Content_Type=f"application/{kind}")


SEGMENT_WORDS = "api apis v1 apps namespaces default pods p status log proxy watch %00 %2F .. %ff"
SEGMENTS = st.lists(
    st.sampled_from(SEGMENT_WORDS.split())
    | st.text(max_size=4).map(lambda text: quote(text, errors="replace")),
    max_size=7,
)


@bounded
@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"]),
    SEGMENTS,
    st.text(max_size=10),
)
async def test_paths(furnished: Conversation, method: str, segments: list[str], query: str) -> None:
    await survives(furnished, method, f"/{'/'.join(segments)}?{quote(query, errors='replace')}", b"{}")


HEADER_NAMES = """
    Accept Accept_Encoding Audit_Id Authorization Content_Encoding Content_Type If_None_Match User_Agent
    Impersonate_User Impersonate_Group X_Forwarded_For
"""
HEADERS = st.dictionaries(
    st.sampled_from(HEADER_NAMES.split()),
    st.text(max_size=20)
    | st.sampled_from(["a" * 100_000, "gzip;q=x", "Bearer ", "*/*;q=0", "application/json;" * 999]),
    max_size=4,
)


@bounded
@given(HEADERS, st.sampled_from(["GET", "POST", "PATCH", "DELETE"]))
async def test_headers(furnished: Conversation, headers: dict[str, str], method: str) -> None:
    await survives(furnished, method, f"{CONFIGS}/a?dryRun=All", b"{}", **headers)
    await survives(furnished, method, f"{CONFIGS}?dryRun=All", b"{}", **headers)


@bounded
@given(PARAMETERS, ACCEPTED)
async def test_asking(furnished: Conversation, parameters: dict[str, str], accept: str) -> None:
    query = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in parameters.items())
    await survives(furnished, "GET", f"{CONFIGS}?{query}", Accept=accept)


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "-" + "9" * 5000])
@pytest.mark.parametrize("parameter", ["limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds"])
async def test_numbers_beyond_all_bounds(furnished: Conversation, parameter: str, number: str) -> None:
    for method, target in (("GET", CONFIGS), ("GET", f"{CONFIGS}/a"), ("DELETE", f"{PODS}/p")):
        await survives(furnished, method, f"{target}?{parameter}={number}")
    await survives(furnished, "GET", f"{CONFIGS}?watch=1&{parameter}={number}")


@bounded
@given(st.binary(max_size=30) | VALUES.map(lambda value: json.dumps(value).encode()), st.booleans())
async def test_continue_tokens(furnished: Conversation, token: bytes, encoded: bool) -> None:
    text = base64.urlsafe_b64encode(token).decode() if encoded else quote(token)
    await survives(furnished, "GET", f"{CONFIGS}?limit=1&continue={text}")


MANY = "9" * 5000
PODS_CONTAINER = {"name": "c", "image": "i"}
BEYOND = [
    (PODS, {"spec": {"containers": [{**PODS_CONTAINER, "resources": {"limits": {"cpu": MANY}}}]}}),
    (PODS, {"spec": {"containers": [{**PODS_CONTAINER, "resources": {"limits": {"cpu": f"1e{MANY}"}}}]}}),
    (PODS, {"spec": {"containers": [PODS_CONTAINER], "activeDeadlineSeconds": 10**400}}),
    (PODS, {"metadata": {"name": "n", "resourceVersion": MANY}, "spec": {"containers": [PODS_CONTAINER]}}),
    (PODS, {"metadata": {"name": "n", "creationTimestamp": "99999-13-45T99:99:99Z"}}),
    (NODES, {"metadata": {"name": "n"}, "spec": {"podCIDR": f"10.0.0.0/{MANY}"}}),
    (CONFIGS, {"metadata": {"name": "n", "generation": -(10**30)}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"minAvailable": f"{MANY}%"}}),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"renewTime": "0000-00-00T00:00:00Z"}},
    ),
    ("/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 1, "targetPort": MANY}]}}),
    ("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"pods": f"-{MANY}"}}}),
]


@pytest.mark.parametrize(("target", "body"), BEYOND)
async def test_values_beyond_all_bounds(furnished: Conversation, target: str, body: dict[str, Any]) -> None:
    named = {**body, "metadata": {"name": "n", **body.get("metadata", {})}}
    await survives(furnished, "POST", target, json.dumps(named).encode(), Content_Type="application/json")
    await survives(
        furnished, "PUT", f"{target}/n", json.dumps(named).encode(), Content_Type="application/json"
    )
    for media_type in PATCHES:
        sent = json.dumps(named).encode()
        await survives(
            furnished, "PATCH", f"{target}/n?fieldManager=m", sent, Content_Type=f"application/{media_type}"
        )


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
async def test_deep_bodies_are_refused(furnished: Conversation, kind: str, body: bytes) -> None:
    for method, target in (("POST", PODS), ("PUT", f"{PODS}/p"), ("DELETE", f"{PODS}/p")):
        refused = await survives(furnished, method, target, body, Content_Type=kind)
        assert refused.status in (400, 422), refused.body


@pytest.mark.parametrize("kind", PATCHES)
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"metadata":' * 50_000, b'{"data":' * 900 + b"1" + b"}" * 900]
)
async def test_deep_patches_are_refused(furnished: Conversation, kind: str, body: bytes) -> None:
    target = f"{CONFIGS}/a?fieldManager=m"
    refused = await survives(furnished, "PATCH", target, body, Content_Type=f"application/{kind}")
    assert refused.status in (400, 422), refused.body


async def test_deep_records_of_managers_are_not_kept(furnished: Conversation) -> None:
    fields = b'{"f:a":' * 600 + b"{}" + b"}" * 600
    entry = (
        b'[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":' + fields
    )
    body = b'{"metadata":{"managedFields":' + entry + b"}]}}"
    answer = await furnished.patch(f"{CONFIGS}/a", body)
    assert answer.status in (200, 400)
    left = (await furnished.raw("GET", f"{CONFIGS}/a")).body
    assert isinstance(left, bytes) and b"f:a" not in left


async def test_a_body_beyond_the_limit(furnished: Conversation) -> None:
    refused = await survives(furnished, "POST", CONFIGS, b" " * (3 * 1024 * 1024 + 1))
    assert refused.status == 413
