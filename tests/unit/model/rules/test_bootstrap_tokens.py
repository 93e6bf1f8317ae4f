"""R-SYS-8: bootstrap tokens are made as kubeadm makes them."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podling.machine.pki import Authority
from podling.model.rules.bootstrap_tokens import TOKEN, has_expired, key_hashes, new_token, secret_of, told

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_secret_is_what_kubeadm_makes() -> None:
    secret = secret_of("abcdef.0123456789abcdef", NOW, "for one")
    assert (secret.metadata.namespace, secret.metadata.name) == ("kube-system", "bootstrap-token-abcdef")
    assert secret.type == "bootstrap.kubernetes.io/token"
    assert told(secret) == {
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "description": "for one",
        "expiration": "2026-01-02T03:04:05Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
    }


def test_a_token_without_an_end_does_not_expire() -> None:
    said = told(secret_of(new_token(), None))
    assert not {"expiration", "description"} & said.keys()
    assert not has_expired(said, NOW)


def test_tokens_that_are_drawn_differ() -> None:
    drawn = {new_token() for _ in range(100)}
    assert len(drawn) == 100
    assert all(map(TOKEN.fullmatch, drawn))


@pytest.mark.parametrize(
    "text", ["", "abcdef", "abcdef.0123", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef\n"]
)
def test_what_is_no_token_makes_no_secret(text: str) -> None:
    with pytest.raises(ValueError, match="is no bootstrap token"):
        secret_of(text, None)


def test_the_hash_of_an_authority_is_the_one_that_openssl_computes_for_kubeadm(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW).ca.certificate
    steps = f"x509 -pubkey -in {authority} -noout", "pkey -pubin -outform der", "dgst -sha256 -r"
    command = " | ".join(f"openssl {step}" for step in steps)
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert key_hashes(authority.read_bytes()) == [f"sha256:{said.split()[0]}"]
