"""Requests for certificates: the API server writes who asks, and refuses what would make anybody master."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding

from podling.apiserver.authz.authorizers import (
    ALLOW,
    NO_OPINION,
    MastersAuthorizer,
    Opinion,
)
from podling.apiserver.request.request import RequestInfo, User

if TYPE_CHECKING:
    from unit.apiserver.conftest import Conversation

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT, OTHER = "kubernetes.io/kube-apiserver-client", "example.test/signer"
APPROVED = {"type": "Approved", "status": "True"}


def body(signer: str, *organizations: str) -> dict[str, Any]:
    names = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, one) for one in organizations]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    pem = builder.sign(ed25519.Ed25519PrivateKey.generate(), None).public_bytes(Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": spec}


async def test_nobody_asks_in_another_name(api: Conversation) -> None:
    sent = body(OTHER)
    sent["spec"] |= {"username": "mallory", "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}}
    spec = (await api.post(REQUESTS, sent)).body["spec"]
    assert spec["username"] != "mallory"
    assert "g" not in spec["groups"]
    assert not {"uid", "extra"} & spec.keys()


@pytest.mark.parametrize(
    ("signer", "group", "status"),
    [(CLIENT, "system:masters", 403), (CLIENT, "team", 201), (OTHER, "system:masters", 201)],
)
async def test_no_client_certificate_is_for_masters(
    api: Conversation, signer: str, group: str, status: int
) -> None:
    assert (await api.post(REQUESTS, body(signer, "a", group))).status == status


async def test_a_decision_has_its_time_and_stays(api: Conversation) -> None:
    await api.post(REQUESTS, body(OTHER))
    first = await api.patch(f"{REQUESTS}/r/approval", {"status": {"conditions": [APPROVED]}})
    (decided,) = first.body["status"]["conditions"]
    assert decided["lastUpdateTime"] and decided["lastTransitionTime"]
    again = await api.patch(f"{REQUESTS}/r/approval", {"status": {"conditions": []}})
    assert again.status == 422
    assert 'may not remove a condition of type "Approved"' in again.message


@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        ({"example.test/signer"}, 200),
        ({"example.test/*"}, 200),
        ({"example.test/other"}, 403),
        (set(), 403),
    ],
)
async def test_a_signers_requests_are_for_who_may_decide_them(
    api: Conversation, allowed: set[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def authorize(self: Any, user: User, info: RequestInfo) -> Opinion:
        return ALLOW if info.resource != "signers" or info.name in allowed else NO_OPINION

    monkeypatch.setattr(MastersAuthorizer, "authorize", authorize)
    await api.post(REQUESTS, body(OTHER))
    approved = await api.patch(f"{REQUESTS}/r/approval", {"status": {"conditions": [APPROVED]}})
    assert approved.status == code
    standing = [APPROVED] if code == 200 else []
    failed = {"status": {"conditions": [*standing, {"type": "Failed", "status": "True"}]}}
    signed = await api.patch(f"{REQUESTS}/r/status", failed)
    assert signed.status == code
    if code == 403:
        assert approved.message.endswith(
            'user not permitted to approve requests with signerName "example.test/signer"'
        )
        assert signed.message.endswith(
            'user not permitted to sign requests with signerName "example.test/signer"'
        )
    labelled = await api.patch(f"{REQUESTS}/r/status", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.status == 200


async def test_until_there_is_rbac_a_client_certificate_is_warned_of(api: Conversation) -> None:
    made = await api.post(REQUESTS, body(CLIENT))
    assert "podling has no RBAC" in made.headers["Warning"]
