"""Tokens are recognised by who signed them, whatever else is tried."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.apiserver.authn.tokens import SigningKey, TokenFault
from podling.machine.pki import Authority

KEY = SigningKey.made()


def fault_of(token: str) -> str:
    with pytest.raises(TokenFault) as raised:
        KEY.verified(token)
    return str(raised.value)


def test_what_is_signed_is_recognised() -> None:
    assert KEY.verified(KEY.sign(b'{"a":1}')) == b'{"a":1}'


def test_others_are_not() -> None:
    token = KEY.sign(b'{"a":1}')
    head, payload, signature = token.split(".")
    forged = base64.urlsafe_b64encode(b'{"a":2}').rstrip(b"=").decode()
    for other in (f"{head}.{forged}.{signature}", f"{head}.{payload}.", SigningKey.made().sign(b'{"a":1}')):
        assert fault_of(other)


def test_no_signature_is_none() -> None:
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    assert "cryptographic primitive" in fault_of(f"{head}.e30.")


def test_the_public_key_is_no_secret_to_sign_with() -> None:
    """The confusion of algorithms: a public key taken for a shared secret."""
    secret = KEY.jwk()["x"].encode()
    assert fault_of(jwt.PyJWS().encode(b"{}", secret, algorithm="HS256"))


@given(st.text())
def test_anything_else_is_none(text: str) -> None:
    assert fault_of(text)


def test_others_can_check_by_the_public_key() -> None:
    described = KEY.jwk()
    assert described["kid"] == KEY.id
    token = KEY.sign(b'{"aud":"x"}')
    assert jwt.get_unverified_header(token)["kid"] == KEY.id
    assert jwt.decode(token, jwt.PyJWK(described).key, ["ES256"], audience="x") == {"aud": "x"}


def test_a_key_of_the_cluster_s_authority_will_do(tmp_path: Path) -> None:
    authority = Authority(tmp_path, datetime(2026, 1, 1, tzinfo=UTC))
    pem = authority.signing_key("sa").read_bytes()
    assert SigningKey.of_pem(pem).id == SigningKey.of_pem(pem).id
    with pytest.raises(ValueError, match="PEM"):
        SigningKey.of_pem(b"nonsense")
