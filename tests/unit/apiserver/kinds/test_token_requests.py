"""R-SYS-4: tokens of service accounts: asked for as `kubectl create token` does, and good for what."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from podling.apiserver.authn.tokens import ISSUER

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authentication.k8s.io/v1"
POD: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture(autouse=True)
async def default_roles(api: Conversation) -> None:
    """What every account may ask."""
    await api.server.have_default_roles()


async def ask(api: Conversation, **spec: Any) -> Any:
    return await api.post(f"{ACCOUNT}/token", {"spec": spec})


async def token(api: Conversation, **spec: Any) -> str:
    answer = await ask(api, **spec)
    assert answer.status == 201, answer.body
    return str(answer.body["status"]["token"])


def said(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def who(api: Conversation, token: str) -> Any:
    """The user the server takes the token's bearer for; None when it refuses."""
    root, api.user = api.user, None
    answer = await api.post(f"{REVIEWS}/selfsubjectreviews", {}, Authorization=f"Bearer {token}")
    api.user = root
    return answer.body["status"]["userInfo"] if answer.status == 201 else None


async def test_a_token_of_an_hour(api: Conversation) -> None:
    answer = await ask(api)
    assert answer.body["kind"] == "TokenRequest"
    assert answer.body["metadata"] | {"name": "default", "namespace": "default"} == answer.body["metadata"]
    assert answer.body["spec"] == {
        "audiences": [ISSUER],
        "expirationSeconds": 3600,
        "boundObjectRef": None,
    }
    assert answer.body["status"]["expirationTimestamp"] == "2026-01-02T04:04:05Z"
    uid = (await api.get(ACCOUNT)).body["metadata"]["uid"]
    claims = said(answer.body["status"]["token"])
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": 1767326645,
        "iat": 1767323045,
        "nbf": 1767323045,
        "iss": ISSUER,
        "sub": "system:serviceaccount:default:default",
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "default", "uid": uid}},
    }


async def test_its_bearer_is_the_account(api: Conversation) -> None:
    issued = await token(api)
    assert await who(api, issued) == {
        "username": "system:serviceaccount:default:default",
        "uid": (await api.get(ACCOUNT)).body["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={said(issued)['jti']}"]},
    }


async def test_a_token_is_no_pass_for_everything(api: Conversation) -> None:
    """Its account was bound to no role."""
    issued = await token(api)
    api.user = None
    assert (await api.get(PODS, Authorization=f"Bearer {issued}")).status == 403
    assert (await api.get("/openid/v1/jwks", Authorization=f"Bearer {issued}")).status == 200


@pytest.mark.parametrize(("seconds", "good"), [(0, True), (3660, True), (3661, False)])
async def test_a_token_ends(api: Conversation, seconds: int, good: bool) -> None:
    """Clocks may differ by a minute."""
    issued = await token(api)
    api.clock.move(seconds)
    assert bool(await who(api, issued)) is good


async def test_a_token_of_another_key_is_none(api: Conversation) -> None:
    issued = await token(api)
    await api.restart()
    assert await who(api, issued) is None


async def test_an_account_of_the_same_name_is_another(api: Conversation) -> None:
    issued = await token(api)
    await api.delete(ACCOUNT)
    assert await who(api, issued) is None
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    assert await who(api, issued) is None


async def test_a_token_of_a_pod_ends_with_the_pod(api: Conversation) -> None:
    uid = (await api.post(PODS, POD)).body["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "a", "uid": uid}
    issued = await token(api, boundObjectRef=bound)
    extra = (await who(api, issued))["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["a"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [uid]
    await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert await who(api, issued) is None


async def test_a_pod_that_is_being_deleted_keeps_its_token_a_minute(api: Conversation) -> None:
    await api.post(PODS, POD)
    await api.post(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    issued = await token(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "a"})
    assert (await who(api, issued))["extra"]["authentication.kubernetes.io/node-name"] == ["n"]
    assert (await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 30})).body["metadata"]["deletionTimestamp"]
    assert await who(api, issued)
    api.clock.move(91)
    assert await who(api, issued) is None


async def test_a_pod_s_token_for_the_server_lives_on_when_it_should_have_been_renewed(
    api: Conversation,
) -> None:
    await api.post(PODS, POD)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "a"}
    answer = await ask(api, boundObjectRef=bound, expirationSeconds=3607)
    claims = said(answer.body["status"]["token"])
    assert answer.body["status"]["expirationTimestamp"] == "2026-01-02T04:04:12Z"
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    elsewhere = said(await token(api, boundObjectRef=bound, expirationSeconds=3607, audiences=["vault"]))
    assert elsewhere["exp"] - elsewhere["iat"] == 3607


async def test_a_token_for_someone_else_is_none_here(api: Conversation) -> None:
    issued = await token(api, audiences=["vault", "bank"])
    assert await who(api, issued) is None
    spec = {"token": issued, "audiences": ["bank", "post"]}
    review = (await api.post(f"{REVIEWS}/tokenreviews", {"spec": spec})).body["status"]
    assert (review["authenticated"], review["audiences"]) == (True, ["bank"])
    here = (await api.post(f"{REVIEWS}/tokenreviews", {"spec": {"token": issued}})).body["status"]
    why = f'token audiences ["vault" "bank"] is invalid for the target audiences ["{ISSUER}"]'
    assert here == {"user": {}, "error": f"[invalid bearer token, {why}]"}


async def test_reviews_know_the_token(api: Conversation) -> None:
    review = (await api.post(f"{REVIEWS}/tokenreviews", {"spec": {"token": await token(api)}})).body
    assert review["status"]["authenticated"] and review["status"]["audiences"] == [ISSUER]
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:default"


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        ({"expirationSeconds": 599}, 422,
         'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: '
         "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": (1 << 32) + 1}, 422,
         'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: '
         "4294967297: may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "x"}}, 404, 'pods "x" not found'),
        ({"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "x"}}, 404, 'nodes "x" not found'),
        ({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "u"}}, 409,
         'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (u) does not '
         "match the UID in record. The object might have been deleted and then recreated"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "o"}}, 400,
         'cannot bind token for serviceaccount "default" to pod running with different serviceaccount name.'),
        ({"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "x"}}, 400,
         "cannot bind token to object of type batch/v1, Kind=Job"),
    ],
)  # fmt: skip
async def test_refusals(api: Conversation, spec: Any, status: int, message: str) -> None:
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "other"}})
    other = {"metadata": {"name": "o"}, "spec": {**POD["spec"], "serviceAccountName": "other"}}
    await api.post(PODS, other)
    answer = await ask(api, **spec)
    assert (answer.status, answer.message) == (status, message)


async def test_an_account_that_is_not_there(api: Conversation) -> None:
    answer = await api.post(f"{ACCOUNT}-2/token", {"spec": {}})
    assert (answer.status, answer.message) == (404, 'serviceaccounts "default-2" not found')


async def test_bound_to_a_secret(api: Conversation) -> None:
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    issued = await token(api, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"})
    assert await who(api, issued)
    await api.delete("/api/v1/namespaces/default/secrets/s")
    assert await who(api, issued) is None


async def test_others_find_the_key(api: Conversation) -> None:
    found = (await api.get("/.well-known/openid-configuration")).body
    assert found["issuer"] == ISSUER
    assert found["jwks_uri"].endswith("/openid/v1/jwks")
    answer = await api.raw("GET", "/openid/v1/jwks")
    assert answer.content_type == "application/jwk-set+json"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"
    assert isinstance(answer.body, bytes)
    kid = json.loads(base64.urlsafe_b64decode((await token(api)).split(".")[0] + "=="))["kid"]
    assert [key["kid"] for key in json.loads(answer.body)["keys"]] == [kid]
