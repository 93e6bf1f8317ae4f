"""R-SYS-1: creating objects, and what Kubernetes answers when that cannot be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

CONFIGS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def config(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


async def test_a_taken_name(api: Conversation) -> None:
    await api.post(CONFIGS, config())
    answer = await api.post(CONFIGS, config())
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'configmaps "a" already exists'


async def test_a_generated_name(api: Conversation) -> None:
    made = [await api.post(CONFIGS, {"metadata": {"generateName": "web-"}}) for _ in range(5)]
    names = [answer.body["metadata"]["name"] for answer in made]
    assert all(re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert len(set(names)) == 5


async def test_a_dry_run_creates_nothing(api: Conversation) -> None:
    answer = await api.post(f"{CONFIGS}?dryRun=All", config())
    assert answer.status == 201 and "resourceVersion" not in answer.body["metadata"]
    assert (await api.get(f"{CONFIGS}/a")).status == 404
    await api.post(CONFIGS, config())
    assert (await api.post(f"{CONFIGS}?dryRun=All", config())).status == 409


async def test_the_server_decides_identity(api: Conversation) -> None:
    claimed = {
        "name": "a",
        "uid": "mine",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "selfLink": "/x",
        "managedFields": [{"manager": "me"}],
    }
    meta = (await api.post(CONFIGS, {"metadata": claimed})).body["metadata"]
    assert meta["uid"] != "mine" and meta["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert not meta.keys() & {"deletionTimestamp", "selfLink", "managedFields"}


async def test_yaml_bodies(api: Conversation) -> None:
    body = b"metadata:\n  name: a\n  annotations: {day: 2026-01-01}\ndata: {k: 'v'}\n"
    refused = await api.post(CONFIGS, body, Content_Type="application/yaml")
    assert refused.status == 201
    assert refused.body["metadata"]["annotations"] == {"day": "2026-01-01"}


REFUSED = [
    # body, headers, query, status, part of the message
    (b"{", {}, "", 400, "json parse error"),
    (b"[]", {}, "", 400, "cannot unmarshal array"),
    (b"", {}, "", 400, ""),
    (b"- &a [x]\n- *a\n", {"Content_Type": "application/yaml"}, "", 400, "aliases are not accepted"),
    (b"{}", {"Content_Type": "text/plain"}, "", 415, "accepted media types include"),
    (b"{}", {"Content_Type": "application/vnd.kubernetes.protobuf"}, "", 400, "protobuf"),
    (b"{}", {"Accept": "text/html"}, "", 406, "Available representations: application/json"),
    (b"x" * (3 * 1024 * 1024 + 1), {}, "", 413, "limit is 3145728"),
    ({"metadata": {}}, {}, "", 422, "metadata.name: Required value: name or generateName is required"),
    (config("A_b"), {}, "", 422, "a lowercase RFC 1123 subdomain must consist of"),
    (
        {"metadata": {"name": "a", "namespace": "other"}},
        {},
        "",
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        {"metadata": {"name": "a", "resourceVersion": "7"}},
        {},
        "",
        400,
        "resourceVersion should not be set on objects to be created",
    ),
    (
        config(kind="Secret", apiVersion="v1"),
        {},
        "",
        400,
        "cannot be handled as a ConfigMap",
    ),
    (config(kind="Novel", apiVersion="v1"), {}, "", 400, 'no kind "Novel" is registered for version "v1"'),
    (
        config(kind="ConfigMap", apiVersion="v2"),
        {},
        "",
        400,
        'no kind "ConfigMap" is registered for version "v2"',
    ),
    (config(spec=1), {}, "?fieldValidation=Strict", 400, 'strict decoding error: unknown field "spec"'),
    (config(), {}, "?dryRun=Some", 422, 'Unsupported value: ["Some"]'),
]


@pytest.mark.parametrize(("body", "headers", "query", "status", "message"), REFUSED)
async def test_refusals(
    api: Conversation, body: Any, headers: Any, query: str, status: int, message: str
) -> None:
    answer = await api.post(CONFIGS + query, body, **headers)
    assert answer.status == status, answer.body
    assert message in answer.message
    assert answer.body["kind"] == "Status" and answer.body["code"] == status


async def test_unknown_fields_are_warned_of(api: Conversation) -> None:
    answer = await api.post(CONFIGS, config(spec=1))
    assert answer.status == 201
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec\\""'
    ignored = await api.post(f"{CONFIGS}?fieldValidation=Ignore", config("b", spec=1))
    assert "Warning" not in ignored.headers


async def test_who_makes_what_nobody_acts_on_is_told(api: Conversation) -> None:
    ingress = {
        "metadata": {"name": "a"},
        "spec": {"defaultBackend": {"resource": {"kind": "A", "name": "a"}}},
    }
    made = await api.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress)
    assert made.status == 201, made.body
    assert "podling has no ingress controller: nothing serves this one" in made.headers["Warning"]


async def test_keys_that_yaml_says_twice(api: Conversation) -> None:
    """What JSON keeps for `fieldValidation` to find, YAML has lost once it has become JSON."""
    body = b"metadata:\n  name: a\ndata:\n  k: v\n  k: w\n"
    strict = await api.post(f"{CONFIGS}?fieldValidation=Strict", body, Content_Type="application/yaml")
    assert strict.status == 400
    assert strict.message.endswith(
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "k" already set in map'
    )
    warned = await api.post(CONFIGS, body, Content_Type="application/yaml")
    assert 'line 5: key \\"k\\" already set in map' in warned.headers["Warning"]


async def test_an_owner_that_is_named_twice_is_kept_once(api: Conversation) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"}
    other = {**owner, "uid": "u-2"}
    body = {"metadata": {"name": "a", "ownerReferences": [owner, other, owner]}}
    made = await api.post(CONFIGS, body)
    assert made.body["metadata"]["ownerReferences"] == [owner, other]
    assert made.headers["Warning"].endswith('duplicate UID(s) observed: u-1"')
    assert "after mutating admission" not in made.headers["Warning"]
    put = await api.put(f"{CONFIGS}/a", body)
    assert put.body["metadata"]["ownerReferences"] == [owner, other] and "u-1" in put.headers["Warning"]
    patched = await api.patch(f"{CONFIGS}/a", body)
    assert patched.body["metadata"]["ownerReferences"] == [owner, other]
    assert "after mutating admission happens" in patched.headers["Warning"]


async def test_where_nothing_can_be_created(api: Conversation) -> None:
    assert (await api.post(f"{CONFIGS}/a", config())).status == 405
    assert (await api.post("/api/v1/configmaps", config())).status == 405
    assert (await api.post("/api/v1/novels", config())).status == 404
    assert (await api.post("/api/v1/namespaces/default/nodes", config())).status == 404


async def test_a_pod_gets_generation_and_defaults(api: Conversation) -> None:
    """R-SYS-1: generation counts from one; what the client left open is filled in."""
    spec = {"containers": [{"name": "c", "image": "busybox"}]}
    pod = (await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec})).body
    assert pod["metadata"]["generation"] == 1
    assert pod["spec"]["restartPolicy"] == "Always"
    assert pod["status"]["phase"] == "Pending"


async def test_an_object_etcd_would_not_take_is_refused_and_tried_all_the_same(api: Conversation) -> None:
    """As kube-apiserver: a dry run asks no etcd."""
    variable = {"name": "E", "value": "x" * 1_600_000}
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [variable]}]},
    }
    refused = await api.post(PODS, pod)
    assert (refused.status, refused.message) == (500, "etcdserver: request is too large")
    assert "reason" not in refused.body
    assert (await api.post(f"{PODS}?dryRun=All", pod)).status == 201
    assert (await api.get(f"{PODS}/p")).status == 404
